"""Scores of single sentences from one score file: raw, normalised for length, and for the frequency of their words.

    lp        ln p of the sentence                        mean_lp   lp / n
    pen_lp    lp / ((5 + n) / 6)^0.8                      norm_lp   -lp / u
    slor      (lp - u) / n                                morcela   (lp - beta u + gamma) / n

n counts tokens, u is the sum of their unigram log-probabilities (Pauls and Klein 2012; Lau et al. 2017, 2020, table 1).
beta and gamma are those of the highest correlation with ratings, by a linear regression of these on lp / n, u / n and
1 / n (Tjuatja et al. 2024, arXiv:2411.02528, equation 4): slor is morcela with beta = 1 and gamma = 0. As they are
fitted to the ratings that they are compared with, the score of a sentence comes from a fit to the others (`FOLDS`).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from eval.scores.normalised import Array, morcela
from pairscale.seeds import permutation

Numbers = npt.NDArray[np.int64]

SCORES = ("lp", "mean_lp", "pen_lp", "norm_lp", "slor", "morcela")
WITH_UNIGRAMS = ("norm_lp", "slor", "morcela")
ALPHA = 0.8  # of pen_lp
FOLDS = 5
SEED = 1  # of the folds, which are the same for all runs


@dataclass(frozen=True)
class Morcela:
    """A regression of ratings: alpha lp / n + unigram u / n + length / n + intercept."""

    alpha: float
    unigram: float
    length: float
    intercept: float

    @classmethod
    def fit(cls, rows: pd.DataFrame, ratings: Array) -> "Morcela":
        """Fit by least squares; `rows`: columns lp, unigram_lp, tokens."""
        return cls(*np.linalg.lstsq(_features(rows), ratings, rcond=None)[0].tolist())

    def predict(self, rows: pd.DataFrame) -> Array:
        """Return ratings (S,) by the regression: morcela, put on the scale of ratings where alpha is above 0."""
        weights = np.asarray([self.alpha, self.unigram, self.length, self.intercept])
        return np.asarray(_features(rows) @ weights)

    @property
    def beta(self) -> float:
        """The weight of unigram log-probability; NaN unless sentences of higher probability are rated higher."""
        return -self.unigram / self.alpha if self.alpha > 0 else np.nan

    @property
    def gamma(self) -> float:
        """The weight of length, nats; NaN as `beta`."""
        return self.length / self.alpha if self.alpha > 0 else np.nan


def _features(rows: pd.DataFrame) -> Array:
    """Return (S, 4) lp / n, u / n, 1 / n, 1."""
    n = rows["tokens"].to_numpy(np.float64)
    of = [rows["lp"].to_numpy(np.float64) / n, rows["unigram_lp"].to_numpy(np.float64) / n, 1 / n, np.ones(len(n))]
    return np.stack(of, axis=1)


def scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of SCORES (S,) for columns of eval.scores.schemas.SENTENCES; those without unigrams lack.

    morcela is cross-validated, on the scale of the ratings; of a table with labels alone, these are its ratings (1, 0).
    NaN for sentences without a score.
    """
    lp, u, n = (np.asarray(rows[name], np.float64) for name in ("lp", "unigram_lp", "tokens"))
    table = pd.DataFrame(
        {
            "lp": lp,
            "mean_lp": morcela(lp, np.zeros_like(lp), n, 0, 0),
            "pen_lp": lp / ((5 + n) / 6) ** ALPHA,
        },
        index=rows.index,
    )
    if np.isnan(u).all():
        return table
    table["norm_lp"] = -lp / u
    table["slor"] = morcela(lp, u, n, 1, 0)
    table["morcela"] = cross_validated(rows, people(rows), folds(rows))
    return table


def people(rows: pd.DataFrame) -> Array:
    """Return what scores are compared with (S,): ratings, or where the table has none the labels, 1 for good."""
    ratings = np.asarray(rows["rating"], np.float64)
    return ratings if np.isfinite(ratings).all() else np.asarray(rows["label"], np.float64)


def clusters(rows: pd.DataFrame) -> Numbers:
    """Return the number of each sentence's unit (S,): its pair, or the sentence itself."""
    keys = rows["pair"].astype(object).where(rows["pair"].notna(), pd.Series(rows.index, rows.index))
    return pd.factorize(keys)[0].astype(np.int64)


def folds(rows: pd.DataFrame) -> Numbers:
    """Return the fold of each sentence (S,): drawn at random, both sentences of a pair in one."""
    of = clusters(rows)
    places = np.empty(of.max() + 1, np.int64)
    places[permutation(len(places), SEED)] = np.arange(len(places)) % FOLDS
    return np.asarray(places[of], np.int64)


def cross_validated(rows: pd.DataFrame, ratings: Array, fold: Numbers) -> Array:
    """Return the ratings (S,) that fits to the other folds predict; NaN for sentences without a score."""
    known = np.isfinite(rows["lp"].to_numpy(np.float64)) & np.isfinite(ratings)
    predicted = np.full(len(rows), np.nan)
    for number in np.unique(fold):
        others, of = known & (fold != number), known & (fold == number)
        if others.sum() > _features(rows[:1]).shape[1]:
            predicted[of] = Morcela.fit(rows[others], ratings[others]).predict(rows[of])
    return predicted
