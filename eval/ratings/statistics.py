"""Agreement of scores with people, and how much each sentence contributes to it: arrays of R runs and S sentences.

A statistic comes with its influence function (R, S): by how much S times the weight of one sentence would change it
(Hampel 1974). The mean of influences is 0, and the sum of their squares over S (S - 1) is the variance of the statistic
over new sentences (the infinitesimal jackknife, Efron 1982; of `auc` it is the variance of DeLong et al. 1988, and of
`pearson` that of the jackknife itself). It needs neither normal scores nor continuous ratings, and differences and
means of statistics have the differences and means of their influences.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Statistic:
    """value (R,) and influence (R, S); C units of sentences after `by`."""

    value: Array
    influence: Array

    def by(self, cluster: Numbers) -> "Statistic":
        """Return the influence of units (R, C): `cluster` (S,) has the unit of each sentence, such as its pair."""
        units = int(cluster.max()) + 1
        sums = np.stack([np.bincount(cluster, row, minlength=units) for row in self.influence])
        return Statistic(self.value, sums * units / self.influence.shape[1])

    @property
    def variance(self) -> Array:
        """(R,) variance over new sentences."""
        units = self.influence.shape[1]
        return np.asarray((self.influence**2).sum(axis=1) / (units * (units - 1)))

    def mapped(self, scale: "Scale") -> "Statistic":
        """Return the statistic on the scale on which its limits are symmetric.

        A value at an end of the scale is moved in by half a unit; where no unit has an influence, its variance is not
        known (NaN).
        """
        most = 1 - 1 / self.influence.shape[1]
        value = np.clip(self.value, (1 - most) / 2 if scale.share else -most, (1 + most) / 2 if scale.share else most)
        known = np.where((np.abs(self.influence) > 1e-12).any(axis=1, keepdims=True), self.influence, np.nan)
        return Statistic(scale.forth(value), known * scale.slope(value)[:, None])


class Scale:
    """Fisher's z for correlations; for shares, which lie from 0 to 1, the logit, which is 2 z of 2 p - 1."""

    def __init__(self, share: bool):
        self.share = share

    def forth(self, value: Array) -> Array:
        """Return values on the scale; they lie within its ends."""
        return np.asarray(np.arctanh(2 * value - 1 if self.share else value))

    def back(self, value: Array) -> Array:
        z = np.tanh(value)
        return np.asarray((z + 1) / 2 if self.share else z)

    def slope(self, value: Array) -> Array:
        r = 2 * value - 1 if self.share else value
        return np.asarray((2 if self.share else 1) / (1 - r**2))


CORRELATION, SHARE = Scale(False), Scale(True)


def pearson(scores: Array, ratings: Array) -> Statistic:
    """Correlate each row of `scores` (R, S) with `ratings` (S,); NaN where either does not vary.

    Influences are those of the jackknife, S - 1 times the change without a sentence (Efron 1982, section 3): with 50
    normal sentences limits then hold 95%, by the derivative 93.5%. They are NaN where one sentence alone varies.
    """
    x, y = _standardised(scores), _standardised(ratings[None])[0]
    product, others = x * y, x.shape[1] - 1
    r = product.mean(axis=1)
    left = (1 - x**2 / others) * (1 - y**2 / others)  # of the variances' product, without each sentence
    without = (r[:, None] - product / others) / np.sqrt(np.where(left > 1e-9, left, np.nan))
    return Statistic(r, others * (without.mean(axis=1, keepdims=True) - without))


def _standardised(values: Array) -> Array:
    centred = values - values.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=1, keepdims=True))
    flat = spread <= 1e-12 * np.abs(values).max(axis=1, keepdims=True)
    return np.asarray(centred / np.where(flat, np.nan, spread))


def spearman(scores: Array, ratings: Array) -> Statistic:
    """Correlate ranks, of ties their mean.

    Ranks are shares F(x) of the sentences below x, and half of those at it; a sentence changes the others' as well
    (Croux and Dehon 2010, without ties).
    """
    y = _Ranks(ratings)
    rows = [_spearman(_Ranks(row), y) for row in scores]
    return Statistic(np.asarray([value for value, _ in rows]), np.stack([influence for _, influence in rows]))


class _Ranks:
    """Centred shares (S,) of sentences below each one, and half of those tied with it."""

    def __init__(self, values: Array):
        _, self.place, counts = np.unique(values, return_inverse=True, return_counts=True)
        below = np.cumsum(counts) - counts / 2
        self.centred = (below / len(values) - 0.5)[self.place]
        self.variance = float((self.centred**2).mean())

    def above(self, weights: Array) -> Array:
        """Return the mean over sentences of `weights` (S,) where they lie above each one, and half where tied (S,)."""
        sums = np.bincount(self.place, weights)
        return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2)[self.place] / len(weights))


def _spearman(x: _Ranks, y: _Ranks) -> tuple[float, Array]:
    if not x.variance or not y.variance:
        return np.nan, np.full(len(x.place), np.nan)
    covariance = float((x.centred * y.centred).mean())
    # Changes of the mean product: of the sentence's own, and of the ranks of those above it.
    of_product = x.centred * y.centred + x.above(y.centred) + y.above(x.centred) - 3 * covariance
    scale = np.sqrt(x.variance * y.variance)
    r = covariance / scale
    of_variance = sum((of.centred**2 + 2 * of.above(of.centred)) / of.variance - 3 for of in (x, y))
    return r, of_product / scale - r * of_variance / 2


def auc(scores: Array, good: Bools) -> Statistic:
    """Return the share of all good and bad sentences whose scores are in the right order, a tie counting half.

    The area under the curve of hits over false alarms; pairs have no meaning for it.
    """
    shares = [_auc(row, good) for row in scores]
    return Statistic(np.asarray([value for value, _ in shares]), np.stack([influence for _, influence in shares]))


def _auc(scores: Array, good: Bools) -> tuple[float, Array]:
    wins = np.empty(len(scores))
    for side, sign in ((good, 1), (~good, -1)):
        others = np.sort(sign * scores[~side])
        own = sign * scores[side]
        below, until = (np.searchsorted(others, own, side=end) for end in ("left", "right"))
        wins[side] = (below + until) / 2 / len(others)
    area = float(wins[good].mean())
    share = np.where(good, good.mean(), 1 - good.mean())
    return area, (wins - area) / share


def share(right: Bools) -> Statistic:
    """Return the share of each row of `right` (R, S) that is true."""
    value = right.mean(axis=1)
    return Statistic(value, right - value[:, None])


def thresholded(scores: Array, good: Bools, fold: Numbers) -> Bools:
    """Return which sentences (R, S) are called good: those above `matched_threshold` of the other folds' sentences."""
    called = np.zeros(scores.shape, np.bool_)
    for row, of_run in enumerate(scores):
        for number in np.unique(fold):
            inside = fold == number
            called[row, inside] = of_run[inside] > matched_threshold(of_run[~inside], good[~inside])
    return called


def matched_threshold(scores: Array, good: Bools) -> float:
    """Return the threshold by which as many sentences are called bad as are bad; scores, good (S,).

    The one of the highest accuracy, or Matthews' correlation, lies far out by chance where scores know little. It does
    worse on other sentences, by an amount that influences do not show: intervals were too narrow
    in simulations.
    """
    bad = int((~good).sum())
    if bad in (0, len(good)):
        return float("-inf" if bad == 0 else "inf")
    below, above = np.partition(scores, [bad - 1, bad])[[bad - 1, bad]]
    return float((below + above) / 2)


def limits(statistic: Statistic, scale: Scale, confidence: float) -> tuple[Array, Array]:
    """Return the limits (R,) for new sentences: Student's on the scale; NaN where the variance is not known."""
    mapped = statistic.mapped(scale)
    half = stdtrit(statistic.influence.shape[1] - 1, 0.5 + confidence / 2) * np.sqrt(mapped.variance)
    return scale.back(mapped.value - half), scale.back(mapped.value + half)
