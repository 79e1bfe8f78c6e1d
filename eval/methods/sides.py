"""The two sides of minimal pairs, good and bad, with the scores that a model gives their tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from corpora.words import count_characters
from eval.methods.unigrams import Counts, Unigrams
from eval.scorers.base import FloatArray, TextTooLong, TokenScores
from pairscale.errors import InputError


@dataclass(frozen=True)
class Side:
    """The good or the bad sentences of all P pairs, or texts with these sentences in them, and a model's scores."""

    name: str  # good | bad
    pairs: pd.DataFrame  # (P rows) columns of eval.scores.schemas.ITEMS; the texts are in the column `name`
    scores: Sequence[TokenScores]
    skip_unk: bool = False  # leave tokens that are <unk> out of lp and tokens
    unigrams: Unigrams | None = None

    @cached_property
    def lp(self) -> FloatArray:
        """The sum (P,) of the log-probabilities of tokens that count, nats."""
        pair, counted = self._tokens
        logprobs = np.concatenate([np.empty(0), *(score.logprobs for score in self.scores)])
        return np.bincount(pair[counted], logprobs[counted], minlength=len(self.scores)).astype(np.float64)

    @cached_property
    def tokens(self) -> Counts:
        """The number (P,) of tokens that count: <eos> included where it is scored, <unk> not where skipped."""
        pair, counted = self._tokens
        return np.bincount(pair[counted], minlength=len(self.scores))

    @cached_property
    def unk(self) -> Counts:
        """The number (P,) of tokens that are <unk>."""
        return np.asarray([score.unk.sum() for score in self.scores], dtype=np.int64)

    @cached_property
    def unigram_lp(self) -> FloatArray:
        """The unigram log-probability (P,) of the tokens that count, nats, of methods that read UNIGRAMS."""
        assert self.unigrams is not None
        return self.unigrams.sums(self.scores, self.skip_unk)[0]

    @property
    def judged(self) -> npt.NDArray[np.bool_]:
        """False (P,) where skipping <unk> leaves no token of the text itself."""
        return np.asarray([not self.skip_unk or any_known(score) for score in self.scores], dtype=np.bool_)

    @cached_property
    def _tokens(self) -> tuple[Counts, npt.NDArray[np.bool_]]:
        """The pair of each token, and whether it counts."""
        unk = np.concatenate([np.empty(0, np.bool_), *(score.unk for score in self.scores)])
        lengths = np.asarray([len(score.unk) for score in self.scores], dtype=np.int64)
        return np.repeat(np.arange(len(lengths)), lengths), ~unk if self.skip_unk else np.ones_like(unk)

    def surface(self, pair: int) -> list[str]:
        """Return the tokens of one text as they stand in it."""
        text = self._texts[pair]
        return [text[start:end] for start, end in self.scores[pair].spans.tolist()]

    @cached_property
    def _texts(self) -> list[str]:
        return list(map(str, self.pairs[self.name]))


def both_sides(
    pairs: pd.DataFrame,
    texts: Sequence[str],
    scores: Sequence[TokenScores],
    skip_unk: bool = False,
    unigrams: Unigrams | None = None,
) -> tuple[Side, Side]:
    """Return both sides of 2P texts, of the good sentences and the bad ones."""
    half = len(pairs)
    as_read = pairs.assign(good=texts[:half], bad=texts[half:])
    good, bad = (
        Side(name, as_read, of, skip_unk, unigrams) for name, of in (("good", scores[:half]), ("bad", scores[half:]))
    )
    return good, bad


def any_known(score: TokenScores) -> bool:
    """Return True if a token with characters, as `<eos>` has none, is not `<unk>`."""
    return bool((~score.unk & (np.diff(score.spans.reshape(-1, 2))[:, 0] > 0)).any())


@contextmanager
def naming_the_pair(texts: Sequence[str], pairs: pd.DataFrame) -> Iterator[None]:
    """Name the pair of a text that is too long. Texts go by pair within each side, template and order."""
    try:
        yield
    except TextTooLong as error:
        pair = pairs.iloc[texts.index(error.text) % len(pairs)]
        raise InputError(f"{error} (paradigm {pair['paradigm']}, pair {pair['pair_id']})") from None


def about(good: Side, bad: Side) -> pd.DataFrame:
    """Return the columns (P rows) that all methods share: names of pairs, characters and unknown words of sentences."""
    return pd.DataFrame(
        {
            "pair_id": good.pairs["pair_id"],
            "paradigm": good.pairs["paradigm"],
            "good_chars": good.pairs["good"].map(count_characters),
            "bad_chars": bad.pairs["bad"].map(count_characters),
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
