"""Pairs from rows of one sentence and a label: good and bad by turns, or joined by their pair_id."""

from collections.abc import Iterator
from typing import NamedTuple

from eval.benchmarks.cells import shown
from eval.benchmarks.forms.form import OWN, Pair, PlacedPair
from pairscale.errors import InputError


class LabelledSentence(NamedTuple):
    """A sentence that waits for the other one of its pair.

    pair: the columns that both rows must share. own: the user's other columns, kept where both rows agree.
    """

    where: str
    label: str
    text: str
    pair: Pair
    own: dict[str, str | None]


def by_turns(sentences: list[LabelledSentence], labels: tuple[str, ...], source: str) -> Iterator[PlacedPair]:
    """Yield pairs of rows that are good and bad by turns. Raises InputError for rows in another order."""
    for index, sentence in enumerate(sentences):
        expected = labels[index % 2]
        if sentence.label.casefold() != expected.casefold():
            raise InputError(
                f"{sentence.where}: label {sentence.label}, must be {expected} "
                f"(good {labels[0]} and bad {labels[1]} by turns)"
            )
    if not sentences or len(sentences) % 2:
        raise InputError(f"{source}: {len(sentences)} sentences, must be pairs")
    for good, bad in zip(sentences[::2], sentences[1::2], strict=True):
        yield _joined(good, bad)


def by_id(sentences: list[LabelledSentence], labels: tuple[str, ...], source: str) -> Iterator[PlacedPair]:
    """Yield the two rows of each paradigm and pair_id. Raises InputError for other labels and more or fewer rows."""
    sides = {label.casefold(): side for side, label in zip(("good", "bad"), labels, strict=True)}
    waiting: dict[tuple[str, str], dict[str, LabelledSentence]] = {}
    for sentence in sentences:
        paradigm, pair_id = sentence.pair["paradigm"], sentence.pair["pair_id"]
        side = sides.get(sentence.label.casefold())
        if side is None:
            raise InputError(f"{sentence.where}: label {sentence.label}, must be {' or '.join(labels)}")
        there = waiting.setdefault((paradigm, pair_id), {})
        if side in there:
            first = there[side].where
            raise InputError(
                f"{sentence.where}: paradigm {paradigm} has two {side} sentences of pair {pair_id}, the other: {first}"
            )
        there[side] = sentence
    for (paradigm, pair_id), there in waiting.items():
        if len(there) == 1:
            ((side, sentence),) = there.items()
            other = "bad" if side == "good" else "good"
            raise InputError(f"{sentence.where}: paradigm {paradigm} has no {other} sentence of pair {pair_id}")
        yield _joined(there["good"], there["bad"])


def _joined(good: LabelledSentence, bad: LabelledSentence) -> PlacedPair:
    for name in good.pair:
        if good.pair[name] != bad.pair[name]:
            raise InputError(
                f"{bad.where}: {name} {shown(bad.pair[name])}, "
                f"but its good sentence ({good.where}) has {shown(good.pair[name])}"
            )
    own = {name: cell for name, cell in good.own.items() if bad.own.get(name) == cell}
    return good.where, {**good.pair, "good": good.text, "bad": bad.text, OWN: own}
