"""Agreement of scores with people, and how much each sentence contributes to it: arrays of S sentences.

The influence of a sentence is by how much S times its weight would change a statistic (Hampel 1974). The mean of
influences is 0, and the sum of their squares over S (S - 1) is the variance of the statistic over new sentences (the
infinitesimal jackknife, Efron 1982; of `auc` it is the variance of DeLong et al. 1988, and of `pearson` that of the
jackknife itself). It needs neither normal scores nor continuous ratings.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit
from scipy.stats import rankdata

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


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
