"""Variances of slopes against scipy, statsmodels and resampling; and coverage in 300 made-up studies a cell."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.stats import binom, ttest_1samp, ttest_ind
from statsmodels.stats.anova import anova_lm

from analysis.config import CurvesConfig
from analysis.curves import fit_group
from analysis.intervals import (
    BOOTSTRAP,
    T_HC2,
    T_SEEDS,
    Design,
    at_least,
    resampled_accuracies,
    resampled_runs,
    run_terms,
    slope_limits,
    slope_weights,
)
from analysis.variance import cluster_weights, judgement_variance, pair_variance, satterthwaite, stratum_products
from tests.bench.coverage import FILE, KEYS, SPREADS, simulate
from tests.made_up_judgements import MadeUpJudgements

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=4000, seed=1)


@cache
def made(**cell):
    return MadeUpJudgements(**cell)


def studied(seed=0, **cell):
    """A made-up study, its outcomes, and its line in every unit."""
    made_up = made(**cell)
    outcome, _ = made_up.draw(np.random.default_rng(seed))
    return made_up, outcome, fit_group("g", np.arange(len(outcome)), outcome, made_up.design, made_up.units, "auto")


def test_degrees_of_freedom_are_welchs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 7), rng.normal(0, 3, 12)
    variances = np.array([[a.var(ddof=1) / 7], [b.var(ddof=1) / 12]])
    degrees = satterthwaite(variances, np.array([[6.0], [11.0]]))
    np.testing.assert_allclose(degrees, ttest_ind(a, b, equal_var=False).df)
    assert np.isinf(satterthwaite(np.zeros((2, 1)), np.ones((2, 1))))[0]


def test_two_sizes_are_welchs_t_test():
    """The slope between two sizes a doubling apart is a difference of means."""
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.normal(0.5, 0.01, 5), rng.normal(0.6, 0.05, 5)])
    size = np.repeat([0, 1], 5)
    c = slope_weights(1.0 * size, np.ones((1, 10)))[0]
    terms = cluster_weights(c, size, np.arange(10)) @ y[:, None]
    found = stratum_products(terms, terms, size)
    reference = ttest_ind(y[5:], y[:5], equal_var=False)
    np.testing.assert_allclose(np.sqrt(found.sum()), (y[5:].mean() - y[:5].mean()) / reference.statistic)
    np.testing.assert_allclose(satterthwaite(found, np.array([[4.0], [4.0]])), reference.df)


def test_chance_in_judgements_is_the_residual_of_two_way_anova():
    """One size apart from the other: runs x pairs of each, residual mean squares by statsmodels."""
    rng = np.random.default_rng(2)
    outcome = rng.integers(0, 2, size=(6, 9)).astype(np.float32)
    size = np.repeat([0, 1], 3)
    c = slope_weights(1.0 * size, np.ones((1, 6)))[0]
    weights = cluster_weights(c, size, np.arange(6))
    found = judgement_variance(outcome, weights, size, np.array([0, 9]), np.ones((1, 1)))
    expected = 0.0
    for s in (0, 1):
        long = pd.DataFrame(
            {"y": outcome[size == s].ravel(), "run": np.repeat(range(3), 9), "pair": np.tile(range(9), 3)}
        )
        anova = anova_lm(smf.ols("y ~ C(run) + C(pair)", long).fit())
        expected += anova.loc["Residual", "mean_sq"] / (3 * 9)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_variance_over_runs_and_pairs_is_counted_once():
    """What the slopes of many studies vary by is what the components add up to; both as they are would be too much."""
    slopes, once, twice = [], [], []
    for seed in range(400):
        cell, outcome, fit = studied(seed, seeds=3, sizes=4, pairs=40, run_sd=(0.1, 0.1))
        slopes.append(fit.line.slope)
        c = cell.design.contrast
        pairs = pair_variance(c @ outcome, cell.units.bounds, cell.units.weights)
        once.append(fit.errors.both**2)
        twice.append(fit.errors.runs**2 + pairs)
    true = np.var(slopes, axis=0)[0]
    assert np.mean(once, axis=0)[0] == pytest.approx(true, rel=0.15)
    assert np.mean(twice, axis=0)[0] > 1.4 * true


def test_errors_over_runs_are_what_resampling_runs_gives():
    for nested in (False, True):
        cell, _, fit = studied(seeds=5, nested=nested)
        drawn = resampled_runs(cell.design.stratum, 40_000, np.random.default_rng(3))
        c = slope_weights(cell.design.x, drawn[:, cell.design.cluster])
        assert fit.method == BOOTSTRAP
        terms = run_terms(fit.method, cell.design, cell.design.contrast)
        np.testing.assert_allclose(np.sqrt(terms.variance(fit.y)), (c @ fit.y).std(axis=0), rtol=0.02)


def test_nested_samples_with_few_seeds_are_a_t_test_of_their_slopes():
    cell, _, fit = studied(seeds=3, nested=True)
    seed = cell.design.seed
    slopes = [np.polyfit(cell.design.x[seed == s], fit.y[seed == s, 0], 1)[0] for s in range(3)]
    low, high, *_ = slope_limits(fit.method, fit.line, fit.errors, fit.y, cell.design, cell.units, CONFIG, None)
    assert fit.method == T_SEEDS
    np.testing.assert_allclose([low[0], high[0]], ttest_1samp(slopes, 0).confidence_interval(0.95), rtol=1e-9)


def test_intervals_over_new_pairs_hold_those_for_these_pairs():
    inner, outer = (np.array([-1.0, 0.0]), np.array([1.0, 3.0])), (np.array([-2.0, 1.0]), np.array([0.5, 2.0]))
    low, high = at_least(outer, inner)
    np.testing.assert_array_equal([low, high], [[-2, 0], [1, 3]])
    for seeds in (2, 5):
        cell, outcome, fit = studied(seeds=seeds)
        drawn = resampled_accuracies(outcome, cell.units.bounds, 500, np.random.default_rng(0)) if seeds > 4 else None
        config = CurvesConfig("lp", "auto", 0.95, 500, 1)
        low, high, low_new, high_new = slope_limits(
            fit.method, fit.line, fit.errors, fit.y, cell.design, cell.units, config, drawn
        )
        assert (low_new <= low).all()
        assert (high <= high_new).all()


def test_a_size_with_one_run_leaves_its_chance_in():
    """Where nothing says how much chance there is, none is taken off: the interval is wider, not narrower."""
    cell, outcome, _ = studied(seeds=2)
    kept = np.ones(8, dtype=bool)
    kept[-1] = False
    design = Design(cell.design.x[kept], cell.design.size[kept], cell.design.seed[kept], False)
    fit = fit_group("g", np.arange(7), outcome[kept], design, cell.units, "auto")
    assert fit.method == T_HC2
    assert np.isfinite(fit.errors.both).all()
    one_each = Design(design.x[::2], design.size[::2], design.seed[::2], False)
    alone = fit_group("g", np.arange(4), outcome[kept][::2], one_each, cell.units, "auto")
    np.testing.assert_array_equal(alone.errors.chance, 0)


@pytest.mark.parametrize(("seeds", "sizes"), [(2, 4), (2, 10), (5, 4), (5, 10)])
def test_intervals_cover_the_truth(seeds, sizes):
    """300 of the 2,000 studies of `make bench`. A coverage of 95% leaves these limits twice in a thousand cells."""
    config = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=400, seed=1)
    table = simulate(MadeUpJudgements(seeds, sizes, run_sd=SPREADS["falls"]), 300, config)
    low, high = binom.ppf([0.001, 0.999], 300, 0.95)
    used = table[table["used"] & (table["quantity"] != "log2 words to people")]
    assert len(used) == 8
    covered = (used["covered"] * 300).round()
    assert covered.between(low, high).all(), used
    # People's error is known better than the slope, so sets of words may be wider than they need be, never narrower.
    words = table[table["quantity"] == "log2 words to people"]
    assert (words["covered"] * 300 >= low).all(), words
    # What would count chance twice or more holds the truth more often, and is wider for nothing.
    new = table[(table["quantity"] == "slope") & (table["question"] == "new pairs too")]
    ours, wide = (new[new["used"] == used].set_index("level") for used in (True, False))
    assert (wide["covered"] > ours["covered"]).all(), new
    assert wide.loc["paradigm", "width"] > 1.1 * ours.loc["paradigm", "width"], new


def test_the_committed_table_covers():
    """Of 2,000 studies a cell (`make bench`): what is used covers 93 to 97% where the truth is a line."""
    table = pd.read_csv(FILE)
    assert list(table) == [*KEYS, "studies", "covered", "standard_error", "width"]
    assert (table["studies"] >= 2000).all()
    used = table[table["used"] & (table["truth"] == "line") & (table["samples"] == "independent")]
    slopes = used[used["quantity"] != "log2 words to people"]
    assert set(zip(slopes["seeds"], slopes["sizes"], strict=True)) == {(2, 4), (2, 10), (5, 4), (5, 10)}
    assert slopes["covered"].between(0.93, 0.97).all(), slopes[~slopes["covered"].between(0.93, 0.97)]
    # A curved truth makes the regression's interval wide, never narrow.
    assert (table.loc[table["used"], "covered"] >= 0.93).all(), table[table["used"] & (table["covered"] < 0.93)]
