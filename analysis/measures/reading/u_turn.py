"""A test for a U-turn: what surprisal adds rises up to some amount of text, and falls from there (Oh & Schuler 2023).

The test is of two lines (analysis.curves.two_lines): for some break between the smallest and the largest size, the line
up to it rises and the line from it falls, both shown by one-sided tests at 5% over the number of breaks.
"""

from dataclasses import dataclass

from analysis.curves.designs import Design
from analysis.curves.intervals import Interval, interval_method, no_interval
from analysis.curves.p_values import ALPHA
from analysis.curves.two_lines import breaks
from analysis.curves.variance import Array
from analysis.measures.reading.delta import Estimate, estimate


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

    Each size has its own spread from two runs on: HC3 takes how the curve bends for spread, and gives intervals several
    times as wide, of which nearly all hold the slope (tests/bench/reading_coverage.py). Over perplexity (not
    `over_sizes`), which differs between the runs of a size, errors are those of residuals (HC3).
    """
    method, _ = interval_method(design, "t")
    if over_sizes and method == Interval.T_BENT:
        method = Interval.T_SIZES
    elif not over_sizes and method != Interval.NONE:
        method = Interval.T_HC3 if (design.counts > 1).any() else Interval.T_HC2
    return estimate(design.contrast, of_clusters, design, method)


def turn(of_clusters: Array, design: Design, over_sizes: bool) -> Turn | None:
    """Test (R, C) contributions to deltas for a U-turn over design.x; None where there are too few runs.

    Breaks are the means of x of sizes, between the smallest and the largest of them.
    """
    sides = breaks(design, lambda part: not no_interval(part, "t"))
    confidence = 1 - 2 * ALPHA / max(1, len(sides))
    turns = []
    for of in sides:
        before, after = (slope(of_clusters[side], design.of(side), over_sizes) for side in (of.before, of.after))
        turns.append(Turn(of.at, before, after, confidence, len(sides)))
    return max(turns, key=lambda one: one.margin, default=None)
