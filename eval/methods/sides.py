"""The two sides of minimal pairs, good and bad, with the scores that a model gives their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from corpora.words import count_characters
from eval.config import PolicyConfig
from eval.scorers.base import FloatArray, TokenScores

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """The good or the bad sentences of all P pairs, and their scores by a model."""

    name: str  # good | bad
    pairs: pd.DataFrame  # (P rows) columns of eval.scores.schemas.ITEMS
    sentences: Sequence[str]
    scores: Sequence[TokenScores]
    lp: FloatArray  # (P,) sum of the token log-probabilities that count, nats
    tokens: Counts  # (P,) how many they are: <eos> included where it is scored, <unk> not where skipped
    unk: Counts  # (P,) tokens that are <unk>
    skip_unk: bool
    judged: npt.NDArray[np.bool_]  # (P,) False where unk=skip leaves no token of the text itself
    unigram_lp: FloatArray | None = None  # (P,) nats, of the tokens that count; None: no method reads it

    @classmethod
    def of(cls, name: str, pairs: pd.DataFrame, scores: Sequence[TokenScores], policy: PolicyConfig) -> Side:
        """Return a side with sums over the tokens that the policy counts: all, or with unk=skip those but `<unk>`."""
        lengths = np.asarray([len(score.logprobs) for score in scores], dtype=np.int64)
        sentence = np.repeat(np.arange(len(scores)), lengths)
        unk = np.concatenate([np.empty(0, np.bool_), *(score.unk for score in scores)])
        logprobs = np.concatenate([np.empty(0), *(score.logprobs for score in scores)])
        counted = ~unk if policy.unk == "skip" else np.ones_like(unk)
        return cls(
            name,
            pairs,
            pairs[name].tolist(),
            scores,
            np.bincount(sentence[counted], logprobs[counted], minlength=len(scores)).astype(np.float64),
            np.bincount(sentence[counted], minlength=len(scores)),
            np.bincount(sentence[unk], minlength=len(scores)),
            policy.unk == "skip",
            np.asarray([policy.unk != "skip" or _any_known(score) for score in scores], dtype=np.bool_),
        )

    def surface(self, pair: int) -> list[str]:
        """Return the tokens of one sentence as they stand in it."""
        return [self.sentences[pair][start:end] for start, end in self.scores[pair].spans.tolist()]


def _any_known(score: TokenScores) -> bool:
    """True if a token with characters, as `<eos>` has none, is not `<unk>`."""
    return bool((~score.unk & (np.diff(score.spans.reshape(-1, 2))[:, 0] > 0)).any())


def about(good: Side, bad: Side) -> pd.DataFrame:
    """Return the columns (P rows) that all methods share: names of pairs, characters and unknown words of sentences."""
    return pd.DataFrame(
        {
            "pair_id": good.pairs["pair_id"],
            "paradigm": good.pairs["paradigm"],
            "good_chars": [count_characters(sentence) for sentence in good.sentences],
            "bad_chars": [count_characters(sentence) for sentence in bad.sentences],
            "good_unk": good.unk,
            "bad_unk": bad.unk,
            "crit_unk": critical_unk(good, bad),
        }
    )


def critical_unk(good: Side, bad: Side) -> Counts:
    """Return the number (P,) of `<unk>` tokens between what both sentences begin and end with, both sides together."""
    counts = np.zeros(len(good.scores), dtype=np.int64)
    for pair in np.flatnonzero(good.unk + bad.unk).tolist():
        good_tokens, bad_tokens = good.surface(pair), bad.surface(pair)
        first = common_start(good_tokens, bad_tokens)
        last = common_start(good_tokens[first:][::-1], bad_tokens[first:][::-1])
        for side in (good, bad):
            unk = side.scores[pair].unk
            counts[pair] += unk[first : len(unk) - last].sum()
    return counts


def common_start(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of tokens that two sequences begin with in common."""
    both = enumerate(zip(one, other, strict=False))
    return next((position for position, (left, right) in both if left != right), min(len(one), len(other)))
