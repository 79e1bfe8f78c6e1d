"""Generalised additive models of curves, drawn beside monotone fits.

A cubic B-spline of log2(words) with a penalty on its curvature (basis and penalty of statsmodels), chosen for each unit
by generalised cross-validation. It describes a curve and tests nothing: where it turns may be noise
(tests/bench/acquisition.py counts how often).
"""

from dataclasses import dataclass

import numpy as np
from statsmodels.gam.api import BSplines

from analysis.curves.designs import Design
from analysis.curves.variance import Array

LEAST_SIZES = 4  # a cubic needs so many
MOST_BASES = 6
PENALTIES = np.geomspace(1e-4, 1e4, 17)
POINTS = 33


@dataclass(frozen=True)
class Smooth:
    """A fitted curve: x (G,) and curve (G, U); climb, drop (U,): greatest rise and fall from an x to a later one."""

    x: Array
    curve: Array

    @property
    def climb(self) -> Array:
        return np.asarray((self.curve - np.minimum.accumulate(self.curve, axis=0)).max(axis=0))

    @property
    def drop(self) -> Array:
        return np.asarray((np.maximum.accumulate(self.curve, axis=0) - self.curve).max(axis=0))

    def turns(self, least: float) -> Array:
        """Return (U,) True where the curve rises and falls by at least so much."""
        return np.asarray((self.climb >= least) & (self.drop >= least))


def smooth(y: Array, design: Design) -> Smooth | None:
    """Fit a GAM to each column of (R, U) accuracies; None with fewer than LEAST_SIZES sizes.

    Sizes weigh equally, however many runs of each there are. The estimate is that of GLMGam of statsmodels for normal
    outcomes, which takes one column and one penalty at a time.
    """
    sizes = len(design.counts)
    if sizes < LEAST_SIZES:
        return None
    weights = design.weights * len(design.x) / sizes
    splines = BSplines(design.x[:, None], df=[min(sizes, MOST_BASES)], degree=[3], include_intercept=False)
    model = np.column_stack([np.ones(len(y)), splines.basis])
    penalty = np.zeros((model.shape[1],) * 2)
    penalty[1:, 1:] = splines.penalty_matrices[0]
    grid = np.linspace(design.x.min(), design.x.max(), POINTS)
    basis = np.column_stack([np.ones(POINTS), splines.transform(grid[:, None])])
    curves, scores = [], []
    for factor in PENALTIES:
        coefficients, score = penalised(model, y, weights, factor * penalty)
        curves.append(basis @ coefficients)
        scores.append(score)
    best = np.stack(scores).argmin(axis=0)
    return Smooth(grid, np.stack(curves)[best, :, np.arange(y.shape[1])].T)


def penalised(model: Array, y: Array, weights: Array, penalty: Array) -> tuple[Array, Array]:
    """Return coefficients (M, U) of a penalised weighted regression, and generalised cross-validation (U,).

    n RSS / (n - trace of the hat matrix)^2 without the factor n (Craven and Wahba 1979).
    """
    solved = np.linalg.solve(model.T @ (weights[:, None] * model) + penalty, model.T * weights)
    coefficients = solved @ y
    left = len(y) - float(np.trace(model @ solved))
    return coefficients, weights @ (y - model @ coefficients) ** 2 / left**2
