"""Simulated studies of a planned grid: what they are simulated with, and how often they find an effect."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from analysis.config import KEEP, CurvesConfig
from analysis.plan.check import Check
from analysis.plan.config import ABLATION, DIFFERENCE, GOALS, PEOPLE, SLOPE
from analysis.plan.grids import Grid
from analysis.plan.power import Spread, power_of
from analysis.simulation.spreads import Trend, between_runs, judgement_squares

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
SPREAD = Spread(Trend(0.02**2), 0.12, 2, 0.6, 17.0, 0.02, people=0.9, people_error=0.01)
GRID = Grid(("125k", "250k", "500k"), (17.0, 18.0, 19.0), 3, 40)


def share(check, count=60):
    return np.mean([found for _, found in check.studies(np.random.default_rng(1), count)])


@pytest.mark.parametrize(("goal", "effect"), [(SLOPE, 0.1), (DIFFERENCE, 0.15), (ABLATION, -0.2), (PEOPLE, 1e4)])
def test_a_large_effect_is_always_found(goal, effect):
    sure = replace(SPREAD, total=Trend(0.005**2), judgement=0.02, gain=0.08 if goal == PEOPLE else 0.02)
    assert share(Check(goal, effect, replace(GRID, pairs=200), sure, CONFIG), 20) == 1


@pytest.mark.parametrize(("goal", "effect"), [(SLOPE, 0.019), (DIFFERENCE, 0.02), (PEOPLE, 1e30)])
def test_limits_that_a_report_leaves_out_find_nothing(goal, effect):
    """In some of the studies fewer than ten judgements are wrong at every size."""
    few = replace(SPREAD, total=Trend(1e-8), accuracy=0.97, judgement=0.02, gain=0.015)
    grid, keep = replace(GRID, pairs=20, seeds=5), replace(CONFIG, cautioned_limits=KEEP)
    found = [share(Check(goal, effect, grid, few, config), 40) for config in (CONFIG, keep)]
    assert 0 < found[0] <= found[1] - 0.05  # of the same studies


@pytest.mark.parametrize("goal", [SLOPE, DIFFERENCE, ABLATION])
def test_no_effect_is_seldom_found(goal):
    assert share(Check(goal, 1e-9, GRID, SPREAD, CONFIG), 100) <= 0.13


def test_simulated_runs_vary_as_planned():
    many = replace(GRID, seeds=3000)
    for goal, groups in ((SLOPE, 1), (DIFFERENCE, 2)):
        check = Check(goal, 0.02, many, SPREAD, CONFIG)
        rng = np.random.default_rng(2)
        pairs = check.groups[0].draw_pairs(rng)
        outcomes = [group.draw(rng, pairs)[0] for group in check.groups]
        assert len(outcomes) == groups
        outcome = outcomes[0] if groups == 1 else outcomes[0] - outcomes[1]
        judged = judgement_squares(outcome, many.design, check.units)[0]
        assert judged == pytest.approx(SPREAD.judgement, rel=0.1)
        variances, _ = between_runs(outcome.mean(axis=1, keepdims=True), many.design)
        assert np.sqrt(variances - judged / 80) == pytest.approx(np.full((3, 1), 0.02), rel=0.2)


def test_simulated_power_is_the_predicted_one():
    check = Check(SLOPE, 0.03, GRID, SPREAD, CONFIG)
    predicted = power_of(SLOPE, 0.03, GRID, SPREAD, "auto", 0.95).power
    assert share(check, 300) == pytest.approx(predicted, abs=3 * np.sqrt(0.25 / 300))


@pytest.mark.parametrize("goal", [DIFFERENCE, ABLATION])
def test_two_groups_judge_the_same_pairs_with_exactly_the_planned_accuracies(goal):
    """Judgements vary as those of pairs that are all alike at one accuracy, and as of others at the other one."""
    even = replace(SPREAD, accuracy=0.65, judgement=2 * 0.65 * 0.35, gain=0.0)
    check = Check(goal, 0.02, GRID, even, CONFIG)
    half = [0.01, 0.01, 0.01] if goal == ABLATION else [-0.01, 0, 0.01]
    expected = [np.add(0.65, half), np.subtract(0.65, half)]
    used = check.groups[0].pair_sd
    for group, of in zip(check.groups, expected, strict=True):
        drawn = ndtr(group.level[:, 0] / np.sqrt(1 + group.run_variance + used**2))
        assert drawn == pytest.approx(of, abs=1e-9)


def test_two_lines_near_the_end_of_the_scale_are_moved_together():
    check = Check(ABLATION, 0.06, GRID, replace(SPREAD, accuracy=0.96, gain=0.0), CONFIG)
    assert check.groups[0].expected[:, 0] == pytest.approx([0.98] * 3)
    assert check.groups[1].expected[:, 0] == pytest.approx([0.92] * 3)


def test_a_line_that_would_leave_the_scale_is_moved():
    steep = Check(SLOPE, 0.3, GRID, replace(SPREAD, accuracy=0.9), CONFIG)
    assert steep.groups[0].expected[:, 0] == pytest.approx([0.38, 0.68, 0.98])
    assert {*GOALS} == {SLOPE, DIFFERENCE, ABLATION, PEOPLE}
