"""Slopes of learning curves and their intervals: lines, which interval a group gets, and its limits.

Arrays only: R runs, P pairs, K paradigms, U units (analysis/units.py), B resamples. tests/bench/coverage.py says how
often these intervals hold the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.units import Units, paradigm_accuracies
from analysis.variance import (
    Array,
    Numbers,
    cluster_weights,
    judgement_variance,
    pair_variance,
    satterthwaite,
    stratum_products,
)

BOOTSTRAP = "crossed bootstrap"
RUN_BOOTSTRAP = "bootstrap over runs"  # the same, where judgements of single pairs are not known
T_INTERVAL = "t interval on run accuracies"
T_SEEDS = "t interval on slopes of seeds"
NO_INTERVAL = "none"
ONE_TRAINING = "checkpoints of one training: a trajectory, without an interval, a test or a rank"
BOOTSTRAP_RUNS = 5  # runs at each size from which the crossed bootstrap is used
CHUNK = 16_000_000  # numbers held at once while pairs are resampled


@dataclass(frozen=True)
class Design:
    """The runs of a group, each field (R,): log2 of words, number of the size (0 = smallest) and of the seed."""

    x: Array
    size: Numbers
    seed: Numbers
    nested: bool  # small samples are parts of the larger ones of their seed: a seed is one draw
    trajectory: bool = False  # the points are checkpoints of one training: one draw, so there is nothing to resample

    @property
    def cluster(self) -> Numbers:
        """(R,) number of what was drawn as one: the run, or the seed with all of its runs."""
        return self.seed if self.nested else np.arange(len(self.x))

    @property
    def stratum(self) -> Numbers:
        """(J,) within which clusters are drawn: the size of a run; seeds are of one stratum."""
        return np.zeros(self.seed.max() + 1, dtype=np.intp) if self.nested else self.size


def design_of(runs: pd.DataFrame) -> Design:
    """The design of one group's runs (rows of Study.runs)."""
    words = runs.groupby("size")["sample_words"].mean().sort_values()
    size = pd.Series(range(len(words)), index=words.index)
    seeds = np.unique(runs["seed"].to_numpy(dtype=np.int64), return_inverse=True)[1].astype(np.intp)
    x = np.log2(runs["sample_words"].to_numpy(dtype=np.float64))
    numbers = np.asarray(size[runs["size"]], dtype=np.intp)
    return Design(x, numbers, seeds, bool(runs["nested"].all()), is_trajectory(runs))


def is_trajectory(runs: pd.DataFrame) -> bool:
    """True if some of a group's runs (rows of Study.runs) are checkpoints of the same training."""
    return "training" in runs and bool(runs["training"].duplicated().any())


def interval_method(design: Design, asked: str) -> tuple[str, str]:
    """Which interval a group's slopes get, and what has to be said about it; `asked`: auto, bootstrap or t."""
    if design.trajectory:
        return NO_INTERVAL, ONE_TRAINING
    counts = np.bincount(design.size)
    counts = counts[counts > 0]
    fewest = len(np.unique(design.seed)) if design.nested else int(counts.min())
    if len(counts) < 2:
        return NO_INTERVAL, "one size only: no slope"
    if asked == "bootstrap" and fewest < 2:
        return NO_INTERVAL, "one run at some size: runs cannot be resampled, no interval"
    if asked == "bootstrap" or (asked == "auto" and fewest >= BOOTSTRAP_RUNS):
        return BOOTSTRAP, ""
    if len(design.size) < 3:
        return NO_INTERVAL, "two runs: a line without an interval"
    if design.nested and fewest > 1:
        return T_SEEDS, f"nested samples: the interval rests on the slopes of {fewest} seeds"
    note = "one run a size: the interval rests on how straight the curve is" if counts.max() == 1 else ""
    return T_INTERVAL, note


def slope_weights(x: Array, weights: Array) -> Array:
    """(R,) x and (B, R) weights of runs -> (B, R) c, so that c @ y is the slope of the weighted least-squares line.

    NaN where all the weight lies on one x.
    """
    centred = x - (weights @ x / weights.sum(axis=1))[:, None]
    spread = (weights * centred**2).sum(axis=1, keepdims=True)
    slopes: Array = weights * centred / np.where(spread > 1e-12, spread, np.nan)
    return slopes


def resampled_runs(strata: Numbers, resamples: int, rng: np.random.Generator) -> Array:
    """(B, R) weights of runs drawn with replacement within their stratum (their size; their seed's whole if nested).

    Of k runs k - 1 are drawn, and weighted by k / (k - 1): drawing k would make the variance of a mean too small by
    (k - 1) / k, which matters with five (Rao and Wu 1988, section 2.1). A stratum of one run cannot be resampled.
    """
    weights = np.empty((resamples, len(strata)))
    for stratum in np.unique(strata):
        (of,) = np.nonzero(strata == stratum)
        k = len(of)
        weights[:, of] = rng.multinomial(k - 1, np.full(k, 1 / k), size=resamples) * (k / (k - 1))
    return weights


def resampled_accuracies(
    outcome: Array, bounds: Numbers, resamples: int, rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """(B, R, K) accuracies of paradigms, pairs drawn with replacement within each: one draw, shared by all runs."""
    means = np.empty((resamples, outcome.shape[0], len(bounds) - 1), np.float32)
    for k, (start, end) in enumerate(pairwise(bounds)):
        n = int(end - start)
        judged = np.ascontiguousarray(outcome[:, start:end].T, dtype=np.float32)
        step = max(1, CHUNK // n)
        for first in range(0, resamples, step):
            rows = min(step, resamples - first)
            drawn = rng.integers(0, n, size=(rows, n), dtype=np.int64)
            drawn += np.arange(rows)[:, None] * n
            counts = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float32)
            means[first : first + rows, :, k] = counts @ judged / n
    return means


@dataclass(frozen=True)
class Line:
    """Least-squares lines through (R,) x and (R, U) y; each field is (U,)."""

    slope: Array
    intercept: Array
    r2: Array  # NaN for two runs or fewer, or where y does not vary
    error: Array  # standard error of the slope, R - 2 degrees of freedom; NaN for two runs or fewer


def fit_lines(x: Array, y: Array) -> Line:
    """Ordinary least squares of each column of `y` on `x`; all NaN when there is only one x."""
    runs = len(x)
    centred = x - x.mean()
    spread = float((centred**2).sum())
    if spread < 1e-12:
        none = np.full(y.shape[1], np.nan)
        return Line(none, none, none, none)
    slope = centred @ y / spread
    intercept = y.mean(axis=0) - slope * x.mean()
    residual = ((y - intercept - np.outer(x, slope)) ** 2).sum(axis=0)
    if runs <= 2:
        none = np.full(y.shape[1], np.nan)
        return Line(slope, intercept, none, none)
    total = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    r2 = 1 - residual / np.where(total > 1e-24, total, np.nan)
    return Line(slope, intercept, r2, np.sqrt(residual / (runs - 2) / spread))


def t_limits(estimate: Array, error: Array, degrees: Array, confidence: float) -> tuple[Array, Array]:
    """(U,) estimates, their standard errors and degrees of freedom -> Student's limits."""
    half = student.ppf(0.5 + confidence / 2, degrees) * error
    return estimate - half, estimate + half


def bootstrap_limits(
    estimate: Array, error: Array, resampled: Array, degrees: Array, confidence: float
) -> tuple[Array, Array]:
    """(U,) estimates, their standard errors, (B, U) resampled estimates -> percentile limits of that standard error.

    Percentiles hold the shape. Their distance from the estimate is scaled by the ratio of `error` to the deviation of
    the resampled (which counts chance in single judgements three times where runs and pairs are resampled together,
    analysis/variance.py), and by that of Student's to the normal quantile, as percentiles treat the spread as known.
    """
    tail = (1 - confidence) / 2
    deviation = resampled.std(axis=0)
    scale = np.where(deviation > 1e-12, error / np.where(deviation > 1e-12, deviation, 1), 1)
    stretch = scale * student.ppf(1 - tail, degrees) / norm.ppf(1 - tail)
    low, high = np.nanquantile(resampled, [tail, 1 - tail], axis=0)
    return estimate - (estimate - low) * stretch, estimate + (high - estimate) * stretch


@dataclass(frozen=True)
class Errors:
    """Standard errors of slopes and their degrees of freedom, each (U,); NaN where the runs give none."""

    runs: Array  # over new runs, for these pairs
    degrees: Array
    both: Array  # over new runs and new pairs
    degrees_both: Array
    chance: Array  # variance, not its root: chance in single judgements, which both sources of variance hold


def slope_errors(method: str, line: Line, outcome: Array, design: Design, units: Units) -> Errors:
    """Errors of a group's slopes. `outcome` (R, P) of its runs, `line` through its accuracies, `method` as named above.

    Over runs: of the regression (R - 2 degrees of freedom), which holds the curve's distance from a line too; of what
    the bootstrap resamples, runs within sizes, each size with a variance of its own; of the slopes of seeds, where
    samples are nested. Over both: the variance of pairs' slopes added, chance in single judgements counted once.
    """
    c = slope_weights(design.x, np.ones((1, len(design.x))))[0]
    weights = cluster_weights(c, design.size, design.cluster)
    if method == T_INTERVAL:
        variance, degrees = line.error**2, np.full(len(line.slope), len(c) - 2.0)
    elif method in (BOOTSTRAP, T_SEEDS):
        terms = weights @ paradigm_accuracies(outcome, units.bounds) @ units.weights
        of_strata = stratum_products(terms, terms, design.stratum)
        variance = of_strata.sum(axis=0)
        degrees = satterthwaite(of_strata, np.bincount(design.stratum)[:, None] - 1.0)
    else:
        none = np.full(len(line.slope), np.nan)
        return Errors(none, none, none, none, none)
    chance = judgement_variance(outcome, weights, design.stratum, units.bounds, units.weights)
    of_pairs = np.maximum(pair_variance(c @ outcome, units.bounds, units.weights) - chance, 0)
    both = np.stack([variance, of_pairs])
    of_both = satterthwaite(both, np.stack([degrees, units.pair_degrees]))
    return Errors(np.sqrt(variance), degrees, np.sqrt(both.sum(axis=0)), of_both, chance)


def slope_limits(
    method: str, line: Line, errors: Errors, y: Array, design: Design, units: Units, config: CurvesConfig,
    new_pairs: Array | None,
) -> list[Array]:  # fmt: skip
    """Low and high for these pairs, low and high for new pairs too, each (U,); NaN where there is no interval.

    `y` (R, U); `new_pairs` (B, R, K) are this group's part of `resampled_accuracies`, which only the bootstrap reads,
    or None where judgements of single pairs are not known.
    """
    if method != BOOTSTRAP:
        these = t_limits(line.slope, errors.runs, errors.degrees, config.confidence)
        both = t_limits(line.slope, errors.both, errors.degrees_both, config.confidence)
        return [*these, *at_least(both, these)]
    # One generator a purpose: that a group is added does not change the runs drawn of another.
    drawn = resampled_runs(design.stratum, config.resamples, np.random.default_rng([config.seed, 1]))
    c = slope_weights(design.x, drawn[:, design.cluster])
    these = bootstrap_limits(line.slope, errors.runs, c @ y, errors.degrees, config.confidence)
    if new_pairs is None:
        none = np.full(len(line.slope), np.nan)
        return [*these, none, none]
    resampled = np.einsum("br,brk->bk", c, new_pairs) @ units.weights
    both = bootstrap_limits(line.slope, errors.both, resampled, errors.degrees_both, config.confidence)
    return [*these, *at_least(both, these)]


def at_least(limits: tuple[Array, Array], inner: tuple[Array, Array]) -> tuple[Array, Array]:
    """Limits as wide as `inner` or wider: what varies more cannot be known better.

    Degrees of freedom grow with the share of pairs in the variance, which is overestimated where few runs happen to lie
    close together; their interval is narrow then, and that over new pairs would be narrower still.
    """
    return np.minimum(limits[0], inner[0]), np.maximum(limits[1], inner[1])
