"""Ranks of a group's slopes, with limits."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from analysis.curves.designs import Design
from analysis.curves.intervals import Interval, floored, hidden_variance, run_terms
from analysis.curves.p_values import holm, two_sided
from analysis.curves.variance import Array, Numbers


def rank_limits(method: Interval, design: Design, slope: Array, floor: Array, y: Array, confidence: float) -> Numbers:
    """Return the least and the greatest rank of each slope, (2, U), simultaneously; 1 is the steepest.

    Every two slopes are compared, paired by run (y (R, U), `floor` (U,) of slope_errors), and p values corrected by
    Holm's method over all pairs. A slope's least rank is 1 more than the number of slopes that are steeper by these
    tests; its greatest is the number of slopes less those that are shallower (Mogstad, Romano, Shaikh and Wilhelm 2024,
    section 3; Klein, Wright and Wieczorek 2020). With the probability `confidence` all ranks lie within their limits.
    """
    count = len(slope)
    first, second = np.array(list(combinations(range(count), 2)), dtype=np.intp).reshape(-1, 2).T
    difference, apart = slope[first] - slope[second], y[:, first] - y[:, second]
    terms = run_terms(method, design, design.contrast)
    degrees = terms.degrees(apart)
    variance = floored(terms.variance(apart), degrees, floor[first] + floor[second], confidence)
    variance = variance + hidden_variance(design, design.contrast, apart)
    significant = holm(two_sided(difference, np.sqrt(variance), degrees)) < 1 - confidence
    steeper, shallower = (np.zeros(count, dtype=np.intp) for _ in range(2))
    np.add.at(steeper, np.where(difference > 0, second, first)[significant], 1)
    np.add.at(shallower, np.where(difference > 0, first, second)[significant], 1)
    return np.stack([1 + steeper, count - shallower])
