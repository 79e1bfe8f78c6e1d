"""Straight lines through the runs of a curve, with HC3 standard errors. Arrays only; curves.py has the tables.

x is log2(words), so a slope is accuracy per doubling of the training text. R runs, U units (overall, phenomena,
paradigms), S sizes. All units of a curve share x, so they are computed together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import f as f_distribution
from scipy.stats import t as student

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]

LEAST_RUNS = 4
LEAST_SEEDS = 3  # of nested samples
ROUNDING = 1e-24  # variances below it are 0 but for rounding
ONE_TRAINING = "These are checkpoints of one training, which depend on each other: no interval."
NO_SPREAD = "All runs lie on the line, as with too few pairs: no interval."
NO_CHANGE = "All runs have the same accuracy: no interval."


class Line(NamedTuple):
    """The line of a curve as sums over its runs: an estimate is `weights @ accuracies`.

    level: (R,) weights of the line's height at `centre`, the mean log2(words).
    slope: (R,) weights of the slope.
    level_terms, slope_terms: (J, R). The sum of squares of `terms @ accuracies` is the variance of the estimate.
    degrees: of Student's t.
    note: why there is no interval, or "".
    """

    centre: float
    level: Array
    slope: Array
    level_terms: Array
    slope_terms: Array
    degrees: float
    note: str = ""

    def variances(self, y: Array) -> tuple[Array, Array, Array]:
        """Return the (U,) variances of level and slope and their covariance, NaN without an interval; y is (R, U)."""
        level, slope = self.level_terms @ y, self.slope_terms @ y
        known = np.where((slope**2).sum(axis=0) < ROUNDING, np.nan, 0.0) + (np.nan if self.note else 0.0)
        return (level**2).sum(axis=0) + known, (slope**2).sum(axis=0) + known, (level * slope).sum(axis=0) + known

    def quantile(self, confidence: float) -> float:
        """Return Student's quantile of a two-sided interval."""
        return float(student.ppf(0.5 + confidence / 2, self.degrees))


def fit_line(x: Array, size: Numbers, seed: Numbers | None = None, trajectory: bool = False) -> Line:
    """Return the least-squares line over runs at `x` with HC3 variances (MacKinnon and White 1985) and t(R - 2).

    HC3 divides each residual by 1 minus its leverage, so runs may spread differently at different sizes. Nested samples
    of one seed contain each other: give their seeds, and the estimate is the mean over the lines of complete seeds,
    with the variance of that mean and S - 1 degrees of freedom.

    Args:
        x: (R,) log2(words) of the runs.
        size: (R,) number of each run's size.
        seed: (R,) seeds if the samples are nested, else None.
        trajectory: whether the runs are checkpoints of one training, which get no interval.
    """
    runs = len(x)
    if len(np.unique(size)) < 2:
        mean, unknown = np.full(runs, 1 / runs), np.full((1, runs), np.nan)
        line = Line(float(x.mean()), mean, unknown[0], unknown, unknown, np.nan, "All runs have one size: no slope.")
    else:
        line = _of_runs(x) if seed is None else _of_seeds(x, size, seed)
    return line._replace(note=ONE_TRAINING) if trajectory else line


def _of_runs(x: Array) -> Line:
    runs, centred = len(x), x - x.mean()
    slope = centred / (centred**2).sum()
    hat = 1 / runs + np.outer(centred, slope)
    free = 1 - np.diag(hat)
    level = np.full(runs, 1 / runs)
    note = ""
    if runs < LEAST_RUNS:
        note = f"{runs} runs: an interval needs at least {LEAST_RUNS}."
    elif (free < 1e-9).any():
        note = "A single run decides the line because all others have one size: no interval."
    residuals = (np.eye(runs) - hat) / np.where(free < 1e-9, np.nan, free)[:, None]
    return Line(float(x.mean()), level, slope, level[:, None] * residuals, slope[:, None] * residuals, runs - 2.0, note)


def _of_seeds(x: Array, size: Numbers, seed: Numbers) -> Line:
    sizes = len(np.unique(size))
    complete = [one for one in np.unique(seed) if len(np.unique(size[seed == one])) == sizes]
    if len(complete) < LEAST_SEEDS:
        note = (
            f"Larger samples contain the smaller ones of their seed, so seeds are the independent units: an interval "
            f"needs {LEAST_SEEDS} seeds at all sizes, and there are {len(complete)}."
        )
        return _of_runs(x)._replace(note=note)
    centre = float(x[np.isin(seed, complete)].mean())
    levels, slopes = np.zeros((2, len(complete), len(x)))
    for row, one in enumerate(complete):
        of = seed == one
        centred = x[of] - x[of].mean()
        slopes[row, of] = centred / (centred**2).sum()
        levels[row, of] = 1 / of.sum() + (centre - x[of].mean()) * slopes[row, of]
    seeds = len(complete)
    level, slope = levels.mean(axis=0), slopes.mean(axis=0)
    scale = np.sqrt(seeds * (seeds - 1))
    return Line(centre, level, slope, (levels - level) / scale, (slopes - slope) / scale, seeds - 1.0)


def pure_error_test(x: Array, size: Numbers, y: Array) -> tuple[Array, int, int]:
    """Return the (U,) F statistics that sizes' means do not lie on a line, and their degrees of freedom.

    The deviations of the means from the line are compared with those of runs from the mean of their size, which takes
    runs to spread equally at all sizes (Draper and Smith 1998, section 2.1). NaN where it cannot be tested.
    """
    sizes = np.unique(size)
    between, within = len(sizes) - 2, len(x) - len(sizes)
    if between < 1 or within < 1:
        return np.full(y.shape[1], np.nan), between, within
    line = fit_line(x, size)
    residual = y - line.level @ y - np.outer(x - line.centre, line.slope @ y)
    pure = sum((((y[size == s] - y[size == s].mean(axis=0)) ** 2).sum(axis=0) for s in sizes), np.zeros(y.shape[1]))
    lack = np.maximum((residual**2).sum(axis=0) - pure, 0)
    return lack / between / np.where(pure > ROUNDING, pure / within, np.nan), between, within


def f_p_values(statistic: Array, between: int, within: int) -> Array:
    """Return the p values of F statistics; NaN stays."""
    return np.asarray(f_distribution.sf(statistic, max(between, 1), max(within, 1)))


def t_p_values(estimate: Array, error: Array, degrees: Array | float) -> Array:
    """Return two-sided p values of Student's test that estimates are 0."""
    return np.asarray(2 * student.sf(np.abs(estimate / error), degrees))


def item_variances(line: Line, judged: Array, paradigm: Numbers) -> tuple[Array, Array]:
    """Return the (K,) variances of each paradigm's slope over its items, and the part that is in that over runs, too.

    The slope of a paradigm is the mean of its items' slopes, so the first is their variance over their number. The
    second is the variance by single judgements, which differences between runs and between items both contain: what an
    item's judgements deviate from its own line and from its paradigm's deviations (the intersection of the two
    clusterings of Cameron, Gelbach and Miller 2011).

    Args:
        line: of the runs.
        judged: (R, P) outcomes of items, from 0 to 1.
        paradigm: (P,) number of each item's paradigm. One with a single item has NaN.
    """
    slopes, terms = line.slope @ judged, line.slope_terms @ judged
    items = np.bincount(paradigm)
    member = (paradigm[:, None] == np.arange(len(items))) / np.maximum(items, 1)
    of_slopes = (slopes - (slopes @ member)[paradigm]) ** 2
    of_terms = ((terms - (terms @ member)[:, paradigm]) ** 2).sum(axis=0)
    free = np.where(items > 1, items - 1, np.nan)
    return of_slopes @ member / free, of_terms @ member / free
