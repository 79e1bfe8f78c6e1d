"""Simulated judgements of paradigms whose expected curves are given, to measure the statistics of acquisition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analysis.curves.acquisition.sizes import crossing
from analysis.curves.groups import GroupFit, fit_group
from tests.support.simulated_judgements import SimulatedJudgements

RISES, SATURATES = (0.5, 0.6, 0.7, 0.8, 0.9), (0.55, 0.75, 0.8, 0.81, 0.81)
FLAT, FALLS = (0.6,) * 5, (0.8, 0.75, 0.7, 0.65, 0.6)
U, INVERTED = (0.75, 0.65, 0.6, 0.7, 0.8), (0.55, 0.7, 0.75, 0.65, 0.6)
SLIGHT = (0.7, 0.67, 0.65, 0.68, 0.72)
CEILING = (0.9, 0.97, 0.98, 0.99, 0.99)
# Eight paradigms that cross .6 at different sizes, before the smallest one, or not by the largest; two are close.
ORDER = (
    (0.62, 0.7, 0.8, 0.85, 0.9),
    (0.5, 0.62, 0.7, 0.75, 0.8),
    (0.5, 0.6, 0.7, 0.75, 0.8),
    (0.5, 0.53, 0.58, 0.7, 0.8),
    (0.5, 0.5, 0.55, 0.57, 0.7),
    (0.5, 0.5, 0.52, 0.55, 0.58),
    (0.5,) * 5,
    (0.5, 0.52, 0.56, 0.63, 0.7),
)


@dataclass(frozen=True)
class SimulatedAcquisition(SimulatedJudgements):
    """curves: expected accuracies at the sizes, for each paradigm. The pairs of a paradigm have one slope."""

    curves: tuple[tuple[float, ...], ...] = ORDER
    sizes: int = 5
    pair_slope_sd: float = 0.0
    pairs: int = 60

    def __post_init__(self) -> None:
        # What simulated judgements know of paradigms is only their number.
        object.__setattr__(self, "paradigms", tuple((curve[0], 0.0) for curve in self.curves))

    @cached_property
    def expected(self) -> np.ndarray:
        return np.asarray(self.curves).T

    def study(self, rng: np.random.Generator) -> tuple[GroupFit, np.ndarray]:
        """Simulate a study: return its fit, and (S, U) accuracies of units expected over new runs, for its pairs."""
        outcome, expected = self.draw(rng)
        return fit_group("simulated", outcome, self.design, self.units, "auto"), expected @ self.units.weights

    def crossing(self, curves: np.ndarray, threshold: np.ndarray) -> np.ndarray:
        """Return where (S, U) curves cross (U,) thresholds."""
        return crossing(self.at, curves, threshold)
