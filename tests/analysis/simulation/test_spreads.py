"""Spreads between runs and chance in single judgements, against closed forms, scipy and statsmodels."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from analysis.curves.designs import Design
from analysis.curves.units import paradigm_accuracies, units_of
from analysis.simulation.spreads import between_runs, common_share, judgement_squares, seed_share, trend
from analysis.simulation.studies import SimulatedRuns, judgement_share, pair_deviation, sensitivity


def design(counts=(3, 3), **values):
    size = np.repeat(np.arange(len(counts)), counts)
    seed = np.concatenate([np.arange(n) for n in counts])
    return Design(17.0 + size, size, seed, **{"nested": False} | values)


def units(pairs=40, paradigms=2):
    rows = [("a", f"p{k}", str(i)) for k in range(paradigms) for i in range(pairs)]
    return units_of(pd.DataFrame(rows, columns=["phenomenon", "paradigm", "pair_id"]))


def test_variance_of_judgements_is_that_of_two_judgements_of_a_pair():
    accuracy, deviation = 0.8, 0.9
    correlation = deviation**2 / (1 + deviation**2)
    both = multivariate_normal.cdf(np.full(2, ndtri(accuracy)), cov=[[1, correlation], [correlation, 1]])
    assert judgement_share(np.array([accuracy]), deviation)[0] == pytest.approx(accuracy - both, abs=1e-6)
    assert judgement_share(np.array([accuracy]), 0.0)[0] == pytest.approx(0.16)
    assert pair_deviation(np.array([accuracy]), accuracy - both) == pytest.approx(deviation, abs=1e-4)
    assert pair_deviation(np.array([accuracy]), 0.2) == 0


def test_sensitivity_is_the_derivative_of_the_accuracy():
    step, level = 1e-5, ndtri(0.7) * np.sqrt(1.64)
    numeric = (ndtr((level + step) / np.sqrt(1.64)) - ndtr((level - step) / np.sqrt(1.64))) / (2 * step)
    assert sensitivity(np.array([0.7]), 0.8)[0] == pytest.approx(numeric, rel=1e-6)


def test_residual_of_runs_and_pairs_is_that_of_an_analysis_of_variance():
    of, cell = units(12, 1), design((3,))
    outcome = (np.random.default_rng(3).uniform(size=(3, 12)) < np.linspace(0.2, 0.9, 12)).astype(float)
    rows = [{"run": str(r), "pair": str(p), "y": outcome[r, p]} for r in range(3) for p in range(12)]
    table = anova_lm(ols("y ~ run + pair", pd.DataFrame(rows)).fit())
    assert judgement_squares(outcome, cell, of)[0] == pytest.approx(table.loc["Residual", "mean_sq"])


def test_one_run_a_size_has_the_variance_over_pairs():
    outcome = np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))
    assert judgement_squares(outcome, design((1, 1)), units(4, 1))[0] == pytest.approx(3 / 16)


def test_spread_is_a_variance_by_size_and_adds_what_shared_text_hides():
    y = np.array([[0.5], [0.6], [0.7], [0.5], [0.5], [0.8]])
    variances, degrees = between_runs(y, design())
    assert variances[:, 0] == pytest.approx([y[:3].var(ddof=1), y[3:].var(ddof=1)])
    assert degrees.tolist() == [2, 2]
    shared, _ = between_runs(y, design(overlap=np.full(6, 0.5)))
    assert shared == pytest.approx(2 * variances)
    with_chance, _ = between_runs(y, design(overlap=np.full(6, 0.5)), np.array([0.004]))  # which no text hides
    assert with_chance == pytest.approx(2 * (variances - 0.004) + 0.004)


def test_a_trend_is_found_only_where_it_is_shown():
    x, many = np.arange(6.0), np.full(6, 200.0)
    falls = trend(np.exp(-0.4 * x), many, x)
    assert (falls.slope, falls.at(x)) == (pytest.approx(-0.4, abs=1e-3), pytest.approx(np.exp(-0.4 * x), rel=1e-2))
    flat = trend(np.array([1.0, 2.0]), np.array([2.0, 1.0]), np.array([0.0, 1.0]))
    assert (flat.variance, flat.slope, flat.degrees) == (pytest.approx(4 / 3), 0, 3)
    assert trend(np.zeros(2), np.ones(2), np.arange(2.0)).variance == 0
    peak = trend(np.array([1.0, 4.0, 1.0]), np.full(3, 200.0), np.arange(3.0))
    assert peak.at(np.array([0.0, 0.5, 1.0, 2.0])) == pytest.approx([1, 2, 4, 1])
    few = trend(np.array([1.0, 4.0, 1.0]), np.full(3, 2.0), np.arange(3.0))
    assert few.at(np.arange(3.0)) == pytest.approx([2, 2, 2])
    assert flat.upper(0.9) == pytest.approx(3 / 0.5843744, rel=1e-6)  # the 10% quantile of chi2 with 3 degrees


def test_simulated_studies_have_the_accuracy_and_the_spread_that_they_state():
    cell = design((400, 400))
    of, expected = units(60, 2), np.array([[0.6, 0.7], [0.7, 0.8]])
    runs = SimulatedRuns(cell, of, expected, np.array([0.2, 0.2]), np.array([0.1, 0.1]), pair_sd=0.8)
    rng = np.random.default_rng(1)
    outcome, truth = runs.draw(rng)
    accuracy = paradigm_accuracies(outcome, of.bounds)
    assert np.stack([accuracy[cell.size == s].mean(axis=0) for s in (0, 1)]) == pytest.approx(truth, abs=0.006)
    assert truth == pytest.approx(expected, abs=0.12)  # 60 pairs
    judged = judgement_squares(outcome, cell, of)
    assert judged == pytest.approx(judgement_share(truth.mean(axis=0), 0.8), abs=0.02)
    variances, _ = between_runs(accuracy, cell)
    spread = np.sqrt(0.05) * sensitivity(truth, 0.8)
    assert np.sqrt(variances - judged / 60) == pytest.approx(spread, rel=0.15)


def test_runs_of_a_seed_and_of_the_same_text_go_together():
    nested = design((300, 300), nested=True)
    shared = design((300, 300), overlap=np.repeat([0.25, 1.0], 300))
    plain = np.full((2, 1), 0.6), np.array([0.3, 0.3]), np.zeros(2)
    effects = SimulatedRuns(nested, units(5, 1), *plain, seed_share=0.6).draw_effects(np.random.default_rng(2))
    assert np.corrcoef(effects[:300, 0], effects[300:, 0])[0, 1] == pytest.approx(0.6, abs=0.1)
    effects = SimulatedRuns(shared, units(5, 1), *plain).draw_effects(np.random.default_rng(2))
    assert np.ptp(effects[300:, 0]) < 1e-12
    assert effects[:300, 0].std() == pytest.approx(np.sqrt(0.75), rel=0.1)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_share_of_a_seed_is_that_of_the_variance_without_chance(share):
    """Spreads that fall with the size, chance as large as them, and seeds that the largest size lacks."""
    counts, deviation = (5, 5, 2), np.array([0.04, 0.02, 0.01])
    of, rng, shares = design(counts, nested=True), np.random.default_rng(5), []
    for _ in range(600):
        effects = np.sqrt(share) * rng.normal(size=5)[of.seed] + np.sqrt(1 - share) * rng.normal(size=len(of.x))
        y = 0.7 + deviation[of.size] * effects + 0.02 * rng.normal(size=len(of.x))
        products, whole = [], []
        for i, j in zip(*np.triu_indices(len(y), 1), strict=True):
            if of.seed[i] == of.seed[j] and of.size[i] != of.size[j]:
                a, b = (y[k] - y[of.size == of.size[k]].mean() for k in (i, j))
                n, m = counts[of.size[i]], counts[of.size[j]]
                products.append(a * b)
                whole.append(deviation[of.size[i]] * deviation[of.size[j]] * (1 - 1 / n - 1 / m + min(n, m) / (n * m)))
        by_hand = sum(products) / sum(whole)
        assert seed_share(y, of, deviation**2) == pytest.approx(np.clip(by_hand, 0, 1))
        shares.append(by_hand)
    assert np.mean(shares) == pytest.approx(share, abs=4 * np.std(shares) / np.sqrt(600))


def test_runs_without_a_key_share_nothing():
    y, cell = np.array([0.5, 0.7, 0.6, 0.8]), np.array([0, 0, 1, 1])
    variance = np.full(4, y[:2].var(ddof=1))
    assert common_share(y, cell, np.array([0, 1, 0, 1]), variance) == pytest.approx(1)
    assert common_share(y, cell, np.array([0, 1, 1, 0]), variance) == 0  # the other way round
    assert common_share(y, cell, np.array([-1, -1, -1, -1]), variance) == 0
    assert common_share(y, cell, np.array([0, 1, 0, 1]), np.zeros(4)) == 0
