"""Simulated studies: runs of a given design judge pairs, with known expected accuracies.

P(run r is right about pair p) = Phi(level of r's size and p's paradigm + pair + run), Phi being the normal distribution
function. As sums of normal variables are normal, expected accuracies over runs and over pairs have closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, owens_t

from analysis.curves.designs import Design
from analysis.curves.units import Units
from analysis.curves.variance import Array

EXTREME = 0.002  # accuracies are simulated no closer to 0 and 1
MOST_PAIRS = 40.0  # probits, of the deviation of pairs


@dataclass(frozen=True)
class SimulatedRuns:
    """The runs of one group; `draw` simulates what they judge.

    expected: (S, K) accuracies of sizes and paradigms over new runs and new pairs. common_sd, own_sd: (S,) deviations
    in probits of what a run adds to all paradigms, and to each by itself. pair_sd: of pairs, in probits; pair_slope_sd:
    of their own slopes, per doubling. seed_share: share of a run's variance that runs of a seed have in common, where
    samples are nested. Samples that share text (`Design.overlap`) have that share of a run's variance in common.
    """

    design: Design
    units: Units
    expected: Array
    common_sd: Array
    own_sd: Array
    pair_sd: float = 0.0
    pair_slope_sd: float = 0.0
    seed_share: float = 0.0

    @cached_property
    def at(self) -> Array:
        """(S,) log2 of words."""
        size = self.design.size
        return np.asarray([self.design.x[size == s].mean() for s in range(size.max() + 1)])

    @cached_property
    def paradigm(self) -> npt.NDArray[np.intp]:
        """(P,) paradigm of each pair."""
        return np.repeat(np.arange(len(self.units.bounds) - 1), np.diff(self.units.bounds))

    @cached_property
    def run_variance(self) -> Array:
        """(S,) variance in probits of what a run adds to a paradigm."""
        return np.asarray(self.common_sd**2 + self.own_sd**2)

    @cached_property
    def level(self) -> Array:
        """(S, K) probits without pairs and runs."""
        tilt = self.pair_slope_sd * (self.at - self.at.mean())
        variance = 1 + self.pair_sd**2 + tilt**2 + self.run_variance
        accuracy = np.clip(self.expected, EXTREME, 1 - EXTREME)
        return np.asarray(ndtri(accuracy) * np.sqrt(variance)[:, None])

    def draw_pairs(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return the (P,) probits of pairs, and of their own slopes per doubling."""
        pairs = len(self.paradigm)
        return rng.normal(0, self.pair_sd, pairs), rng.normal(0, self.pair_slope_sd, pairs)

    def draw_effects(self, rng: np.random.Generator) -> Array:
        """Return (R, 1 + K) standard normal effects of runs: on all paradigms, then on each."""
        runs, k = len(self.design.x), 1 + self.expected.shape[1]
        effects = rng.normal(size=(runs, k))
        if self.design.nested:
            of_seed = rng.normal(size=(self.design.seed.max() + 1, k))[self.design.seed]
            effects = np.sqrt(self.seed_share) * of_seed + np.sqrt(1 - self.seed_share) * effects
        if self.design.overlap is not None:
            share = self.design.overlap[:, None]
            effects = np.sqrt(share) * rng.normal(size=(1, k)) + np.sqrt(1 - share) * effects
        return np.asarray(effects)

    def draw(
        self, rng: np.random.Generator, pairs: tuple[Array, Array] | None = None, effects: Array | None = None
    ) -> tuple[Array, Array]:
        """Return (R, P) outcomes, and (S, K) accuracies expected over new runs for the pairs drawn."""
        pair, slope = self.draw_pairs(rng) if pairs is None else pairs
        effects = self.draw_effects(rng) if effects is None else effects
        size = self.design.size
        tilt = (self.at - self.at.mean())[:, None]
        of_pair = self.level[:, self.paradigm] + pair + slope * tilt  # (S, P)
        run = self.common_sd[size, None] * effects[:, :1] + self.own_sd[size, None] * effects[:, 1:]
        right = rng.random(size=(len(size), len(pair)), dtype=np.float32) < ndtr(of_pair[size] + run[:, self.paradigm])
        of_runs = ndtr(of_pair / np.sqrt(1 + self.run_variance)[:, None])
        expected = np.add.reduceat(of_runs, self.units.bounds[:-1], axis=1) / np.diff(self.units.bounds)
        return right.astype(np.float32), np.asarray(expected)


def judgement_share(accuracy: Array, pair_sd: float) -> Array:
    """Return the variance over runs of single judgements, a mean over pairs of p (1 - p), where pairs differ.

    With pairs of deviation s in probits, two independent judgements of a pair have the correlation s^2 / (1 + s^2) in
    probits; P(both right) follows by Owen's T (1956, equation 3.5).
    """
    correlation = pair_sd**2 / (1 + pair_sd**2)
    return np.asarray(2 * owens_t(ndtri(accuracy), np.sqrt((1 - correlation) / (1 + correlation))))


def pair_deviation(accuracy: Array, judgement: float) -> float:
    """Return the deviation of pairs in probits with which judgements have the variance `judgement`, a mean over (K,).

    0 where it is that of pairs which are all alike, or more.
    """
    accuracy = np.clip(accuracy, EXTREME, 1 - EXTREME)

    def excess(deviation: float) -> float:
        return float(judgement_share(accuracy, deviation).mean() - judgement)

    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, MOST_PAIRS)) if excess(MOST_PAIRS) < 0 else MOST_PAIRS


def sensitivity(accuracy: Array, pair_sd: float) -> Array:
    """Return the change of an expected accuracy by a small change of all probits, pairs of deviation `pair_sd`."""
    h = ndtri(np.clip(accuracy, EXTREME, 1 - EXTREME))
    return np.asarray(np.exp(-(h**2) / 2) / np.sqrt(2 * np.pi * (1 + pair_sd**2)))
