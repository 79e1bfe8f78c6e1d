"""How many sizes, seeds and minimal pairs find an effect: studies are simulated, analysed, and counted.

Start at simulate_power, the power of one grid. plan_grids compares several; assume_stated and assume_pilot say how far
runs differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import chi2
from scipy.stats import t as student

from analysis.curves.ablations import estimate
from analysis.curves.lines import ROUNDING, Array
from analysis.curves.units import unit_accuracies
from pairscale.errors import ConfigError, RunError

SLOPE, DIFFERENCE, ABLATION = "slope", "difference", "ablation"
UPPER = 0.9  # one-sided level of the upper limit of a pilot's variance
LEAST_SIZES = {SLOPE: 3, DIFFERENCE: 3, ABLATION: 1}


@dataclass(frozen=True)
class Goal:
    """What a study is to find.

    effect: accuracy per doubling of the training data (slope, or difference of two curves' slopes), or difference of
    mean accuracies over all sizes (ablation). power: share of studies that are to find it: their interval of level
    `confidence` excludes 0.
    """

    kind: str
    effect: float
    power: float = 0.8
    confidence: float = 0.95

    @property
    def compares(self) -> bool:
        """Whether two curves are compared, run by run."""
        return self.kind != SLOPE


@dataclass(frozen=True)
class Grid:
    """Sizes (names and words, smallest first), seeds per size, minimal pairs per paradigm."""

    sizes: tuple[str, ...]
    words: tuple[float, ...]
    seeds: int
    pairs: int
    nested: bool = False

    @property
    def doublings(self) -> Array:
        """The (sizes,) doublings from the smallest size."""
        return np.log2(np.asarray(self.words) / self.words[0])


@dataclass(frozen=True)
class Assumed:
    """What a simulation assumes about accuracies, or about their differences between paired runs.

    accuracy: expected at the smallest size. variance: between runs of one size, without chance in single judgements.
    chance: variance that single judgements add with one minimal pair per paradigm. degrees: degrees of freedom of a
    pilot's variance, infinite if it is stated.
    """

    accuracy: float
    variance: float
    chance: float
    degrees: float = math.inf

    def of(self, pairs: int) -> float:
        """Return the variance between runs that judge so many minimal pairs per paradigm."""
        return self.variance + self.chance / pairs

    def at_upper_limit(self) -> Assumed:
        """Return the same with variances at the upper limit that a pilot of so few runs leaves open."""
        factor = self.degrees / float(chi2.ppf(1 - UPPER, self.degrees)) if math.isfinite(self.degrees) else 1.0
        return replace(self, variance=self.variance * factor, chance=self.chance * factor)


def assume_stated(goal: Goal, spread: float, accuracy: float, paradigms: int, correlation: float = 0.0) -> Assumed:
    """Return assumptions from stated numbers.

    Args:
        goal: A goal that compares two curves doubles variances.
        spread: Standard deviation between accuracies of runs of one size, apart from chance in single judgements.
        accuracy: Expected at the smallest size.
        paradigms: Paradigms of the unit that is planned for.
        correlation: Between the accuracies of paired runs of the two curves.
    """
    double = 2.0 if goal.compares else 1.0
    shared = 1 - correlation if goal.compares else 1.0
    return Assumed(accuracy, spread**2 * double * shared, accuracy * (1 - accuracy) / paradigms * double)


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
    by_curve = {
        str(curve): of.set_index(["size", "seed"])["accuracy"] for curve, of in rows.groupby("curve", sort=False)
    }
    for curve in curves:
        if curve not in by_curve:
            raise ConfigError(f"No curve {curve[:80]} in the pilot. Choose one of {'; '.join(by_curve)}.")
    chosen = list(curves) or list(by_curve)
    if goal.compares and len(chosen) > 2:
        raise ConfigError(
            f"The pilot has {len(chosen)} curves. Name the two to compare: plan.group and plan.other, of "
            f"{'; '.join(chosen)}."
        )
    share, chance = 1.0, _chance(accuracies, unit)
    if goal.compares and len(chosen) == 2:
        about, chance = f"differences of paired runs, {chosen[0]} less {chosen[1]}", 2 * chance
        values = (by_curve[chosen[0]] - by_curve[chosen[1]]).dropna()
    else:
        curve = max(chosen, key=lambda curve: np.nan_to_num(_spread(by_curve[curve])[0]))
        about, values = f"runs of {curve}", by_curve[curve]
        share = 2 * (1 - correlation) if goal.compares else 1.0
    variance, degrees = _spread(values)
    if not degrees:
        raise RunError("The pilot has no two runs of one size, so it doesn't show how far runs differ.")
    if not variance > ROUNDING:
        raise RunError(f"All {about} of the pilot are equal in {unit}, so they don't show how far runs differ.")
    variance, chance = variance * share, min(chance, variance) * share
    pairs = float(accuracies["pairs"].astype(float).mean())
    smallest = rows[rows["sample_words"] == rows["sample_words"].min()]
    assumed = Assumed(float(smallest["accuracy"].mean()), variance - chance, chance * pairs, degrees)
    return assumed, f"{about}: standard deviation {math.sqrt(variance):.4f}, {degrees:.0f} degrees of freedom"


def _chance(accuracies: pd.DataFrame, unit: str) -> float:
    """Return the binomial variance of a unit's accuracy in one run, mean over runs; 0 if pairs are not known."""
    of = accuracies
    if unit != "overall":
        of = of[(of["phenomenon"] == unit) | (of["paradigm"] == unit)]
    by_run = (of["accuracy"] * (1 - of["accuracy"]) / of["pairs"].astype(float)).groupby(of["run"])
    return float(np.nan_to_num((by_run.sum() / by_run.size() ** 2).mean()))


def _spread(accuracies: pd.Series) -> tuple[float, int]:
    """Return the variance between runs of a size, pooled over sizes, and its degrees of freedom."""
    by_size = accuracies.groupby("size")
    degrees = int((by_size.size() - 1).sum())
    squares = float(((accuracies - by_size.transform("mean")) ** 2).sum())
    return (squares / degrees if degrees else math.nan), degrees


def simulate_power(grid: Grid, goal: Goal, assumed: Assumed, studies: int = 2000, seed: int = 1) -> float:
    """Return the share of simulated studies whose interval excludes 0, NaN if such a study has no interval.

    Accuracies of runs (or differences of paired runs) are drawn from normal distributions around a straight line, with
    the same variance at every size, and are analysed as a study is: the slope, or the mean over sizes, of
    `analysis.curves.ablations.estimate`. With 2,000 studies the standard error of a power is at most .011.
    """
    runs = pd.DataFrame({
        "size": np.repeat(grid.sizes, grid.seeds), "sample_words": np.repeat(grid.words, grid.seeds),
        "seed": np.tile(np.arange(grid.seeds), len(grid.sizes)), "nested": grid.nested,
    })  # fmt: skip
    doublings = np.repeat(grid.doublings, grid.seeds)
    expected = np.full(len(runs), goal.effect) if goal.kind == ABLATION else goal.effect * doublings
    noise = np.random.default_rng(seed).normal(size=(len(runs), studies))
    values = expected[:, None] + math.sqrt(assumed.of(grid.pairs)) * noise
    found = estimate(values, runs, slope=goal.kind != ABLATION)
    if np.isnan(found.variance).any():
        return math.nan
    half = student.ppf(0.5 + goal.confidence / 2, found.degrees) * np.sqrt(found.variance)
    return float((np.abs(found.value) > half).mean())


def candidate_grids(
    sizes: Mapping[str, float], seeds: Sequence[int], pairs: Sequence[int], least: int, nested: bool = False
) -> Iterator[Grid]:
    """Yield all sizes up to each, and every other one of these, with each number of seeds and minimal pairs.

    Dropping large sizes saves most words, dropping those between keeps the range. `sizes`: words by name, smallest
    first; `least`: fewest sizes of a grid.
    """
    names = list(sizes)
    chosen: dict[tuple[str, ...], None] = {}
    for end in range(least, len(names) + 1):
        chosen[tuple(names[:end])] = None
        thinned = tuple(names[:end][::-1][::2][::-1])
        if len(thinned) >= max(least, 2):
            chosen[thinned] = None
    for of in chosen:
        for number in sorted(set(seeds)):
            for n in sorted(set(pairs)):
                yield Grid(of, tuple(sizes[name] for name in of), number, n, nested)


def plan_grids(
    grids: Sequence[Grid], goal: Goal, assumed: Assumed, costs: pd.DataFrame, studies: int = 2000, seed: int = 1
) -> pd.DataFrame:
    """Return the power and the cost of grids, cheapest first.

    Args:
        grids: At least one; those at which an expected accuracy would leave 0 to 1 are dropped.
        costs: Cost of one seed at each size: index size, columns runs, words and hours (NaN: not known).

    Returns:
        One row per grid: sizes, seeds, pairs, runs, words (with repeats, of all runs), hours, power, power_high (with
        the variance at its upper limit, see `Assumed`; missing if it is stated), enough (power is reached), chosen
        (the cheapest of these).

    Raises:
        ConfigError: No grid is left.
    """
    possible = [grid for grid in grids if _is_possible(grid, goal, assumed.accuracy)]
    if not possible:
        raise ConfigError(
            f"effect={goal.effect}: from {assumed.accuracy:.3g} at the smallest size, accuracies would leave 0 to 1 in "
            "every grid. Plan for a smaller effect or for fewer sizes."
        )
    high = assumed.at_upper_limit() if math.isfinite(assumed.degrees) else None
    rows = []
    for grid in possible:
        cost = costs.loc[list(grid.sizes), ["runs", "words", "hours"]].sum(skipna=False) * grid.seeds
        power = simulate_power(grid, goal, assumed, studies, seed)
        power_high = simulate_power(grid, goal, high, studies, seed) if high else math.nan
        rows.append({"sizes": ",".join(grid.sizes), "seeds": grid.seeds, "pairs": grid.pairs, **cost.to_dict(),
                     "power": power, "power_high": power_high})  # fmt: skip
    table = pd.DataFrame(rows).astype({"runs": int})
    by = "hours" if table["hours"].notna().all() else "words"
    table = table.sort_values([by, "pairs", "seeds"], kind="stable", ignore_index=True)
    enough = table["power"] >= goal.power
    return table.assign(enough=enough, chosen=enough & (enough.cumsum() == 1))


def _is_possible(grid: Grid, goal: Goal, accuracy: float) -> bool:
    """Return whether the expected accuracies of a grid lie between 0 and 1."""
    change = goal.effect * (1 if goal.kind == ABLATION else grid.doublings[-1])
    ends = {SLOPE: [change], DIFFERENCE: [change / 2, -change / 2], ABLATION: [change]}[goal.kind]
    return all(0 <= accuracy + end <= 1 for end in ends)
