"""Learning curves against hand-computed numbers, statsmodels, and simulated studies with known slopes."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from scipy.stats import chi2, f
from scipy.stats import t as student
from statsmodels.stats.anova import anova_lm

from analysis.config import CONSERVATIVE, CurvesConfig
from analysis.curves.designs import Design, fit_lines, slope_weights
from analysis.curves.fit import ALL_PAIRS, UNK_FREE, fit_curves
from analysis.curves.intervals import (
    Interval,
    bootstrap_limits,
    interval_method,
    resampled_accuracies,
    resampled_runs,
)
from analysis.curves.units import units_of
from analysis.curves.variance import pair_variance
from analysis.measures.perplexity import perplexity_curves
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from tests.support.judged_runs import judged_from, judged_groups, overall
from tests.support.simulated_study import SimulatedStudy
from tests.support.slope_errors import hc3, own_spreads, pooled_degrees

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=400, seed=1)


def test_lines_equal_statsmodels():
    rng = np.random.default_rng(0)
    x = np.repeat([17.0, 18, 19, 20], 3)
    y = rng.normal(size=(12, 4))
    line = fit_lines(x, y)
    for u in range(4):
        reference = sm.OLS(y[:, u], sm.add_constant(x)).fit()
        np.testing.assert_allclose([line.intercept[u], line.slope[u]], reference.params)
        np.testing.assert_allclose(line.r2[u], reference.rsquared)


def robust_error(x, y, weights):
    """Return the standard error of a slope by HC2 and its degrees of freedom, as a quadratic form.

    Each squared residual is divided by its variance if runs have one spread, which weighted leverages do not give;
    degrees of freedom are those of Bell and McCaffrey (2002).
    """
    model = sm.add_constant(x)
    solved = np.linalg.inv(model.T @ np.diag(weights) @ model) @ model.T @ np.diag(weights)
    residual = np.eye(len(x)) - model @ solved
    form = residual.T @ np.diag(solved[1] ** 2 / (residual**2).sum(axis=1)) @ residual
    np.testing.assert_allclose(np.trace(form), (solved[1] ** 2).sum())  # unbiased at equal spread
    return np.sqrt(y @ form @ y), np.trace(form) ** 2 / np.trace(form @ form)


@pytest.mark.parametrize(
    ("runs", "method", "cov_type"),
    [
        ((5, 5, 3, 1), Interval.T_HC2, None),
        ((1,) * 4, Interval.T_HC2, "HC2"),
    ],
)
def test_regression_intervals_equal_statsmodels(runs, method, cov_type):
    """Weighted least squares, sizes weighted equally, with the robust errors that the method names.

    The HC2 of statsmodels takes a run's variance to be inverse to its weight, so it is no reference at unequal counts.
    """
    sizes = np.repeat([125_000, 250_000, 500_000, 1_000_000], runs)
    seeds = np.concatenate([np.arange(n) for n in runs])
    x, weights = np.log2(sizes), 1 / np.repeat(runs, runs)
    accuracies = np.round(0.5 + 0.03 * (x - x.min()) + np.random.default_rng(1).normal(0, 0.1, len(x)), 2)
    keep = replace(CONFIG, cautioned_limits=CONSERVATIVE)  # limits with a run alone at a size
    row = overall(fit_curves(judged_from(accuracies, sizes, seeds), keep))
    reference = sm.WLS(accuracies, sm.add_constant(x), weights=weights).fit(cov_type=cov_type or "nonrobust")
    error, degrees = robust_error(x, accuracies, weights)
    assert row["method"] == method
    if cov_type:
        np.testing.assert_allclose(error, reference.bse[1])
    half = student.ppf(0.975, degrees) * error
    np.testing.assert_allclose([row["slope"], row["intercept"]], reference.params[::-1])
    np.testing.assert_allclose(row["r2"], reference.rsquared)
    np.testing.assert_allclose([row["low"], row["high"]], reference.params[1] + np.array([-half, half]), rtol=1e-6)
    assert row["low_new_pairs"] <= row["low"] < row["slope"] < row["high"] <= row["high_new_pairs"]


def limits_by(method, sizes, accuracies):
    """Return slope and limits by one of the functions of tests/support/slope_errors.py."""
    slope, error, degrees = method(sizes, accuracies)
    half = student.ppf(0.975, degrees) * error
    return slope, slope - half, slope + half


def noisy_runs(runs, more=0.0):
    """Return sizes, seeds and accuracies of runs about a line, the largest size `more` above it."""
    sizes = np.repeat(125_000 * 2 ** np.arange(len(runs)), runs)
    noise = np.random.default_rng(1).normal(0, 0.05, len(sizes)) + more * (sizes == sizes.max())
    accuracies = np.round(0.4 + 0.03 * np.log2(sizes / 125_000) + noise, 2)
    return sizes, np.concatenate([np.arange(n) for n in runs]), accuracies


@pytest.mark.parametrize("runs", [(3, 3, 3), (4, 3, 5, 3)])
def test_with_three_runs_a_size_slopes_use_each_sizes_spread(runs):
    sizes, seeds, accuracies = noisy_runs(runs)
    row = overall(fit_curves(judged_from(accuracies, sizes, seeds), CONFIG))
    assert row["method"] == Interval.T_SIZES
    np.testing.assert_allclose(row[["slope", "low", "high"]].astype(float), limits_by(own_spreads, sizes, accuracies))


@pytest.mark.parametrize("runs", [(2,) * 8, (4, 2, 3, 2)])
@pytest.mark.parametrize(("more", "by"), [(0.0, hc3), (0.3, own_spreads)])
def test_with_two_runs_a_size_errors_are_about_the_line_or_of_a_bent_curve_those_of_sizes(runs, more, by):
    sizes, seeds, accuracies = noisy_runs(runs, more)
    row = overall(fit_curves(judged_from(accuracies, sizes, seeds), CONFIG))
    assert row["method"] == (Interval.T_POOLED if more else Interval.T_HC3)
    apart = hc3(sizes, accuracies)[1] / own_spreads(sizes, accuracies)[1]
    assert apart > 1.25 if more else apart < 1.15
    np.testing.assert_allclose(row[["slope", "low", "high"]].astype(float), limits_by(by, sizes, accuracies), rtol=1e-6)


def test_with_two_runs_a_size_degrees_of_bent_curves_are_of_all_units_together():
    """By hand: each size adds its variance; units weigh by the inverse of their standard errors."""
    sizes = np.repeat([1000, 2000, 4000], [2, 3, 2])
    judged = judged_groups({"a": ([0.5, 0.6, 0.1, 0.12, 0.11, 0.7, 0.9], sizes)}, pairs=400)
    table = fit_curves(judged, CONFIG).slopes
    assert set(table["method"]) == {Interval.T_POOLED}
    paradigms = judged.outcome.reshape(7, 2, 400).mean(axis=2, dtype=float).T
    units = [paradigms.mean(axis=0), *paradigms, *paradigms]
    parts = np.array([[y[sizes == size].var(ddof=1) / 8 for size in (1000, 4000)] for y in units])
    degrees = pooled_degrees(parts, [1, 1], [1, 1])
    half = student.ppf(0.975, degrees) * np.sqrt(parts.sum(axis=1))
    np.testing.assert_allclose(table["high"] - table["slope"], half)
    own = [pooled_degrees([of], [1, 1], [1, 1]) for of in parts]
    assert min(own) < degrees < max(own)


def test_sizes_weigh_equally_however_many_runs_they_have():
    sizes = np.repeat([1000, 2000, 4000, 8000], [5, 5, 5, 1])
    accuracies = np.repeat([0.5, 0.5, 0.6, 0.9], [5, 5, 5, 1])
    row = overall(fit_curves(judged_from(accuracies, sizes, [0, 1, 2, 3, 4] * 3 + [0]), CONFIG))
    np.testing.assert_allclose(row["slope"], np.polyfit(range(4), [0.5, 0.5, 0.6, 0.9], 1)[0])
    drawn = fit_curves(judged_from(accuracies, sizes, [0, 1, 2, 3, 4] * 3 + [0]), CONFIG).accuracies
    assert drawn.query("level == 'overall'")["runs"].tolist() == [5, 5, 5, 1]


@given(st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=3, max_size=8), st.integers(0, 10_000))
def test_slope_weights_equal_weighted_least_squares(x, seed):
    rng = np.random.default_rng(seed)
    x = np.asarray(x)
    weights = rng.integers(1, 4, size=(1, len(x))).astype(float)
    if len(set(x)) < 2:
        assert np.isnan(slope_weights(x, weights)).all()
        return
    y = rng.normal(size=len(x))
    reference = sm.WLS(y, sm.add_constant(x), weights=weights[0]).fit().params[1]
    np.testing.assert_allclose(slope_weights(x, weights) @ y, reference, atol=1e-9)


def test_runs_are_drawn_within_their_size_with_the_variance_of_a_mean():
    strata = np.repeat([0, 1], 5)
    weights = resampled_runs(strata, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(weights[:, :5].sum(axis=1), 5)
    np.testing.assert_allclose(weights[:, 5:].sum(axis=1), 5)
    y = np.array([0.1, 0.4, 0.2, 0.9, 0.6])
    np.testing.assert_allclose((weights[:, :5] @ y / 5).var(), y.var(ddof=1) / 5, rtol=0.05)


def test_a_resample_of_pairs_is_shared_by_all_runs():
    """Two equal runs stay equal in every resample, and a run with opposite judgements stays their complement."""
    one = np.array([1, 0, 0, 1, 1, 0, 1], dtype=np.float32)
    means = resampled_accuracies(np.stack([one, one, 1 - one]), np.array([0, 3, 7]), 500, np.random.default_rng(0))
    assert means.shape == (500, 3, 2)
    np.testing.assert_array_equal(means[:, 0], means[:, 1])
    np.testing.assert_allclose(means[:, 0] + means[:, 2], 1, atol=1e-6)
    # Within a paradigm of n pairs, m of them right, the number right in a resample is binomial(n, m / n).
    np.testing.assert_allclose(means[:, 0].mean(axis=0), [1 / 3, 3 / 4], atol=0.05)
    np.testing.assert_allclose(means[:, 0].var(axis=0), [1 / 3 * 2 / 3 / 3, 3 / 4 / 4 / 4], rtol=0.2)


def test_pair_difficulty_that_is_the_same_at_each_size_adds_no_variance_to_the_slope():
    """Pairs are crossed with sizes, so difficulty that is the same at each size does not change the slope."""
    sizes = np.repeat([1024, 2048], 5)
    judged = judged_from([0.5] * 5 + [0.7] * 5, sizes, list(range(5)) * 2, pairs=10)
    row = overall(fit_curves(judged, CONFIG))
    assert row["method"] == Interval.BOOTSTRAP
    # Runs do not differ: left is the chance of two judgements at either end, as beside fifty of them at each size.
    smooth = [(50 * m + 2) / 54 * (50 * (1 - m) + 2) / 54 - m * (1 - m) for m in (0.5, 0.7)]
    # An estimate of that variance lies below chi2(.05) / f of it in one of 20 studies, f being four to eight.
    chance = np.maximum(smooth, 0).sum() / 50
    least, most = sorted(student.ppf(0.975, f) * np.sqrt(chance * chi2.ppf(0.05, f) / f) for f in (4, 8))
    assert row["slope"] == pytest.approx(0.2)
    for half in (row["slope"] - row["low"], row["high"] - row["slope"]):
        assert least * (1 - 1e-6) <= half <= most * (1 + 1e-6)
    # Of the ten pairs two gain with the doubling, so the slope of a resample is binomial(10, .2) / 10.
    drawn = np.random.default_rng(3).binomial(10, 0.2, size=100_000) / 10
    error, degrees = np.array([np.sqrt(0.2 * 0.8 / 9)]), np.array([9.0])  # of a mean over ten pairs; runs do not differ
    limits = bootstrap_limits(np.array([0.2]), error, drawn[:, None], degrees, 0.95, np.zeros(1))
    np.testing.assert_allclose([row["low_new_pairs"], row["high_new_pairs"]], np.concatenate(limits), atol=0.02)


def test_bootstrap_limits_are_percentiles_stretched_by_hand():
    """1,001 resampled slopes at 0, .001, ... 1: the 2.5th and 97.5th percentiles are .025 and .975."""
    resampled = np.linspace(0, 1, 1001)[::-1, None]
    error = resampled.std(axis=0) * 0.8
    estimate, degrees = np.array([0.4]), np.array([4.0])
    low, high = bootstrap_limits(estimate, error, resampled, degrees, 0.95, np.zeros(1))
    stretch = 0.8 * 2.7764451051977987 / 1.959963984540054  # t(.975, 4 degrees), normal(.975)
    np.testing.assert_allclose([low[0], high[0]], [0.4 - 0.375 * stretch, 0.4 + 0.575 * stretch], rtol=1e-12)
    # What hardly varies has no shape: Student's limits.
    low, high = bootstrap_limits(estimate, error, resampled, degrees, 0.95, np.ones(1))
    np.testing.assert_allclose(high - estimate, 2.7764451051977987 * error)


def test_pair_variance_is_that_of_stratified_means():
    slopes = np.array([0.0, 1.0, 0.5, 0.5, 2.0])  # two paradigms: of 2 and of 3 pairs
    weights = np.array([[0.5, 1.0], [0.5, 0.0]])
    first, second = 0.5 / 2, 0.75 / 3  # s^2 / n
    expected = [0.25 * first + 0.25 * second, first]
    np.testing.assert_allclose(pair_variance(slopes, np.array([0, 2, 5]), weights), expected)


def test_units_weigh_paradigms_equally():
    pairs = pd.DataFrame({"phenomenon": list("aaab"), "paradigm": ["x", "x", "y", "z"], "pair_id": list("0100")})
    units = units_of(pairs)
    assert units.table["name"].tolist() == ["overall", "a", "b", "x", "y", "z"]
    np.testing.assert_allclose(np.array([0.3, 0.6, 0.9]) @ units.weights, [0.6, 0.45, 0.9, 0.3, 0.6, 0.9])
    assert units.bounds.tolist() == [0, 2, 3, 4]


def test_slopes_of_a_simulated_study_are_recovered(tmp_path):
    simulated = SimulatedStudy(models=("lstm_tiny",), seeds=(1, 2, 3, 4, 5), pairs=400, run_sd=0.005, unk_share=0.3)
    simulated.write(tmp_path)
    judged = judgements(collect(tmp_path, "simulated"), "blimp", "lp", "wrong")
    curves = fit_curves(judged, CONFIG)
    for pairs in (ALL_PAIRS, UNK_FREE):
        slopes = curves.slopes[(curves.slopes["pairs"] == pairs)].set_index("name")
        for name, (_, _, gain) in simulated.phenomena.items():
            row = slopes.loc[name]
            assert row["slope"] == pytest.approx(gain, abs=0.01), name
            assert row["low"] < row["slope"] < row["high"]
            assert row["method"] == Interval.BOOTSTRAP
        assert slopes.loc[list(simulated.phenomena), "rank"].tolist() == [1, 3, 2]
    fewer = curves.slopes.groupby("pairs")["n_pairs"].max()
    assert fewer[UNK_FREE] == judged.unk_free.sum() < fewer[ALL_PAIRS] == judged.outcome.shape[1]
    assert len(curves.points) == 20 * 10 * 2


def test_the_same_seed_gives_the_same_numbers():
    judged = judged_from(
        [0.5] * 5 + [0.7] * 5, np.repeat([1024, 2048], 5), list(range(5)) * 2, rng=np.random.default_rng(2)
    )
    first, second = (fit_curves(judged, CONFIG).slopes for _ in range(2))
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.parametrize(
    ("sizes", "seeds", "method", "note"),
    [
        ([1000, 2000], [1, 1], Interval.NONE, "two runs"),
        ([1000, 1000, 1000], [1, 2, 3], Interval.NONE, "one size only"),
        ([1000], [1], Interval.NONE, "one size only"),
        ([1000, 2000, 4000], [1, 1, 1], Interval.T_HC2, "one run a size"),
        ([1000, 1000, 2000, 4000], [1, 2, 1, 1], Interval.T_HC2, "one run at 2 of 3 sizes"),
        ([1000, 1000, 2000], [1, 2, 1], Interval.NONE, "one run at one of two sizes"),
        ([1000, 1000, 2000, 2000], [1, 2, 1, 2], Interval.T_POOLED, ""),
    ],
)
def test_few_runs_limit_the_interval_method_and_get_a_note(sizes, seeds, method, note):
    accuracies = np.linspace(0.5, 0.8, len(sizes))
    row = overall(fit_curves(judged_from(accuracies, sizes, seeds), CONFIG))
    assert row["method"] == method
    assert note in row["note"]
    assert np.isnan(row["low"]) == (method == Interval.NONE)
    assert np.isnan(row["slope"]) == (len(set(sizes)) == 1)


def test_the_interval_method_depends_on_the_runs_of_each_size():
    size, seed = np.repeat([0, 1], 5), np.tile(np.arange(5), 2)
    every, fewer, three = (Design(1.0 * size[i:], size[i:], seed[i:], False) for i in (0, 1, 7))
    assert interval_method(every, "auto")[0] == Interval.BOOTSTRAP
    assert interval_method(every, "t")[0] == Interval.T_SIZES
    assert interval_method(fewer, "auto")[0] == Interval.T_SIZES
    assert interval_method(fewer, "bootstrap")[0] == Interval.BOOTSTRAP
    assert interval_method(three, "auto")[0] == Interval.NONE
    one = Design(np.array([0.0, 1, 1]), np.array([0, 1, 1]), np.array([0, 0, 1]), False)
    assert interval_method(one, "bootstrap")[0] == Interval.NONE
    assert interval_method(Design(1.0 * size, size, seed, True), "auto")[0] == Interval.BOOTSTRAP
    few = seed < 3
    assert interval_method(Design(1.0 * size[few], size[few], seed[few], True), "auto")[0] == Interval.T_SEEDS
    # Runs of a size count, not seeds: five seeds, of which two came to the largest size.
    late = (size == 0) | (seed < 2)
    assert interval_method(Design(1.0 * size[late], size[late], seed[late], True), "auto")[0] == Interval.T_SEEDS
    one = seed < 1
    assert interval_method(Design(np.arange(3.0), np.arange(3), np.zeros(3, int), True), "auto")[0] == Interval.NONE
    assert interval_method(Design(1.0 * size[one], size[one], seed[one], False), "auto")[0] == Interval.NONE


def test_nested_samples_are_drawn_by_whole_seeds():
    """The effect of a seed at every size cancels in the slope if the seed is drawn with all of its runs."""
    seeds = np.tile(np.arange(5), 2)
    effect = np.array([-0.2, -0.1, 0, 0.1, 0.2])[seeds]
    accuracies = np.repeat([0.5, 0.6], 5) + effect
    sizes = np.repeat([1024, 2048], 5)
    nested = overall(fit_curves(judged_from(accuracies, sizes, seeds, nested=True), CONFIG))
    independent = overall(fit_curves(judged_from(accuracies, sizes, seeds), CONFIG))
    assert nested["high"] - nested["low"] < 0.08  # what single judgements add at least
    assert independent["high"] - independent["low"] > 0.3


def test_lack_of_fit_is_an_f_test_where_spreads_are_equal():
    """Five runs a size whose spreads are the same: the F test of sizes against the line (statsmodels)."""
    sizes = np.repeat([1000, 2000, 4000, 8000], 5)
    spread = np.tile([-0.04, -0.02, 0, 0.02, 0.04], 4)
    accuracies = np.repeat([0.5, 0.5, 0.55, 0.6], 5) + spread
    row = overall(fit_curves(judged_from(accuracies, sizes, [1, 2, 3, 4, 5] * 4), CONFIG))
    x = np.log2(sizes)
    models = [sm.OLS(accuracies, sm.add_constant(x)).fit(), sm.OLS(accuracies, np.repeat(np.eye(4), 5, axis=0)).fit()]
    table = anova_lm(*models)
    apart = np.eye(4) - sm.add_constant(np.arange(4)) @ np.linalg.pinv(sm.add_constant(np.arange(4)))
    degrees = 2**2 / (np.diag(apart) ** 2 / 4).sum()  # of Brunner, Dette and Munk: fewer than the 16 of pooled runs
    np.testing.assert_allclose(row["lack_of_fit"], f.sf(table["F"].iloc[1], 2, degrees), rtol=1e-6)
    assert np.isnan(
        overall(fit_curves(judged_from(accuracies[:10], sizes[:10], [1, 2, 3, 4, 5] * 2), CONFIG))["lack_of_fit"]
    )


def test_two_sizes_have_a_difference_and_no_fit():
    sizes = np.repeat([1000, 2000], 3)
    row = overall(fit_curves(judged_from([0.5, 0.52, 0.54, 0.6, 0.62, 0.64], sizes, [1, 2, 3] * 2), CONFIG))
    assert np.isfinite(row["low"])
    assert row[["r2", "lack_of_fit", "rank", "rank_low", "rank_high"]].isna().all()


def test_a_perplexity_that_halves_with_each_doubling_has_a_factor_of_one_half():
    sizes = np.repeat([1000, 2000, 4000], 2)
    columns = {"sample_words": sizes, "size": sizes, "seed": [1, 2] * 3, "nested": False}
    runs = pd.DataFrame({"group": "g", **columns, "valid_ppl": 1e6 / sizes})
    row = perplexity_curves(runs, 0.95).iloc[0]
    np.testing.assert_allclose([row["factor"], row["low"], row["high"], row["r2"]], [0.5, 0.5, 0.5, 1])


def simulated_study(rng, seeds=5):
    """Return random judgements of runs that differ, with a true slope of .05."""
    sizes = np.repeat([1000, 2000, 4000, 8000], seeds)
    true = 0.55 + 0.05 * np.log2(sizes / 1000)
    return judged_from(true + rng.normal(0, 0.02, len(sizes)), sizes, list(range(seeds)) * 4, pairs=50, rng=rng)


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "wider"), [(2, 1.75), (5, 1.5)])
def test_intervals_cover_the_true_slope(seeds, wider):
    rng = np.random.default_rng(5)
    config = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=200, seed=1)
    studies = [simulated_study(rng, seeds) for _ in range(80)]
    rows = [overall(fit_curves(study, config)) for study in studies]
    covered = sum(row["low"] < 0.05 < row["high"] for row in rows)
    assert covered >= 69  # binomial(80, .95) lies below that 6 times in 10,000
    # Nor by being wide: the truth is a line with one spread, and the regression's own interval (statsmodels) knows it.
    widths = [(row["high"] - row["low"]) / ols_width(study) for row, study in zip(rows, studies, strict=True)]
    assert 0.75 < np.median(widths) < wider


def ols_width(judged):
    x = sm.add_constant(np.log2(judged.runs["sample_words"].to_numpy(dtype=float)))
    return np.diff(sm.OLS(judged.outcome.mean(axis=1), x).fit().conf_int()[1]).item()


@pytest.mark.parametrize(
    "cells",
    [
        [(1000, 1), (2000, 1), (4000, 1), (8000, 1), (1000, 2)],  # a sweep that is half finished
        [(1000, 1), (2000, 1), (4000, 2), (8000, 2)],
    ],
)
def test_nested_seeds_that_hardly_share_sizes_have_no_interval(cells):
    sizes, seeds = zip(*cells, strict=True)
    row = overall(fit_curves(judged_from(np.linspace(0.5, 0.8, len(cells)), sizes, seeds, nested=True), CONFIG))
    assert row["method"] == Interval.NONE
    assert row["note"].startswith("nested samples with several seeds at fewer than two sizes")
    assert np.isfinite(row["slope"])
    assert np.isnan([row["low"], row["high"], row["low_new_pairs"], row["high_new_pairs"]]).all()
