"""Curves averaged over shapes, against statsmodels' HC3, numeric derivatives and averages written out by hand."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.optimize import approx_fprime

from analysis.curves.robustness.averaged_shapes import (
    ACCURACY,
    CEILING,
    MIDPOINT,
    SLOPE,
    Quantity,
    averaged,
    averaged_table,
    covariance,
    degrees_of,
    weights_of,
)
from analysis.curves.shapes import fit_shape, line, power_law, preferred, shapes_for, sigmoid, unit_fits
from analysis.curves.variance import robust_terms
from tests.support.judged_runs import judged_from

X = np.repeat(np.log2(125_000) + np.arange(8.0), 3)
NO_PEOPLE = pd.DataFrame(columns=["level", "name", "accuracy"])


def points(rng, sd=0.01):
    return 0.9 - 0.35 * np.exp2(-0.4 * (X - X[0])) + rng.normal(0, sd, len(X))


def hc3_of_the_slope(weights):
    """Return the terms of the slope of a line by the code of the default intervals."""
    exog, runs = np.column_stack([np.ones(len(X)), X]), np.arange(len(X))
    c = np.linalg.solve(exog.T @ (exog * weights[:, None]), exog.T * weights)[1]
    return robust_terms(c, exog, weights, runs, np.zeros(len(X), dtype=int), jackknife=True)


def test_degrees_are_those_of_the_default_intervals_also_where_one_run_has_a_size_of_its_own():
    y = points(np.random.default_rng(5))
    weights = np.where(X[-1] == X, 1 / 3, 1.0)
    weights[-1] = 3.0
    weights /= weights.mean()
    fit = fit_shape(line(X), X, y, weights)
    expected = hc3_of_the_slope(weights).degrees(y[:, None]).item()
    assert degrees_of(fit, Quantity(SLOPE, X[0]).gradient(fit)) == pytest.approx(expected, rel=1e-6)
    assert expected < len(X) - 2


def test_the_errors_of_a_line_are_hc3_of_statsmodels():
    y = points(np.random.default_rng(0))
    fit = fit_shape(line(X), X, y)
    reference = sm.OLS(y, sm.add_constant(X - X[0])).fit()
    np.testing.assert_allclose(covariance(fit), reference.cov_HC3, rtol=1e-6)
    value, low, high, weight = averaged([fit], Quantity(SLOPE, X[0]), 0.95)
    degrees = hc3_of_the_slope(np.ones(len(X))).degrees(y[:, None]).item()
    half = stats.t.ppf(0.975, degrees) * np.sqrt(reference.cov_HC3[1, 1])
    assert (value, weight) == (pytest.approx(reference.params[1], rel=1e-6), 1)
    assert (low, high) == (pytest.approx(value - half), pytest.approx(value + half))


@pytest.mark.parametrize("shape", [sigmoid(X), sigmoid(X, 0.5, 1.0), power_law(X)], ids=lambda s: s.name)
def test_the_errors_of_other_shapes_are_hc3_of_their_linearised_regression(shape):
    fit = fit_shape(shape, X, points(np.random.default_rng(1)))
    design = np.stack([approx_fprime(fit.free, lambda p, x=x: float(shape.at(np.array([x]), p)[0]), 1e-7) for x in X])
    residual = fit.points.y - shape.at(X, fit.free)
    low, high = (np.array([shape.bounds[i][side] for i in shape.free]) for side in (0, 1))
    inside = ~fit.at_bounds(low, high)
    reference = sm.OLS(residual, design[:, inside]).fit()
    np.testing.assert_allclose(
        np.sqrt(np.diag(covariance(fit)))[inside], np.sqrt(np.diag(reference.cov_HC3)), rtol=0.02
    )


def test_quantities_and_their_derivatives():
    fit = fit_shape(sigmoid(X), X, points(np.random.default_rng(2)))
    chance, ceiling, rate, midpoint = fit.free
    x = X[4]
    p = 1 / (1 + math.exp(-rate * (x - midpoint)))
    assert Quantity(ACCURACY, x).value(fit) == pytest.approx(chance + (ceiling - chance) * p)
    assert Quantity(SLOPE, x).value(fit) == pytest.approx((ceiling - chance) * rate * p * (1 - p), rel=1e-5)
    assert Quantity(CEILING).value(fit) == ceiling
    assert Quantity(MIDPOINT).value(fit) == midpoint
    for quantity in (Quantity(ACCURACY, x), Quantity(SLOPE, x)):

        def value(free, quantity=quantity):
            return quantity.value(type(fit)(fit.shape, fit.points, free, fit.squares))

        np.testing.assert_allclose(quantity.gradient(fit), approx_fprime(fit.free, value, 1e-6), rtol=1e-3, atol=1e-5)
    assert Quantity(CEILING).gradient(fit_shape(line(X), X, fit.points.y)) is None
    assert math.isnan(Quantity(CEILING).value(fit_shape(sigmoid(X, 0.5, 1.0), X, fit.points.y)))


def test_weights_are_those_of_aicc():
    y = points(np.random.default_rng(3))
    fits = [fit_shape(shape, X, y) for shape in shapes_for(X, None)]
    likelihood = np.exp(-0.5 * np.array([fit.aicc for fit in fits]) + 0.5 * fits[0].aicc)
    likelihood[likelihood < 1e-3 * likelihood.max()] = 0
    np.testing.assert_allclose(weights_of(fits), likelihood / likelihood.sum())


def test_shapes_with_fixed_parameters_are_not_averaged():
    """AICc prefers a ceiling of 1, as simpler, where the data do not reach the true one; it is no evidence for it."""
    sizes = [1000 * 2**i for i in range(8)] * 2
    x = np.log2(np.array(sizes) / 1000)
    accuracies = 0.5 + 0.45 / (1 + np.exp(-0.9 * (x - 5))) + np.random.default_rng(0).normal(0, 0.01, 16)
    judged = judged_from(accuracies, sizes, np.repeat([1, 2], 8).tolist(), pairs=5000)
    fitted = unit_fits(judged, NO_PEOPLE, ["overall"])
    assert preferred(fitted[0].fits).shape.restricted
    table = averaged_table(fitted, 0.95)
    assert set(table["preferred"]) == {"sigmoid"}


def test_an_average_is_that_of_burnham_and_anderson():
    """Equation 4.9 with the variances of section 4.3.3, written out, over the two shapes with a free ceiling."""
    y = points(np.random.default_rng(4), sd=0.03)
    fits = [fit_shape(shape, X, y) for shape in shapes_for(X, None)]
    weights = weights_of(fits)
    named = {"sigmoid": 1, "power law": 0}  # place of the ceiling
    rows = [
        (weight, fit.free[named[fit.shape.name]], covariance(fit)[named[fit.shape.name], named[fit.shape.name]],
         degrees_of(fit, np.eye(len(fit.free))[named[fit.shape.name]]))
        for fit, weight in zip(fits, weights, strict=True) if fit.shape.name in named
    ]  # fmt: skip
    total = sum(weight for weight, *_ in rows)
    mean = sum(weight / total * value for weight, value, *_ in rows)
    z = stats.norm.ppf(0.975)
    error = sum(
        weight / total * math.sqrt(variance * (stats.t.ppf(0.975, degrees) / z) ** 2 + (value - mean) ** 2)
        for weight, value, variance, degrees in rows
    )
    assert averaged(fits, Quantity(CEILING), 0.95) == pytest.approx((mean, mean - z * error, mean + z * error, total))
    assert averaged([fits[0]], Quantity(CEILING), 0.95)[3] == 0


def test_a_parameter_at_its_bound_has_no_limits():
    y = np.minimum(0.5 + 0.08 * (X - X[0]), 1.2) + np.random.default_rng(6).normal(0, 0.001, len(X))
    fit = fit_shape(power_law(X), X, y)
    assert "at the bound of its ceiling" in fit.note
    value, low, high, _ = averaged([fit], Quantity(CEILING), 0.95)
    assert value == pytest.approx(1.0, abs=1e-3)
    assert math.isnan(low)
    assert math.isnan(high)
    assert not math.isnan(averaged([fit], Quantity(SLOPE, X[0]), 0.95)[1])


def test_the_table_of_a_group():
    rng = np.random.default_rng(5)
    sizes = [1000 * 2**i for i in range(7)] * 3
    accuracies = [0.9 - 0.35 * 2 ** (-0.4 * math.log2(size / 1000)) for size in sizes]
    judged = judged_from(accuracies, sizes, np.repeat([1, 2, 3], 7).tolist(), pairs=2000, rng=rng)
    fitted = unit_fits(judged, NO_PEOPLE, ["overall"])
    table = averaged_table(fitted, 0.95).set_index(["quantity", "words"])
    assert set(table["name"]) == {"overall"}
    largest = table.loc[(ACCURACY, 64000.0)]
    assert largest["low"] < 0.9 - 0.35 * 2**-2.4 < largest["high"]
    first, last = table.loc[(SLOPE, 1000.0)], table.loc[(SLOPE, 64000.0)]
    assert first["low"] > last["high"]  # it levels off
    assert first["low"] < 0.35 * 0.4 * math.log(2) < first["high"]
    ceiling = table.loc[CEILING].iloc[0]
    assert 0 < ceiling["weight"] <= 1
    assert ceiling["low"] < 0.9 < ceiling["high"]
    judged.runs["nested"] = True
    nested = averaged_table(unit_fits(judged, NO_PEOPLE, ["overall"]), 0.95)
    assert nested["low"].isna().all()
    assert set(nested["note"]) == {"nested samples: no limits"}


def test_samples_that_share_most_of_their_text_have_no_limits():
    sizes = [1000 * 2**i for i in range(8)] * 2
    accuracies = 0.5 + 0.05 * np.log2(np.array(sizes) / 1000) + np.random.default_rng(0).normal(0, 0.01, 16)
    judged = judged_from(accuracies, sizes, np.repeat([1, 2], 8).tolist(), pairs=500)
    judged.runs["overlap"] = 0.8
    table = averaged_table(unit_fits(judged, NO_PEOPLE, ["overall"]), 0.95)
    assert table[["low", "high"]].isna().all(axis=None)
    assert set(table["note"]) == {"samples of a size share up to 80% of their text: no limits"}
