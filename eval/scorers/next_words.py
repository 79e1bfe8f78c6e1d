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
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import FloatArray, NextWords, Scorer, length_batches
from eval.scorers.tokens import Tokens
from pairscale.errors import ConfigError
from train.loop.device import without_gradients
from train.models.loss import CHUNK_BYTES

Question = tuple[str, str]  # context, candidate
# Texts (B, T) of equal length, R rows and R columns of them -> ln p (R, V) of all tokens there, nats.
Read = Callable[[Tensor, Tensor, Tensor], Tensor]


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


class NextWordScorer(Scorer):
    """Scorers whose next words come from distributions over tokens."""

    tokens: Tokens
    device: torch.device
    batch_tokens: int
    vocabulary: int

    @abstractmethod
    def _readings(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[Readings, Read]:
        """Return what the model has to read for the questions, and the function that reads it.

        Called without gradients. Raises ConfigError for a policy that it cannot follow, InputError for long contexts.
        """

    def next_words(
        self, contexts: Sequence[str], candidates: Sequence[Sequence[str]], k: int, policy: PolicyConfig = PLAIN
    ) -> list[NextWords]:
        """Return what the model expects after each context (eval.scorers.base.Scorer.next_words)."""
        stripped = [context.rstrip() for context in contexts]
        pairs = zip(stripped, candidates, strict=True)
        questions = list(dict.fromkeys((context, word) for context, words in pairs for word in words))
        with without_gradients(self.device, policy.precision == "bf16"):
            readings, read = self._readings(questions, policy)
            if not (words := self.tokens.words()):
                raise ConfigError(f"{self.name}: none of its tokens is a whole word, so it predicts no next word")
            answers = Answers(readings, words, k)
            most = max(1, CHUNK_BYTES // (4 * self.vocabulary))
            for stage in readings.stages:
                lengths, rows = [len(one.ids) for one in stage], [len(one.positions) for one in stage]
                batches = list(length_batches(lengths, self.batch_tokens, rows, most))
                for batch in self.with_progress(batches, len(stage), "contexts"):
                    chosen = [stage[index] for index in batch]
                    tokens = torch.tensor([one.ids for one in chosen], device=self.device)
                    answers.add(chosen, read(tokens, *places([one.positions for one in chosen])))
        number = {question: index for index, question in enumerate(questions)}
        return [
            answers.of(context, [number[context, word] for word in words])
            for context, words in zip(stripped, candidates, strict=True)
        ]


class Answers:
    """Sums over the batches of all readings, and the answers that come of them."""

    def __init__(self, readings: Readings, words: dict[int, str], k: int):
        """`words`: tokens that are whole words; `k`: how many of the most probable ones are wanted."""
        self.readings, self.words, self.k = readings, words, min(k, len(words))
        self.logprobs = np.where(readings.known, 0.0, np.nan)
        self.ranks = np.zeros(len(readings.known), dtype=np.int64)
        self.top: dict[str, tuple[list[str], FloatArray]] = {}

    def add(self, batch: list[Reading], lines: Tensor) -> None:
        """Add ln p (R, V) at the positions of a batch of readings; ranks need the terms of all stages before."""
        keys = ((index, at) for index, reading in enumerate(batch) for at in reading.positions)
        row = {key: number for number, key in enumerate(keys)}
        terms = [
            (row[index, at], token, candidate)
            for index, reading in enumerate(batch)
            for at, token, candidate in reading.terms
        ]
        if terms:
            rows, tokens, candidates = (list(column) for column in zip(*terms, strict=True))
            np.add.at(self.logprobs, candidates, lines[rows, tokens].double().cpu().numpy())
        no_word = torch.ones(lines.shape[1], dtype=torch.bool)
        no_word[list(self.words)] = False
        lines.masked_fill_(no_word.to(lines.device), -math.inf)
        for index, reading in enumerate(batch):
            if reading.words_at is not None:
                self._rank(lines[row[index, reading.words_at]], reading)

    def _rank(self, line: Tensor, reading: Reading) -> None:
        """line (V,): ln p of the next word, -inf for what is none."""
        ranked = [number for number in reading.candidates if self.readings.known[number]]
        logprobs = torch.tensor(self.logprobs[ranked], dtype=line.dtype, device=line.device)
        better = (line > logprobs[:, None]).sum(1).tolist()
        for number, count, logprob in zip(ranked, better, logprobs.tolist(), strict=True):
            first = self.readings.first.get(number)
            # p(first) - p(candidate), all that other words have of the first token, is no more than p(candidate).
            held = first is not None and logprob < float(line[first]) <= logprob + math.log(2)
            self.ranks[number] = 1 + count - held
        if reading.contexts:
            values, tokens = line.topk(self.k)
            words = [self.words[token] for token in tokens.tolist()]
            self.top |= dict.fromkeys(reading.contexts, (words, values.double().cpu().numpy()))

    def of(self, context: str, numbers: list[int]) -> NextWords:
        """Return the answer to a context, with candidates by their numbers."""
        return NextWords(self.logprobs[numbers], self.ranks[numbers], self.readings.tokens[numbers], *self.top[context])


def places(positions: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Return the R rows and R columns of `positions` in a tensor (B, T, ...)."""
    rows = [row for row, columns in enumerate(positions) for _ in columns]
    return torch.tensor(rows), torch.tensor([at for columns in positions for at in columns])


def left_to_right(questions: Sequence[Question], tokens: Tokens, before: list[int]) -> Readings:
    """Return the readings of a model that predicts each token from those before it; `before`: read before each text."""
    cuts = []
    texts = tokens.encode([f"{context} {word}" for context, word in questions])
    for (context, _), (ids, spans) in zip(questions, texts, strict=True):
        start = next((at for at, (_, end) in enumerate(spans) if end > len(context)), len(ids))
        cuts.append((tuple(ids[:start]), tuple(ids[start:])))
    counts = np.asarray([len(span) for _, span in cuts], dtype=np.int64)
    known = np.asarray([len(span) > 0 and tokens.unknown not in span for _, span in cuts], dtype=np.bool_)
    readings: dict[tuple[tuple[int, ...], tuple[int, ...]], Reading] = {}
    after: dict[tuple[int, ...], Reading] = {}  # some reading that begins with a context
    shown = set()
    # Candidates of several tokens first: what is read for them tells of the others too.
    for number in sorted(range(len(questions)), key=lambda number: -int(known[number]) * int(counts[number])):
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
    return Readings([list(readings.values())], counts, known, first)


def hidden_words(questions: Sequence[Question], tokens: Tokens, pll: str) -> Readings:
    """Return the readings of a masked model (Ettinger 2020, section 6): context, masks for the candidate, full stop."""
    assert tokens.mask is not None
    texts = tokens.marked([f"{context} {word} ." for context, word in questions])
    copies: dict[tuple[int, ...], Reading] = {}
    single: dict[tuple[int, ...], Reading] = {}
    counts, known = np.zeros(len(questions), np.int64), np.zeros(len(questions), np.bool_)
    shown = set()
    for number, ((context, word), (ids, spans, special, _)) in enumerate(zip(questions, texts, strict=True)):
        end = len(context) + 1 + len(word)
        own = [at for at, span in enumerate(spans) if not special[at] and span[1] > len(context) and span[0] < end]
        before = [at for at, span in enumerate(spans) if not special[at] and span[0] < len(context)]
        first, last = (own[0], own[-1] + 1) if own else (before[-1] + 1, before[-1] + 1)
        hidden = (*ids[:first], tokens.mask, *ids[last:])
        counts[number] = last - first
        known[number] = last > first and tokens.unknown not in ids[first:last]
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
            copy = (*ids[:at], *[tokens.mask] * (until - at), *ids[until:])
            copies.setdefault(copy, Reading(copy)).terms.append((at, ids[at], number))
    return Readings([list(copies.values()), list(single.values())], counts, known, {})
