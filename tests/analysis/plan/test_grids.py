"""Grids that are compared, their costs, and those that no cheaper one beats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.curves.intervals import Interval, interval_method
from analysis.plan.grids import Cost, Grid, candidates, cost_of, pareto

SIZES = {"125k": 17.0, "250k": 18.0, "500k": 19.0, "1M": 20.0, "2M": 21.0}


def test_grids_are_all_sizes_up_to_each_and_every_other_one():
    grids = [*candidates(SIZES, [2, 3], [100], 3, nested=False)]
    assert {grid.sizes for grid in grids} == {
        ("125k", "250k", "500k"), ("125k", "250k", "500k", "1M"), tuple(SIZES), ("125k", "500k", "2M"),
    }  # fmt: skip
    assert {(grid.seeds, grid.pairs) for grid in grids} == {(2, 100), (3, 100)}
    single = [*candidates(SIZES, [5], [100], 1, nested=False)]
    assert ("125k",) in {grid.sizes for grid in single}


def test_the_design_of_a_grid_is_that_of_its_runs():
    grid = Grid(("125k", "500k"), (17.0, 19.0), 3, 100)
    assert grid.design.x.tolist() == [17, 17, 17, 19, 19, 19]
    assert grid.design.seed.tolist() == [0, 1, 2, 0, 1, 2]
    assert interval_method(grid.design, "auto")[0] == Interval.T_SIZES
    assert (grid.named, Grid(("1M",), (20.0,), 2, 10).named) == ("125k to 500k (2)", "1M")


def test_cost_is_the_sum_over_sizes_and_seeds():
    costs = {"125k": Cost(2, 1e6, 0.5), "500k": Cost(2, 4e6, float("nan"))}
    total = cost_of(Grid(("125k", "500k"), (17.0, 19.0), 3, 100), costs)
    assert (total.runs, total.words) == (12, 15e6)
    assert np.isnan(total.hours)


def test_pareto_by_hand():
    assert pareto([3.0, 1.0, 2.0, 2.0], [0.9, 0.5, 0.4, 0.6]) == [1, 3, 0]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=20))
def test_no_point_beats_one_of_the_front(points):
    costs, powers = [float(c) for c, _ in points], [float(p) for _, p in points]
    front = pareto(costs, powers)
    assert max(powers) == powers[front[-1]]
    for i in front:
        assert not any(c <= costs[i] and p > powers[i] for c, p in points)
        assert not any(c < costs[i] and p >= powers[i] for c, p in points)
    assert costs[front[0]] == pytest.approx(min(costs))
