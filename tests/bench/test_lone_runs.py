"""The multiples of the error that limits need where sizes have one run."""

import numpy as np
import pytest
from scipy.stats import t as student

from analysis.curves.designs import Design
from tests.bench.lone_runs import BENDS, needed


def test_three_runs_of_one_spread_on_a_line_need_students_quantile():
    """Their one residual is independent of the slope: the ratio has Student's distribution with one degree."""
    size = np.arange(3)
    design = Design(3.0 * size, size, np.zeros(3, dtype=np.intp), False)
    assert needed(design, BENDS["line"], np.ones(3), 200_000) == pytest.approx(student.ppf(0.975, 1), rel=0.02)


def test_a_bend_that_a_single_run_can_hide_needs_more():
    size = np.repeat(np.arange(4), (5, 5, 5, 1))
    design = Design(3.0 * size, size, np.concatenate([np.arange(5)] * 3 + [[0]]), False)
    deviation = np.where(size == 3, 3.0, 1.0)
    line, bent = (needed(design, BENDS[curve], deviation, 10_000) for curve in ("line", "bent"))
    assert bent > 1.5 * line
