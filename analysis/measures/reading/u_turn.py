"""A test for a U-turn: what surprisal adds rises up to some amount of text, and falls from there (Oh & Schuler 2023).

A parabola finds a peak in any curve that flattens (Simonsohn 2018), so the test is of two lines: for some break between
the smallest and the largest size, the line up to it rises and the line from it falls, both shown by one-sided tests at
5% over the number of breaks (Bonferroni). Under any curve that only rises, only falls or is flat, one of the two lines
of each break has a slope of the other sign or 0, so a U-turn is found by mistake in at most 5% of studies, as far as
intervals of slopes hold what they promise.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.curves.designs import Design
from analysis.curves.intervals import Interval, interval_method, no_interval
from analysis.curves.p_values import ALPHA
from analysis.curves.variance import Array
from analysis.measures.reading.delta import Estimate, estimate

MIN_RUNS = 3  # on either side of a break


@dataclass(frozen=True)
class Turn:
    """The break at which a U-turn shows most clearly, x of it, and the slopes up to it and from it."""

    at: float
    before: Estimate
    after: Estimate
    confidence: float  # of the two-sided limits that the one-sided tests correspond to
    breaks: int

    @property
    def shown(self) -> bool:
        return self.margin > 0

    @property
    def margin(self) -> float:
        """The distance from 0 of the nearer limit; above 0 where both slopes have their signs."""
        low, _ = self.before.limits(self.before.over, self.confidence)
        _, high = self.after.limits(self.after.over, self.confidence)
        return min(low, -high)


def slope(of_clusters: Array, design: Design, over_sizes: bool) -> Estimate:
    """Return the slope of (R, C) contributions to deltas on design.x, in which sizes weigh equally.

    Over perplexity (not `over_sizes`), which differs between the runs of a size, errors are those of residuals (HC3).
    """
    method, _ = interval_method(design, "t")
    if not over_sizes and method != Interval.NONE:
        method = Interval.T_HC3 if (design.counts > 1).any() else Interval.T_HC2
    return estimate(design.contrast, of_clusters, design, method)


def turn(of_clusters: Array, design: Design, over_sizes: bool) -> Turn | None:
    """Test (R, C) contributions to deltas for a U-turn over design.x; None where there are too few runs.

    Breaks are the means of x of sizes, between the smallest and the largest of them.
    """
    x = design.x
    means = np.sort([x[design.size == s].mean() for s in range(len(design.counts))])
    sides = [(float(at), (x <= at + 1e-9, x >= at - 1e-9)) for at in means[1:-1]]
    sides = [(at, both) for at, both in sides if all(_enough(design, side) for side in both)]
    confidence = 1 - 2 * ALPHA / max(1, len(sides))
    turns = []
    for at, both in sides:
        before, after = (slope(of_clusters[side], design.of(side), over_sizes) for side in both)
        turns.append(Turn(at, before, after, confidence, len(sides)))
    return max(turns, key=lambda one: one.margin, default=None)


def _enough(design: Design, side: npt.NDArray[np.bool_]) -> bool:
    return bool(side.sum() >= MIN_RUNS and not no_interval(design.of(side), "t"))
