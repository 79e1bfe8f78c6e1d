"""Fit straight lines to the runs of a curve, with HC3 standard errors and Student's t intervals.

x is log2(words), so a slope is accuracy per doubling of the training text. In the shapes of arrays, R is the number of
runs, and U is the number of units (overall, phenomena, paradigms). All units of a curve have the same x, so they are
computed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtr, stdtrit

from pairscale.errors import InputError, first_few

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]

LEAST_RUNS = 4
LEAST_SEEDS = 3  # minimum number of seeds for an interval if samples are nested
ROUNDING = 1e-24  # smaller variances are rounding errors
ONE_SIZE = "All runs have the same size, so there is no slope."
NO_SPREAD = "All runs are exactly on the line, so there is no interval. This happens with very few pairs."


class Line(NamedTuple):
    """The line of a curve, with weights for its runs. An estimate is `weights @ accuracies`.

    Attributes:
        centre: The mean of log2(words).
        level: (R,) weights of the line's height at `centre`, which are 0 for runs that are left out.
        slope: (R,) weights of the slope.
        level_terms, slope_terms: (J, R) terms, or NaN if there is no interval. The variance of an estimate is the sum
            of squares of `terms @ accuracies`.
        degrees: The degrees of freedom of Student's t.
        note: The reason if there is no interval, the seeds that are left out, or "".
    """

    centre: float
    level: Array
    slope: Array
    level_terms: Array
    slope_terms: Array
    degrees: float
    note: str = ""

    def variances(self, y: Array) -> Array:
        """Return (3, U) variances of level and slope and their covariance from (R, U) accuracies (NaN if unknown)."""
        level, slope = self.level_terms @ y, self.slope_terms @ y
        products = np.stack([level**2, slope**2, level * slope]).sum(axis=1)
        return np.where(products[1] < ROUNDING, np.nan, products)

    def without_interval(self, note: str) -> Line:
        """Return the line with unknown variances, and with a note on the reason."""
        unknown = np.full_like(self.level_terms, np.nan)
        return self._replace(level_terms=unknown, slope_terms=unknown, note=note)


def fit_line(x: Array, size: Numbers, seed: Numbers | None = None) -> Line:
    """Fit a least-squares line to runs, with HC3 variances (MacKinnon and White 1985) and R - 2 degrees of freedom.

    HC3 divides each residual by 1 minus its leverage, so the variance may differ between sizes. If samples are nested,
    the runs of a seed depend on each other. The estimate is then the mean over the lines of the S complete seeds, with
    the variance of this mean and S - 1 degrees of freedom. If all runs have the same size, there is no slope, and the
    level is the mean over runs.

    Args:
        x: (R,) log2(words) of the runs.
        size: (R,) index of each run's size.
        seed: (R,) seeds if the samples are nested, else None.
    """
    if np.ptp(size) == 0:
        note = ONE_SIZE if len(x) > 1 else "There is only one run, so there is no interval."
        return _mean_line(x.mean(), np.eye(len(x)), np.full((len(x), len(x)), np.nan), note)
    return _line_of_runs(x) if seed is None else _line_of_seeds(x, size, seed)


def _mean_line(centre: float, levels: Array, slopes: Array, note: str) -> Line:
    """Return the mean of J independent lines with the (J, R) weights `levels` and `slopes`."""
    count, level, slope = len(levels), levels.mean(axis=0), slopes.mean(axis=0)
    scale = np.sqrt(count * (count - 1)) or np.nan
    return Line(float(centre), level, slope, (levels - level) / scale, (slopes - slope) / scale, count - 1.0, note)


def _line_of_runs(x: Array) -> Line:
    runs, centred = len(x), x - x.mean()
    slope, level = centred / (centred**2).sum(), np.full(runs, 1 / runs)
    hat = 1 / runs + np.outer(centred, slope)
    free = np.maximum(1 - np.diag(hat), 1e-9)
    residuals = (np.eye(runs) - hat) / free[:, None]
    line = Line(float(x.mean()), level, slope, level[:, None] * residuals, slope[:, None] * residuals, runs - 2.0)
    if runs < LEAST_RUNS:
        return line.without_interval(f"An interval needs at least {LEAST_RUNS} runs, but this curve has {runs}.")
    if free.min() <= 1e-9:
        return line.without_interval("All runs except one have the same size, so there is no interval.")
    return line


def _line_of_seeds(x: Array, size: Numbers, seed: Numbers) -> Line:
    sizes, seeds = len(np.unique(size)), np.unique(seed)
    complete = [one for one in seeds if len(np.unique(size[seed == one])) == sizes]
    if len(complete) < LEAST_SEEDS:
        return _line_of_runs(x).without_interval(
            f"Samples with the same seed are nested, so an interval needs {LEAST_SEEDS} seeds with all sizes, but "
            f"there are {len(complete)}."
        )
    centre = x[np.isin(seed, complete)].mean()
    levels, slopes = np.zeros((2, len(complete), len(x)))
    for row, one in enumerate(complete):
        of = seed == one
        centred = x[of] - x[of].mean()
        slopes[row, of] = centred / (centred**2).sum()
        levels[row, of] = 1 / of.sum() + (centre - x[of].mean()) * slopes[row, of]
    left = first_few([str(one) for one in seeds if one not in complete])
    return _mean_line(centre, levels, slopes, f"Some seeds lack sizes and are left out: {left}." if left else "")


def item_variances(line: Line, judged: Array, paradigm: Numbers) -> tuple[Array, Array]:
    """Return each paradigm's variance of the slope over items (K,), and its overlap with the variance over runs (K,).

    The slope of a paradigm is the mean of its items' slopes. The first result is therefore the variance of these slopes
    divided by the number of items. The second is the variance from single judgements, which is part of both the
    variance over runs and the variance over items. This is the intersection of the two clusterings of Cameron, Gelbach
    and Miller (2011). Both results are NaN for a paradigm with a single item.

    Args:
        line: The line of the runs.
        judged: (R, P) outcomes of items, from 0 to 1.
        paradigm: (P,) index of each item's paradigm.
    """
    slopes, terms = line.slope @ judged, line.slope_terms @ judged
    items = np.bincount(paradigm)
    member = (paradigm[:, None] == np.arange(len(items))) / np.maximum(items, 1)
    of_slopes = (slopes - (slopes @ member)[paradigm]) ** 2
    of_terms = ((terms - (terms @ member)[:, paradigm]) ** 2).sum(axis=0)
    free = np.where(items > 1, items - 1, np.nan)
    return of_slopes @ member / free, of_terms @ member / free


def estimate(parts: Sequence[tuple[Line, Array]], slope: bool) -> tuple[Array, Array, Array]:
    """Estimate the sum of the means of independent parts, or of their slopes per doubling of the training data.

    Args:
        parts: The line through the runs of each part, and their accuracies (R, U).
        slope: Whether to sum slopes instead of means.

    Returns:
        The (U,) sums, their variances (NaN if there is no interval), and Welch's (1947) degrees of freedom.
    """
    values = np.stack([(line.slope if slope else line.level) @ y for line, y in parts]).sum(axis=0)
    variances = np.stack([line.variances(y)[int(slope)] for line, y in parts])
    total = np.where(variances.sum(axis=0) > ROUNDING, variances.sum(axis=0), np.nan)
    return values, total, total**2 / (variances**2 / [[line.degrees] for line, _ in parts]).sum(axis=0)


def t_quantile(confidence: float, degrees: float | pd.Series | Array) -> Array:
    """Return the quantiles of Student's t for two-sided intervals. Raises InputError unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence}: this level must be between 0 and 1. Try 0.95.")
    return np.asarray(stdtrit(degrees, 0.5 + confidence / 2))


def add_intervals(table: pd.DataFrame, estimate: str, confidence: float) -> pd.DataFrame:
    """Add the interval low, high and the two-sided p value to a table with the columns `estimate`, se and df."""
    value, error, degrees = (table[name].astype(np.float64) for name in (estimate, "se", "df"))
    half = t_quantile(confidence, degrees) * error
    return table.assign(low=value - half, high=value + half, p=2 * stdtr(degrees, -(value / error).abs()))
