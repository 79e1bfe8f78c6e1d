"""The amount of text at which the curve of a unit crosses its threshold, with confidence sets over runs.

A unit is acquired from the size on from which its expected accuracy stays at or above the threshold; between two sizes
of the study the curve is a line over log2(words). The threshold is the accuracy of an untrained model, or chance if
that is higher or none was scored, and a criterion on top (analysis.acquisition_margin); it counts as known.

The confidence set holds each x at which a test does not reject that the curve is at its threshold there (as Fieller
1954 for a line): its ends are where the pointwise band leaves the threshold. So it covers the truth as often as the
band covers the curve at one x, also where the crossing lies before the smallest size or beyond the largest, which a
percentile bootstrap of a crossing cannot.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.acquisition.spread import Spread
from analysis.curves.designs import Design
from analysis.curves.fit import onset_baseline
from analysis.curves.groups import GroupFit
from analysis.curves.intervals import no_interval
from analysis.curves.variance import Array
from analysis.study.judgements import Judgements

BEFORE, ESTIMATED, NOT_YET = "before the smallest size", "estimated", "not by the largest size"
STEPS = 4  # points of a band from one size to the next
ONE_RUN = "one run of each size: no limits"
SIZE_COLUMNS = [
    "group", "level", "name", "phenomenon", "paradigms", "n_pairs", "threshold", "baseline", "words", "low", "high",
    "low_new_pairs", "high_new_pairs", "status", "rank", "rank_low", "rank_high", "from_words", "to_words", "runs",
    "sizes", "note",
]  # fmt: skip


@dataclass(frozen=True)
class Crossings:
    """log2(words) from which U units are acquired: -inf before the smallest size, inf not by the largest one.

    x, low, high, and low_new_pairs, high_new_pairs (for new pairs of the same paradigms too): each (U,); limits are NaN
    where there are none, and `note` says why.
    """

    x: Array
    low: Array
    high: Array
    low_new_pairs: Array
    high_new_pairs: Array
    note: str = ""


def thresholds(fit: GroupFit, baselines: Judgements | None, margin: float) -> tuple[Array, str]:
    """Return the (U,) accuracies from which units count as acquired, and what they are based on."""
    level, baseline = onset_baseline(fit.group, fit.units, baselines)
    return level + margin, baseline


def size_means(design: Design) -> tuple[Array, Array]:
    """Return the (S,) mean x of each size and the (S, R) weights of the mean over its runs."""
    weights = np.stack([np.where(design.size == s, design.weights, 0) for s in range(len(design.counts))])
    return weights @ design.x, weights


def crossing(x: Array, curve: Array, threshold: Array) -> Array:
    """Return the (U,) x from which (S, U) curves through ascending (S,) x stay at or above their thresholds (U,).

    -inf where they do so from the first x on, inf where they are below at the last.

    >>> crossing(np.arange(3.0), np.asarray([[0.5], [0.6], [0.8]]), np.asarray([0.7]))
    array([1.5])
    """
    above = curve - threshold
    reached = np.logical_and.accumulate((above >= 0)[::-1], axis=0)[::-1]
    first = reached.argmax(axis=0)
    units = np.arange(curve.shape[1])
    before = np.maximum(first - 1, 0)
    under, over = above[before, units], above[first, units]
    share = np.where(over > under, -under / np.where(over > under, over - under, 1), 0.0)
    found = x[before] + share * (x[first] - x[before])
    return np.where(reached.any(axis=0), np.where(first == 0, -np.inf, found), np.inf)


@dataclass(frozen=True)
class Bands:
    """The curve of a group at G points x (G,) from its smallest to its largest size, with errors over runs.

    curve, error, degrees and those for new pairs too: each (G, U); errors are NaN between sizes of one run.
    """

    x: Array
    curve: Array
    error: Array
    degrees: Array
    error_new_pairs: Array
    degrees_new_pairs: Array

    @classmethod
    def of(cls, fit: GroupFit, spread: Spread) -> "Bands":
        at, means = size_means(fit.design)
        place = np.linspace(0, len(at) - 1, STEPS * (len(at) - 1) + 1)
        left = np.minimum(place.astype(np.intp), len(at) - 2)
        share = (place - left)[:, None]
        weights = (1 - share) * means[left] + share * means[left + 1]
        x = (1 - share[:, 0]) * at[left] + share[:, 0] * at[left + 1]
        columns = [spread.errors(c) for c in weights]
        pairs = [(np.full(len(e), np.nan),) * 2 for e, _ in columns]
        if fit.units.rows_are_pairs:
            pairs = [spread.errors(c, new_pairs=True) for c in weights]
        stacked = [np.stack(of) for part in (columns, pairs) for of in zip(*part, strict=True)]
        return cls(x, weights @ fit.y, *stacked)

    def limits(self, threshold: Array, confidence: float, new_pairs: bool = False) -> tuple[Array, Array]:
        """Return the (U,) ends of the confidence sets of crossings."""
        error, degrees = (self.error_new_pairs, self.degrees_new_pairs) if new_pairs else (self.error, self.degrees)
        half = student.ppf(0.5 + confidence / 2, degrees) * error
        half = np.where(np.isfinite(half), half, 2.0)  # nothing is known there: wider than the scale
        low = _first_reached(self.x, self.curve + half, threshold)
        return low, crossing(self.x, self.curve - half, threshold)


def _first_reached(x: Array, curve: Array, threshold: Array) -> Array:
    """Return the (U,) first x at which curves reach their thresholds; -inf at the first point, inf nowhere."""
    reached = np.logical_or.accumulate(curve >= threshold, axis=0)
    # From there on, a curve that has reached its threshold counts as above it.
    return crossing(x, np.where(reached, np.maximum(curve, threshold), curve), threshold)


def crossings(fit: GroupFit, threshold: Array, confidence: float, bands: Bands | None) -> Crossings:
    """Return where a group's units cross their (U,) thresholds; `bands`: None where runs give no limits."""
    at, means = size_means(fit.design)
    x = crossing(at, means @ fit.y, threshold)
    none = np.full(len(x), np.nan)
    reason = unlimited(fit.design)
    if reason or bands is None:
        return Crossings(x, none, none, none, none, reason)
    low, high = bands.limits(threshold, confidence)
    pairs = (none, none)
    if fit.units.rows_are_pairs:
        pairs = bands.limits(threshold, confidence, new_pairs=True)
        pairs = np.minimum(pairs[0], low), np.maximum(pairs[1], high)
    return Crossings(x, low, high, *pairs)


def unlimited(design: Design) -> str:
    """Return why the crossings of a design have no limits; "" where they have some."""
    if (design.counts < 2).all() and not design.trajectory:
        return ONE_RUN
    return no_interval(design, "t")


def bands_of(fit: GroupFit) -> Bands | None:
    """Return the bands of a group; None with one size, or where runs give no limits."""
    if len(fit.design.counts) < 2 or unlimited(fit.design):
        return None
    return Bands.of(fit, Spread(fit))


def size_table(
    fit: GroupFit, threshold: Array, baseline: str, config: CurvesConfig, bands: Bands | None
) -> pd.DataFrame:
    """Return SIZE_COLUMNS but the ranks: words at which units are acquired and their limits, NaN where censored.

    A low of 0: the limit lies before the smallest size; a high of inf: beyond the largest.
    """
    found = crossings(fit, threshold, config.confidence, bands)
    design = fit.design
    at, _ = size_means(design)
    ends = {"from_words": round(2 ** at[0]), "to_words": round(2 ** at[-1])}
    status = np.where(np.isneginf(found.x), BEFORE, np.where(np.isposinf(found.x), NOT_YET, ESTIMATED))
    limits = {name: np.exp2(getattr(found, name)) for name in ("low", "high", "low_new_pairs", "high_new_pairs")}
    return fit.units.table.assign(
        group=fit.group, threshold=threshold, baseline=baseline, **limits, status=status, **ends,
        words=np.where(np.isfinite(found.x), np.exp2(found.x), np.nan), runs=len(design.x), sizes=len(design.counts),
        note=found.note,
    )  # fmt: skip
