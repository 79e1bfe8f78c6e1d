"""Judgement methods: how what a model says of a good and a bad sentence becomes two scores, the higher of which wins.

A method sees one side (good or bad) of all pairs at once, after one pass over the model that all methods share. A new
method is a function in METHODS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from corpora.errors import ConfigError, check_choice
from corpora.words import count_characters
from eval.config import MethodConfig, PolicyConfig
from eval.scorers import TokenScores

FloatArray = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """The good or the bad sentences of all P pairs, and what the model says of them."""

    sentences: Sequence[str]
    scores: Sequence[TokenScores]
    lp: FloatArray  # (P,) sum of the token log-probabilities that count, nats
    tokens: Counts  # (P,) how many they are: <eos> included where it is scored, <unk> not where skipped
    unk: Counts  # (P,) tokens that are <unk>

    @classmethod
    def of(cls, sentences: Sequence[str], scores: Sequence[TokenScores], policy: PolicyConfig) -> Side:
        """Add up the tokens that the policy counts: all, or with unk=skip those that are not `<unk>`."""
        lengths = np.asarray([len(score.logprobs) for score in scores], dtype=np.int64)
        sentence = np.repeat(np.arange(len(scores)), lengths)
        unk = np.concatenate([np.empty(0, np.bool_), *(score.unk for score in scores)])
        logprobs = np.concatenate([np.empty(0), *(score.logprobs for score in scores)])
        counted = ~unk if policy.unk == "skip" else np.ones_like(unk)
        return cls(
            sentences,
            scores,
            np.bincount(sentence[counted], logprobs[counted], minlength=len(scores)).astype(np.float64),
            np.bincount(sentence[counted], minlength=len(scores)),
            np.bincount(sentence[unk], minlength=len(scores)),
        )

    def surface(self, pair: int) -> list[str]:
        """The tokens of one sentence as they stand in it."""
        return [self.sentences[pair][start:end] for start, end in self.scores[pair].spans.tolist()]


def lp(side: Side, config: MethodConfig) -> FloatArray:
    """Log-probability of the sentence, the sum over its tokens: LP of Lau et al. 2020."""
    return side.lp


def mean_lp(side: Side, config: MethodConfig) -> FloatArray:
    """Log-probability per token: MeanLP of Lau et al. 2020. NaN where no token counts."""
    return np.divide(side.lp, side.tokens, out=np.full_like(side.lp, np.nan), where=side.tokens > 0)


def pen_lp(side: Side, config: MethodConfig) -> FloatArray:
    """LP / ((5 + n) / 6)^alpha for n tokens: PenLP of Lau et al. 2020 (the penalty of Wu et al. 2016)."""
    if config.alpha is None:
        raise ConfigError("method.pen_lp.alpha=null: must be a number, 0.8 in the paper")
    return side.lp / ((5 + side.tokens) / 6) ** config.alpha


METHODS: dict[str, Callable[[Side, MethodConfig], FloatArray]] = {"lp": lp, "mean_lp": mean_lp, "pen_lp": pen_lp}


def judge(method: str, config: MethodConfig, pairs: pd.DataFrame, good: Side, bad: Side) -> pd.DataFrame:
    """Rows of a score file (eval.scores.SCORES) of one method, without the counts of words.

    `pairs` (P rows) has pair_id and paradigm. Raises ConfigError for an unknown method.
    """
    check_choice("method", method, METHODS)
    return pd.DataFrame(
        {
            "pair_id": pairs["pair_id"],
            "paradigm": pairs["paradigm"],
            "template": None,
            "trial": None,
            "good": METHODS[method](good, config),
            "bad": METHODS[method](bad, config),
            "good_lp": good.lp,
            "bad_lp": bad.lp,
            "good_tokens": good.tokens,
            "bad_tokens": bad.tokens,
            "good_chars": [count_characters(sentence) for sentence in good.sentences],
            "bad_chars": [count_characters(sentence) for sentence in bad.sentences],
            "good_unk": good.unk,
            "bad_unk": bad.unk,
            "crit_unk": critical_unk(good, bad),
            "order": None,
        }
    )


def critical_unk(good: Side, bad: Side) -> Counts:
    """(P,) `<unk>` tokens outside what the sentences of a pair begin and end with in common, both sides together."""
    counts = np.zeros(len(good.scores), dtype=np.int64)
    for pair in np.flatnonzero(good.unk + bad.unk).tolist():
        good_tokens, bad_tokens = good.surface(pair), bad.surface(pair)
        first = _common(good_tokens, bad_tokens)
        last = _common(good_tokens[first:][::-1], bad_tokens[first:][::-1])
        for side in (good, bad):
            unk = side.scores[pair].unk
            counts[pair] += unk[first : len(unk) - last].sum()
    return counts


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Number of tokens that two sequences begin with in common."""
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return position
    return min(len(one), len(other))
