"""Where the words of a parser stand in a sentence, by characters; white space, which parsers change, does not count."""

from collections.abc import Iterable, Sequence

Span = tuple[int, int]  # first character, and the one after the last


def aligned(sentence: str, tokens: Iterable[str]) -> list[Span] | None:
    """Return the spans of tokens, none empty, that are all of a sentence but its white space; None if they are not.

    >>> aligned("10 000 dogs .", ["10000", "dogs", "."])
    [(0, 6), (7, 11), (12, 13)]
    """
    places = _visible(sentence)
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
    """Return the spans of the words of a token that stands at `span`.

    The words of a multi-word token divide its span if they are spelled as it is ("don't": do, n't), else share it
    ("zum": zu, dem).

    >>> word_spans("I don't", (2, 7), ["do", "n't"]), word_spans("zum Arzt", (0, 3), ["zu", "dem"])
    ([(2, 4), (4, 7)], [(0, 3), (0, 3)])
    """
    start, end = span
    if len(forms) > 1 and (inner := aligned(sentence[start:end], forms)):
        return [(start + first, start + last) for first, last in inner]
    return [span] * len(forms)


def collapsed(sentence: str) -> str:
    """Return a sentence as parsers expect it: with single spaces, and none at its ends."""
    return " ".join(sentence.split())


def uncollapsed(sentence: str, text: str, spans: Iterable[Span]) -> list[Span]:
    """Return spans of `text`, that `collapsed` makes of a sentence, as spans of the sentence.

    >>> uncollapsed("They  sleep", "They sleep", [(0, 4), (5, 10)])
    [(0, 4), (6, 11)]
    """
    place = dict(zip(_visible(text), _visible(sentence), strict=True))
    return [(place[start], place[end - 1] + 1) for start, end in spans]


def _visible(text: str) -> list[int]:
    """Return the places of the characters that are not white space."""
    return [place for place, character in enumerate(text) if not character.isspace()]
