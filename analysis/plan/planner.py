"""Simulate studies to find how many sizes, seeds and minimal pairs reveal an effect. Start at plan_grids."""

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


class Goal(NamedTuple):
    """An effect of one of the GOALS (docs/guides/planning.md). A study detects it if its interval excludes 0."""

    kind: str
    effect: float
    confidence: float = 0.95


class Assumed(NamedTuple):
    """The assumptions of a simulation about accuracies, or about differences between paired runs."""

    accuracy: float  # expected at the smallest size
    variance: float  # between runs of one size, without the variance of single judgements
    chance: float  # variance of single judgements, if there is one minimal pair per paradigm
    degrees: float = math.nan  # degrees of freedom of a pilot's variance

    def deviations(self, pairs: int) -> tuple[float, float]:
        """Return the standard deviation of runs with this number of pairs per paradigm, and its upper confidence limit.

        The limit (one-sided, 90%, chi-square) allows for the small number of runs in a pilot. It is NaN without a
        pilot.
        """
        variance = self.variance + self.chance / pairs
        return math.sqrt(variance), math.sqrt(variance * self.degrees / float(chi2.ppf(0.1, self.degrees)))


def assume_stated(goal: Goal, spread: float, accuracy: float, paradigms: int) -> Assumed:
    """Return assumptions from the standard deviation between runs of one size (`spread`).

    `spread` doesn't include the variance of single judgements, which is binomial and divided by the number of
    paradigms. For a comparison of two curves, both variances are doubled.
    """
    times = 1 if goal.kind == SLOPE else 2
    return Assumed(accuracy, times * spread**2, times * accuracy * (1 - accuracy) / paradigms)


def assume_pilot(goal: Goal, table: pd.DataFrame, unit: str, curves: Sequence[str] = ()) -> tuple[Assumed, str]:
    """Return assumptions from the runs of a pilot study, and a text about the runs that were used.

    The variance between runs is pooled over sizes. The variance of single judgements is binomial, but at most as large
    as the variance between runs. To compare two curves, the differences between their paired runs (with equal size and
    seed) are used. A single curve is compared with an independent curve that has the same variance.

    Args:
        goal: The effect to detect.
        table: The long table of one benchmark and method.
        unit: "overall", a phenomenon or a paradigm.
        curves: The names of one or two curves (default: all). For a slope, the curve whose runs differ most is used.

    Raises:
        ConfigError: If the unit or a curve is unknown, or if there are more than two curves to compare.
        RunError: If no two runs of a size differ.
    """
    units = unit_accuracies(table[table["baseline"] == ""])
    runs = units[units["name"] == unit]
    chosen, is_compared = list(dict.fromkeys(curves or runs["curve"])), goal.kind != SLOPE
    if not chosen or not set(chosen) <= set(runs["curve"]) or (is_compared and len(chosen) > 2):
        known = units.loc[units["level"] != "paradigm", "name"].unique()
        raise ConfigError(
            f"plan.unit={unit[:80]}, plan.curves={chosen}: these don't fit the pilot. Set plan.unit to "
            f"{', '.join(known)} or a paradigm. Choose one or two of the curves {'; '.join(units['curve'].unique())}."
        )
    spread = runs[runs["curve"].isin(chosen)]
    if is_compared and len(chosen) == 2:
        one, other = (spread[spread["curve"] == of].set_index(["size", "seed"])["accuracy"] for of in chosen)
        spread = (one - other).dropna().reset_index().assign(curve=f"{chosen[0]} minus {chosen[1]}, paired runs")
    means = spread.groupby(["curve", "size"])["accuracy"].transform("mean")
    squares = ((spread["accuracy"] - means) ** 2).groupby(spread["curve"]).sum()
    freedom = spread.groupby("curve")["size"].agg(lambda sizes: len(sizes) - sizes.nunique())
    variances = squares / freedom.clip(lower=1)
    if not variances.max() > ROUNDING:
        raise RunError(
            f"The pilot doesn't show how much runs differ in {unit}, because no two runs of a size differ "
            f"({', '.join(chosen)}). Use a pilot with several seeds per size, or set spread=NUMBER."
        )
    about = str(variances.idxmax())
    variance, degrees = float(variances[about]), int(freedom[about])
    # binomial variance of a unit's accuracy, as a mean over runs; 0 if the numbers of pairs aren't known
    judged = table[(table["phenomenon"] == unit) | (table["paradigm"] == unit) | (unit == "overall")]
    by_run = (judged["accuracy"] * (1 - judged["accuracy"]) / judged["pairs"].astype(float)).groupby(judged["run"])
    chance = float(np.nan_to_num((by_run.sum() / by_run.size() ** 2).mean())) * (2 if is_compared else 1)
    total = variance * (2 if is_compared and len(chosen) == 1 else 1)
    chance, pairs = min(chance, total), float(table["pairs"].astype(float).mean())
    smallest = runs.loc[runs["sample_words"] == runs["sample_words"].min(), "accuracy"]
    assumed = Assumed(float(smallest.mean()), total - chance, chance * pairs, degrees)
    return assumed, f"{about}: the standard deviation is {math.sqrt(variance):.4f} ({degrees} degrees of freedom)"


def simulate_power(x: Array, seeds: int, deviation: float, goal: Goal, plan: PlanConfig, nested: bool = False) -> float:
    """Return the share of simulated studies whose interval excludes 0, or NaN if the studies have no intervals.

    The accuracies of runs (or differences between paired runs) are drawn from normal distributions around a straight
    line, with the same standard deviation at every size. They are analysed like a real study, by the slope or the mean
    over sizes (`analysis.curves.lines.estimate`). With 2,000 studies, the standard error of the power is at most .011.

    Args:
        x: (S,) log2(words) of the sizes, smallest first.
        seeds: The number of runs, or pairs of runs, per size.
        deviation: The standard deviation between runs.
        goal: The effect to detect.
        plan: The number of simulations, and their seed.
        nested: Whether larger samples of a seed contain its smaller ones.
    """
    of_runs, size, slope = np.repeat(x, seeds), np.repeat(np.arange(len(x)), seeds), goal.kind != ABLATION
    expected = goal.effect * (of_runs - x[0] if slope else np.ones(len(of_runs)))
    noise = np.random.default_rng(plan.seed).normal(size=(len(of_runs), plan.simulations))
    of_seeds = np.tile(np.arange(seeds), len(x)) if nested else None
    line = fit_line(of_runs, size, of_seeds)
    value, variance, degrees = estimate([(line, expected[:, None] + deviation * noise)], slope)
    if np.isnan(variance).any():
        return math.nan
    return float((np.abs(value) > t_quantile(goal.confidence, degrees) * np.sqrt(variance)).mean())


def plan_grids(
    sizes: pd.DataFrame, pairs: Sequence[int], goal: Goal, assumed: Assumed, plan: PlanConfig, nested: bool = False
) -> pd.DataFrame:
    """Return the power and the cost of grids of sizes, seeds and pairs, cheapest first.

    Some grids leave out the largest sizes, which saves words. Others leave out every other size, which keeps the range.

    Args:
        sizes: The cost of one seed at each size, smallest first. The index is the size, and the columns are
            sample_words, runs, words and hours (NaN if unknown).
        pairs: Numbers of minimal pairs per paradigm to try.
        goal: The effect to detect.
        assumed: What to assume about runs.
        plan: The numbers of seeds to try, and the simulations.
        nested: Whether larger samples of a seed contain its smaller ones.

    Returns:
        The columns sizes, seeds, pairs, runs, words (of all runs, with repeats), hours, power and power_high. The last
        one is the power if the variance is at its upper limit (missing without a pilot).

    Raises:
        ConfigError: If no grid has enough sizes with expected accuracies between 0 and 1.
    """
    rows = []
    least = 1 if goal.kind == ABLATION else 3
    for end, step in product(range(least, len(sizes) + 1), (1, 2)):
        of = sizes.iloc[(end - 1) % step : end : step]
        x = np.log2(of["sample_words"].to_numpy(dtype=np.float64))
        change = goal.effect * (1 if goal.kind == ABLATION else x[-1] - x[0])
        ends = assumed.accuracy + change * np.array([0.5, -0.5] if goal.kind == DIFFERENCE else [1])
        if len(of) < max(least, step) or ((ends < 0) | (ends > 1)).any():
            continue
        for seeds, number in product(sorted(set(plan.seeds)), sorted(set(pairs))):
            powers = [simulate_power(x, seeds, one, goal, plan, nested) for one in assumed.deviations(number)]
            costs = of[["runs", "words", "hours"]].sum(skipna=False) * seeds
            rows.append((",".join(of.index), seeds, number, *costs, *powers))
    if not rows:
        raise ConfigError(
            f"goal={goal.kind}, effect={goal.effect}: no grid is possible. Accuracies start at {assumed.accuracy:.3g} "
            "and must stay between 0 and 1. Use a smaller effect or, for a slope, at least three sizes (sample.size)."
        )
    columns = ["sizes", "seeds", "pairs", "runs", "words", "hours", "power", "power_high"]
    table = pd.DataFrame(rows, columns=columns).astype({"runs": int})
    return table.sort_values(["hours", "words", "pairs", "seeds"], kind="stable", ignore_index=True)
