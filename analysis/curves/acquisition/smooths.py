"""Generalised additive models of curves (statsmodels), drawn beside monotone fits.

A cubic B-spline of log2(words), its penalty chosen by generalised cross-validation. It describes a curve and tests
nothing: where it turns may be noise (tests/bench/acquisition.py counts how often).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from statsmodels.gam.api import BSplines, GLMGam

from analysis.curves.designs import Design
from analysis.curves.variance import Array

LEAST_SIZES = 4  # a cubic needs so many
MOST_BASES = 6
PENALTIES = np.geomspace(1e-3, 1e3, 7)
POINTS = 33


@dataclass(frozen=True)
class Smooth:
    """A fitted curve: x (G,) and curve (G, U); climb and drop (U,): its greatest rise and fall from one x to a later."""

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


def smooth(y: Array, design: Design, units: npt.NDArray[np.bool_]) -> Smooth | None:
    """Fit a GAM to some columns of (R, U) accuracies, NaN in the others; None with fewer than LEAST_SIZES sizes.

    units: (U,), those that are fitted, in tens of milliseconds each. Sizes weigh equally, however many runs of each there are. The penalty of each column is that of PENALTIES with the
    least generalised cross-validation.
    """
    sizes = len(design.counts)
    if sizes < LEAST_SIZES:
        return None
    x, weights = design.x[:, None], design.weights * len(design.x) / sizes
    splines = BSplines(x, df=[min(sizes, MOST_BASES)], degree=[3], include_intercept=False)
    grid = np.linspace(design.x.min(), design.x.max(), POINTS)
    basis = np.column_stack([np.ones(POINTS), splines.transform(grid[:, None])])
    curve = np.full((POINTS, y.shape[1]), np.nan)
    for u in np.flatnonzero(units):
        curve[:, u] = basis @ _coefficients(y[:, u], splines, weights)
    return Smooth(grid, curve)


def _coefficients(column: Array, splines: BSplines, weights: Array) -> Array:
    """Return the coefficients of the constant and of the splines."""
    if np.ptp(column) < 1e-12:
        return np.append(column[:1], np.zeros(splines.basis.shape[1]))
    ones = np.ones((len(column), 1))
    fits = [GLMGam(column, ones, smoother=splines, alpha=[a], freq_weights=weights).fit() for a in PENALTIES]
    best = min(fits, key=_cross_validation(column, weights))
    return np.asarray(best.params)


def _cross_validation(column: Array, weights: Array):  # type: ignore[no-untyped-def]
    """Return the function from a fit to its score: n RSS / (n - effective degrees of freedom)^2."""

    def score(fit) -> float:  # type: ignore[no-untyped-def]
        left = len(column) - float(np.sum(fit.edf))
        return float(weights @ (column - fit.fittedvalues) ** 2) / max(left, 1e-9) ** 2

    return score
