"""Define a sentence with its dependency tree, and align words with the characters of a sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Span = tuple[int, int]  # index of the first character, and the index after the last


@dataclass(frozen=True, slots=True)
class Tree:
    """A sentence, its words according to Universal Dependencies, and the dependency tree that they form."""

    sentence: str
    starts: list[int]  # index of each word's first character; the words of a contraction may start at the same one
    ends: list[int]
    lemmas: list[str]
    upos: list[str]
    xpos: list[str]
    feats: list[str]  # such as "Number=Sing|Person=3"; "" if there are none
    heads: list[int]  # index of each word's head, from 0; the root is its own head
    relations: list[str]

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.heads)

    @property
    def words(self) -> list[str]:
        """The words as written in the sentence."""
        return [self.sentence[start:end] for start, end in zip(self.starts, self.ends, strict=True)]


def align(sentence: str, tokens: Iterable[str]) -> list[Span] | None:
    """Return the span of each token in a sentence, or None if the tokens don't spell it, apart from white space.

    >>> align("10 000 dogs .", ["10000", "dogs", "."])
    [(0, 6), (7, 11), (12, 13)]
    """
    places = [place for place, character in enumerate(sentence) if not character.isspace()]
    bare = ["".join(token.split()) for token in tokens]
    if "".join(bare) != "".join(sentence.split()):
        return None
    spans, begin = [], 0
    for token in bare:
        end = begin + len(token)
        spans.append((places[begin], places[end - 1] + 1))
        begin = end
    return spans


def word_spans(sentence: str, span: Span, forms: Sequence[str]) -> list[Span]:
    """Return the spans of a token's words. If the words don't spell the token, each has the token's whole span.

    >>> word_spans("I don't", (2, 7), ["do", "n't"]), word_spans("zum Arzt", (0, 3), ["zu", "dem"])
    ([(2, 4), (4, 7)], [(0, 3), (0, 3)])
    """
    start, end = span
    if len(forms) > 1 and (inner := align(sentence[start:end], forms)):
        return [(start + first, start + last) for first, last in inner]
    return [span] * len(forms)
