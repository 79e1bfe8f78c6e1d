"""Token sequences to read for the probability and rank of words after contexts, whatever model reads them.

Character offsets in context and candidate tell which tokens are the candidate's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Question = tuple[str, str]  # context, candidate
Encoded = tuple[Sequence[int], Sequence[tuple[int, int]]]  # token ids, and character offsets of each


@dataclass(eq=False)
class Reading:
    """Tokens to read, and the uses of the distributions that they lead to."""

    ids: tuple[int, ...]
    terms: list[tuple[int, int, int]] = field(default_factory=list)  # position, token, candidate: ln p to add up
    words_at: int | None = None  # the position whose distribution is that of the next word
    candidates: list[int] = field(default_factory=list)  # that are ranked there
    contexts: list[str] = field(default_factory=list)  # whose most probable words they are

    @property
    def positions(self) -> list[int]:
        """Positions whose distributions are used, in order."""
        used = {position for position, _, _ in self.terms}
        return sorted(used if self.words_at is None else used | {self.words_at})


@dataclass
class Readings:
    """All readings, in stages: a candidate's terms lie in the stage where it is ranked, or before it."""

    stages: list[list[Reading]]
    tokens: npt.NDArray[np.int64]  # (N,) of each candidate
    known: npt.NDArray[np.bool_]  # (N,) whether the model can express it
    # Candidates of several tokens: the first one, whose probability holds the candidate's own (causal models only).
    first: dict[int, int]

    @property
    def all(self) -> list[Reading]:
        """The readings of all stages."""
        return [reading for stage in self.stages for reading in stage]


def left_to_right(
    questions: Sequence[Question], texts: Iterable[Encoded], before: list[int], unknown: int | None
) -> Readings:
    """Return the readings of a model that predicts each token from those before it.

    `texts` are each context and candidate with a space between them, `before` the tokens before each, `unknown` the id
    of `<unk>`.
    """
    cuts = []
    for (context, _), (ids, spans) in zip(questions, texts, strict=True):
        start = next((at for at, (_, end) in enumerate(spans) if end > len(context)), len(ids))
        cuts.append((tuple(ids[:start]), tuple(ids[start:])))
    tokens = np.asarray([len(span) for _, span in cuts], dtype=np.int64)
    known = np.asarray([len(span) > 0 and unknown not in span for _, span in cuts], dtype=np.bool_)
    readings: dict[tuple[tuple[int, ...], tuple[int, ...]], Reading] = {}
    after: dict[tuple[int, ...], Reading] = {}  # some reading that begins with a context
    shown = set()
    # Candidates of several tokens first: what is read for them tells of the others too.
    for number in sorted(range(len(questions)), key=lambda number: -int(known[number]) * int(tokens[number])):
        prefix, span = cuts[number]
        rest = span[:-1] if known[number] else ()
        reading = readings.get((prefix, rest)) if rest else after.get(prefix)
        if reading is None:
            reading = readings[prefix, rest] = Reading((*before, *prefix, *rest))
            after.setdefault(prefix, reading)
        reading.words_at = len(before) + len(prefix) - 1
        if known[number]:
            reading.terms += [(reading.words_at + at, token, number) for at, token in enumerate(span)]
            reading.candidates.append(number)
        if (context := questions[number][0]) not in shown:
            shown.add(context)
            reading.contexts.append(context)
    first = {number: span[0] for number, (_, span) in enumerate(cuts) if len(span) > 1}
    return Readings([list(readings.values())], tokens, known, first)


def hidden_words(questions: Sequence[Question], tokenizer: PreTrainedTokenizerFast, pll: str) -> Readings:
    """Return the readings of a masked model (Ettinger 2020, section 6): context, masks for the candidate, full stop."""
    texts = [f"{context} {word} ." for context, word in questions]
    encoded = tokenizer(texts, return_offsets_mapping=True, return_special_tokens_mask=True)
    copies: dict[tuple[int, ...], Reading] = {}
    single: dict[tuple[int, ...], Reading] = {}
    tokens, known = np.zeros(len(questions), np.int64), np.zeros(len(questions), np.bool_)
    shown = set()
    for number, (context, word) in enumerate(questions):
        ids, spans, special = (encoded[key][number] for key in ("input_ids", "offset_mapping", "special_tokens_mask"))
        end = len(context) + 1 + len(word)
        own = [at for at, span in enumerate(spans) if not special[at] and span[1] > len(context) and span[0] < end]
        before = [at for at, span in enumerate(spans) if not special[at] and span[0] < len(context)]
        first, last = (own[0], own[-1] + 1) if own else (before[-1] + 1, before[-1] + 1)
        hidden = (*ids[:first], tokenizer.mask_token_id, *ids[last:])
        tokens[number] = last - first
        known[number] = last > first and tokenizer.unk_token_id not in ids[first:last]
        reading = single.setdefault(hidden, Reading(hidden, words_at=first))
        reading.candidates.append(number)
        if context not in shown:
            shown.add(context)
            reading.contexts.append(context)
        if not known[number]:
            continue
        if last - first == 1:
            reading.terms.append((first, ids[first], number))
            continue
        for at in range(first, last):
            until = at + 1 if pll == "original" else last
            copy = (*ids[:at], *[tokenizer.mask_token_id] * (until - at), *ids[until:])
            copies.setdefault(copy, Reading(copy)).terms.append((at, ids[at], number))
    return Readings([list(copies.values()), list(single.values())], tokens, known, {})


class Positioned(Protocol):
    """What is read: tokens, and the positions whose distributions are used."""

    @property
    def ids(self) -> tuple[int, ...]: ...

    @property
    def positions(self) -> list[int]: ...


def reading_batches(readings: Sequence[Positioned], batch_tokens: int, most_rows: int) -> Iterator[list[int]]:
    """Yield indices of readings of one length, by falling length, with at most `most_rows` distributions at a time."""
    batch: list[int] = []
    length = rows = 0
    for index in sorted(range(len(readings)), key=lambda index: -len(readings[index].ids)):
        reading = readings[index]
        more = len(reading.positions)
        full = (len(batch) + 1) * length > batch_tokens or rows + more > most_rows
        if batch and (full or len(reading.ids) < length):
            yield batch
            batch, rows = [], 0
        length = len(reading.ids)
        batch.append(index)
        rows += more
    if batch:
        yield batch
