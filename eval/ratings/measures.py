"""Measure how well a model's scores of sentences agree with human ratings, with confidence intervals.

A sentence has n tokens, and u is the sum of their unigram log-probabilities. Its scores are (Pauls and Klein 2012; Lau
et al. 2017, 2020, table 1):

    lp        ln p of the sentence                        mean_lp   lp / n
    pen_lp    lp / ((5 + n) / 6)^0.8                      norm_lp   -lp / u
    slor      (lp - u) / n                                morcela   (lp - beta u + gamma) / n

beta and gamma maximise the correlation with ratings. They are estimated by linear regression of ratings on lp / n,
u / n and 1 / n (Tjuatja et al. 2024, arXiv:2411.02528, equation 4). slor is morcela with beta = 1 and gamma = 0. To
avoid scoring the fit on its own data, each sentence is scored with weights fitted to the other folds (`FOLDS`).

Measures compare scores with ratings. A sentence's influence is the derivative of a statistic of S sentences with
respect to S times the sentence's weight (Hampel 1974). The mean influence is 0. The sum of squared influences, divided
by S (S - 1), estimates the statistic's variance over new sentences (the infinitesimal jackknife, Efron 1982). For
`auc`, this is the variance of DeLong et al. 1988. For `pearson`, it is the variance of the ordinary jackknife. Scores
don't have to be normal, and ratings don't have to be continuous. Both sentences of a pair can be one unit, which
scipy's intervals don't support.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import rankdata

from pairscale.seeds import permutation

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

PEARSON, AUC = "Pearson", "AUC"
FOLDS = 5
SEED = 1  # seed for the folds, which are the same for all runs


def measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Compute the measures of one run from its score file (columns of eval.scores.schemas.SENTENCES).

    The columns are level (the measure), name (the score, such as lp or slor), accuracy (the value), low, high, and
    items (number of sentences or pairs). Low and high are a 95% confidence interval for new sentences. The table is
    empty if fewer than three sentences have a score.
    """
    known = rows["lp"].notna()
    table, rows = scores(rows)[known], rows[known].reset_index(drop=True)
    found = [
        (level, name, of.value, *of.interval(units), len(of.influence))
        for name in (table if len(rows) > 2 else ())
        for level, of, units in _measured(table[name].to_numpy(), rows)
    ]
    return pd.DataFrame(found, columns=["level", "name", "accuracy", "low", "high", "items"])


def _measured(values: Array, rows: pd.DataFrame) -> Iterator[tuple[str, Statistic, Numbers]]:
    """Yield the name, the statistic, and the units (for `Statistic.interval`) of each measure of scores (S,)."""
    units = clusters(rows)
    has_ratings = rows["rating"].notna().all() and rows["rating"].nunique() > 1  # constants have no correlation
    if has_ratings:
        yield PEARSON, pearson(values, people(rows)), units
        yield "Spearman", spearman(values, people(rows)), units
    if rows["label"].notna().all() and rows["label"].nunique() > 1:
        good = rows["label"].to_numpy(np.bool_)
        called = thresholded(values, good, folds(rows))
        yield AUC, auc(values, good), units
        yield "accuracy", share(called == good), units
        yield "MCC", pearson(called.astype(np.float64), good.astype(np.float64)), units
    if rows["pair"].notna().all():
        bad, good = rows.sort_values(["pair", "label"], kind="stable").index.to_numpy().reshape(-1, 2).T
        pairs, differences = np.arange(len(good)), values[good] - values[bad]
        yield "pairs", share(differences > 0), pairs
        if has_ratings and np.ptp(theirs := people(rows)[good] - people(rows)[bad]):
            yield "Pearson of differences", pearson(differences, theirs), pairs
            yield "Spearman of differences", spearman(differences, theirs), pairs


def scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a table of the scores of S sentences (columns of eval.scores.schemas.SENTENCES).

    Without unigram probabilities, the table has only lp, mean_lp and pen_lp. morcela is cross-validated, and on the
    scale of the ratings, or of the labels (1 and 0) if there are no ratings. Missing scores are NaN.
    """
    lp, u, n = (rows[name].astype(float) for name in ("lp", "unigram_lp", "tokens"))
    table = pd.DataFrame({"lp": lp, "mean_lp": lp / n, "pen_lp": lp / ((5 + n) / 6) ** 0.8})
    if u.isna().all():
        return table
    return table.assign(norm_lp=-lp / u, slor=(lp - u) / n, morcela=cross_validated(rows, people(rows), folds(rows)))


def people(rows: pd.DataFrame) -> Array:
    """Return (S,) the human judgements to compare scores with. These are ratings, or else labels (1 for good)."""
    return np.asarray(rows["rating" if rows["rating"].notna().all() else "label"], np.float64)


def clusters(rows: pd.DataFrame) -> Numbers:
    """Return (S,) the number of each sentence's unit, which is its pair or the sentence itself."""
    keys = rows["pair"].astype(object).where(rows["pair"].notna(), pd.Series(rows.index, rows.index))
    return pd.factorize(keys)[0].astype(np.int64)


def folds(rows: pd.DataFrame) -> Numbers:
    """Return (S,) the fold of each sentence, drawn at random. Both sentences of a pair are in the same fold."""
    units = clusters(rows)
    places = np.argsort(permutation(units.max() + 1, SEED)) % FOLDS
    return np.asarray(places[units], np.int64)


def fit(rows: pd.DataFrame, ratings: Array) -> Array:
    """Fit ratings by least squares. Return (4,) the weights of lp / n, u / n, 1 / n and 1.

    The weights are alpha, -alpha beta, alpha gamma, and an intercept. alpha and the intercept put morcela on the scale
    of the ratings.
    """
    return np.asarray(np.linalg.lstsq(features(rows), ratings, rcond=None)[0])


def features(rows: pd.DataFrame) -> Array:
    """Return (S, 4) the predictors of ratings: lp / n, u / n, 1 / n and 1."""
    table = rows.assign(each=1.0)[["lp", "unigram_lp", "each"]].div(rows["tokens"], axis=0).assign(one=1.0)
    return table.to_numpy(np.float64)


def cross_validated(rows: pd.DataFrame, ratings: Array, fold: Numbers) -> Array:
    """Return (S,) the ratings predicted by fits to the other folds, or NaN for sentences without a score."""
    known = np.isfinite(rows["lp"].to_numpy(np.float64)) & np.isfinite(ratings)
    predicted = np.full(len(rows), np.nan)
    for number in np.unique(fold):
        others, own = known & (fold != number), known & (fold == number)
        if others.sum() > 4:  # more sentences than weights
            predicted[own] = features(rows[own]) @ fit(rows[others], ratings[others])
    return predicted


class Statistic(NamedTuple):
    """A correlation (-1 to 1) or a share (0 to 1), and (S,) the influence of each sentence on it."""

    value: float
    influence: Array
    is_share: bool = False

    def interval(self, units: Numbers) -> tuple[float, float]:
        """Return the 95% confidence interval for new units. `units` (S,) is each sentence's unit, such as its pair.

        It is a Student's t interval on Fisher's z scale. For a share p, z is computed from 2 p - 1, so it is half the
        logit of p. A value at an end of the scale is moved inwards by one unit. If no unit has any influence, the
        interval is NaN.
        """
        count = int(units.max()) + 1
        influence = np.bincount(units, self.influence) * count / len(units)
        if not (np.abs(influence) > 1e-12).any():
            return np.nan, np.nan
        r = np.clip(2 * self.value - 1 if self.is_share else self.value, 1 / count - 1, 1 - 1 / count)
        error = np.sqrt((influence**2).sum() / (count * (count - 1))) * (2 if self.is_share else 1) / (1 - r**2)
        low, high = np.tanh(np.arctanh(r) + stdtrit(count - 1, 0.975) * error * np.asarray([-1, 1]))
        return ((low + 1) / 2, (high + 1) / 2) if self.is_share else (low, high)


def pearson(scores: Array, ratings: Array) -> Statistic:
    """Correlate scores (S,) with ratings (S,). The result is NaN if either does not vary.

    Influences are jackknife estimates, which are S - 1 times the change without a sentence (Efron 1982, section 3).
    With 50 normally distributed sentences, intervals then cover the true value in 95% of cases. With derivatives, they
    would cover it in 93.5%. Influences are NaN if only one sentence varies.
    """
    x, y = _standardised(scores), _standardised(ratings)
    product, others = x * y, len(x) - 1
    r = product.mean()
    left = (1 - x**2 / others) * (1 - y**2 / others)  # the product of variances without each sentence
    without = (r - product / others) / np.sqrt(np.where(left > 1e-9, left, np.nan))
    return Statistic(float(r), others * (without.mean() - without))


def _standardised(values: Array) -> Array:
    spread = values.std()
    return np.asarray((values - values.mean()) / (spread if spread > 1e-12 * np.abs(values).max() else np.nan))


def spearman(scores: Array, ratings: Array) -> Statistic:
    """Correlate the ranks of scores (S,) and ratings (S,). The result is NaN if either does not vary.

    Ties have mean ranks. The rank of x is the share of sentences below x, plus half the share of sentences equal to x.
    Influences include a sentence's effect on the other sentences' ranks (Croux and Dehon 2010, without ties).
    """
    x, y = ((rankdata(values) - 0.5) / len(values) - 0.5 for values in (scores, ratings))
    (of_x, by_x), (of_y, by_y), (of_both, by_both) = _moment(x, x), _moment(y, y), _moment(x, y)
    scale = np.sqrt(of_x * of_y) if of_x and of_y else np.nan
    r = of_both / scale
    return Statistic(float(r), by_both / scale - r * (by_x / (of_x or np.nan) + by_y / (of_y or np.nan)) / 2)


def _moment(x: Array, y: Array) -> tuple[float, Array]:
    """Return the mean product of centred ranks, and each sentence's influence through its own and other ranks."""
    mean = float((x * y).mean())
    return mean, x * y + _above(x, y) + _above(y, x) - 3 * mean


def _above(values: Array, weights: Array) -> Array:
    """Sum the `weights` of sentences with higher `values`, with half the weights of ties, for each sentence (S,).

    The sums are divided by S.
    """
    order = np.argsort(values)
    sums = np.append(0, np.cumsum(weights[order]))
    below, until = (sums[np.searchsorted(values[order], values, side=side)] for side in ("left", "right"))
    return np.asarray((sums[-1] - (below + until) / 2) / len(values))


def auc(scores: Array, good: Bools) -> Statistic:
    """Return the share of combinations of a good and a bad sentence whose scores are in the right order.

    Ties are half right. This is the area under the ROC curve. It does not take pairs into account.
    """
    wins = np.empty(len(scores))
    for side, sign in ((good, 1), (~good, -1)):
        wins[side] = (rankdata(sign * scores)[side] - rankdata(sign * scores[side])) / (~side).sum()
    area = float(wins[good].mean())
    return Statistic(area, (wins - area) / np.where(good, good.mean(), 1 - good.mean()), is_share=True)


def share(right: Bools) -> Statistic:
    """Return the share of True values in `right` (S,)."""
    return Statistic(float(right.mean()), right - right.mean(), is_share=True)


def thresholded(scores: Array, good: Bools, fold: Numbers) -> Bools:
    """Classify sentences as good (True) or bad with a threshold from the other folds. Return an array (S,).

    With this threshold, the number of sentences in these folds that are classified as bad equals the number of bad
    sentences. The threshold with the highest accuracy, or Matthews correlation, would be extreme by chance if scores
    contain little information. It would do worse on other sentences, which influences don't reflect, so intervals were
    too narrow in simulations.
    """
    called = np.zeros(len(scores), np.bool_)
    for number in np.unique(fold):
        inside = fold == number
        ordered = np.concatenate([[-np.inf], np.sort(scores[~inside]), [np.inf]])
        bad = (~good[~inside]).sum()
        called[inside] = scores[inside] > ordered[bad : bad + 2].mean()
    return called
