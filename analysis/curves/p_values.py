"""Tests of estimates with Student's t, and corrections for multiple comparisons."""

import numpy as np
from scipy.stats import t as student

from analysis.curves.variance import Array

ALPHA = 0.05  # below which a sentence or a mark says something: lack of fit, differences, equivalence


def holm(p: Array) -> Array:
    """Correct the (M,) p values of one family by Holm's step-down method (1979); NaN are no tests and stay.

    As multipletests of statsmodels, which collects all garbage at every call: .3 s each where much is loaded.
    """
    corrected = np.full(len(p), np.nan)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaN are sorted last
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected


def two_sided(estimate: Array, error: Array, degrees: Array) -> Array:
    """Return p values of Student's test that an estimate is 0; NaN where nothing varies."""
    t = np.abs(estimate) / np.where(error > 0, error, np.nan)
    return np.asarray(2 * student.sf(t, degrees))


def equivalence(estimate: Array, error: Array, degrees: Array, margin: float) -> Array:
    """Return p values of two one-sided tests that an estimate lies outside of the margin (Schuirmann 1987)."""
    t = (margin - np.abs(estimate)) / np.where(error > 0, error, np.nan)
    return np.asarray(student.sf(t, degrees))
