"""Slopes of accuracies of paradigms, whose single judgements are not known: chance is that of binomials."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.designs import Design
from analysis.curves.groups import fit_group, slope_limits
from analysis.curves.intervals import NOTHING_VARIES
from analysis.curves.units import units_of

CONFIG = CurvesConfig(method="acc", interval="auto", confidence=0.95, resamples=100, seed=1)
SIZE = np.repeat(np.arange(3), 2)
DESIGN = Design(20.0 + 3 * SIZE, SIZE, np.tile([1, 2], 3), nested=False)


def fit_of(accuracies, pairs):
    units = units_of(pd.DataFrame({"phenomenon": ["a"], "paradigm": ["p"], "n_pairs": [pairs]}))
    return fit_group("g", np.repeat(accuracies, 2)[:, None], DESIGN, units, "auto")


@pytest.mark.parametrize("accuracies", [[0.6, 0.6, 0.64], [0.5, 0.5, 0.5]])
def test_seeds_that_agree_leave_the_chance_of_binomials(accuracies):
    """Two seeds of equal accuracies: by themselves they would show a gain of two pairs of 50, or nothing at all."""
    fit = fit_of(accuracies, 50)
    c = DESIGN.contrast
    p, added = np.repeat(accuracies, 2), 2 / (2 * 50 + 4)  # four further judgements of 100, two of them right
    smoothed = (1 - 2 * added) * p + added
    chance = (c**2 * np.maximum(p * (1 - p), smoothed * (1 - smoothed)) / 50).sum()
    np.testing.assert_allclose(fit.errors.floor, chance)
    low, high, *_ = slope_limits(fit, CONFIG)
    assert (low < 0).all()
    assert (high > 0).all()
    least = chance * chi2.ppf(0.05, fit.errors.degrees) / fit.errors.degrees
    half = student.ppf(0.975, fit.errors.degrees) * np.sqrt(least)
    assert (high - fit.line.slope >= half - 1e-12).all()


def test_without_the_number_of_pairs_seeds_that_agree_show_nothing():
    fit = fit_of([0.5, 0.5, 0.5], np.nan)
    assert np.isnan(slope_limits(fit, CONFIG)[:2]).all()
    assert (fit.errors.floor == 0).all()
    assert "number of pairs is not known" in NOTHING_VARIES
