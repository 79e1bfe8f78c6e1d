"""A sentence with its dependency tree, and where its words are in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Span = tuple[int, int]  # first character, and the one after the last


@dataclass(frozen=True, slots=True)
class Tree:
    """A sentence with its words as Universal Dependencies count them, and the tree that they form."""

    sentence: str
    starts: list[int]  # character of the sentence at which each word begins; words that a token contracts may share it
    ends: list[int]
    lemmas: list[str]
    upos: list[str]
    xpos: list[str]
    feats: list[str]  # "Number=Sing|Person=3", "" if none
    heads: list[int]  # index of each word's head, from 0; the root's is its own
    relations: list[str]

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.heads)

    @property
    def words(self) -> list[str]:
        """The words as they stand in the sentence."""
        return [self.sentence[start:end] for start, end in zip(self.starts, self.ends, strict=True)]


def align(sentence: str, tokens: Iterable[str]) -> list[Span] | None:
    """Return the span of each token in a sentence; None unless they are all of it. White space doesn't count.

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
    """Return the spans of the words of a token: parts of its span if they spell it, else the whole span for each.

    >>> word_spans("I don't", (2, 7), ["do", "n't"]), word_spans("zum Arzt", (0, 3), ["zu", "dem"])
    ([(2, 4), (4, 7)], [(0, 3), (0, 3)])
    """
    start, end = span
    if len(forms) > 1 and (inner := align(sentence[start:end], forms)):
        return [(start + first, start + last) for first, last in inner]
    return [span] * len(forms)
