"""Shapes of curves: two lines by hand, monotone fits, a GAM as statsmodels fits it, and simulated studies."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student
from statsmodels.gam.api import BSplines, GLMGam

from analysis.config import CurvesConfig
from analysis.curves.acquisition.monotone import monotone
from analysis.curves.acquisition.smooths import penalised, smooth
from analysis.curves.acquisition.spread import Spread
from analysis.curves.acquisition.turns import FLAT, INVERTED, OPEN, RISES, U, shape_table, turns
from analysis.curves.two_lines import breaks
from tests.support import simulated_acquisition as curves
from tests.support.simulated_acquisition import SimulatedAcquisition

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)


def study(curve, seeds=5, number=8, **values):
    cell = SimulatedAcquisition(seeds, curves=(curve,) * number, run_sd=(0.05, 0.05), **values)
    return cell.study(np.random.default_rng(1))[0]


@pytest.mark.parametrize(
    ("curve", "shape"),
    [(curves.RISES, RISES), (curves.SATURATES, RISES), (curves.U, U), (curves.INVERTED, INVERTED)],
)
def test_shapes_of_clear_curves_are_told(curve, shape):
    table = shape_table(study(curve, pairs=200), None, CONFIG)
    assert set(table["shape"]) == {shape}


def test_a_flat_curve_is_flat_only_if_its_slope_surely_lies_within_the_margin():
    fit = study(curves.FLAT, pairs=200)
    assert RISES not in set(shape_table(fit, None, CONFIG)["shape"])
    wide = shape_table(fit, None, replace(CONFIG, equivalence_margin=0.05))
    assert set(wide["shape"]) == {FLAT}
    narrow = shape_table(fit, None, replace(CONFIG, equivalence_margin=1e-5))
    assert set(narrow["shape"]) == {OPEN}


def test_the_test_of_a_turn_is_two_one_sided_tests_over_breaks_and_directions():
    fit = study(curves.U, number=1)  # one paradigm: no other lends its spread
    spread = Spread(fit)
    found = turns(fit, spread)
    assert found is not None
    assert found.breaks == 3
    p = []
    for of in breaks(fit.design, lambda part: True):
        slopes = []
        for side in (of.before, of.after):
            c = np.zeros(len(fit.design.x))
            c[side] = fit.design.of(side).contrast
            error, degrees = (of_unit[0] for of_unit in spread.errors(c))
            slopes.append(((c @ fit.y)[0] / error, degrees))
        (before, free), (after, free_after) = slopes
        p.append(max(student.cdf(before, free), student.sf(after, free_after)))
    assert found.p[0] == pytest.approx(min(1, 6 * min(p)))
    assert found.direction[0] == U
    assert found.before[0] < 0 < found.after[0]


def test_no_turn_is_found_where_curves_only_rise_or_are_flat():
    rng = np.random.default_rng(3)
    for curve in (curves.SATURATES, curves.FLAT):
        cell = SimulatedAcquisition(3, curves=(curve,) * 8, pairs=40)
        shapes = [set(shape_table(cell.study(rng)[0], None, CONFIG)["shape"]) for _ in range(6)]
        assert not {U, INVERTED} & set().union(*shapes)


def test_two_sizes_and_one_run_a_size_have_no_test():
    two = SimulatedAcquisition(3, curves=((0.5, 0.6),) * 4, sizes=2).study(np.random.default_rng(1))[0]
    assert shape_table(two, None, CONFIG)["note"].str.startswith("too few sizes").all()
    alone = SimulatedAcquisition(1).study(np.random.default_rng(1))[0]
    table = shape_table(alone, None, CONFIG)
    assert table["p_turn"].isna().all()
    assert set(table["shape"]) == {OPEN}


def test_isotonic_fits_pool_adjacent_violators():
    fit = monotone(np.asarray([[0.5, 0.9], [0.7, 0.7], [0.6, 0.8], [0.8, 0.5]]))
    assert fit.rise[:, 0] == pytest.approx([0.5, 0.65, 0.65, 0.8])
    assert fit.fall[:, 1] == pytest.approx([0.9, 0.75, 0.75, 0.5])
    assert fit.nearest[:, 1] == pytest.approx(fit.fall[:, 1])
    assert fit.misfit == pytest.approx([0.05 / np.sqrt(2)] * 2)


def test_the_smooth_is_that_of_statsmodels():
    rng = np.random.default_rng(0)
    x = np.repeat(np.arange(6.0), 3)
    y = np.sin(x) + 0.2 * rng.normal(size=18)
    splines = BSplines(x[:, None], df=[6], degree=[3], include_intercept=False)
    model = np.column_stack([np.ones(18), splines.basis])
    penalty = np.zeros((6, 6))
    penalty[1:, 1:] = splines.penalty_matrices[0]
    for alpha in (0.1, 1.0, 10.0):
        theirs = GLMGam(y, np.ones((18, 1)), smoother=splines, alpha=[alpha]).fit()
        ours, score = penalised(model, y[:, None], np.ones(18), 2 * alpha * penalty)  # theirs counts a penalty twice
        assert ours[:, 0] == pytest.approx(theirs.params)
        left = 18 - theirs.edf.sum()
        assert score[0] == pytest.approx(((y - theirs.fittedvalues) ** 2).sum() / left**2)


def test_smooths_climb_and_drop_by_what_their_curves_do():
    fit = study(curves.U, pairs=200)
    curve = smooth(fit.y, fit.design)
    assert curve is not None
    assert curve.turns(0.05).all()
    assert curve.drop[0] == pytest.approx(0.15, abs=0.04)
    assert smooth(fit.y[:, :1], fit.design.of(fit.design.size < 3)) is None
