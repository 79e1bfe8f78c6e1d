"""Predict the next word after a context, as ranks of candidate words and as the most probable words.

A causal model reads `context.rstrip()`, a space and the candidate. A masked model reads the same text followed by " .",
with the candidate masked. Character offsets show which tokens belong to the candidate. If it has several tokens, its
probability is the product of their probabilities, from left to right. A masked model then reads one mask per token.
The masks are filled in from the left (policy.pll=within_word_l2r, the default), or only one token at a time is masked
(policy.pll=original).

Ranks and top words only include whole words, which are tokens that begin a word and contain letters or digits. A
tokenizer doesn't show whether a token can also begin a longer word. For a causal model, " wait" therefore counts as a
word, although its probability includes the word " waiter". If a candidate is such a longer word, its probability is
first subtracted from its first token's. A masked model sees the full stop after the word.

Each context is read once for all of its candidates, and again only for candidates that have several tokens.
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
# A function of texts (B, T) of equal length, R rows and R columns. It returns ln p (R, V) of all tokens there, in nats.
Read = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class NextWords:
    """A model's predictions after one context, for C candidates and the k most probable words."""

    logprobs: FloatArray  # (C,) nats; NaN if the model can't express the candidate
    ranks: npt.NDArray[np.int64]  # (C,) 1 + the number of more probable whole words; 0 if logprobs is NaN
    tokens: npt.NDArray[np.int64]  # (C,) number of tokens
    words: list[str]  # the k most probable whole words, most probable first
    word_logprobs: FloatArray  # (k,) nats


@dataclass(eq=False)
class Reading:
    """Tokens to read, and the uses of the predictions at their positions."""

    ids: tuple[int, ...]
    words_at: int | None = None  # the position at which the next word is predicted
    # Position, token and candidate: the token's ln p at this position is added to the candidate's ln p.
    terms: list[tuple[int, int, int]] = field(default_factory=list)
    candidates: list[int] = field(default_factory=list)  # candidates to rank at `words_at`
    contexts: list[str] = field(default_factory=list)  # contexts whose top words are predicted at `words_at`

    @property
    def positions(self) -> list[int]:
        """The positions whose predictions are used, in increasing order."""
        used = {position for position, _, _ in self.terms}
        return sorted(used if self.words_at is None else used | {self.words_at})


class Questions:
    """Questions about next words, with the texts to read and the answers so far."""

    def __init__(self, readings: list[Reading], spans: Sequence[Sequence[int]], unknown: int | None, splits: bool):
        """Prepare the answers. `spans` contains the tokens of each candidate.

        `splits` is true for causal models, because the probability of a candidate's first token includes the candidate.
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
        """The readings in two stages. The first stage computes probabilities that the second needs for ranking."""
        stages = [[one for one in self.readings if (one.words_at is None) == early] for early in (True, False)]
        return [stage for stage in stages if stage]

    def add(self, batch: Sequence[Reading], lines: Tensor, words: Mapping[int, str], k: int) -> None:
        """Add the results of a batch of readings. `lines` is ln p (R, V) of all tokens at their positions.

        `words` maps the ids of tokens that are whole words to their texts, and `k` is the number of top words to keep.
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
        """Rank candidates. `line` (V,) is ln p of the next word, and is -inf for tokens that aren't words."""
        logprobs = torch.tensor(self.logprobs[candidates], dtype=line.dtype, device=line.device)
        better = (line > logprobs[:, None]).sum(1).tolist()
        for number, count, logprob in zip(candidates, better, logprobs.tolist(), strict=True):
            held = False
            if self.splits and len(self.spans[number]) > 1:
                # The other words with this first token have p(first) - p(candidate), which is at most p(candidate).
                held = logprob < float(line[self.spans[number][0]]) <= logprob + math.log(2)
            self.ranks[number] = 1 + count - held

    def answer(self, context: str, numbers: list[int]) -> NextWords:
        """Return the predictions after a context for candidates with these numbers."""
        return NextWords(self.logprobs[numbers], self.ranks[numbers], self.tokens[numbers], *self.top[context])


def is_known(span: Sequence[int], unknown: int | None) -> bool:
    """Return True if a model can express a candidate with these tokens."""
    return len(span) > 0 and unknown not in span


def left_to_right(
    questions: Sequence[Question], tokens: Tokens, before: list[int], check_length: Callable[[str, int], None]
) -> Questions:
    """Return the texts that a causal model reads to answer questions. The tokens `before` precede each text."""
    cuts = []
    texts = [f"{context} {word}" for context, word in questions]
    for (context, _), (ids, spans) in zip(questions, tokens.encode(texts), strict=True):
        start = next((at for at, (_, end) in enumerate(spans) if end > len(context)), len(ids))
        cuts.append((tuple(ids[:start]), tuple(ids[start:])))
    known = [is_known(span, tokens.unknown) for _, span in cuts]
    readings: dict[tuple[tuple[int, ...], tuple[int, ...]], Reading] = {}
    after: dict[tuple[int, ...], Reading] = {}  # a reading that begins with this context
    shown = set()
    # Candidates of several tokens come first, because their readings also answer the questions about the others.
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
    """Return the texts that a masked model reads: context, masks and full stop (Ettinger 2020, section 6)."""
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
