"""Straight lines through the runs of a curve with HC3 standard errors, and intervals by Student's t. Mostly arrays.

x is log2(words), so a slope is accuracy per doubling of the training text. R runs, U units (overall, phenomena,
paradigms), S sizes. All units of a curve share x, so they are computed together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtr, stdtrit

from pairscale.errors import InputError, first_few

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]

LEAST_RUNS = 4
LEAST_SEEDS = 3  # of nested samples
ROUNDING = 1e-24  # variances below it are 0 but for rounding
ONE_TRAINING = "These are checkpoints of one training, which depend on each other: no interval."
NO_SPREAD = "All runs lie on the line, as with too few pairs: no interval."


class Line(NamedTuple):
    """The line of a curve as sums over its runs: an estimate is `weights @ accuracies`.

    level: (R,) weights of the line's height at `centre`, the mean log2(words); 0 for runs that are left out.
    slope: (R,) weights of the slope.
    level_terms, slope_terms: (J, R). The sum of squares of `terms @ accuracies` is the variance of the estimate.
    degrees: of Student's t.
    note: why there is no interval, or "".
    left_out: which runs are left out, or "".
    """

    centre: float
    level: Array
    slope: Array
    level_terms: Array
    slope_terms: Array
    degrees: float
    note: str = ""
    left_out: str = ""

    def variances(self, y: Array) -> tuple[Array, Array, Array]:
        """Return the (U,) variances of level and slope and their covariance, NaN without an interval; y is (R, U)."""
        level, slope = self.level_terms @ y, self.slope_terms @ y
        known = np.where((slope**2).sum(axis=0) < ROUNDING, np.nan, 0.0) + (np.nan if self.note else 0.0)
        return (level**2).sum(axis=0) + known, (slope**2).sum(axis=0) + known, (level * slope).sum(axis=0) + known

    def quantile(self, confidence: float) -> float:
        """Return Student's quantile of a two-sided interval."""
        return float(t_quantile(confidence, self.degrees))


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
    level, slope = levels.mean(axis=0), slopes.mean(axis=0)
    scale = np.sqrt(len(complete) * (len(complete) - 1))
    left = [str(one) for one in np.unique(seed) if one not in complete]
    left_out = f"Seeds without all sizes are left out: {first_few(left)}." if left else ""
    terms = (levels - level) / scale, (slopes - slope) / scale
    return Line(centre, level, slope, *terms, len(complete) - 1.0, left_out=left_out)


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


class Estimate(NamedTuple):
    """Estimates of units, their variances and degrees of freedom, each (U,); without variances `note` says why."""

    value: Array
    variance: Array
    degrees: Array
    note: str = ""

    def less(self, other: Estimate) -> Estimate:
        """Return the difference from an independent estimate, with Welch's (1947) degrees of freedom."""
        variance = self.variance + other.variance
        spread = self.variance**2 / self.degrees + other.variance**2 / other.degrees
        degrees = variance**2 / np.where(spread > ROUNDING**2, spread, np.nan)
        return Estimate(self.value - other.value, variance, degrees, self.note or other.note)

    def columns(self) -> dict[str, Array]:
        """Return the columns difference, se and df of a table of differences."""
        degrees = np.where(np.isnan(self.variance), np.nan, self.degrees)
        return {"difference": self.value, "se": np.sqrt(self.variance), "df": degrees}


def estimate(y: Array, x: Array, size: Numbers, seed: Numbers | None, slope: bool) -> Estimate:
    """Estimate the mean of y (R, U), or its slope per doubling of the training text.

    At one size the variance is that of a mean of independent runs, with R - 1 degrees of freedom. Over several sizes
    the estimate and its variance are the level or the slope of `fit_line(x, size, seed)`.
    """
    units = y.shape[1]
    if np.ptp(size) == 0:
        variance = y.var(axis=0, ddof=1) / len(y) if len(y) > 1 else np.full(units, np.nan)
        note = "" if len(y) > 1 else "One run: no interval."
        return Estimate(y.mean(axis=0), variance, np.full(units, len(y) - 1.0), note)
    line = fit_line(x, size, seed)
    variance = line.variances(y)[int(slope)]
    if not line.note:  # all runs on one line
        variance = np.nan_to_num(variance)
    note = f"{line.note} {line.left_out}".strip()
    return Estimate((line.slope if slope else line.level) @ y, variance, np.full(units, line.degrees), note)


def t_quantile(confidence: float, degrees: float | pd.Series | Array) -> Array:
    """Return Student's quantiles of two-sided intervals. Raises InputError unless the confidence is in (0, 1)."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence}: must be between 0 and 1, such as 0.95.")
    return np.asarray(stdtrit(degrees, 0.5 + confidence / 2))


def add_intervals(table: pd.DataFrame, estimate: str, confidence: float) -> pd.DataFrame:
    """Add low, high and p (two-sided, that the estimate is 0) to a table with the columns `estimate`, se and df."""
    value, error, degrees = (table[name].astype(np.float64) for name in (estimate, "se", "df"))
    half = t_quantile(confidence, degrees) * error
    return table.assign(low=value - half, high=value + half, p=2 * stdtr(degrees, -(value / error).abs()))
