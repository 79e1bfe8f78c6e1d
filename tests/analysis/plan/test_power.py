"""Power against statsmodels' t tests and hand-computed variances of slopes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import nct
from scipy.stats import t as student
from statsmodels.stats.power import TTestPower

from analysis.curves.intervals import Interval, judgement_floor
from analysis.plan.config import ABLATION, DIFFERENCE, PEOPLE, SLOPE
from analysis.plan.grids import Grid
from analysis.plan.power import Spread, floor_of, power_of
from analysis.simulation.spreads import Trend
from tests.support.simulated_judgements import SimulatedJudgements

RUNS = Spread(Trend(0.02**2), judgement=1e-9, paradigms=10, accuracy=0.7, x=17.0)


def grid(sizes=4, seeds=3, pairs=100, **values):
    return Grid(tuple(f"{s}k" for s in range(sizes)), tuple(17.0 + np.arange(sizes)), seeds, pairs, **values)


def power(goal, effect, of, spread=RUNS, interval="auto"):
    return power_of(goal, effect, of, spread, interval, 0.95)


def test_variance_of_a_slope_by_hand():
    # Four sizes, three runs each: the sum of squared deviations of log2(words) is 3 x (2.25 + .25 + .25 + 2.25) = 15.
    assert power(SLOPE, 0.01, grid()).error == pytest.approx(0.02 / np.sqrt(15))
    judged = replace(RUNS, judgement=0.2)  # 1,000 pairs: .0002 for each run
    assert power(SLOPE, 0.01, grid(), judged).error == pytest.approx(np.sqrt((0.0004 + 0.0002) / 15))
    falls = replace(RUNS, total=Trend(0.0004, 17.0, -np.log(4)))  # variances .0004, .0001, ... a run
    by_hand = (2.25 * 0.0004 + 0.25 * 0.0001 + 0.25 * 0.000025 + 2.25 * 0.00000625) / 3 / 5**2
    assert power(SLOPE, 0.01, grid(), falls).error == pytest.approx(np.sqrt(by_hand))


@pytest.mark.parametrize("effect", [0.005, 0.02, 0.05])
def test_one_size_has_the_power_of_a_t_test_of_pairs(effect):
    paired = TTestPower().power(effect / 0.02, nobs=5, alpha=0.05)
    assert power(ABLATION, effect, grid(1, 5)).power == pytest.approx(paired, abs=0.01)


def test_residuals_from_a_line_have_the_power_of_a_regression():
    """One run a size, HC2: at equal spread its degrees of freedom are below those of the regression's t test."""
    found = power(SLOPE, 0.01, grid(8, 1))
    assert found.method == Interval.T_HC2
    error = 0.02 / np.sqrt(42)
    assert found.error == pytest.approx(error)
    quantiles = student.ppf(0.975, [3, 6])
    low, high = (1 - nct.cdf(q, df, 0.01 / error) for q, df in zip(quantiles, (3, 6), strict=True))
    assert low < found.power < high


def test_power_lies_between_those_of_fewest_and_most_degrees():
    found = power(SLOPE, 0.015, grid(4, 3))
    ratio = 0.015 / found.error
    low, high = (1 - nct.cdf(student.ppf(0.975, df), df, ratio) for df in (2, 8))
    assert low < found.power < high
    assert 2 <= found.degrees <= 8


def test_no_effect_is_found_in_five_percent_or_fewer():
    for goal in (SLOPE, DIFFERENCE, ABLATION):
        for of in (grid(4, 2), grid(4, 3), grid(4, 5)):
            assert power(goal, 1e-9, of).power < 0.06


def test_power_grows_with_sizes_seeds_pairs_and_effect():
    judged = replace(RUNS, judgement=0.2)
    base = power(SLOPE, 0.012, grid(4, 3), judged).power
    more = [grid(5, 3), grid(4, 4), grid(4, 3, pairs=1000)]
    assert all(power(SLOPE, 0.012, of, judged).power > base for of in more)
    assert power(SLOPE, 0.015, grid(4, 3), judged).power > base
    assert power(SLOPE, -0.012, grid(4, 3), judged).power == pytest.approx(base)


def test_chance_in_judgements_limits_what_can_be_found():
    """Without spread between runs the interval is no closer than the normal one of single judgements."""
    only = Spread(Trend(0.0), judgement=0.25, paradigms=1, accuracy=0.5, x=17.0)
    found = power(SLOPE, 0.03, grid(4, 5, 100), only)
    error = np.sqrt(0.25 / 100 / 25)
    assert found.error == pytest.approx(error)
    z = student.ppf(0.975, np.inf)
    assert found.power < student.sf(z - 0.03 / error, np.inf) + 1e-3


def test_the_upper_limit_of_a_pilots_variance():
    pilot = replace(RUNS, total=Trend(0.0004, 17.0, degrees=4.0), chance=0.0001)
    factor = 4 / 1.0636232  # the 10% quantile of chi2 with 4 degrees
    assert pilot.upper(0.9).run_variance(np.array([17.0]))[0] == pytest.approx(0.0004 * factor - 0.0001, rel=1e-5)
    assert power(SLOPE, 0.015, grid(), pilot.upper(0.9)).power < power(SLOPE, 0.015, grid(), pilot).power
    assert RUNS.upper(0.9) == RUNS


def test_nested_seeds_take_their_share_out_of_slopes():
    nested = grid(4, 5, nested=True)
    loose, close = (replace(RUNS, seed_share=share) for share in (0.0, 0.9))
    assert power(SLOPE, 0.01, nested, close, "t").error < power(SLOPE, 0.01, nested, loose, "t").error
    assert power(SLOPE, 0.01, nested, loose, "t").method == Interval.T_SEEDS


def test_designs_without_an_interval_have_no_power():
    none = power(SLOPE, 0.01, grid(2, 1))
    assert np.isnan(none.power)
    assert "two runs" in none.note
    assert np.isnan(power(ABLATION, 0.01, grid(1, 1)).power)


def test_words_to_people_are_known_better_with_more_seeds():
    spread = replace(RUNS, accuracy=0.6, gain=0.03, people=0.9, people_error=0.005)
    few, many = (power(PEOPLE, 2.0, grid(5, seeds), spread).power for seeds in (2, 10))
    assert 0 <= few < many <= 1
    assert power(PEOPLE, 100.0, grid(5, 10), spread).power == pytest.approx(1)
    # By the delta method: log2(words) has the error sqrt(V(level) + distance^2 V(slope)) / slope.
    exact = replace(spread, total=Trend(1e-8), people_error=0.01)
    half = 1.96 * 0.01 / 0.03
    assert power(PEOPLE, 2 ** (half * 0.8), grid(5, 10), exact).power < 0.01
    assert power(PEOPLE, 2 ** (half * 1.2), grid(5, 10), exact).power > 0.95


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_least_variance_is_that_of_the_analysis(seeds):
    """Near a ceiling, where the judgements that are added decide: 98 of 100 pairs right in each of four paradigms."""
    of = grid(seeds=seeds)
    units = SimulatedJudgements(seeds, 4, pairs=100).units
    outcome = np.tile(np.arange(400) % 100 >= 2, (4 * seeds, 1)).astype(float)
    expected = judgement_floor(outcome, of.design.contrast, of.design.size, units)[0]
    spread = Spread(Trend(0.0), judgement=0.0, paradigms=4, accuracy=0.98, x=17.0)
    assert floor_of(SLOPE, of, spread, of.design.contrast) == pytest.approx(expected)
    assert floor_of(DIFFERENCE, of, spread, of.design.contrast) == pytest.approx(2 * expected)
