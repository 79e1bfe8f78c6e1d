"""The power of a grid: how often the interval of its design shows an effect, or is as narrow as is asked for.

The estimate is a weighted sum of the runs' accuracies, taken to be normal; its interval is Student's, with the variance
and degrees of freedom that the analysis estimates (analysis.curves.intervals). For a given estimate of the variance the
probability that the interval excludes 0 is a normal one; averaged over estimates of the variance it is that of the
noncentral t, which it equals where degrees of freedom do not depend on the data. Where each size has a spread of its
own they do (Satterthwaite 1946), and variances are no smaller than chance in single judgements makes plausible; so the
average is over DRAWS of the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr
from scipy.stats import t as student

from analysis.curves.ablations.effects import contrast_of, degrees_correction
from analysis.curves.designs import Design
from analysis.curves.intervals import Interval, interval_method, plausible
from analysis.curves.variance import Array
from analysis.curves.words_to_people import fieller
from analysis.plan.config import ABLATION, DIFFERENCE, PEOPLE
from analysis.plan.errors import SimulatedErrors
from analysis.plan.grids import Grid
from analysis.simulation.spreads import Trend

DRAWS = 4000  # of residuals: the standard error of a power is below .3 points


@dataclass(frozen=True)
class Spread:
    """What an outcome varies by: an accuracy, or a difference of accuracies between paired runs.

    total: variance between runs of a size, of which `chance` comes from single judgements. judgement: variance of one
    judgement, a mean over the `paradigms`. accuracy: expected at log2(words) = x, from where it gains `gain` per
    doubling. people, people_error: their accuracy and its standard error. seed_share: of the variance between runs,
    what nested runs of a seed have in common.
    """

    total: Trend
    judgement: float
    paradigms: int
    accuracy: float
    x: float
    gain: float = 0.0
    chance: float = 0.0
    people: float = np.nan
    people_error: float = 0.0
    seed_share: float = 0.0

    def run_variance(self, x: Array) -> Array:
        """Return the variance between runs at log2(words) = x, without chance in single judgements."""
        return np.asarray(np.maximum(self.total.at(x) - self.chance, 0))

    def of_judgements(self, pairs: int) -> float:
        """Return the variance of a run's accuracy by chance in single judgements, with so many pairs a paradigm."""
        return self.judgement / (self.paradigms * pairs)

    def upper(self, level: float) -> Spread:
        """Return the same with the upper limit, one-sided, of the variance between runs."""
        return replace(self, total=replace(self.total, variance=self.total.variance * self.total.upper(level)))

    def covariance(self, grid: Grid) -> Array:
        """Return the (R, R) covariance of the runs' accuracies."""
        design = grid.design
        deviation = np.sqrt(self.run_variance(design.x))
        together = np.eye(len(deviation))
        if grid.nested:
            same = design.seed[:, None] == design.seed
            together = np.where(same, self.seed_share, 0.0) + (1 - self.seed_share) * together
        return np.asarray(
            np.outer(deviation, deviation) * together + self.of_judgements(grid.pairs) * np.eye(len(deviation))
        )


@dataclass(frozen=True)
class Power:
    """The power of a grid: NaN without an interval, and `note` says why. error: standard error of the estimate.

    degrees: of its variance, the median over studies. method: of the interval.
    """

    power: float
    error: float
    degrees: float
    method: str
    note: str = ""


def chosen_interval(goal: str, design: Design, interval: str) -> tuple[Interval, str, Array]:
    """Return the interval that the analysis uses, a note on it, and the (R,) weights of runs in the estimate."""
    if goal == ABLATION:
        return contrast_of(design)
    return *interval_method(design, interval), design.contrast


def power_of(goal: str, effect: float, grid: Grid, spread: Spread, interval: str, confidence: float) -> Power:
    """Return the power of a grid for a goal of GOALS; `spread`: of the difference, where the goal is one.

    `interval`: auto, bootstrap or t; limits of the bootstrap are scaled to Student's, and count as these.
    """
    method, note, c = chosen_interval(goal, grid.design, interval)
    if method == Interval.NONE:
        return Power(np.nan, np.nan, np.nan, method.value, note)
    covariance = spread.covariance(grid)
    errors = SimulatedErrors.drawn(grid.design, method, covariance, spread.paradigms, DRAWS)
    deviation = float(np.sqrt(c @ covariance @ c))
    degrees = errors.degrees(c, degrees_correction(grid.design) if goal == ABLATION else 0)
    floor = floor_of(goal, grid, spread, c)
    if goal == PEOPLE:
        power = _near_people(effect, grid, spread, errors, (degrees, floor), confidence)
    else:
        half = half_width(errors.variance(c), degrees, floor, confidence)
        shift, rest = _given_residuals(errors.residuals(c), c, covariance)
        mean = shift @ errors.values
        power = float((ndtr((abs(effect) + mean - half) / rest) + ndtr((-abs(effect) - mean - half) / rest)).mean())
    return Power(power, deviation, float(np.median(degrees)), method.value, note)


def half_width(variance: Array, degrees: Array, floor: float, confidence: float) -> Array:
    """Return half the width of intervals, given the (B,) estimates of the variance and their degrees of freedom.

    `floor`: variance by chance in single judgements (analysis.curves.intervals.plausible).
    """
    quantile = student.ppf(0.5 + confidence / 2, degrees)
    return np.asarray(quantile * np.sqrt(plausible(variance, degrees, np.asarray(floor))))


def floor_of(goal: str, grid: Grid, spread: Spread, c: Array) -> float:
    """Return the variance of the estimate by chance in single judgements as the analysis estimates it.

    With one run a size pairs count as alike; two judgements are added at either end of the scale, divided among the
    paradigms, where accuracies are those of runs (analysis.curves.intervals.judgement_floor).
    """
    judgement, runs = spread.judgement, grid.seeds
    if goal != ABLATION:
        groups = 2 if goal == DIFFERENCE else 1
        level = spread.accuracy + spread.gain * (grid.design.centre - spread.x)
        accuracy = min(max(level, 0.01), 0.99)
        whole = accuracy * (1 - accuracy)
        added = 2 / (runs * grid.pairs * spread.paradigms + 4)
        smoothed = (1 - 2 * added) * accuracy + added
        least = groups * whole if runs == 1 else judgement
        judgement = least + groups * max(smoothed * (1 - smoothed) - whole, 0.0)
    return float((c**2).sum() * judgement / (spread.paradigms * grid.pairs))


def _given_residuals(weights: Array, c: Array, covariance: Array) -> tuple[Array, float]:
    """Return (R,) weights of errors, the mean of c @ errors given the residuals, and its deviation then.

    weights: (J, R), which give the residuals. The mean is 0 where the estimate and the residuals are independent, as
    with residuals from the means of sizes.
    """
    of_residuals = weights @ covariance @ weights.T
    gain = c @ covariance @ weights.T @ np.linalg.pinv(of_residuals, rcond=1e-10, hermitian=True)
    rest = float(c @ covariance @ c - gain @ of_residuals @ gain)
    return np.asarray(gain @ weights), float(np.sqrt(max(rest, 1e-300)))


def _near_people(
    factor: float, grid: Grid, spread: Spread, errors: SimulatedErrors, of_slope: tuple[Array, float], confidence: float
) -> float:
    """Return how often Fieller's limits of the words to people are within a factor of their estimate."""
    design, (degrees, floor) = grid.design, of_slope
    ratio = float((design.mean_weights**2).sum() / (design.contrast**2).sum())
    quantile = np.asarray(student.ppf(0.5 + confidence / 2, degrees))
    slope_variance, mean_variance = errors.variance(design.contrast), errors.variance(design.mean_weights)
    correlation = errors.correlation(design.mean_weights, design.contrast)
    slope_variance = plausible(slope_variance, degrees, np.asarray(floor))
    mean_variance = plausible(mean_variance, degrees, np.asarray(ratio * floor))
    rng = np.random.default_rng(1)
    people = spread.people + spread.people_error * rng.normal(size=DRAWS)
    slope = spread.gain + design.contrast @ errors.values
    level = spread.accuracy + spread.gain * (design.centre - spread.x) + design.mean_weights @ errors.values
    covariance = -correlation * np.sqrt(slope_variance * mean_variance)
    variances = (np.asarray(spread.people_error**2 + mean_variance), np.asarray(slope_variance), covariance)
    low, high, bounded = fieller(people - level, slope, variances, quantile)
    at = (people - level) / slope
    within = (slope > 0) & bounded & (np.maximum(high - at, at - low) <= np.log2(factor))
    return float(within.mean())
