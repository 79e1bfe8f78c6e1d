"""Amounts of text at which curves cross thresholds, against values by hand and the t distribution written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import polygamma
from scipy.stats import f
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.acquisition.sizes import (
    BEFORE,
    ESTIMATED,
    NOT_YET,
    ONE_RUN,
    Bands,
    bands_of,
    crossing,
    crossings,
    size_table,
)
from analysis.curves.acquisition.spread import Spread, inverse_trigamma, moderated, squared_correlation
from analysis.curves.groups import fit_groups
from analysis.curves.units import units_of
from tests.support.judged_runs import judged_from
from tests.support.simulated_acquisition import ORDER, SimulatedAcquisition

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
X = np.asarray([0.0, 1.0, 3.0])


@pytest.fixture(scope="module")
def fit():
    return SimulatedAcquisition(5, curves=ORDER, pairs=100).study(np.random.default_rng(1))[0]


@pytest.mark.parametrize(
    ("curve", "at"),
    [
        ((0.5, 0.6, 0.8), 1 + 2 * 0.1 / 0.2),  # .7 is halfway between .6 and .8, at x from 1 to 3
        ((0.7, 0.8, 0.9), -np.inf),
        ((0.5, 0.6, 0.69), np.inf),
        ((0.8, 0.6, 0.8), 2.0),  # a U: acquired where it stays above
        ((0.8, 0.8, 0.6), np.inf),  # lost again
        ((0.5, 0.7, 0.7), 1.0),
    ],
)
def test_a_unit_is_acquired_where_its_curve_stays_at_the_threshold(curve, at):
    assert crossing(X, np.asarray(curve)[:, None], np.asarray([0.7]))[0] == pytest.approx(at)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=6), st.floats(0.1, 0.9))
def test_from_a_crossing_on_curves_lie_above_and_just_before_it_below(curve, threshold):
    x = np.arange(len(curve), dtype=float)
    at = crossing(x, np.asarray(curve)[:, None], np.asarray([threshold]))[0]
    for point in np.linspace(0, len(curve) - 1, 41):
        if point >= at:
            assert np.interp(point, x, curve) >= threshold - 1e-9
    if np.isfinite(at):
        assert np.interp(at, x, curve) == pytest.approx(threshold, abs=1e-9)


def test_limits_are_where_students_band_leaves_the_threshold():
    """One unit has no others to borrow a spread from: its band at a size is that of the t distribution."""
    sizes = [125_000] * 4 + [250_000] * 4
    judged = judged_from([0.5, 0.52, 0.54, 0.56, 0.7, 0.74, 0.78, 0.82], sizes, [1, 2, 3, 4] * 2, pairs=1000)
    [fit] = fit_groups(judged, units_of(judged.pairs), "auto")
    bands = Bands.of(fit, Spread(fit))
    for row, part in ((0, fit.y[:4, 0]), (-1, fit.y[4:, 0])):
        assert bands.curve[row, 0] == pytest.approx(part.mean())
        assert bands.error[row, 0] == pytest.approx(part.std(ddof=1) / 2)
        assert bands.degrees[row, 0] == pytest.approx(3)
    half = student.ppf(0.975, 3) * bands.error[0, 0]
    just = np.full(3, bands.curve[0, 0] + half)
    found = [crossings(fit, just + shift, 0.95, bands).low[0] for shift in (-1e-6, 1e-6)]
    assert np.isneginf(found[0])  # the band at the smallest size holds the threshold
    assert np.isfinite(found[1])


def test_sizes_are_censored_and_ordered(fit):
    threshold = np.full(len(fit.units.table), 0.6)
    table = size_table(fit, threshold, "chance", CONFIG, bands_of(fit)).set_index("name")
    statuses = table.loc[[f"paradigm_{k}" for k in range(len(ORDER))], "status"]
    assert statuses.iloc[0] == BEFORE
    assert statuses.iloc[3] == ESTIMATED
    assert statuses.iloc[6] == NOT_YET
    assert table.loc["paradigm_6", "high"] == np.inf
    known = table[table["words"].notna()]
    assert (known["low"] <= known["words"]).all()
    assert (known["words"] <= known["high"]).all()
    assert (table["low_new_pairs"] <= table["low"]).all()
    assert (table["high_new_pairs"] >= table["high"]).all()


def test_one_run_a_size_has_no_limits_and_a_single_one_takes_the_largest_spread():
    alone = SimulatedAcquisition(1).study(np.random.default_rng(2))[0]
    assert bands_of(alone) is None
    assert crossings(alone, np.full(len(alone.y.T), 0.6), 0.95, None).note == ONE_RUN
    some = SimulatedAcquisition((3, 3, 3, 3, 1)).study(np.random.default_rng(2))[0]
    bands, spread = bands_of(some), Spread(some)
    assert bands is not None
    assert np.isfinite(bands.error).all()
    c = np.where(some.design.size == 4, 1.0, 0.0)
    of_others = [spread.errors(np.where(some.design.size == s, 1 / 3, 0))[0] for s in range(4)]
    ratios = [e**2 * 3 / spread.binomial[some.design.size == s][0] for s, e in enumerate(of_others)]
    largest = np.sqrt(np.max(ratios, axis=0) * spread.binomial[-1])
    assert spread.errors(c)[0] == pytest.approx(largest)


def test_nested_seeds_are_one_draw():
    nested = SimulatedAcquisition(3, nested=True).study(np.random.default_rng(3))[0]
    c = nested.design.contrast
    _, degrees = Spread(nested).errors(c)
    assert degrees[0] <= 2 + 1e-9  # three seeds; the whole has nobody to borrow from


def test_moderated_variances_lie_between_their_own_and_the_common_one():
    rng = np.random.default_rng(1)
    variance = rng.chisquare(3, 200) / 3
    moved, degrees = moderated(variance, 3.0, 0.0)
    assert degrees > 100  # all spreads are one: nearly known
    assert moved == pytest.approx(np.ones(200), abs=0.2)
    apart = variance * np.exp(rng.normal(0, 2, 200))
    own, few = moderated(apart, 3.0, 0.0)
    assert few < 6  # spreads differ: each keeps its own
    assert np.corrcoef(np.log(own), np.log(apart))[0, 1] > 0.95
    assert moderated(variance, 3.0, 1.0)[1] == pytest.approx(3)  # the same runs: nothing to borrow


def test_the_prior_is_that_of_smyth_where_its_moments_are_exact():
    """Variances whose logarithms have the variance of an F distribution of 4 and 8 degrees give back a prior of 8."""
    variance = 2.0 * f.ppf((np.arange(20_000) + 0.5) / 20_000, 4, 8)
    _, degrees = moderated(variance, 4.0, 0.0)
    assert degrees == pytest.approx(12, rel=0.02)
    assert inverse_trigamma(float(polygamma(1, 2.5))) == pytest.approx(2.5)


def test_squared_correlations_of_independent_columns_are_none():
    rng = np.random.default_rng(2)
    residual = rng.normal(size=(13, 300))
    assert squared_correlation(residual - residual.mean(axis=0), 12) == pytest.approx(0, abs=0.01)
    assert squared_correlation(np.tile(residual[:, :1], 5), 12) == pytest.approx(1)


def test_limits_hold_the_truth_in_simulated_studies():
    cell, held = SimulatedAcquisition(4, curves=ORDER, pairs=40), []
    rng = np.random.default_rng(5)
    threshold = np.full(len(cell.units.table), 0.6)
    for _ in range(12):
        study, expected = cell.study(rng)
        found = crossings(study, threshold, 0.95, bands_of(study))
        truth = cell.crossing(expected, threshold)
        held += list((found.low <= truth) & (truth <= found.high))
    assert np.mean(held) > 0.9
