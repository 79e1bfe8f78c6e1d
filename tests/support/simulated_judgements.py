"""Simulated judgements, drawn from a model of known slopes, to measure the coverage of intervals.

logit P(run r is right about pair p) = level of r's size and p's paradigm + pair + pair's slope * (x - mean x)
+ run + run's effect in the paradigm. Pairs are crossed with runs; the spread between runs depends on the size. Levels
are such that expected accuracy over runs and pairs lies on a line, or on a sigmoid, of x exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit

from analysis.curves.designs import Design, slope_weights
from analysis.curves.units import Units, units_of

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
DOUBLINGS = 9  # from 125k to 64M words, as published


@dataclass(frozen=True)
class SimulatedJudgements:
    """One cell of the simulation: `draw` simulates one study."""

    seeds: int | tuple[int, ...] = 2  # runs of each size, or of every size
    sizes: int = 4  # equally far apart in log2(words)
    shape: str = "line"  # line | sigmoid | late: nearly no gain at first
    run_sd: tuple[float, ...] = (0.35, 0.12)  # logits, at each size, or at the smallest and at the largest
    pair_sd: float = 1.2  # logits
    pair_slope_sd: float = 0.06  # logits a doubling
    pairs: int = 100  # of each paradigm
    nested: bool = False  # a seed adds the same to each of its runs, and a slope of its own
    overlap: float = 0.0  # share of text that samples of the largest size have in common; half at half the size
    # accuracy at 125k and gain per doubling of each paradigm (other shapes gain 9 times that in all)
    paradigms: tuple[tuple[float, float], ...] = ((0.52, 0.035), (0.55, 0.02), (0.6, 0.03), (0.5, 0.01))

    @cached_property
    def units(self) -> Units:
        rows = [("ab"[k > 2], f"paradigm_{k}", str(p)) for k in range(len(self.paradigms)) for p in range(self.pairs)]
        return units_of(pd.DataFrame(rows, columns=["phenomenon", "paradigm", "pair_id"]))

    @cached_property
    def at(self) -> np.ndarray:
        """(S,) log2(words) of the sizes."""
        return np.log2(125_000) + np.linspace(0, DOUBLINGS, self.sizes)

    @cached_property
    def shares(self) -> np.ndarray:
        """(S,) share of text that samples of a size have in common."""
        return self.overlap * np.exp2(self.at - self.at[-1])

    @cached_property
    def design(self) -> Design:
        counts = np.broadcast_to(self.seeds, self.sizes)
        size = np.repeat(np.arange(self.sizes), counts)
        seed = np.concatenate([np.arange(n) for n in counts])
        return Design(self.at[size], size, seed, self.nested, overlap=self.shares[size] if self.overlap else None)

    @cached_property
    def spread(self) -> np.ndarray:
        """(S,) deviation of what a run adds by itself, in logits."""
        return np.geomspace(*self.run_sd, self.sizes) if len(self.run_sd) == 2 else np.asarray(self.run_sd)

    @cached_property
    def run_deviation(self) -> np.ndarray:
        """(S,) deviation of what a run adds, to all paradigms and to each, in logits."""
        return np.hypot(self.spread, self._seed_deviation) if self.nested else self.spread

    @cached_property
    def _seed_deviation(self) -> np.ndarray:
        return np.hypot(0.2, 0.03 * (self.at - self.at.mean()))

    @cached_property
    def expected(self) -> np.ndarray:
        """(S, K) accuracy over runs and pairs."""
        doublings = self.at - self.at[0]
        if self.shape == "sigmoid":
            rise = expit(1.2 * (doublings - DOUBLINGS / 2))
            doublings = DOUBLINGS * (rise - rise[0]) / (rise[-1] - rise[0])
        if self.shape == "late":
            doublings = DOUBLINGS * (doublings / DOUBLINGS) ** 3
        return np.stack([start + gain * doublings for start, gain in self.paradigms], axis=1)

    @cached_property
    def level(self) -> np.ndarray:
        """(S, K) logits."""
        spread = self.pair_sd**2 + (self.pair_slope_sd * (self.at - self.at.mean())) ** 2 + self.run_deviation**2
        return np.asarray(
            [
                [brentq(lambda m, s=s, a=a: expit(m + np.sqrt(s) * NODES) @ WEIGHTS - a, -9, 9) for a in row]
                for s, row in zip(spread, self.expected, strict=True)
            ]
        )

    def slope_of(self, accuracy: np.ndarray) -> np.ndarray:
        """(S, K) accuracies of sizes -> (U,) slope of the least-squares line through them."""
        return slope_weights(self.at, np.ones((1, self.sizes)))[0] @ accuracy @ self.units.weights

    @cached_property
    def slope_new_pairs(self) -> np.ndarray:
        """(U,) the true slope over new runs and new pairs."""
        return self.slope_of(self.expected)

    def draw_pairs(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(K, pairs per paradigm) logits of pairs, and of their own slopes a doubling."""
        shape = (len(self.paradigms), self.pairs)
        return rng.normal(0, self.pair_sd, shape), rng.normal(0, self.pair_slope_sd, shape)

    def draw_runs(self, rng: np.random.Generator) -> np.ndarray:
        """(R, K) logits that each run adds in each paradigm."""
        size, seed, k = self.design.size, self.design.seed, len(self.paradigms)
        run = self._two_parts(rng, len(size), k)
        if self.overlap:  # all of a run's effect is its text's, of which some is in every sample
            share = self.shares[size, None]
            run = np.sqrt(share) * self._two_parts(rng, 1, k) + np.sqrt(1 - share) * run
        run = self.spread[size, None] * run
        if self.nested:
            seeds = seed.max() + 1
            own, tilt = 0.2 * self._two_parts(rng, seeds, k), 0.03 * self._two_parts(rng, seeds, k)
            run = run + own[seed] + tilt[seed] * (self.design.x - self.at.mean())[:, None]
        return run

    def draw(
        self,
        rng: np.random.Generator,
        pairs: tuple[np.ndarray, np.ndarray] | None = None,
        runs: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """(R, P) outcomes of one study, and (S, K) the accuracies expected over new runs for the pairs drawn."""
        pair, slope = self.draw_pairs(rng) if pairs is None else pairs
        run = self.draw_runs(rng) if runs is None else runs
        centred = (self.at - self.at.mean())[:, None, None]
        of_size = self.level[:, :, None] + pair + slope * centred  # (S, K, P)
        nodes = self.run_deviation[:, None, None, None] * NODES
        true = (expit(of_size[..., None] + nodes) @ WEIGHTS).mean(axis=2)
        p = expit(of_size[self.design.size] + run[:, :, None])
        outcome = (rng.uniform(size=p.shape) < p).astype(np.float32)
        return outcome.reshape(len(run), -1), true

    @staticmethod
    def _two_parts(rng: np.random.Generator, rows: int, paradigms: int) -> np.ndarray:
        """(rows, K) of variance 1: half of it common to all paradigms."""
        return np.sqrt(0.5) * (rng.normal(size=(rows, 1)) + rng.normal(size=(rows, paradigms)))
