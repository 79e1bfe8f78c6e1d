"""Isotonic fits: the curves that only rise, or only fall, which lie nearest to the means of sizes."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from analysis.curves.variance import Array


@dataclass(frozen=True)
class Monotone:
    """Least-squares isotonic fits to (S, U) means of sizes, which weigh equally (Robertson, Wright and Dykstra 1988).

    rise, fall: (S, U). rise_misfit, fall_misfit: (U,) root mean squared distance of the means from them.
    """

    rise: Array
    fall: Array
    rise_misfit: Array
    fall_misfit: Array

    @property
    def nearest(self) -> Array:
        """(S, U): the nearer of the two."""
        return np.where(self.rise_misfit <= self.fall_misfit, self.rise, self.fall)

    @property
    def misfit(self) -> Array:
        """(U,) distance of the nearer fit."""
        return np.asarray(np.minimum(self.rise_misfit, self.fall_misfit))


def monotone(means: Array) -> Monotone:
    """Fit both to (S, U) means of sizes, the smallest first.

    >>> monotone(np.asarray([[0.5], [0.7], [0.6]])).rise.ravel().round(2).tolist()
    [0.5, 0.65, 0.65]
    """
    rise, fall = (
        np.stack([isotonic_regression(column, increasing=increasing).x for column in means.T], axis=1)
        for increasing in (True, False)
    )
    misfits = (np.sqrt(((means - fit) ** 2).mean(axis=0)) for fit in (rise, fall))
    return Monotone(rise, fall, *misfits)
