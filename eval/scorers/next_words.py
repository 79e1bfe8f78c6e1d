"""What a model expects after a context: the probability and rank of candidate words, and the most probable words.

Causal models read `context.rstrip()` and each candidate with its space; masked ones that with " ." after it, and the
candidate hidden. Character offsets tell which tokens are the candidate's. The probability of one of several tokens is
that of all of them, left to right; a masked model then has as many masks as the candidate has tokens, which are filled
in from the left (policy.pll=within_word_l2r, the default; original: each is hidden alone).

Ranks and top words are over whole words: tokens that begin a word and look like one (letters and digits, no marks
alone). No tokenizer tells that a token also begins longer words, so a causal model's " wait" counts as a word though
its probability holds that of " waiter". If that longer word is the candidate, its first token competes with what is
left of its probability. A masked model sees the full stop that ends the word.

Each context is read once for all of its candidates, with a longer reading only if one has several tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eval.scorers.tokens import Tokens
from eval.scorers.trees import FloatArray

Question = tuple[str, str]  # context, candidate
# Texts (B, T) of equal length, R rows and R columns of them -> ln p (R, V) of all tokens there, nats.
Read = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class NextWords:
    """The words that a model expects after one context, and how it ranks C candidates."""

    logprobs: FloatArray  # (C,) nats; NaN where the model cannot express the candidate
    ranks: npt.NDArray[np.int64]  # (C,) 1 + number of whole words that are more probable; 0 where not expressible
    tokens: npt.NDArray[np.int64]  # (C,)
    words: list[str]  # the most probable whole words, the first one first
    word_logprobs: FloatArray  # (k,) nats


@dataclass(eq=False)
class Reading:
    """Tokens to read, and the uses of the distributions that they lead to."""

    ids: tuple[int, ...]
    words_at: int | None = None  # the position whose distribution is that of the next word
    terms: list[tuple[int, int, int]] = field(default_factory=list)  # position, token, candidate: ln p to add up
    candidates: list[int] = field(default_factory=list)  # that are ranked at `words_at`
    contexts: list[str] = field(default_factory=list)  # whose most probable words those at `words_at` are

    @property
    def positions(self) -> list[int]:
        """Positions whose distributions are used, in order."""
        used = {position for position, _, _ in self.terms}
        return sorted(used if self.words_at is None else used | {self.words_at})


class Questions:
    """Questions about next words: what has to be read for them, and the answers so far."""

    def __init__(self, readings: list[Reading], spans: Sequence[Sequence[int]], unknown: int | None, splits: bool):
        """`spans`: the tokens of each candidate.

        `splits`: the probability of a candidate's first token holds its own, as in causal models.
        """
        self.readings, self.splits = readings, splits
        self.spans = spans
        self.tokens = np.asarray([len(span) for span in spans], dtype=np.int64)
        self.known = np.asarray([is_known(span, unknown) for span in spans], dtype=np.bool_)
        self.logprobs = np.where(self.known, 0.0, np.nan)
        self.ranks = np.zeros(len(spans), dtype=np.int64)
        self.top: dict[str, tuple[list[str], FloatArray]] = {}

    @property
    def stages(self) -> list[list[Reading]]:
        """The readings whose terms are needed before candidates are ranked, and the others."""
        stages = [[one for one in self.readings if (one.words_at is None) == early] for early in (True, False)]
        return [stage for stage in stages if stage]

    def add(self, batch: Sequence[Reading], lines: Tensor, words: Mapping[int, str], k: int) -> None:
        """Add ln p (R, V) at the positions of a batch of readings.

        `words`: tokens that are whole words; `k`: how many of the most probable ones are wanted.
        """
        row = {key: number for number, key in enumerate((one, at) for one in batch for at in one.positions)}
        terms = [(row[one, at], token, candidate) for one in batch for at, token, candidate in one.terms]
        if terms:
            rows, tokens, candidates = (list(column) for column in zip(*terms, strict=True))
            np.add.at(self.logprobs, candidates, lines[rows, tokens].double().cpu().numpy())
        no_word = torch.ones(lines.shape[1], dtype=torch.bool)
        no_word[list(words)] = False
        lines.masked_fill_(no_word.to(lines.device), -math.inf)
        for one in batch:
            if one.words_at is None:
                continue
            line = lines[row[one, one.words_at]]
            self._rank(line, [number for number in one.candidates if self.known[number]])
            if one.contexts:
                values, best = line.topk(min(k, len(words)))
                top = [words[token] for token in best.tolist()], values.double().cpu().numpy()
                self.top |= dict.fromkeys(one.contexts, top)

    def _rank(self, line: Tensor, candidates: list[int]) -> None:
        """Rank candidates; line (V,): ln p of the next word, -inf for what is none."""
        logprobs = torch.tensor(self.logprobs[candidates], dtype=line.dtype, device=line.device)
        better = (line > logprobs[:, None]).sum(1).tolist()
        for number, count, logprob in zip(candidates, better, logprobs.tolist(), strict=True):
            held = False
            if self.splits and len(self.spans[number]) > 1:
                # p(first) - p(candidate), all that other words have of the first token, is no more than p(candidate).
                held = logprob < float(line[self.spans[number][0]]) <= logprob + math.log(2)
            self.ranks[number] = 1 + count - held

    def answer(self, context: str, numbers: list[int]) -> NextWords:
        """Return the answer to a context, with candidates by their numbers."""
        return NextWords(self.logprobs[numbers], self.ranks[numbers], self.tokens[numbers], *self.top[context])


def is_known(span: Sequence[int], unknown: int | None) -> bool:
    """Return True if a model can express a candidate of these tokens."""
    return len(span) > 0 and unknown not in span


def left_to_right(
    questions: Sequence[Question], tokens: Tokens, before: list[int], check_length: Callable[[str, int], None]
) -> Questions:
    """Return what a model reads that predicts each token from those before it; `before`: read before each text."""
    cuts = []
    texts = [f"{context} {word}" for context, word in questions]
    for (context, _), (ids, spans) in zip(questions, tokens.encode(texts), strict=True):
        start = next((at for at, (_, end) in enumerate(spans) if end > len(context)), len(ids))
        cuts.append((tuple(ids[:start]), tuple(ids[start:])))
    known = [is_known(span, tokens.unknown) for _, span in cuts]
    readings: dict[tuple[tuple[int, ...], tuple[int, ...]], Reading] = {}
    after: dict[tuple[int, ...], Reading] = {}  # some reading that begins with a context
    shown = set()
    # Candidates of several tokens first: what is read for them tells of the others too.
    for number in sorted(range(len(questions)), key=lambda number: -len(cuts[number][1]) if known[number] else 0):
        prefix, span = cuts[number]
        rest = span[:-1] if known[number] else ()
        place = len(before) + len(prefix) - 1
        reading = readings.get((prefix, rest)) if rest else after.get(prefix)
        if reading is None:
            reading = readings[prefix, rest] = Reading((*before, *prefix, *rest), place)
            check_length(texts[number], len(reading.ids))
            after.setdefault(prefix, reading)
        if known[number]:
            reading.terms += [(place + at, token, number) for at, token in enumerate(span)]
            reading.candidates.append(number)
        if (context := questions[number][0]) not in shown:
            shown.add(context)
            reading.contexts.append(context)
    return Questions(list(readings.values()), [span for _, span in cuts], tokens.unknown, splits=True)


def hidden_words(
    questions: Sequence[Question], tokens: Tokens, pll: str, check: Callable[[str, Sequence[int]], None]
) -> Questions:
    """Return what a masked model reads (Ettinger 2020, section 6): context, masks for the candidate, full stop."""
    assert tokens.mask is not None
    texts = [f"{context} {word} ." for context, word in questions]
    copies: dict[tuple[int, ...], Reading] = {}
    single: dict[tuple[int, ...], Reading] = {}
    candidates: list[Sequence[int]] = []
    shown = set()
    for number, (ids, spans, special, _) in enumerate(tokens.marked(texts)):
        check(texts[number], ids)
        context, word = questions[number]
        end = len(context) + 1 + len(word)
        own = [at for at, span in enumerate(spans) if not special[at] and span[1] > len(context) and span[0] < end]
        before = [at for at, span in enumerate(spans) if not special[at] and span[0] < len(context)]
        first, last = (own[0], own[-1] + 1) if own else (before[-1] + 1, before[-1] + 1)
        candidates.append(ids[first:last])
        hidden = (*ids[:first], tokens.mask, *ids[last:])
        reading = single.setdefault(hidden, Reading(hidden, first))
        reading.candidates.append(number)
        if context not in shown:
            shown.add(context)
            reading.contexts.append(context)
        if not is_known(candidates[-1], tokens.unknown):
            continue
        if last - first == 1:
            reading.terms.append((first, ids[first], number))
            continue
        for at in range(first, last):
            until = at + 1 if pll == "original" else last
            copy = (*ids[:at], *[tokens.mask] * (until - at), *ids[until:])
            copies.setdefault(copy, Reading(copy)).terms.append((at, ids[at], number))
    return Questions([*copies.values(), *single.values()], candidates, tokens.unknown, splits=False)
