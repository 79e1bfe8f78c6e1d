"""Shapes of curves against certified values, scipy's other optimiser and statsmodels' likelihood."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import approx_fprime, curve_fit
from scipy.special import expit

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.curves.shapes import (
    LINE,
    aicc,
    fit_shape,
    line,
    power_law,
    preferred,
    shape_table,
    shapes_for,
    sigmoid,
    unit_fits,
)
from tests.support.judged_runs import judged_once

X = np.repeat(np.log2(125_000) + np.arange(8.0), 2)
NO_PEOPLE = pd.DataFrame(columns=["level", "name", "accuracy"])


def test_a_sigmoid_equals_certified_values():
    """Rat42 of NIST's Statistical Reference Datasets for nonlinear regression: b1 / (1 + exp(b2 - b3 x))."""
    x = np.array([9.0, 14, 21, 28, 42, 57, 63, 70, 79])
    y = np.array([8.93, 10.8, 18.59, 22.33, 39.35, 56.11, 61.73, 64.62, 67.08]) / 100
    fit = fit_shape(sigmoid(x, chance=0.0), x, y)
    ceiling, rate, midpoint = fit.free
    certified = [72.462237576, 2.6180768402, 0.067359200066, 8.0565229338]
    np.testing.assert_allclose([100 * ceiling, rate * midpoint, rate, 1e4 * fit.squares], certified, rtol=1e-6)
    assert fit.converged
    assert not fit.note


def test_a_power_law_equals_another_optimiser():
    rng = np.random.default_rng(0)
    y = 0.9 - 0.35 * np.exp2(-0.4 * (X - X[0])) + rng.normal(0, 0.01, len(X))
    fit = fit_shape(power_law(X), X, y)
    reference, _ = curve_fit(lambda d, u, a, r: u - a * np.exp2(-r * d), X - X[0], y, p0=[0.8, 0.3, 0.3])
    np.testing.assert_allclose(fit.free, reference, rtol=1e-4)
    # The same as a power of the words: ceiling - gap (words / first words)^-rate.
    words = np.exp2(X)
    np.testing.assert_allclose(
        fit.shape.at(X, fit.free), fit.free[0] - fit.free[1] * (words / words[0]) ** -fit.free[2]
    )


@pytest.mark.parametrize("shape", [sigmoid(X), sigmoid(X, 0.5, 1.0), power_law(X), line(X)], ids=lambda s: s.kind)
def test_gradients_equal_numeric_derivatives(shape):
    free = {"sigmoid": [0.4, 0.9, 0.8, 20.0], "power law": [0.9, 0.3, 0.4], "line": [0.5, 0.03]}[shape.kind]
    free = np.array(free[-len(shape.free) :])
    for i, x in enumerate(X[::5]):
        numeric = approx_fprime(free, lambda p, x=x: float(shape.at(np.array([x]), p)[0]), 1e-7)
        np.testing.assert_allclose(shape.gradient(X[::5], free)[i], numeric, rtol=1e-4, atol=1e-6)


def test_aicc_equals_statsmodels_likelihood():
    rng = np.random.default_rng(1)
    y = 0.5 + 0.02 * (X - X[0]) + rng.normal(0, 0.01, len(X))
    reference = sm.OLS(y, sm.add_constant(X)).fit()
    n, k = len(X), 3  # intercept, slope, variance
    expected = -2 * reference.llf + 2 * k + 2 * k * (k + 1) / (n - k - 1)
    assert fit_shape(line(X), X, y).aicc == pytest.approx(expected)
    assert math.isnan(aicc(1.0, runs=4, parameters=3))


@pytest.mark.parametrize(("kind", "best"), [("line", LINE), ("sigmoid", "sigmoid"), ("power law", "power law")])
def test_the_true_shape_is_preferred(kind, best):
    rng = np.random.default_rng(2)
    doublings = X - X[0]
    true = {
        "line": 0.5 + 0.02 * doublings,
        "sigmoid": 0.3 + 0.4 * expit(2 * (doublings - 3.5)),
        "power law": 0.85 - 0.45 * np.exp2(-0.8 * doublings),
    }[kind]
    fits = [fit_shape(shape, X, true + rng.normal(0, 0.004, len(X))) for shape in shapes_for(X, 0.9)]
    assert preferred(fits).shape.name == best


def test_reaches_is_the_inverse_of_the_shape():
    for shape, free in ((sigmoid(X), [0.4, 0.95, 0.8, 20.0]), (power_law(X), [0.95, 0.4, 0.3]), (line(X), [0.5, 0.03])):
        at = shape.reaches(0.8, np.array(free))
        np.testing.assert_allclose(shape.at(np.array([at]), np.array(free)), 0.8)
    assert math.isinf(sigmoid(X).reaches(0.96, np.array([0.4, 0.95, 0.8, 20.0])))  # the ceiling lies below
    assert math.isinf(power_law(X).reaches(0.96, np.array([0.95, 0.4, 0.3])))
    assert math.isnan(sigmoid(X).reaches(0.3, np.array([0.4, 0.95, 0.8, 20.0])))  # always above
    assert math.isinf(line(X).reaches(0.8, np.array([0.5, -0.03])))


def test_a_note_says_that_a_fit_is_at_its_bound():
    step = np.where(X - X[0] < 3.5, 0.5, 0.9)
    fit = fit_shape(sigmoid(X), X, step)
    assert "rate" in fit.note or fit.squares < 1e-6
    straight = fit_shape(power_law(X), X, 0.2 + 0.1 * (X - X[0]))
    assert "at the bound of its ceiling" in straight.note


def test_a_note_says_that_a_fit_did_not_converge(monkeypatch):
    monkeypatch.setattr("analysis.curves.shapes.MOST_EVALUATIONS", 1)
    y = 0.5 + 0.3 * expit(1.3 * (X - 20.3)) + np.random.default_rng(0).normal(0, 0.05, len(X))
    fit = fit_shape(sigmoid(X), X, y)
    assert not fit.converged
    assert math.isnan(fit.aicc)
    assert fit.note.startswith("did not converge: The maximum number of function evaluations")


def test_a_study_has_a_row_for_each_shape_that_its_sizes_allow():
    words = (125_000 * 2.0 ** np.arange(8)).astype(int)
    accuracies = 0.5 + 0.4 * expit(1.5 * (np.arange(8) - 3)) + np.tile([0.004, -0.004], 4)
    people = pd.DataFrame({"level": ["overall"], "name": ["overall"], "accuracy": [0.95]})
    table = shape_table(unit_fits(judged_once(accuracies, words), people))
    overall = table[table["level"] == "overall"].set_index("shape")
    assert list(overall.index) == [
        LINE, "sigmoid from .5 to 1", "sigmoid from .5 to people", "sigmoid", "power law"
    ]  # fmt: skip
    assert "sigmoid from .5 to people" not in set(table.loc[table["level"] == "phenomenon", "shape"])
    assert overall["preferred"].sum() == 1
    assert overall.loc[overall["preferred"], "above"].item() == 0
    free = overall.loc["sigmoid"]
    assert free["midpoint"] == pytest.approx(np.log2(1_000_000), abs=0.2)
    assert (free["runs"], free["sizes"], free["parameters"]) == (8, 8, 5)
    assert shape_table(unit_fits(judged_once(accuracies[:5], words[:5]), people)).empty
    six = shape_table(unit_fits(judged_once(accuracies[:6], words[:6]), NO_PEOPLE)).set_index(["level", "shape"])
    assert six.loc[("overall", "sigmoid"), "note"] == "not compared: 6 runs are too few for 5 parameters"
    assert not six.loc[("overall", "sigmoid"), "preferred"]


def test_weights_are_those_of_statsmodels_and_scipy():
    weights = np.where(np.arange(len(X)) % 2, 0.5, 2.0)
    y = 0.9 - 0.35 * np.exp2(-0.4 * (X - X[0])) + np.random.default_rng(0).normal(0, 0.01, len(X))
    reference = sm.WLS(y, sm.add_constant(X), weights=weights).fit()
    fit = fit_shape(line(X), X, y, weights)
    np.testing.assert_allclose(fit.free, [reference.params @ [1, X[0]], reference.params[1]])
    n, k, mean_one = len(X), 3, weights / weights.mean()
    reference = sm.WLS(y, sm.add_constant(X), weights=mean_one).fit()
    expected = -2 * reference.llf + np.log(mean_one).sum() + 2 * k + 2 * k * (k + 1) / (n - k - 1)
    assert fit.aicc == pytest.approx(expected)  # up to a constant of all shapes
    curved, _ = curve_fit(
        lambda d, u, a, r: u - a * np.exp2(-r * d), X - X[0], y, p0=[0.8, 0.3, 0.3], sigma=weights**-0.5
    )
    np.testing.assert_allclose(fit_shape(power_law(X), X, y, weights).free, curved, rtol=1e-4)


def test_the_line_among_the_shapes_is_that_of_the_table_of_slopes():
    """Five runs of some sizes and one of others: the slope is that of the table of slopes, sizes weighing equally."""
    size = np.repeat(np.arange(6), [5, 5, 5, 3, 3, 1])
    y = 0.5 + 0.03 * size + np.random.default_rng(0).normal(0, 0.02, len(size))
    judged = judged_once(y, size + 17.0)
    shapes = shape_table(unit_fits(judged, NO_PEOPLE)).query("level == 'overall' and shape == @LINE")
    config = CurvesConfig(method="lp", interval="t", confidence=0.95, resamples=50, seed=1)
    slopes = fit_curves(judged, config).slopes.query("level == 'overall'")
    assert shapes["slope"].item() == pytest.approx(slopes["slope"].item())
