"""Confidence bands of accuracies at a size, and the onsets that rest on them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, t
from statsmodels.stats.proportion import proportion_confint

from analysis.config import KEEP, CurvesConfig
from analysis.curves.fit import fit_curves, onset, spread_limits
from analysis.curves.intervals import Interval
from tests.support.judged_runs import judged_from, overall
from tests.support.slope_errors import by_bend

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=400, seed=1)


def wilson(mean, variance, quantile):
    return proportion_confint(mean * (n := mean * (1 - mean) / variance), n, 2 * norm.sf(quantile), "wilson")


def test_bands_are_wilson_intervals_with_the_trials_that_the_spread_between_runs_implies():
    """Two runs a size: each size's own spread, one degree of freedom; statsmodels' interval."""
    y = np.array([[0.5], [0.7], [0.6], [0.7]])
    means, low, high = spread_limits(y, np.array([0, 0, 1, 1]), 0.95)
    np.testing.assert_allclose(means[:, 0], [0.6, 0.65])
    for s, variance in enumerate((0.02 / 2, 0.005 / 2)):
        np.testing.assert_allclose([low[s, 0], high[s, 0]], wilson(means[s, 0], variance, 12.706204736432095))
    assert np.isnan(spread_limits(y[::2], np.array([0, 1]), 0.95)[1]).all()
    _, low, high = spread_limits(y[:3], np.array([0, 0, 1]), 0.95)
    assert np.isfinite(low[0, 0])
    assert np.isnan([low[1, 0], high[1, 0]]).all()  # one run shows no spread
    shared = spread_limits(y, np.array([0, 0, 1, 1]), 0.95, overlap=np.full(4, 0.5))[1]
    assert shared[0, 0] == pytest.approx(wilson(0.6, 3 * 0.02 / 2, 12.706204736432095)[0])  # 1 / 2 + .5 / (1 - .5)


@pytest.mark.parametrize(("counts", "ratio"), [((2, 2, 2, 2), 5), ((5, 5, 5, 2), 3), ((3, 3, 3, 2), 5)])
def test_bands_of_two_runs_cover_the_truth_where_spreads_differ_by_size(counts, ratio):
    """In 20,000 normal studies with another spread at the largest size, bands cover 95% and 2.5% start too high."""
    size = np.repeat(np.arange(4), counts)
    spread = np.where(size == 3, 0.01 * ratio, 0.01)
    y = 0.7 + np.random.default_rng(0).normal(size=(len(size), 20_000)) * spread[:, None]
    _, low, high = spread_limits(y, size, 0.95)
    np.testing.assert_allclose(((low <= 0.7) & (high >= 0.7)).mean(axis=1), 0.95, atol=0.01)
    np.testing.assert_allclose((low > 0.7).mean(axis=1), 0.025, atol=0.006)


def test_with_three_runs_a_size_each_size_uses_its_own_spread():
    y = np.array([[0.4, 0.5, 0.6, 0.5, 0.5, 0.7, 0.7, 0.71, 0.7, 0.7]]).T
    means, low, high = spread_limits(y, np.repeat([0, 1], 5), 0.95)
    np.testing.assert_allclose(means[:, 0], [0.5, 0.702])
    for s in (0, 1):
        expected = wilson(means[s, 0], y[5 * s : 5 * s + 5, 0].var(ddof=1) / 5, 2.7764451051977987)
        np.testing.assert_allclose([low[s, 0], high[s, 0]], expected, rtol=1e-6)


def test_bands_at_the_ceiling_have_a_width():
    """All of 2 x 10 judgements are right: Wilson's limits of 20 trials (statsmodels)."""
    sizes = np.repeat([1000, 2000, 4000], 2)
    curves = fit_curves(judged_from([0.8, 0.9, 0.9, 1, 1, 1], sizes, [1, 2] * 3, pairs=10), CONFIG)
    last = curves.accuracies.query("level == 'overall' and size == '4000'").iloc[0]
    low, high = proportion_confint(20, 20, 0.05, "wilson")
    np.testing.assert_allclose([last["low"], last["high"]], [low, high])
    keep = replace(CONFIG, cautioned_limits=KEEP)
    whole = overall(fit_curves(judged_from(np.ones(6), sizes, [1, 2] * 3, pairs=10), keep))
    assert whole["low"] < 0 < whole["high"]  # nor a slope at the ceiling


def test_onset_is_the_smallest_size_from_which_all_lower_bounds_exceed_the_baseline():
    words = np.array([1.0, 2, 4, 8])
    low = np.array([[0.4, 0.6, 0.6, np.nan], [0.6, 0.6, 0.4, 0.6], [0.6, 0.6, 0.5, 0.6], [0.7, 0.6, 0.4, np.nan]])
    np.testing.assert_array_equal(onset(words, low, np.full(4, 0.5)), [2, 1, np.nan, np.nan])
    np.testing.assert_array_equal(onset(words, low, np.full(4, 0.65)), [8, np.nan, np.nan, np.nan])


def test_an_onset_needs_a_rising_curve_above_its_baseline():
    sizes = np.repeat([1000, 2000, 4000], 3)
    rising = judged_from(np.repeat([0.6, 0.7, 0.9], 3), sizes, [1, 2, 3] * 3, pairs=1000)
    falling = judged_from(np.repeat([0.9, 0.7, 0.6], 3), sizes, [1, 2, 3] * 3, pairs=1000)
    assert overall(fit_curves(rising, CONFIG))[["onset", "onset_baseline"]].tolist() == [1000, "chance"]
    assert np.isnan(overall(fit_curves(falling, CONFIG))["onset"])
    untrained = judged_from([0.64, 0.66, 0.99], [1000] * 3, [1, 2, 3], pairs=1000)
    untrained.runs["baseline_of"] = [("lstm",), ("lstm",), ("another",)]
    untrained.runs["baseline"] = "untrained"
    row = overall(fit_curves(rising, CONFIG, untrained))
    assert (row["onset"], row["onset_baseline"]) == (2000, "chance and the mean of 2 untrained models")
    untrained.runs["baseline_of"] = [("another",)] * 3
    assert overall(fit_curves(rising, CONFIG, untrained))["onset_baseline"] == "chance"


def test_bands_of_lines_have_the_errors_of_each_place():
    """Two runs a size: errors of the line at each place by statsmodels, Student's limits."""
    sizes = np.repeat([1000, 2000, 4000, 8000], 2)
    accuracies = [0.5, 0.56, 0.58, 0.5, 0.62, 0.7, 0.7, 0.76]
    curves = fit_curves(judged_from(accuracies, sizes, [1, 2] * 4, pairs=1000), CONFIG)
    lines = curves.lines.query("level == 'overall'")
    assert (curves.slopes["method"] == Interval.T_POOLED.value).all()
    assert (lines["words"].min(), lines["words"].max()) == pytest.approx((1000, 8000))
    method = by_bend(sizes, [accuracies])
    expected = np.array([method(sizes, accuracies, at=np.log2(words)) for words in lines["words"]])
    half = t.ppf(0.975, expected[:, 2]) * expected[:, 1]
    np.testing.assert_allclose(lines["accuracy"], expected[:, 0])
    np.testing.assert_allclose(lines["high"], np.minimum(expected[:, 0] + half, 1))
    np.testing.assert_allclose(lines["low"], np.maximum(expected[:, 0] - half, 0))


def test_lines_of_few_runs_have_no_band_and_of_one_size_no_points():
    two = fit_curves(judged_from([0.5, 0.6], [1000, 2000], [1, 1]), CONFIG).lines
    assert two["accuracy"].notna().all()
    assert two[["low", "high"]].isna().all(axis=None)
    assert fit_curves(judged_from([0.5, 0.6], [1000, 1000], [1, 2]), CONFIG).lines.empty


def test_runs_on_the_same_text_have_no_band():
    y, size = np.array([[0.7], [0.71], [0.69], [0.7], [0.72]]), np.array([0, 0, 0, 1, 1])
    _, low, high = spread_limits(y, size, 0.95, overlap=np.array([1.0, 1.0, 1.0, 0.2, 0.2]))
    assert np.isnan([low[0, 0], high[0, 0]]).all()
    assert low[1, 0] < 0.71 < high[1, 0]
