"""Agreement of a model with people who rated sentences: scores of sentences, and measures of these with intervals.

Scores of a sentence, where n counts its tokens and u is the sum of their unigram log-probabilities (Pauls and Klein
2012; Lau et al. 2017, 2020, table 1):

    lp        ln p of the sentence                        mean_lp   lp / n
    pen_lp    lp / ((5 + n) / 6)^0.8                      norm_lp   -lp / u
    slor      (lp - u) / n                                morcela   (lp - beta u + gamma) / n

beta and gamma are those of the highest correlation with ratings, by a linear regression of these on lp / n, u / n and
1 / n (Tjuatja et al. 2024, arXiv:2411.02528, equation 4): slor is morcela with beta = 1 and gamma = 0. As they are
fitted to the ratings that they are compared with, the score of a sentence comes from a fit to the others (`FOLDS`).

Measures compare scores with ratings. The influence of a sentence is by how much S times its weight would change a
statistic of S sentences (Hampel 1974). The mean of influences is 0, and the sum of their squares over S (S - 1) is the
variance of the statistic over new sentences (the infinitesimal jackknife, Efron 1982; of `auc` it is the variance of
DeLong et al. 1988, and of `pearson` that of the jackknife itself). It needs neither normal scores nor continuous
ratings, and both sentences of a pair can count as one unit, which scipy's intervals do not know.
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
SEED = 1  # of the folds, which are the same for all runs


def measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the measures of one run from its score file (columns of eval.scores.schemas.SENTENCES).

    Columns: level (the measure), name (the score: lp, slor, ...), accuracy (the value), low, high (95% interval for new
    sentences) and items (sentences, or pairs). No rows for fewer than three sentences with a score.
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
    """Yield measures of scores (S,): name, statistic, and units as in `Statistic.interval`."""
    units = clusters(rows)
    has_ratings = rows["rating"].notna().all() and rows["rating"].nunique() > 1  # nothing correlates with a constant
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


class Statistic(NamedTuple):
    """A correlation (-1 to 1) or a share (0 to 1), and its influence (S,)."""

    value: float
    influence: Array
    is_share: bool = False

    def interval(self, units: Numbers) -> tuple[float, float]:
        """Return the 95% interval for new units; `units` (S,): that of each sentence, such as its pair.

        It is Student's, on Fisher's scale: z of a correlation, or of 2 p - 1 for a share p, which is half its logit. A
        value at an end of the scale is moved in by a unit. NaN where no unit has an influence.
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
    """Correlate scores with ratings, both (S,); NaN where either does not vary.

    Influences are those of the jackknife, S - 1 times the change without a sentence (Efron 1982, section 3): with 50
    normal sentences limits then hold 95%, by the derivative 93.5%. They are NaN where one sentence alone varies.
    """
    x, y = _standardised(scores), _standardised(ratings)
    product, others = x * y, len(x) - 1
    r = product.mean()
    left = (1 - x**2 / others) * (1 - y**2 / others)  # of the variances' product, without each sentence
    without = (r - product / others) / np.sqrt(np.where(left > 1e-9, left, np.nan))
    return Statistic(float(r), others * (without.mean() - without))


def _standardised(values: Array) -> Array:
    spread = values.std()
    return np.asarray((values - values.mean()) / (spread if spread > 1e-12 * np.abs(values).max() else np.nan))


def spearman(scores: Array, ratings: Array) -> Statistic:
    """Correlate ranks, of ties their mean; NaN where either does not vary.

    Ranks are shares F(x) of the sentences below x, and half of those at it; a sentence changes the others' as well
    (Croux and Dehon 2010, without ties).
    """
    x, y = ((rankdata(values) - 0.5) / len(values) - 0.5 for values in (scores, ratings))
    (of_x, by_x), (of_y, by_y), (of_both, by_both) = _moment(x, x), _moment(y, y), _moment(x, y)
    scale = np.sqrt(of_x * of_y) if of_x and of_y else np.nan
    r = of_both / scale
    return Statistic(float(r), by_both / scale - r * (by_x / (of_x or np.nan) + by_y / (of_y or np.nan)) / 2)


def _moment(x: Array, y: Array) -> tuple[float, Array]:
    """Return the mean product of centred ranks, and its influence: of the own product, and of the ranks above."""
    mean = float((x * y).mean())
    return mean, x * y + _above(x, y) + _above(y, x) - 3 * mean


def _above(values: Array, weights: Array) -> Array:
    """Return the mean over sentences of `weights` where `values` lie above each one's, and half where tied (S,)."""
    order = np.argsort(values)
    sums = np.append(0, np.cumsum(weights[order]))
    below, until = (sums[np.searchsorted(values[order], values, side=side)] for side in ("left", "right"))
    return np.asarray((sums[-1] - (below + until) / 2) / len(values))


def auc(scores: Array, good: Bools) -> Statistic:
    """Return the share of all good and bad sentences whose scores are in the right order, a tie counting half.

    The area under the curve of hits over false alarms; pairs have no meaning for it.
    """
    wins = np.empty(len(scores))
    for side, sign in ((good, 1), (~good, -1)):
        wins[side] = (rankdata(sign * scores)[side] - rankdata(sign * scores[side])) / (~side).sum()
    area = float(wins[good].mean())
    return Statistic(area, (wins - area) / np.where(good, good.mean(), 1 - good.mean()), is_share=True)


def share(right: Bools) -> Statistic:
    """Return the share of `right` (S,) that is true."""
    return Statistic(float(right.mean()), right - right.mean(), is_share=True)


def thresholded(scores: Array, good: Bools, fold: Numbers) -> Bools:
    """Return which sentences (S,) are called good, by a threshold from the other folds.

    It calls as many of their sentences bad as are bad. The threshold of the highest accuracy, or Matthews' correlation,
    lies far out by chance where scores know little. It does worse on other sentences, by an amount that influences do
    not show: intervals were too narrow in simulations.
    """
    called = np.zeros(len(scores), np.bool_)
    for number in np.unique(fold):
        inside = fold == number
        ordered = np.concatenate([[-np.inf], np.sort(scores[~inside]), [np.inf]])
        bad = (~good[~inside]).sum()
        called[inside] = scores[inside] > ordered[bad : bad + 2].mean()
    return called
