"""Shapes of curves over training text: rises, falls, U, inverted U, flat, or none that the runs can show.

A turn: two lines on either side of a break between sizes (analysis.curves.two_lines; Simonsohn 2018), both slopes
tested one-sided with Student's t, the larger p value counting; the smallest over breaks times their number, and times
two for the two directions (Bonferroni). Under any curve that only rises, only falls or is flat that is below 5% in at
most 5% of studies, for each unit. A trend: the slope over all sizes, tested two-sided. Both are corrected over the
units of a level by Holm's method. Flat: two one-sided tests that the slope lies within the margin of equivalence.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.acquisition.monotone import monotone
from analysis.curves.acquisition.sizes import size_means, unlimited
from analysis.curves.acquisition.smooths import Smooth
from analysis.curves.acquisition.spread import Spread
from analysis.curves.groups import GroupFit
from analysis.curves.p_values import ALPHA, equivalence, holm, two_sided
from analysis.curves.two_lines import breaks
from analysis.curves.variance import Array

RISES, FALLS, U, INVERTED, FLAT, OPEN = "rises", "falls", "U", "inverted U", "flat", "not shown"
SHAPES = (RISES, FALLS, U, INVERTED, FLAT, OPEN)
GAM_TURN = 0.01  # accuracy: a smooth that climbs and drops by it turns
SHAPE_COLUMNS = [
    "group", "level", "name", "phenomenon", "shape", "turn", "at_words", "before", "after", "p_turn", "p_turn_holm",
    "slope", "p_trend", "p_trend_holm", "p_flat", "p_flat_holm", "monotone_misfit", "gam_climb", "gam_drop", "breaks",
    "runs", "sizes", "note",
]  # fmt: skip
TOO_FEW = "too few sizes or runs for two lines: no test of a turn"


@dataclass(frozen=True)
class Turns:
    """The most likely turn of U units: its direction (U or INVERTED), x of the break, slopes up to and from it, p."""

    direction: Array
    at: Array
    before: Array
    after: Array
    p: Array
    breaks: int


def one_sided(estimate: Array, error: Array, degrees: Array) -> Array:
    """Return p values of Student's test that an estimate is not above 0; NaN where nothing varies."""
    return np.asarray(student.sf(estimate / np.where(error > 0, error, np.nan), degrees))


def turns(fit: GroupFit, spread: Spread) -> Turns | None:
    """Test each unit of a group for a turn; None where there are too few sizes or runs."""
    design = fit.design
    sides = [] if design.trajectory else breaks(design, lambda part: bool((part.counts > 1).any()))
    if not sides:
        return None
    rows = []
    for of in sides:
        slopes = []
        for side in (of.before, of.after):
            c = np.zeros(len(design.x))
            c[side] = design.of(side).contrast
            slopes.append((c @ fit.y, *spread.errors(c)))
        (before, *of_before), (after, *of_after) = slopes
        for direction, sign in ((U, -1), (INVERTED, 1)):
            p = np.maximum(one_sided(sign * before, *of_before), one_sided(-sign * after, *of_after))
            rows.append((direction, of.at, before, after, p))
    p = np.stack([row[4] for row in rows])
    best = np.where(np.isnan(p), np.inf, p).argmin(axis=0)
    units = np.arange(p.shape[1])
    direction, at = (np.asarray([row[i] for row in rows])[best] for i in (0, 1))
    before, after = (np.stack([row[i] for row in rows])[best, units] for i in (2, 3))
    return Turns(direction, at, before, after, np.minimum(1, p[best, units] * len(rows)), len(sides))


def shape_table(fit: GroupFit, smooth: Smooth | None, config: CurvesConfig) -> pd.DataFrame:
    """Return the shapes of a group's units: SHAPE_COLUMNS. `smooth`: the GAM drawn beside, if there is one."""
    design, count = fit.design, len(fit.units.table)
    none = np.full(count, np.nan)
    spread, reason = Spread(fit), unlimited(design)
    found = None if reason else turns(fit, spread)
    error, degrees = (none, none) if reason or len(design.counts) < 2 else spread.errors(design.contrast)
    table = fit.units.table.assign(
        group=fit.group, slope=fit.line.slope, p_trend=two_sided(fit.line.slope, error, degrees),
        p_flat=equivalence(fit.line.slope, error, degrees, config.equivalence_margin), p_turn=none, turn="",
        at_words=none, before=none, after=none, breaks=0, runs=len(design.x), sizes=len(design.counts), note=reason,
        monotone_misfit=monotone(size_means(design)[1] @ fit.y).misfit,
        gam_climb=none if smooth is None else smooth.climb, gam_drop=none if smooth is None else smooth.drop,
    )  # fmt: skip
    if found is not None:
        table = table.assign(
            p_turn=found.p, turn=found.direction, at_words=2**found.at, before=found.before, after=found.after,
            breaks=found.breaks,
        )  # fmt: skip
    elif not reason:
        table["note"] = TOO_FEW
    for name in ("p_turn", "p_trend", "p_flat"):
        table[f"{name}_holm"] = table.groupby("level")[name].transform(lambda p: holm(p.to_numpy()))
    return table.assign(shape=shapes_of(table))[SHAPE_COLUMNS]


def shapes_of(table: pd.DataFrame) -> Array:
    """Return the shape of each row, of p values corrected within its level."""
    turned = table["p_turn_holm"] < ALPHA
    trend = table["p_trend_holm"] < ALPHA
    choices = [turned, trend & (table["slope"] > 0), trend & (table["slope"] < 0), table["p_flat_holm"] < ALPHA]
    return np.select(choices, [table["turn"], RISES, FALLS, FLAT], OPEN)
