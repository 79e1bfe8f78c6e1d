"""Simulated studies of a planned grid, analysed as a real study would be: the share that finds the effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.ablations.effects import Matched
from analysis.curves.comparisons import slope_difference
from analysis.curves.groups import fit_group, slope_limits
from analysis.curves.units import Units, units_of
from analysis.curves.variance import Array
from analysis.curves.words_to_people import line_reaches, slope_quantile
from analysis.plan.config import ABLATION, DIFFERENCE, PEOPLE, SLOPE
from analysis.plan.grids import Grid
from analysis.plan.power import Spread
from analysis.simulation.studies import SimulatedRuns, pair_deviation, sensitivity

CLOSEST = 0.02  # accuracies of a simulated line lie no closer to 0 and 1, if it can be moved


@dataclass(frozen=True)
class Check:
    """Simulated studies of a grid. All pairs are of one paradigm, as a mean over equal paradigms is one over pairs."""

    goal: str
    effect: float
    grid: Grid
    spread: Spread
    config: CurvesConfig

    @cached_property
    def units(self) -> Units:
        pairs = [str(i) for i in range(self.spread.paradigms * self.grid.pairs)]
        return units_of(pd.DataFrame({"phenomenon": "all", "paradigm": "all", "pair_id": pairs}))

    def runs_of(self, level: float, gain: float) -> SimulatedRuns:
        """Return the runs of one group, whose expected accuracies lie on a line; `level`: in the middle of the sizes.

        Where two groups are compared, each has half the variance of their difference.
        """
        share = 0.5 if self.goal in (DIFFERENCE, ABLATION) else 1.0
        x = np.asarray(self.grid.x)
        ends = gain * (x - x.mean())
        level = float(np.clip(level, CLOSEST - ends.min(), 1 - CLOSEST - ends.max()))
        expected = (level + ends)[:, None]
        pair_sd = pair_deviation(expected[:, 0], share * self.spread.judgement)
        deviation = np.sqrt(share * self.spread.run_variance(x)) / sensitivity(expected[:, 0], pair_sd)
        nothing = np.zeros(len(x))
        return SimulatedRuns(
            self.grid.design, self.units, expected, deviation, nothing, pair_sd, seed_share=self.spread.seed_share
        )

    @cached_property
    def groups(self) -> list[SimulatedRuns]:
        """The group, or the two that are compared."""
        x, spread = np.asarray(self.grid.x), self.spread
        level = spread.accuracy + spread.gain * (x.mean() - spread.x)
        match self.goal:
            case "difference":
                return [self.runs_of(level, spread.gain + side * self.effect / 2) for side in (1, -1)]
            case "ablation":
                return [self.runs_of(level + side * self.effect / 2, spread.gain) for side in (1, -1)]
            case "people":
                return [self.runs_of(level, spread.gain)]
        return [self.runs_of(level, self.effect)]

    def studies(self, rng: np.random.Generator, count: int) -> Iterator[tuple[int, bool]]:
        """Yield 1 and whether the effect is found (goal=people: limits within the factor), for each study."""
        found = {SLOPE: self._slope, DIFFERENCE: self._difference, ABLATION: self._ablation, PEOPLE: self._people}
        for _ in range(count):
            pairs = self.groups[0].draw_pairs(rng)
            outcomes = [group.draw(rng, pairs)[0] for group in self.groups]
            yield 1, bool(found[self.goal](outcomes, rng))

    def _slope(self, outcomes: list[Array], rng: np.random.Generator) -> bool:
        fit = fit_group("planned", outcomes[0], self.grid.design, self.units, self.config.interval)
        low, high, *_ = slope_limits(fit, self.config)
        return bool(low[0] > 0 or high[0] < 0)

    def _difference(self, outcomes: list[Array], rng: np.random.Generator) -> bool:
        design = self.grid.design
        a, b = (fit_group("planned", of, design, self.units, self.config.interval) for of in outcomes)
        limits = slope_difference(a, b, self.config, np.arange(design.cluster.max() + 1))
        return bool(limits["low"][0] > 0 or limits["high"][0] < 0)

    def _ablation(self, outcomes: list[Array], rng: np.random.Generator) -> bool:
        first, second = (of.astype(np.float64) for of in outcomes)
        design = self.grid.design
        low, high, *_ = (
            Matched(first, second, (design, design), True, self.units).difference().limits(self.config.confidence)
        )
        return bool(low[0] > 0 or high[0] < 0)

    def _people(self, outcomes: list[Array], rng: np.random.Generator) -> bool:
        fit = fit_group("planned", outcomes[0], self.grid.design, self.units, self.config.interval)
        error = np.full(len(fit.line.slope), self.spread.people_error)
        people = self.spread.people + error * rng.normal()
        at, low, high, bounded = line_reaches(fit, people, error, slope_quantile(fit, self.config))
        within = max(high[0] - at[0], at[0] - low[0]) <= np.log2(self.effect)
        return bool(fit.line.slope[0] > 0 and bounded[0] and within)
