"""How many sizes, seeds and minimal pairs find an effect: studies are simulated, analysed, and counted.

Start at simulate_power, the power of one grid. plan_grids compares several; assume_stated and assume_pilot say how far
runs differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2

from analysis.curves.lines import ROUNDING, Array, estimate, fit_line, t_quantile
from analysis.curves.units import unit_accuracies
from analysis.plan.config import ABLATION, DIFFERENCE, SLOPE, PlanConfig
from pairscale.errors import ConfigError, RunError

UPPER = 0.9  # one-sided level of the upper limit of a pilot's variance
LEAST_SIZES = {SLOPE: 3, DIFFERENCE: 3, ABLATION: 1}


class Goal(NamedTuple):
    """What a study is to find.

    effect: accuracy per doubling of the training data (slope, or difference of two curves' slopes), or difference of
    mean accuracies over all sizes (ablation). power: share of studies that are to find it: their interval of level
    `confidence` excludes 0.
    """

    kind: str
    effect: float
    power: float = 0.8
    confidence: float = 0.95


class Assumed(NamedTuple):
    """What a simulation assumes about accuracies, or about their differences between paired runs.

    accuracy: expected at the smallest size. variance: between runs of one size, without chance in single judgements.
    chance: variance that single judgements add with one minimal pair per paradigm. degrees: degrees of freedom of a
    pilot's variance, infinite if it is stated.
    """

    accuracy: float
    variance: float
    chance: float
    degrees: float = math.inf

    def deviations(self, pairs: int) -> tuple[float, float]:
        """Return the standard deviation of runs that judge so many pairs per paradigm, and its upper limit.

        The limit is what a pilot of so few runs leaves open, by the chi-square distribution; NaN if it is stated.
        """
        variance = self.variance + self.chance / pairs
        limit = math.nan
        if math.isfinite(self.degrees):
            limit = math.sqrt(variance * self.degrees / float(chi2.ppf(1 - UPPER, self.degrees)))
        return math.sqrt(variance), limit


def assume_stated(goal: Goal, spread: float, accuracy: float, paradigms: int, correlation: float = 0.0) -> Assumed:
    """Return assumptions from stated numbers.

    Args:
        goal: A goal that compares two curves doubles variances.
        spread: Standard deviation between accuracies of runs of one size, apart from chance in single judgements.
        accuracy: Expected at the smallest size.
        paradigms: Paradigms of the unit that is planned for.
        correlation: Between the accuracies of paired runs of the two curves.
    """
    chance = accuracy * (1 - accuracy) / paradigms
    if goal.kind != SLOPE:
        return Assumed(accuracy, 2 * (1 - correlation) * spread**2, 2 * chance)
    return Assumed(accuracy, spread**2, chance)


def assume_pilot(
    goal: Goal, accuracies: pd.DataFrame, unit: str, curves: Sequence[str] = (), correlation: float = 0.0
) -> tuple[Assumed, str]:
    """Estimate assumptions from the runs of a pilot study, and say which.

    The variance between runs is pooled over sizes. Chance in single judgements is binomial, but at most all of that
    variance. A goal that compares two curves takes the differences of their paired runs (equal size and seed). If the
    pilot has one curve only, or `curves` names one, it takes a second one like it, whose paired runs have the given
    correlation.

    Args:
        goal: Decides whether runs or differences of paired runs count.
        accuracies: Long table of one benchmark and method.
        unit: "overall", a phenomenon or a paradigm.
        curves: Names of one or two curves. By default a slope takes the curve whose runs differ most, a comparison the
            only two curves.

    Raises:
        ConfigError: The unit or a curve is unknown, or two curves are needed and the pilot has more.
        RunError: No size has two runs, or they don't differ.
    """
    units = unit_accuracies(accuracies[accuracies["baseline"] == ""])
    rows = units[units["name"] == unit]
    if rows.empty:
        known = units.loc[units["level"] != "paradigm", "name"].unique()
        raise ConfigError(f"plan.unit={unit[:80]}: no such unit in the pilot. Choose one of {', '.join(known)}.")
    places = rows.set_index(["size", "seed"])
    by_curve = {str(curve): of for curve, of in places.groupby("curve", sort=False)["accuracy"]}
    chosen = list(curves or by_curve)
    if not set(chosen) <= set(by_curve) or (goal.kind != SLOPE and len(chosen) > 2):
        raise ConfigError(
            f"The pilot has the curves {'; '.join(by_curve)}. Name one or two of them with plan.group and plan.other; "
            f"received: {'; '.join(curves)[:80] or 'none'}."
        )
    # binomial variance of a unit's accuracy, a mean over runs; 0 if numbers of pairs are not known
    of = accuracies[(accuracies["phenomenon"] == unit) | (accuracies["paradigm"] == unit) | (unit == "overall")]
    by_run = (of["accuracy"] * (1 - of["accuracy"]) / of["pairs"].astype(float)).groupby(of["run"])
    share, chance = 1.0, float(np.nan_to_num((by_run.sum() / by_run.size() ** 2).mean()))
    if goal.kind != SLOPE and len(chosen) == 2:
        about, chance = f"differences of paired runs, {chosen[0]} less {chosen[1]}", 2 * chance
        variance, degrees = _spread((by_curve[chosen[0]] - by_curve[chosen[1]]).dropna())
    else:
        spreads = {curve: _spread(by_curve[curve]) for curve in chosen}
        curve = max(chosen, key=lambda curve: np.nan_to_num(spreads[curve][0]))
        about, (variance, degrees) = f"runs of {curve}", spreads[curve]
        share = 2 * (1 - correlation) if goal.kind != SLOPE else 1.0
    if not variance > ROUNDING:
        raise RunError(
            f"The pilot doesn't show how far runs differ in {unit}: no two {about} have one size, or all are equal."
        )
    variance, chance = variance * share, min(chance, variance) * share
    pairs = float(accuracies["pairs"].astype(float).mean())
    smallest = rows.loc[rows["sample_words"] == rows["sample_words"].min(), "accuracy"]
    assumed = Assumed(float(smallest.mean()), variance - chance, chance * pairs, degrees)
    return assumed, f"{about}: standard deviation {math.sqrt(variance):.4f}, {degrees} degrees of freedom"


def _spread(accuracies: pd.Series) -> tuple[float, int]:
    """Return the variance between runs of a size, pooled over sizes, and its degrees of freedom."""
    by_size = accuracies.groupby("size")
    degrees = int((by_size.size() - 1).sum())
    squares = float(((accuracies - by_size.transform("mean")) ** 2).sum())
    return (squares / degrees if degrees else math.nan), degrees


def simulate_power(x: Array, seeds: int, deviation: float, goal: Goal, plan: PlanConfig, nested: bool = False) -> float:
    """Return the share of simulated studies whose interval excludes 0, NaN if such a study has no interval.

    Accuracies of runs (or differences of paired runs) are drawn from normal distributions around a straight line, with
    the same standard deviation at every size, and are analysed as a study is: the slope, or the mean over sizes, of
    `analysis.curves.lines.estimate`. With 2,000 studies the standard error of a power is at most .011.

    Args:
        x: (S,) log2(words) of the sizes, smallest first, each with `seeds` runs, or pairs of runs.
        plan: Has the number of studies, `simulations`, and the seed of the simulation.
        nested: Whether larger samples of a seed contain its smaller ones.
    """
    of_runs, size, slope = np.repeat(x, seeds), np.repeat(np.arange(len(x)), seeds), goal.kind != ABLATION
    expected = goal.effect * (of_runs - x[0] if slope else np.ones(len(of_runs)))
    noise = np.random.default_rng(plan.seed).normal(size=(len(of_runs), plan.simulations))
    of_seeds = np.tile(np.arange(seeds), len(x)) if nested else None
    found = estimate(fit_line(of_runs, size, of_seeds), expected[:, None] + deviation * noise, slope)
    if np.isnan(found.variance).any():
        return math.nan
    half = t_quantile(goal.confidence, found.degrees) * np.sqrt(found.variance)
    return float((np.abs(found.value) > half).mean())


def candidate_sizes(names: Sequence[str], least: int) -> list[tuple[str, ...]]:
    """Return all sizes up to each, and every other one of these, of sizes from the smallest; `least`: how many.

    Dropping large sizes saves most words, dropping those between keeps the range.
    """
    chosen = []
    for end in range(least, len(names) + 1):
        chosen.append(tuple(names[:end]))
        thinned = tuple(names[(end - 1) % 2 : end : 2])
        if len(thinned) >= max(least, 2):
            chosen.append(thinned)
    return chosen


def plan_grids(
    sizes: pd.DataFrame, pairs: Sequence[int], goal: Goal, assumed: Assumed, plan: PlanConfig, nested: bool = False
) -> pd.DataFrame:
    """Return the power and the cost of grids, cheapest first: `candidate_sizes` with each number of seeds and pairs.

    Args:
        sizes: Cost of one seed at each size, smallest first: index size, columns sample_words, runs, words and hours
            (NaN: not known).
        pairs: Numbers of minimal pairs per paradigm.
        plan: Has the numbers of seeds, and the settings of the simulation.

    Returns:
        One row per grid: sizes, seeds, pairs, runs, words (with repeats, of all runs), hours, power, power_high (with
        the variance at its upper limit, see `Assumed`; missing if it is stated), enough (power is reached), chosen
        (the cheapest of these). Sizes at which an expected accuracy would leave 0 to 1 are left out.

    Raises:
        ConfigError: No grid is left.
    """
    rows = []
    for names in candidate_sizes(list(sizes.index), LEAST_SIZES[goal.kind]):
        of = sizes.loc[list(names)]
        x = np.log2(of["sample_words"].to_numpy(dtype=np.float64))
        change = goal.effect * (1 if goal.kind == ABLATION else x[-1] - x[0])
        ends = assumed.accuracy + change * np.array([0.5, -0.5] if goal.kind == DIFFERENCE else [1])
        if not ((ends >= 0) & (ends <= 1)).all():
            continue
        for seeds, number in product(sorted(set(plan.seeds)), sorted(set(pairs))):
            power, high = (
                math.nan if math.isnan(deviation) else simulate_power(x, seeds, deviation, goal, plan, nested)
                for deviation in assumed.deviations(number)
            )
            cost = of[["runs", "words", "hours"]].sum(skipna=False) * seeds
            rows.append(
                {"sizes": ",".join(names), "seeds": seeds, "pairs": number, **cost, "power": power, "power_high": high}
            )
    if not rows:
        raise ConfigError(
            f"effect={goal.effect}: from {assumed.accuracy:.3g} at the smallest size, accuracies would leave 0 to 1 in "
            "every grid. Plan for a smaller effect or for fewer sizes."
        )
    table = pd.DataFrame(rows).astype({"runs": int})
    by = "hours" if table["hours"].notna().all() else "words"
    table = table.sort_values([by, "pairs", "seeds"], kind="stable", ignore_index=True)
    enough = table["power"] >= goal.power
    return table.assign(enough=enough, chosen=enough & (enough.cumsum() == 1))
