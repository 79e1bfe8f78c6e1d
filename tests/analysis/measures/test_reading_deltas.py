"""Intervals of what surprisal adds, and the test for U-turns, against formulas written out and simulated studies."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student
from statsmodels.regression.linear_model import OLS
from statsmodels.tools import add_constant

from analysis.curves.designs import Design
from analysis.curves.intervals import Interval
from analysis.measures.reading.delta import BOTH, RUNS, WORDS, Estimate, Nothing, contributions, estimate
from analysis.measures.reading.regressions import held_out
from analysis.measures.reading.u_turn import slope, turn
from tests.support.simulated_reading import SimulatedReading, held_out_at_once

RISES, TURNS = (0.4, 0.5, 0.6, 0.7, 0.8), (0.3, 0.6, 0.9, 0.6, 0.3)


def crossed(seed, runs=4, clusters=60, words=5):
    rng = np.random.default_rng(seed)
    difference = 0.02 + 0.01 * rng.normal(size=(runs, 1)) + 0.2 * rng.normal(size=(1, clusters * words))
    return difference + 0.1 * rng.normal(size=(runs, clusters * words)), np.repeat(np.arange(clusters), words)


def test_contributions_have_the_delta_as_their_mean_for_clusters_of_any_length():
    difference, _ = crossed(1)
    cluster = np.sort(np.random.default_rng(2).integers(0, 20, difference.shape[1]))
    of = contributions(difference, cluster)
    assert of.mean(axis=1) == pytest.approx(difference.mean(axis=1))
    # The variance of a ratio: squared sums around the mean (Cochran 1977, section 6.4).
    centred = difference[0] - difference[0].mean()
    sums = np.asarray([centred[cluster == c].sum() for c in range(20)])
    variance = (sums**2).sum() * 20 / 19 / difference.shape[1] ** 2
    assert estimate(np.ones(1), of[:1], None, Interval.NONE).errors[WORDS][0] == pytest.approx(np.sqrt(variance))


def test_over_words_and_runs_variances_are_added_and_their_interaction_is_subtracted_once():
    difference, cluster = crossed(3)
    of = contributions(difference, cluster)
    design = Design(np.full(4, 17.0), np.zeros(4, dtype=np.intp), np.arange(4), nested=False)
    found = estimate(np.full(4, 0.25), of, design, Interval.T_SIZES)
    runs = of.mean(axis=1).var(ddof=1) / 4
    words = of.mean(axis=0).var(ddof=1) / 60
    residual = of - of.mean(axis=1, keepdims=True) - of.mean(axis=0) + of.mean()
    interaction = (residual**2).sum() / (3 * 59) / (4 * 60)
    assert found.errors[RUNS] == pytest.approx((np.sqrt(runs), 3))
    assert found.errors[WORDS] == pytest.approx((np.sqrt(words), 59))
    assert found.errors[BOTH][0] ** 2 == pytest.approx(runs + words - interaction)


def test_without_a_second_run_the_interval_is_over_words_alone():
    difference, cluster = crossed(4)
    found = estimate(np.ones(1), contributions(difference[:1], cluster), None, Interval.NONE)
    assert found.over == WORDS
    assert np.isnan(found.limits(BOTH, 0.95)).all()
    low, high = found.limits(WORDS, 0.95)
    assert low < found.value < high


@given(
    value=st.floats(-0.01, 0.5), error=st.floats(0, 0.1), delta=st.floats(-0.005, 0.005), rows=st.integers(50, 10_000)
)
def test_limits_of_a_mean_hold_it_and_end_at_what_nothing_would_get(value, error, delta, rows):
    low, high = Estimate(value, {WORDS: (error, 9.0)}, Nothing(delta, rows)).limits(WORDS, 0.95)
    assert low <= value <= high
    assert low >= min(value, delta)


def test_limits_of_a_large_mean_are_those_of_students_t():
    errors = {WORDS: (0.001, 9.0)}
    plain, of_root = Estimate(0.1, errors), Estimate(0.1, errors, Nothing(-1 / 20_000, 10_000))
    assert of_root.limits(WORDS, 0.95) == pytest.approx(plain.limits(WORDS, 0.95), rel=0.002)


def test_limits_over_words_and_runs_are_no_closer_than_a_share_of_those_of_far_runs():
    """One size, two runs: Student's t with one degree of freedom."""
    rng = np.random.default_rng(4)
    of = rng.normal(0.02, 0.09, size=40) + np.asarray([[0.0], [0.03]])
    size = np.zeros(2, dtype=np.intp)
    design = Design(np.zeros(2), size, np.arange(2), nested=False)
    found = estimate(np.full(2, 0.5), of, design, Interval.T_SIZES)
    least = 0.7 * student.ppf(0.975, 1) * 0.03 / 2
    low, high = found.limits(BOTH, 0.95)
    assert (found.value - low, high - found.value) == pytest.approx((least, least))


def test_limits_of_a_small_mean_are_those_of_the_coefficient_of_the_regression():
    """Of standardised times and predictor, delta is half of the squared coefficient."""
    rng = np.random.default_rng(11)
    n = 20_000
    surprisal = rng.standard_normal(n)
    surprisal = (surprisal - surprisal.mean()) / surprisal.std()
    time = 0.02 * surprisal + rng.standard_normal(n)
    full, without = OLS(time, add_constant(surprisal)).fit(), OLS(time, np.ones(n)).fit()
    likelihoods = [
        norm.logpdf(fit.resid, scale=np.sqrt(fit.ssr / n)) for fit in (full, without)
    ]  # fmt: skip
    of_rows = contributions((likelihoods[0] - likelihoods[1])[None], np.arange(n))
    nothing = Nothing.of(1, n, None)
    limits = estimate(np.ones(1), of_rows, None, Interval.NONE, nothing).limits(WORDS, 0.95)
    expected = (full.conf_int()[1] / np.sqrt(full.ssr / n)) ** 2 / 2 + nothing.delta
    assert limits == pytest.approx(expected, rel=0.03)
    assert without.llf < full.llf  # and the means are those of the whole regressions
    assert of_rows.mean() == pytest.approx((full.llf - without.llf) / n)


def test_a_curve_that_turns_is_told_from_one_that_rises():
    cell = SimulatedReading(RISES, run_sd=0.01)
    for r, shown in ((RISES, False), (RISES[::-1], False), (TURNS, True)):
        of = dataclasses.replace(cell, r=r)
        difference, _ = of.draw(np.random.default_rng(1))
        found = turn(contributions(difference, of.clusters), of.design, over_sizes=True)
        assert found is not None
        assert found.shown == shown
        if shown:
            assert found.at == 19  # the third of five sizes
            assert found.before.value > 0 > found.after.value


def test_too_few_sizes_have_no_test():
    cell = SimulatedReading((0.3, 0.6))
    difference, _ = cell.draw(np.random.default_rng(1))
    assert turn(contributions(difference, cell.clusters), cell.design, over_sizes=True) is None


def test_checkpoints_of_one_training_have_no_interval_over_runs_and_no_test():
    cell = SimulatedReading(TURNS)
    difference, _ = cell.draw(np.random.default_rng(1))
    design = dataclasses.replace(cell.design, trajectory=True)
    of = contributions(difference, cell.clusters)
    assert slope(of, design, over_sizes=True).over == WORDS
    assert turn(of, design, over_sizes=True) is None


def test_the_gain_of_simulated_times_is_what_regressions_find():
    cell = SimulatedReading((0.5, 0.8), seeds=2, texts=40, sentences=20, run_sd=0)
    difference, truths = cell.draw(np.random.default_rng(2))
    assert difference.mean(axis=1) == pytest.approx(truths, abs=0.012)


def test_simulated_regressions_are_those_of_the_analysis():
    rng = np.random.default_rng(1)
    x, outcome, fold = (
        np.column_stack([np.ones(300), rng.normal(size=(300, 3))]),
        rng.normal(size=300),
        np.arange(300) % 7,
    )
    assert held_out_at_once(outcome, x, fold) == pytest.approx(held_out(outcome, x, fold), abs=1e-10)
