"""Two lines on either side of a break, which show a turn where their slopes have opposite signs (Simonsohn 2018).

A parabola, and a smooth, find a peak in any curve that flattens. Under a curve that only rises, only falls or is flat
one of the two slopes of each break has the other sign or is 0, whatever the break: a test that needs both, each
one-sided at a level over the number of breaks (Bonferroni), finds a turn by mistake in no more studies than the level.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.curves.designs import Design

MIN_RUNS = 3  # on either side of a break


class Break(NamedTuple):
    """A break at an x: the runs (R,) up to it and from it, those of its own size on both sides."""

    at: float
    before: npt.NDArray[np.bool_]
    after: npt.NDArray[np.bool_]


def breaks(design: Design, known: Callable[[Design], bool]) -> list[Break]:
    """Return the breaks at the mean x of sizes between the smallest and the largest.

    known: True if a slope of a part of the design can be tested; breaks with a side that cannot be are left out, as are
    those with fewer than MIN_RUNS on a side.
    """
    x = design.x
    means = np.sort([x[design.size == s].mean() for s in range(len(design.counts))])
    found = [Break(float(at), x <= at + 1e-9, x >= at - 1e-9) for at in means[1:-1]]
    return [
        of for of in found if all(side.sum() >= MIN_RUNS and known(design.of(side)) for side in (of.before, of.after))
    ]
