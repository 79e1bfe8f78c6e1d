"""Variances of slopes against scipy, statsmodels and resampling, and coverage in simulated studies."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.linalg import sqrtm
from scipy.stats import binom, chi2, ttest_1samp, ttest_ind
from scipy.stats import t as student
from statsmodels.stats.anova import anova_lm

from analysis.config import CurvesConfig
from analysis.curves.coverage import MOST_WITHOUT
from analysis.curves.designs import Design, fit_lines, slope_weights
from analysis.curves.groups import fit_group, rank_limits, slope_limits
from analysis.curves.intervals import (
    Interval,
    at_least,
    plausible,
    resampled_accuracies,
    resampled_runs,
    run_terms,
    single_judgements,
)
from analysis.curves.variance import (
    chance_at_sizes,
    cluster_weights,
    judgement_variance,
    pair_variance,
    satterthwaite,
    stratum_products,
)
from tests.bench.coverage import DESIGNS, FILE, KEYS, simulate
from tests.support.simulated_judgements import SimulatedJudgements

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=4000, seed=1)


@cache
def simulated_judgements(**cell):
    return SimulatedJudgements(**cell)


def simulate_and_fit(seed=0, **cell):
    """Return a simulated study, its outcomes, and the fit of its line in every unit."""
    simulated = simulated_judgements(**cell)
    outcome, _ = simulated.draw(np.random.default_rng(seed))
    return simulated, outcome, fit_group("g", outcome, simulated.design, simulated.units, "auto")


def test_degrees_of_freedom_are_welchs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 7), rng.normal(0, 3, 12)
    variances = np.array([[a.var(ddof=1) / 7], [b.var(ddof=1) / 12]])
    degrees = satterthwaite(variances, np.array([[6.0], [11.0]]))
    np.testing.assert_allclose(degrees, ttest_ind(a, b, equal_var=False).df)
    assert np.isinf(satterthwaite(np.zeros((2, 1)), np.ones((2, 1))))[0]


@pytest.mark.parametrize(("spread", "least", "most"), [((1, 1, 1), 0.95, 0.965), ((5, 1, 1), 0.925, 0.945)])
def test_corrected_degrees_hold_about_95_per_cent(spread, least, most):
    """Means of three normal samples each; without the correction equal spreads hold 96.6%."""
    rng = np.random.default_rng(2)
    deviation = np.array(spread)[:, None, None]
    samples = rng.normal(size=(3, 40_000, 3)) * deviation
    variances = samples.var(axis=2, ddof=1) / 3
    error = samples.mean(axis=2).sum(axis=0) / np.sqrt(variances.sum(axis=0))
    degrees = np.minimum(satterthwaite(variances, np.full((3, 1), 2.0), 1), 6)
    assert least < (np.abs(error) < student.ppf(0.975, degrees)).mean() < most


def test_two_sizes_are_welchs_t_test():
    """The slope between two sizes a doubling apart is a difference of means."""
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.normal(0.5, 0.01, 5), rng.normal(0.6, 0.05, 5)])
    size = np.repeat([0, 1], 5)
    c = slope_weights(1.0 * size, np.ones((1, 10)))[0]
    terms = cluster_weights(c, size, np.arange(10)) @ y[:, None]
    products = stratum_products(terms, terms, size)
    reference = ttest_ind(y[5:], y[:5], equal_var=False)
    np.testing.assert_allclose(np.sqrt(products.sum()), (y[5:].mean() - y[:5].mean()) / reference.statistic)
    np.testing.assert_allclose(satterthwaite(products, np.array([[4.0], [4.0]])), reference.df)


def test_chance_in_judgements_is_the_residual_of_two_way_anova():
    """Each size has its own two-way table of runs and pairs, whose residual mean square statsmodels gives."""
    rng = np.random.default_rng(2)
    outcome = rng.integers(0, 2, size=(6, 9)).astype(np.float32)
    size = np.repeat([0, 1], 3)
    c = slope_weights(1.0 * size, np.ones((1, 6)))[0]
    weights = cluster_weights(c, size, np.arange(6))
    variance = judgement_variance(outcome, weights, size, np.array([0, 9]), np.ones((1, 1)))
    expected = 0.0
    for s in (0, 1):
        long = pd.DataFrame(
            {"y": outcome[size == s].ravel(), "run": np.repeat(range(3), 9), "pair": np.tile(range(9), 3)}
        )
        anova = anova_lm(smf.ols("y ~ C(run) + C(pair)", long).fit())
        expected += anova.loc["Residual", "mean_sq"] / (3 * 9)
    np.testing.assert_allclose(variance, expected, rtol=1e-6)


def test_chance_at_sizes_is_the_residual_of_two_way_anova():
    """Of a run's accuracy, and none at a size of one run, whose residual is not known."""
    rng = np.random.default_rng(2)
    outcome, size = rng.integers(0, 2, size=(8, 9)).astype(float), np.array([0, 0, 0, 1, 1, 1, 1, 2])
    found = chance_at_sizes(outcome, size, np.array([0, 4, 9]), np.array([[0.5, 1.0], [0.5, 0.0]]))
    expected = np.zeros((3, 2))
    for s in (0, 1):
        of_paradigms = []
        for pairs in (range(4), range(4, 9)):
            rows = outcome[size == s][:, pairs]
            runs, n = rows.shape
            table = {"y": rows.ravel(), "run": np.repeat(range(runs), n), "pair": np.tile(range(n), runs)}
            anova = anova_lm(smf.ols("y ~ C(run) + C(pair)", pd.DataFrame(table)).fit())
            of_paradigms.append(anova.loc["Residual", "mean_sq"] / n)
        expected[s] = sum(of_paradigms) / 4, of_paradigms[0]
    np.testing.assert_allclose(found, expected)


def test_variance_over_runs_and_pairs_is_counted_once():
    """The variance of slopes over many studies is the sum of the components with the chance in judgements once."""
    slopes, once, twice = [], [], []
    for seed in range(400):
        cell, outcome, fit = simulate_and_fit(seed, seeds=3, sizes=4, pairs=40, run_sd=(0.1, 0.1))
        slopes.append(fit.line.slope)
        c = cell.design.contrast
        pairs = pair_variance(c @ outcome, cell.units.bounds, cell.units.weights)
        once.append(fit.errors.both**2)
        twice.append(fit.errors.runs**2 + pairs)
    true = np.var(slopes, axis=0)[0]
    assert np.mean(once, axis=0)[0] == pytest.approx(true, rel=0.15)
    assert np.mean(twice, axis=0)[0] > 1.4 * true


def test_errors_over_runs_equal_those_of_resampling_runs():
    for nested in (False, True):
        cell, _, fit = simulate_and_fit(seeds=5, nested=nested)
        drawn = resampled_runs(cell.design.stratum, 40_000, np.random.default_rng(3))
        c = slope_weights(cell.design.x, drawn[:, cell.design.cluster])
        assert fit.method == Interval.BOOTSTRAP
        terms = run_terms(fit.method, cell.design, cell.design.contrast)
        np.testing.assert_allclose(np.sqrt(terms.variance(fit.y)), (c @ fit.y).std(axis=0), rtol=0.02)


def test_nested_samples_with_few_seeds_are_a_t_test_of_their_slopes():
    cell, _, fit = simulate_and_fit(seeds=3, nested=True)
    seed = cell.design.seed
    slopes = [np.polyfit(cell.design.x[seed == s], fit.y[seed == s, 0], 1)[0] for s in range(3)]
    low, high, *_ = slope_limits(fit, CONFIG)
    assert fit.method == Interval.T_SEEDS
    np.testing.assert_allclose([low[0], high[0]], ttest_1samp(slopes, 0).confidence_interval(0.95), rtol=1e-9)


def test_intervals_over_new_pairs_hold_those_for_these_pairs():
    inner, outer = (np.array([-1.0, 0.0]), np.array([1.0, 3.0])), (np.array([-2.0, 1.0]), np.array([0.5, 2.0]))
    low, high = at_least(outer, inner)
    np.testing.assert_array_equal([low, high], [[-2, 0], [1, 3]])
    for seeds in (2, 5):
        cell, outcome, fit = simulate_and_fit(seeds=seeds)
        drawn = resampled_accuracies(outcome, cell.units.bounds, 500, np.random.default_rng(0)) if seeds > 4 else None
        config = CurvesConfig("lp", "auto", 0.95, 500, 1)
        low, high, low_new, high_new = slope_limits(fit, config, drawn)
        assert (low_new <= low).all()
        assert (high <= high_new).all()


def test_the_chance_in_judgements_is_not_subtracted_where_a_size_has_one_run():
    """Where runs do not show how much chance there is, none is subtracted: the interval is wider, not narrower."""
    cell, outcome, _ = simulate_and_fit(seeds=2)
    runs = np.ones(8, dtype=bool)
    runs[-1] = False
    design = Design(cell.design.x[runs], cell.design.size[runs], cell.design.seed[runs], False)
    fit = fit_group("g", outcome[runs], design, cell.units, "auto")
    assert fit.method == Interval.T_HC2
    assert np.isfinite(fit.errors.both).all()
    one_each = Design(design.x[::2], design.size[::2], design.seed[::2], False)
    alone = fit_group("g", outcome[runs][::2], one_each, cell.units, "auto")
    np.testing.assert_array_equal(alone.errors.chance, 0)


def test_robust_terms_are_statsmodels_hc2_and_hc3():
    """Variances and correlation of mean and slope equal those of weighted least squares, for any numbers of runs."""
    for counts, method, cov_type in (((2, 2, 2), Interval.T_HC2, "HC2"), ((4, 2, 3, 1, 2), Interval.T_HC3, "HC3")):
        sizes, size = len(counts), np.repeat(np.arange(len(counts)), counts)
        design = Design(1.0 * size, size, np.concatenate([np.arange(n) for n in counts]), False)
        y = np.random.default_rng(0).normal(size=(len(size), 3))
        of_slope = run_terms(method, design, design.contrast)
        of_mean = run_terms(method, design, design.weights / sizes)
        for u in range(3):
            x = sm.add_constant(design.x - (sizes - 1) / 2)
            reference = sm.WLS(y[:, u], x, weights=design.weights).fit(cov_type=cov_type).cov_params()
            together = reference[0, 1] / np.sqrt(reference[0, 0] * reference[1, 1])
            variances = of_mean.variance(y)[u], of_slope.variance(y)[u], of_mean.correlation(of_slope, y, y)[u]
            np.testing.assert_allclose(variances, [reference[0, 0], reference[1, 1], together])


def club_sandwich(x, y, weights, cluster):
    """Return variance and degrees of freedom of a weighted slope by the published formulas of CR2.

    Pustejovsky and Tipton 2018, equations 5 to 8 (adjustments) and 11 (degrees of freedom), with full matrices.
    """
    model = sm.add_constant(x)
    bread = np.linalg.inv(model.T @ np.diag(weights) @ model)
    residual = np.eye(len(x)) - model @ bread @ model.T @ np.diag(weights)
    parts = []
    for j in np.unique(cluster):
        of = cluster == j
        adjusted = np.linalg.inv(np.real(sqrtm(residual[of] @ residual[of].T)))
        parts.append((bread @ model[of].T @ np.diag(weights[of]) @ adjusted @ residual[of])[1])
    parts = np.stack(parts)
    products = parts @ parts.T
    return ((parts @ y) ** 2).sum(), np.trace(products) ** 2 / (products**2).sum()


@pytest.mark.parametrize("counts", [(5, 5, 1), (3, 3, 3, 1), (5, 5, 5, 3, 3, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("nested", [False, True])
def test_errors_about_the_line_do_not_take_weights_for_spreads(counts, nested):
    """Where runs vary equally the variance of a slope is unbiased, and its degrees of freedom are those of CR2."""
    size = np.repeat(np.arange(len(counts)), counts)
    seed = np.concatenate([np.arange(n) for n in counts])
    if nested and len(np.unique(seed)) == 1:
        return
    design = Design(1.0 * size, size, seed, nested)
    y = np.random.default_rng(0).normal(size=(len(size), 1))
    terms = run_terms(Interval.T_HC2, design, design.contrast)
    np.testing.assert_allclose(np.trace(terms.weights @ terms.weights.T), (design.contrast**2).sum())
    variance, degrees = club_sandwich(design.x, y[:, 0], design.weights, design.cluster)
    np.testing.assert_allclose([terms.variance(y)[0], terms.degrees(y)[0]], [variance, degrees])


def false_alarms(first, second, spread=1.0, studies=20_000):
    """Return the share of normal studies where two groups of one line differ at 5%; `spread` is the largest size's."""
    rng = np.random.default_rng(0)
    difference, terms, values = 0.0, [], []
    for counts, sign in ((first, 1), (second, -1)):
        size = np.repeat(np.arange(len(counts)), counts)
        design = Design(1.0 * size, size, np.concatenate([np.arange(n) for n in counts]), False)
        deviation = np.where(size == size.max(), spread, 1.0)[:, None]
        values.append(rng.normal(size=(len(size), studies)) * deviation)
        terms.append(run_terms(Interval.T_HC2, design, design.contrast))
        difference = difference + sign * design.contrast @ values[-1]
    both, y = terms[0].minus(terms[1], np.full(sum(second), -1)), np.concatenate(values)
    return (np.abs(difference) > student.ppf(0.975, both.degrees(y)) * np.sqrt(both.variance(y))).mean()


@pytest.mark.parametrize(
    ("first", "second"),
    [((5, 5, 1), (5, 5, 1)), ((3, 3, 1), (3, 3, 1)), ((3, 3, 3, 1), (3, 3, 3, 1)), ((5, 5, 5, 5), (5, 5, 5, 1)),
     ((5, 5, 5, 5), (1, 1, 1, 1)), ((5, 5, 5), (1, 1, 1))],
)  # fmt: skip
def test_equal_groups_seldom_differ_where_sizes_have_one_run(first, second):
    assert false_alarms(first, second) < 0.05
    assert false_alarms(first, second, spread=2.0) < 0.055


def test_clusters_are_seeds_and_their_correction_is_cr2():
    """Complete seeds give the t test of their slopes, an incomplete one is corrected by (I - H)^-1/2 of its block."""
    size, seed = np.repeat([0, 1, 2], 3), np.tile([0, 1, 2], 3)
    design = Design(1.0 * size, size, seed, True)
    y = np.random.default_rng(1).normal(size=(9, 1))
    terms = run_terms(Interval.T_SEEDS, design, design.contrast)
    slopes = [np.polyfit(range(3), y[seed == s, 0], 1)[0] for s in range(3)]
    np.testing.assert_allclose(terms.variance(y), np.var(slopes, ddof=1) / 3)
    np.testing.assert_allclose(terms.degrees(y), 2)
    part = design.of(np.arange(9) < 8)  # without the last seed's largest size
    terms = run_terms(Interval.T_SEEDS, part, part.contrast)
    model = np.eye(3)[part.size]
    residual = np.eye(8) - model @ np.linalg.pinv(model)
    rows = []
    for s in range(3):
        of = np.flatnonzero(part.seed == s)
        rows.append(part.contrast[of] @ np.linalg.inv(sqrtm(residual[np.ix_(of, of)])) @ residual[of])
    np.testing.assert_allclose(terms.variance(y[:8]), [((np.stack(rows) @ y[:8]) ** 2).sum()])
    products = np.stack(rows) @ np.stack(rows).T
    np.testing.assert_allclose(terms.degrees(y[:8]), np.trace(products) ** 2 / (products**2).sum())


def test_ranks_of_equal_slopes_have_wide_limits():
    """Slopes that are far apart have one possible rank; equal slopes share theirs (pairwise tests, Holm)."""
    size = np.repeat(np.arange(4), 5)
    design = Design(1.0 * size, size, np.tile(np.arange(5), 4), False)
    noise = np.random.default_rng(3).normal(0, 0.01, (20, 4))
    y = design.x[:, None] * np.array([0.3, 0.1, 0.101, -0.2]) + noise
    line, errors = fit_lines(design.x, y, design.weights), SimpleNamespace(floor=np.zeros(4))
    fit = SimpleNamespace(method=Interval.T_SIZES, design=design, line=line, errors=errors, y=y)
    low, high = rank_limits(fit, np.ones(4, dtype=bool), 0.95)
    assert (low.tolist(), high.tolist()) == ([1, 2, 2, 4], [1, 3, 3, 4])
    changes = [np.polyfit(design.x, y[:, 1] - y[:, k], 1)[0] for k in (0, 2, 3)]
    assert changes[0] < 0 < changes[2]


@pytest.mark.slow
def test_simulated_studies_cover_the_truth():
    """100 studies of four of the designs of `make bench`: none of its intervals falls far below 95%."""
    config = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=100, seed=1)
    for name in ("4x2 line, spread at both ends", "4x3 line, x5 at the smallest", "4x2 ceiling, 10 pairs"):
        table = simulate(name, 100, config)
        used = table[table["used"] & (table["none"] <= MOST_WITHOUT)]
        studies = (100 * (1 - used["none"])).round()
        few = used["covered"] * studies < binom.ppf(0.0005, studies, 0.95)
        assert not few.any(), used.loc[few, ["quantity", "covered"]]
    assert "slope" not in set(used["quantity"])  # of the last: rough limits are left out


def test_each_design_of_the_bench_has_its_own_random_numbers(monkeypatch):
    """A design gives the same rows each time, and other studies under another name."""
    config = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=20, seed=1)
    monkeypatch.setitem(DESIGNS, "another", DESIGNS["4x1 line, spread falls"])
    first, again, other = (
        simulate(name, 2, config).query("quantity == 'slope'")["width"].dropna().to_numpy()
        for name in ("4x1 line, spread falls", "4x1 line, spread falls", "another")
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_the_committed_coverage_is_near_95_percent_in_every_design():
    """Every interval in use covers 93% or more, less two standard errors, or gives no limits.

    The standard error is that of a share of .93 in the studies with limits; rows with few such studies are left out.
    """
    table = pd.read_csv(FILE, dtype={"runs": str})
    assert list(table) == [*KEYS, "studies", "covered", "none", "standard_error", "width"]
    assert set(table["design"]) == set(DESIGNS)
    assert (table["studies"] >= 1000).all()
    used = table[table["used"] & (table["none"] <= MOST_WITHOUT)]
    error = np.sqrt(0.93 * 0.07 / (used["studies"] * (1 - used["none"])))
    short = used[used["covered"] < 0.93 - 2 * error]
    assert short.empty, short[["design", "quantity", "question", "level", "covered"]]
    # The rejected regression with one spread undercovers where spreads differ.
    rejected = table[~table["used"] & (table["interval"] == "t interval, one spread")]
    assert rejected["covered"].min() < 0.9


def test_single_judgements_of_differences_add_one_loss_and_one_gain():
    """Where no run changes, one difference of -1 and one of 1 join the n of 0 (Bonett and Price 2012)."""
    units = simulated_judgements(pairs=10).units
    outcome = np.zeros((2, 40))
    added = 1 / (2 * 10 + 2)
    variance, mean = single_judgements(outcome, replace(units, differences=True))
    np.testing.assert_allclose(variance, 2 * added / 10)
    np.testing.assert_allclose(mean, 0)
    _, share = single_judgements(outcome, units)  # none of 20 right: 2 of 24 (Agresti and Coull 1998)
    np.testing.assert_allclose(share, 2 / 24)
    _, share = single_judgements(outcome, units, np.array([[1], [4]]))  # in a sum of four: .5 of 21
    np.testing.assert_allclose(share, np.repeat([[2 / 24], [0.5 / 21]], 4, axis=1))


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_limits_are_no_closer_than_chance_in_judgements_makes_plausible(confidence):
    """Two equal runs a size at the ceiling: an estimate that the variance of judgements gives in one of 20 studies."""
    cell = simulated_judgements(seeds=2, pairs=10)
    outcome = np.ones((8, 40), np.float32)
    fit = fit_group("g", outcome, cell.design, cell.units, "auto")
    config = CurvesConfig("lp", "auto", confidence, 100, 1)
    low, high, *_ = slope_limits(fit, config)
    # At equal spread (2.25 + .25 + .25 + 2.25)^2 / (2.25^2 + .25^2 + .25^2 + 2.25^2) degrees of freedom.
    degrees = 25 / 10.25
    added = 2 / (2 * 10 + 4)  # of 20 judgements of a paradigm at a size, and four more: 22 of 24 right
    of_paradigm = added * (1 - added) / 10 * (fit.design.contrast**2).sum()
    np.testing.assert_allclose(fit.errors.floor[3:], of_paradigm)
    shared = 0.5 / (2 * 10 + 1)  # overall, a mean of four paradigms, each has a quarter of the four
    np.testing.assert_allclose(fit.errors.floor[0], shared * (1 - shared) / 10 / 4 * (fit.design.contrast**2).sum())
    least = fit.errors.floor * chi2.ppf(0.05, degrees) / degrees
    half = student.ppf(0.5 + confidence / 2, degrees) * np.sqrt(least)
    np.testing.assert_allclose([high - fit.line.slope, fit.line.slope - low], [half, half], rtol=1e-6)


@pytest.mark.parametrize(("seeds", "sizes", "pairs"), [(3, 4, 100), (5, 10, 1000)])
def test_limits_hold_where_two_judgements_are_wrong_and_all_at_one_size(seeds, sizes, pairs):
    """A curve at its ceiling from the second size on: chance, divided among sizes, would cover 83 to 86%."""
    cell = simulated_judgements(seeds=seeds, sizes=sizes, pairs=pairs, paradigms=((0.99, 0.0),))
    rng = np.random.default_rng(1)
    wrong = 2 / (seeds * pairs)  # expected share, at the smallest size
    truth = -wrong * cell.design.contrast[cell.design.size == 0].sum()
    held = []
    for _ in range(300):
        outcome = np.ones((seeds * sizes, pairs), np.float32)
        outcome[cell.design.size == 0] -= rng.uniform(size=(seeds, pairs)) < wrong
        fit = fit_group("g", outcome, cell.design, cell.units, "t")
        low, high, *_ = slope_limits(fit, CurvesConfig("lp", "t", 0.95, 100, 1))
        held.append(low[-1] <= truth <= high[-1])
    assert np.mean(held) > 0.93


def test_one_of_twenty_estimates_is_raised():
    """Estimates of a variance of chance alone are raised in 5% of studies, to their 5% quantile."""
    degrees = np.full(20_000, 3.0)
    estimates = 2.0 * np.random.default_rng(0).chisquare(3, 20_000) / 3
    raised = plausible(estimates, degrees, np.full(20_000, 2.0))
    assert (raised > estimates).mean() == pytest.approx(0.05, abs=0.006)
    np.testing.assert_allclose(raised.min(), np.quantile(estimates, 0.05), rtol=0.1)
