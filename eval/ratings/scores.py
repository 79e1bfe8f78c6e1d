"""Scores of single sentences from one score file: raw, normalised for length, and for the frequency of their words.

    lp        ln p of the sentence                        mean_lp   lp / n
    pen_lp    lp / ((5 + n) / 6)^0.8                      norm_lp   -lp / u
    slor      (lp - u) / n                                morcela   (lp - beta u + gamma) / n

n counts tokens, u is the sum of their unigram log-probabilities (Pauls and Klein 2012; Lau et al. 2017, 2020, table 1).
beta and gamma are those of the highest correlation with ratings, by a linear regression of these on lp / n, u / n and
1 / n (Tjuatja et al. 2024, arXiv:2411.02528, equation 4): slor is morcela with beta = 1 and gamma = 0. As they are
fitted to the ratings that they are compared with, the score of a sentence comes from a fit to the others (`FOLDS`).
"""

import numpy as np
import numpy.typing as npt
import pandas as pd

from pairscale.seeds import permutation

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

FOLDS = 5
SEED = 1  # of the folds, which are the same for all runs


def scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the scores (S,) for columns of eval.scores.schemas.SENTENCES; without unigrams, the first three.

    morcela is cross-validated, on the scale of the ratings; of a table with labels alone, these are its ratings (1, 0).
    NaN for sentences without a score.
    """
    lp, u, n = (rows[name].astype(float) for name in ("lp", "unigram_lp", "tokens"))
    table = pd.DataFrame({"lp": lp, "mean_lp": lp / n, "pen_lp": lp / ((5 + n) / 6) ** 0.8})
    if u.isna().all():
        return table
    return table.assign(norm_lp=-lp / u, slor=(lp - u) / n, morcela=cross_validated(rows, people(rows), folds(rows)))


def people(rows: pd.DataFrame) -> Array:
    """Return what scores are compared with (S,): ratings, or where the table has none the labels, 1 for good."""
    return np.asarray(rows["rating" if rows["rating"].notna().all() else "label"], np.float64)


def clusters(rows: pd.DataFrame) -> Numbers:
    """Return the number of each sentence's unit (S,): its pair, or the sentence itself."""
    keys = rows["pair"].astype(object).where(rows["pair"].notna(), pd.Series(rows.index, rows.index))
    return pd.factorize(keys)[0].astype(np.int64)


def folds(rows: pd.DataFrame) -> Numbers:
    """Return the fold of each sentence (S,): drawn at random, both sentences of a pair in one."""
    units = clusters(rows)
    places = np.argsort(permutation(units.max() + 1, SEED)) % FOLDS
    return np.asarray(places[units], np.int64)


def fit(rows: pd.DataFrame, ratings: Array) -> Array:
    """Regress ratings by least squares. Returns the weights of lp / n, u / n, 1 / n and 1.

    These are alpha, -alpha beta, alpha gamma, and an intercept that puts morcela on the scale of the ratings.
    """
    return np.asarray(np.linalg.lstsq(features(rows), ratings, rcond=None)[0])


def features(rows: pd.DataFrame) -> Array:
    """Return (S, 4) lp / n, u / n, 1 / n, 1."""
    table = rows.assign(each=1.0)[["lp", "unigram_lp", "each"]].div(rows["tokens"], axis=0).assign(one=1.0)
    return table.to_numpy(np.float64)


def cross_validated(rows: pd.DataFrame, ratings: Array, fold: Numbers) -> Array:
    """Return the ratings (S,) that fits to the other folds predict; NaN for sentences without a score."""
    known = np.isfinite(rows["lp"].to_numpy(np.float64)) & np.isfinite(ratings)
    predicted = np.full(len(rows), np.nan)
    for number in np.unique(fold):
        others, own = known & (fold != number), known & (fold == number)
        if others.sum() > 4:  # weights
            predicted[own] = features(rows[own]) @ fit(rows[others], ratings[others])
    return predicted
