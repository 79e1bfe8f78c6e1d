"""Compute with the good and bad sides of minimal pairs and the scores of their tokens."""

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
    """The good or the bad sentences of P pairs, or templates filled with them, and a model's scores."""

    name: str  # "good" or "bad"
    pairs: pd.DataFrame  # P rows with the columns of eval.scores.schemas.ITEMS; column `name` contains the texts
    scores: Sequence[TokenScores]
    skip_unk: bool = False  # whether to leave <unk> tokens out of lp and tokens
    unigrams: Unigrams | None = None
    starts: Sequence[int] | None = None  # (P,) where the scored part of each text begins, after its context; None: at 0
    neutral: Side | None = None  # the same sentences after a neutral context; only methods that set `neutral` have it

    @cached_property
    def lp(self) -> FloatArray:
        """The sum (P,) of the log-probabilities of scored tokens, in nats."""
        pair, counted = self._tokens
        logprobs = np.concatenate([np.empty(0), *(score.logprobs for score in self.scores)])
        return np.bincount(pair[counted], logprobs[counted], minlength=len(self.scores)).astype(np.float64)

    @cached_property
    def tokens(self) -> Counts:
        """The number (P,) of scored tokens. <eos> is included if it is scored, and <unk> unless it is skipped."""
        pair, counted = self._tokens
        return np.bincount(pair[counted], minlength=len(self.scores))

    @cached_property
    def unk(self) -> Counts:
        """The number (P,) of <unk> tokens, without blanks before a text, which lm-evaluation-harness puts there."""
        counts = np.asarray([score.unk.sum() for score in self.scores], dtype=np.int64)
        for pair in np.flatnonzero(counts).tolist():
            score, text = self.scores[pair], self._texts[pair]
            blanks = len(text) - len(text.lstrip())
            counts[pair] -= (score.unk & (score.spans.reshape(-1, 2)[:, 1] <= blanks)).sum()
        return counts

    @cached_property
    def unigram_lp(self) -> FloatArray:
        """The unigram log-probability (P,) of scored tokens, in nats. It can only be computed if there are unigrams."""
        assert self.unigrams is not None
        return self.unigrams.sums(self.scores, self.skip_unk)[0]

    @property
    def chars(self) -> Counts:
        """The number (P,) of characters of each sentence, with the white space inside it."""
        starts = [0] * len(self._texts) if self.starts is None else self.starts
        return np.asarray([len(text[at:].strip()) for text, at in zip(self._texts, starts, strict=True)], np.int64)

    @property
    def judged(self) -> npt.NDArray[np.bool_]:
        """Whether each text (P,) can be judged. It can't if skipping <unk> leaves no token except <eos>."""
        return np.asarray([not self.skip_unk or any_known(score) for score in self.scores], dtype=np.bool_)

    @cached_property
    def _tokens(self) -> tuple[Counts, npt.NDArray[np.bool_]]:
        """The pair's index for each token, and whether the token is scored."""
        unk = np.concatenate([np.empty(0, np.bool_), *(score.unk for score in self.scores)])
        lengths = np.asarray([len(score.unk) for score in self.scores], dtype=np.int64)
        return np.repeat(np.arange(len(lengths)), lengths), ~unk if self.skip_unk else np.ones_like(unk)

    def surface(self, pair: int) -> list[str]:
        """Return the tokens of one text, as written in the text."""
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
    starts: Sequence[int] | None = None,
) -> tuple[Side, Side]:
    """Return both sides, given 2P texts and scores. The good sentences come first, then the bad ones."""
    half = len(pairs)
    as_read = pairs.assign(good=texts[:half], bad=texts[half:])
    good, bad = (
        Side(name, as_read, scores[part], skip_unk, unigrams, starts and starts[part])
        for name, part in (("good", slice(half)), ("bad", slice(half, None)))
    )
    return good, bad


def any_known(score: TokenScores) -> bool:
    """Return True if at least one token of the text, other than a final `<eos>`, is not `<unk>`."""
    return bool((~score.unk & (np.diff(score.spans.reshape(-1, 2))[:, 0] > 0)).any())


@contextmanager
def naming_the_pair(texts: Sequence[str], pairs: pd.DataFrame) -> Iterator[None]:
    """Add the pair's name to the error if a text is too long. The texts must be in the order of the pairs."""
    try:
        yield
    except TextTooLong as error:
        pair = pairs.iloc[texts.index(error.text) % len(pairs)]
        raise InputError(f"{error} It is from pair {pair['pair_id']} of {pair['paradigm']}.") from None


def about(pairs: pd.DataFrame, good: Side, bad: Side) -> pd.DataFrame:
    """Return the columns (P rows) that all methods share: the pair's name, characters and unknown tokens."""
    return pd.DataFrame(
        {
            "pair_id": pairs["pair_id"],
            "paradigm": pairs["paradigm"],
            "good_chars": pairs["good"].map(count_characters),
            "bad_chars": pairs["bad"].map(count_characters),
            "good_unk": good.unk,
            "bad_unk": bad.unk,
            "crit_unk": critical_unk(good, bad),
            "rival": pairs.get("rival"),
            "rivals": None,
        }
    )


def critical_unk(good: Side, bad: Side) -> Counts:
    """Return the number (P,) of `<unk>` tokens in the differing parts of both sentences of each pair."""
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
    """Return the length of the common beginning of two sequences, in tokens."""
    both = enumerate(zip(one, other, strict=False))
    return next((position for position, (left, right) in both if left != right), min(len(one), len(other)))
