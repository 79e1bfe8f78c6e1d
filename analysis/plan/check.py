"""Simulated studies of a planned grid, analysed as a real study would be: the share that finds the effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.ablations.effects import Matched
from analysis.curves.comparisons import difference_cautions, slope_difference
from analysis.curves.groups import cautions, cautions_left, fit_group, slope_limits
from analysis.curves.units import Units, units_of
from analysis.curves.variance import Array
from analysis.curves.words_to_people import line_reaches, slope_quantile
from analysis.plan.config import ABLATION, DIFFERENCE, PEOPLE, SLOPE
from analysis.plan.errors import COMMON, MOST_UNITS
from analysis.plan.grids import Grid
from analysis.plan.power import Spread
from analysis.simulation.studies import SimulatedRuns, pair_deviation, sensitivity

CLOSEST = 0.02  # accuracies of a simulated line lie no closer to 0 and 1, if it can be moved


def lines_of(goal: str, effect: float, grid: Grid, spread: Spread) -> Array:
    """Return the (G, S) accuracies expected at the sizes of a grid, of the group or of the two that are compared.

    Two lie half of the effect above and below what is planned; two slopes meet at the middle of the sizes.
    """
    x = np.asarray(grid.x)
    gain = effect if goal == SLOPE else spread.gain
    line = spread.accuracy + gain * (x - spread.x)
    if goal not in (DIFFERENCE, ABLATION):
        return np.asarray(line[None])
    half = effect / 2 * (x - x.mean() if goal == DIFFERENCE else np.ones(len(x)))
    return np.stack([line + half, line - half])


@dataclass(frozen=True)
class Check:
    """Simulated studies of a grid.

    All pairs are of one paradigm, as a mean over equal paradigms is one over pairs; of several with two runs a size,
    whose units the analysis judges together (analysis/plan/errors.py).
    """

    goal: str
    effect: float
    grid: Grid
    spread: Spread
    config: CurvesConfig

    @cached_property
    def units(self) -> Units:
        pairs = np.arange(self.spread.paradigms * self.grid.pairs)
        paradigms = np.sort((pairs % self.paradigms).astype(str))  # as units are
        return units_of(pd.DataFrame({"phenomenon": "all", "paradigm": paradigms, "pair_id": pairs.astype(str)}))

    @cached_property
    def paradigms(self) -> int:
        """How many are simulated."""
        together = self.grid.seeds == 2 and not self.grid.nested and self.goal != ABLATION
        return min(self.spread.paradigms, MOST_UNITS) if together else 1

    @cached_property
    def groups(self) -> list[SimulatedRuns]:
        """The group, or the two that are compared, whose runs judge the same pairs.

        Lines that come too close to the ends of the scale are moved together, so that their difference stays. Each of
        two groups has half the variance of their difference.
        """
        lines = lines_of(self.goal, self.effect, self.grid, self.spread)
        closest = min(CLOSEST, (1 - float(np.ptp(lines))) / 2)
        lines = lines + np.clip(0, closest - lines.min(), 1 - closest - lines.max())
        x, share = np.asarray(self.grid.x), 1 / len(lines)
        pair_sd = pair_deviation(lines.ravel(), share * self.spread.judgement)
        run_sd = np.sqrt(share * self.spread.run_variance(x))
        alike = COMMON if self.paradigms > 1 else 1.0
        common, own = np.sqrt(np.array([alike, 1 - alike]) / (alike + (1 - alike) / self.paradigms))
        return [
            SimulatedRuns(
                self.grid.design, self.units, np.tile(line[:, None], self.paradigms),
                common * run_sd / sensitivity(line, pair_sd), own * run_sd / sensitivity(line, pair_sd), pair_sd,
                seed_share=self.spread.seed_share,
            )
            for line in lines
        ]  # fmt: skip

    def studies(self, rng: np.random.Generator, count: int) -> Iterator[tuple[int, bool]]:
        """Yield 1 and whether the effect is found (goal=people: limits within the factor), for each study.

        Limits that a report leaves out find nothing.
        """
        found = {SLOPE: self._slope, DIFFERENCE: self._difference, ABLATION: self._ablation, PEOPLE: self._people}
        for _ in range(count):
            pairs = self.groups[0].draw_pairs(rng)
            outcomes = [group.draw(rng, pairs)[0] for group in self.groups]
            yield 1, bool(found[self.goal](outcomes, rng))

    def _slope(self, outcomes: list[Array], rng: np.random.Generator) -> bool:
        fit = fit_group("planned", outcomes[0], self.grid.design, self.units, self.config.interval)
        low, high, *_ = slope_limits(fit, self.config)
        return self._given(cautions(fit)) and bool(low[0] > 0 or high[0] < 0)

    def _given(self, reasons: npt.NDArray[np.str_]) -> bool:
        """Return whether a report gives the overall limits (analysis.cautioned_limits); reasons: cautions on them."""
        return bool(cautions_left(reasons, self.config)[1][0] == "")

    def _difference(self, outcomes: list[Array], rng: np.random.Generator) -> bool:
        design = self.grid.design
        a, b = (fit_group("planned", of, design, self.units, self.config.interval) for of in outcomes)
        limits = slope_difference(a, b, self.config, np.arange(design.cluster.max() + 1))
        return self._given(difference_cautions(a, b)) and bool(limits["low"][0] > 0 or limits["high"][0] < 0)

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
        return self._given(cautions(fit)) and bool(fit.line.slope[0] > 0 and bounded[0] and within)
