"""Simulated judgements of studies with interventions, of known effects, apart from the statistics that they judge.

Three groups of runs (treatment, control, full text) judge the same pairs. P(right) = Phi(level + pair + run), where
Phi is the normal distribution function: the level depends on size, paradigm and group (the treatment lacks `effect` in
the paradigms that test the construction, by an amount that differs between pairs), and a run adds a part that the
three runs of its size and seed share (`shared` of the variance: the text in common) and one of its own, half of each to
all paradigms. Chance in single judgements is shared too (`judgements`). Expected accuracies over runs and over pairs
follow in closed form, as sums of normal variables are normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.stats import norm

from analysis.curves.ablations.effects import Matched
from analysis.curves.ablations.matching import scoped_units
from analysis.curves.designs import Design
from analysis.curves.units import Units

TREATMENT, CONTROL, FULL = range(3)
NAMES = ("direct_1", "direct_2", "same_1", "rest_1", "rest_2")  # paradigms; the first two test the construction
PHENOMENA = ("a", "a", "a", "b", "b")


@dataclass(frozen=True)
class SimulatedAblation:
    """One design; `draw` simulates one study."""

    sizes: int = 3
    seeds: int = 3
    pairs: int = 100  # of each paradigm
    run_sd: tuple[float, ...] = (0.12,)  # probits, at each size, or at all
    shared: float = 0.7  # of the variance between runs, among the runs of a size and seed
    judgements: float = 0.5  # correlation of chance in single judgements between these
    accuracy: tuple[float, ...] = (0.75, 0.7, 0.65, 0.6, 0.8)  # of each paradigm at the smallest size
    gain: float = 0.1  # probits a size
    effect: float = 0.3  # probits
    effect_sd: float = 0.2  # over pairs
    pair_sd: float = 0.8
    paired: bool = True

    @cached_property
    def units(self) -> Units:
        rows = [(part, name, str(p)) for part, name in zip(PHENOMENA, NAMES, strict=True) for p in range(self.pairs)]
        return scoped_units(pd.DataFrame(rows, columns=["phenomenon", "paradigm", "pair_id"]), NAMES[:2])

    @cached_property
    def design(self) -> Design:
        size = np.repeat(np.arange(self.sizes), self.seeds)
        return Design(17.0 + size, size, np.tile(np.arange(self.seeds), self.sizes), nested=False)

    @cached_property
    def spread(self) -> np.ndarray:
        """(S,) deviation of what a run adds."""
        return np.broadcast_to(self.run_sd, self.sizes).astype(float)

    def level(self, group: int) -> np.ndarray:
        """(S, K) mean probits, without pairs and runs; accuracies at the smallest size without the effect hold."""
        variance = 1 + self.pair_sd**2 + self.spread[0] ** 2
        start = norm.ppf(self.accuracy) * np.sqrt(variance)
        level = start + self.gain * np.arange(self.sizes)[:, None]
        return level - (self.effect if group == TREATMENT else 0) * (np.arange(len(NAMES)) < 2)

    def draw(self, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
        """(R, P) outcomes of each group, and (3, S, K) accuracies expected over new runs for the pairs drawn."""
        k, size = len(NAMES), self.design.size
        pair = rng.normal(0, self.pair_sd, (k, self.pairs))
        change = rng.normal(0, self.effect_sd, (k, self.pairs)) * (np.arange(k) < 2)[:, None]
        together, same = self._run(rng), rng.normal(size=(len(size), k, self.pairs))
        outcomes, expected = [], []
        for group in (TREATMENT, CONTROL, FULL):
            if not self.paired:
                together, same = self._run(rng), rng.normal(size=same.shape)
            of_pair = self.level(group)[:, :, None] + pair - (change if group == TREATMENT else 0)  # (S, K, P/K)
            run = np.sqrt(self.shared) * together + np.sqrt(1 - self.shared) * self._run(rng)
            chance = np.sqrt(self.judgements) * same
            chance = chance + np.sqrt(1 - self.judgements) * rng.normal(size=same.shape)
            right = of_pair[size] + (self.spread[size, None] * run)[:, :, None] > chance
            outcomes.append(right.reshape(len(size), -1).astype(np.float64))
            expected.append(norm.cdf(of_pair / np.sqrt(1 + self.spread[:, None, None] ** 2)).mean(axis=2))
        return outcomes, np.stack(expected)

    @cached_property
    def population(self) -> np.ndarray:
        """(3, S, K) accuracies expected over new runs and new pairs."""
        of = []
        for group in (TREATMENT, CONTROL, FULL):
            varies = (np.arange(len(NAMES)) < 2) * (self.effect_sd**2 if group == TREATMENT else 0.0)
            variance = 1 + self.pair_sd**2 + varies + self.spread[:, None] ** 2
            of.append(norm.cdf(self.level(group) / np.sqrt(variance)))
        return np.stack(of)

    def matched(self, first: np.ndarray, second: np.ndarray, size: int | None = None) -> Matched:
        """Return a comparison of two groups' outcomes; `size`: at one size alone."""
        rows = np.full(len(self.design.size), True) if size is None else self.design.size == size
        design = self.design.of(rows)
        return Matched(first[rows], second[rows], (design, design), self.paired, self.units)

    def _run(self, rng: np.random.Generator) -> np.ndarray:
        """(R, K) of variance 1: half of it common to all paradigms."""
        runs = len(self.design.size)
        return np.sqrt(0.5) * (rng.normal(size=(runs, 1)) + rng.normal(size=(runs, len(NAMES))))
