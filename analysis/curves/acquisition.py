"""In which order phenomena are acquired, and whether two models agree on it, from the long table.

Start at words_to_threshold: the amount of text from which on a unit's accuracy stays above its baseline.
compare_orders correlates these amounts between curves.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm, spearmanr
from scipy.stats import t as student

from analysis.curves.units import unit_accuracies
from pairscale.errors import InputError

Array = npt.NDArray[np.float64]

CHANCE = 0.5
BEFORE, ESTIMATED, NOT_YET = "before the smallest size", "estimated", "not by the largest size"  # column `status`
LEAST_UNITS = 6  # of a correlation with an interval
UNTRAINED = "untrained"
COLUMNS = [
    "benchmark", "method", "curve", "unit", "level", "name", "paradigms", "baseline", "threshold", "words", "low",
    "high", "status", "rank", "smallest_words", "largest_words", "runs", "sizes", "note",
]  # fmt: skip
ORDER_COLUMNS = [
    "benchmark",
    "method",
    "level",
    "curve",
    "other",
    "units",
    "reached",
    "spearman",
    "low",
    "high",
    "note",
]


def words_to_threshold(accuracies: pd.DataFrame, margin: float = 0.1, confidence: float = 0.95) -> pd.DataFrame:
    """Estimate the amount of training text at which each unit is acquired.

    A unit is acquired at the smallest amount of text from which on its mean accuracy stays at or above a threshold,
    which is its baseline plus `margin`. The baseline is chance (.5), or the mean accuracy of the model's untrained
    runs, or of its runs on shuffled text of the largest size, whichever is highest. Between two sizes the means are
    joined by a line over log2(sample_words).

    The interval contains each amount of text at which the confidence interval of the mean accuracy contains the
    threshold. The variance between runs is pooled over sizes (Student's t, R - sizes degrees of freedom; seeds - 1
    for nested samples), and the baseline counts as known.

    Args:
        accuracies: Long table of `accuracies()`, with its baselines.
        margin: Accuracy above the baseline from which a unit counts as acquired.
        confidence: Level of the intervals.

    Returns:
        One row per benchmark, method, curve and unit (level, name), with the columns COLUMNS. words, low, high: in the
        unit of the curve (column `unit`). words is missing where the threshold is not crossed between the smallest and
        the largest size; `status` says on which side. low is 0 where it lies before the smallest size, high is
        infinite where it lies beyond the largest. rank: 1 is acquired first, within benchmark, method, curve and
        level; units outside of the sizes share a rank. note: why there is no interval.

    Raises:
        InputError: The margin does not lie between 0 and .5.
    """
    if not 0 < margin <= 0.5:
        raise InputError(f"margin={margin}: must be above 0 and at most 0.5. It is a difference of accuracy, like 0.1.")
    units = unit_accuracies(accuracies)
    units["baseline"] = units["baseline"].fillna("")
    units["size"] = units["size"].fillna(units["sample_words"].astype(str))  # others' sizes may have no names
    trained = units[(units["baseline"] == "") & units["sample_words"].notna()]
    baselines = units[units["baseline"] != ""]
    rows = []
    for (benchmark, method, curve), of in trained.groupby(["benchmark", "method", "curve"], sort=False):
        known = baselines[(baselines["benchmark"] == benchmark) & (baselines["method"] == method)]
        of_units = dict(list(known[known["model"].isin(of["model"])].groupby(["level", "name"])))
        for (level, name), unit in of.groupby(["level", "name"], sort=False):
            baseline = _baseline(of_units.get((level, name)))
            about = {"benchmark": benchmark, "method": method, "curve": curve, "level": level, "name": name}
            rows.append({**about, "baseline": baseline, **_crossing_of(unit, baseline + margin, confidence)})
    table = pd.DataFrame(rows, columns=COLUMNS)
    order = _order(table)
    table["rank"] = order.groupby([table[key] for key in ("benchmark", "method", "curve", "level")]).rank("min")
    return table


def compare_orders(words: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Correlate the orders in which two curves acquire the same units.

    Spearman's correlation of the amounts of text; units that a curve does not acquire within its sizes share a rank.
    The interval (Bonett and Wright 2000) is about other units like these, not about other runs: noise between runs
    lowers a correlation.

    Args:
        words: Table of `words_to_threshold`.
        confidence: Level of the intervals.

    Returns:
        One row per benchmark, method, level (phenomenon, paradigm) and pair of curves, with the columns ORDER_COLUMNS.
        units: how many both have; reached: how many of these both acquire within their sizes.
    """
    rows = []
    words = words[words["level"].isin(["phenomenon", "paradigm"])]
    for keys, of in words.groupby(["benchmark", "method", "level"], sort=False):
        by_curve = dict(list(of.groupby("curve", sort=False)))
        for curve, other in combinations(by_curve, 2):
            both = by_curve[curve].merge(by_curve[other], on="name", suffixes=("", "_other"))
            first, second = _order(both), _order(both, "_other")
            about = dict(zip(("benchmark", "method", "level"), keys, strict=True))
            reached = int((np.isfinite(first) & np.isfinite(second)).sum())
            correlation = _correlation(first.rank(), second.rank(), confidence)
            rows.append(
                {**about, "curve": curve, "other": other, "units": len(both), "reached": reached, **correlation}
            )
    return pd.DataFrame(rows, columns=ORDER_COLUMNS)


def _order(words: pd.DataFrame, suffix: str = "") -> pd.Series:
    """Return amounts of text that can be ranked: -inf before the smallest size, inf beyond the largest."""
    amounts, status = words[f"words{suffix}"], words[f"status{suffix}"]
    return amounts.where(status == ESTIMATED, status.map({BEFORE: -np.inf, NOT_YET: np.inf})).astype(np.float64)


def _baseline(rows: pd.DataFrame | None) -> float:
    """Return the highest of chance and the mean accuracies of untrained models and of models of shuffled text."""
    if rows is None:
        return CHANCE
    levels = [CHANCE]
    for kind, of in rows.groupby("baseline"):
        largest = of if kind == UNTRAINED else of[of["sample_words"] == of["sample_words"].max()]
        levels.append(float(largest["accuracy"].mean()))
    return max(levels)


def _crossing_of(runs: pd.DataFrame, threshold: float, confidence: float) -> dict[str, object]:
    """Return threshold, words, low, high, status and what they rest on, of the runs of a curve in one unit."""
    _, size = np.unique(runs["size"].to_numpy(dtype=str), return_inverse=True)
    counts, accuracy = np.bincount(size), runs["accuracy"].to_numpy(dtype=np.float64)
    words, means = (np.bincount(size, of) / counts for of in (runs["sample_words"].to_numpy(np.float64), accuracy))
    squares, order = ((accuracy - means[size]) ** 2).sum(), np.argsort(words)
    words, means, counts = words[order], means[order], counts[order]
    x = np.log2(words)
    at = _stays_above(x, means, threshold)
    free = len(runs) - len(words)
    degrees = min(runs["seed"].nunique() - 1, free) if bool(runs["nested"].any()) else free
    low, high, note = np.nan, np.nan, "One run of each size: no interval."
    if degrees > 0:
        half = student.ppf(0.5 + confidence / 2, degrees) * np.sqrt(squares / free / counts)
        low, high, note = 2 ** _reaches(x, means + half, threshold), 2 ** _stays_above(x, means - half, threshold), ""
    return {
        "unit": runs["unit"].iloc[0], "paradigms": runs["paradigms"].iloc[0], "threshold": threshold,
        "words": 2**at if np.isfinite(at) else np.nan, "low": low, "high": high,
        "status": ESTIMATED if np.isfinite(at) else BEFORE if at < 0 else NOT_YET,
        "smallest_words": words[0], "largest_words": words[-1], "runs": len(runs), "sizes": len(words),
        "note": note,
    }  # fmt: skip


def _stays_above(x: Array, curve: Array, threshold: float) -> float:
    """Return the x from which a curve through points (x, curve) stays at or above a threshold.

    Minus infinity if it does so from the first point on, infinity if it is below at the last.

    >>> float(_stays_above(np.arange(3.0), np.asarray([0.5, 0.6, 0.8]), 0.7))
    1.5
    """
    below = np.flatnonzero(curve < threshold)
    if not len(below):
        return -np.inf
    last = below[-1]
    return np.inf if last == len(x) - 1 else _between(x, curve, int(last), threshold)


def _reaches(x: Array, curve: Array, threshold: float) -> float:
    """Return the first x at which a curve reaches a threshold, infinite as for `_stays_above`."""
    above = np.flatnonzero(curve >= threshold)
    if not len(above):
        return np.inf
    return -np.inf if above[0] == 0 else _between(x, curve, int(above[0]) - 1, threshold)


def _between(x: Array, curve: Array, left: int, threshold: float) -> float:
    share = (threshold - curve[left]) / (curve[left + 1] - curve[left])
    return float(x[left] + share * (x[left + 1] - x[left]))


def _correlation(first: pd.Series, second: pd.Series, confidence: float) -> dict[str, object]:
    """Return Spearman's correlation of two orders with its interval, and a note where there is none."""
    unknown = {"spearman": np.nan, "low": np.nan, "high": np.nan}
    if len(first) < 3 or first.nunique() < 2 or second.nunique() < 2:
        return {**unknown, "note": "All units of a curve share a rank, or fewer than three units: no correlation."}
    r = float(spearmanr(first, second).statistic)
    if len(first) < LEAST_UNITS or abs(r) > 1 - 1e-9:
        why = f"{len(first)} units" if len(first) < LEAST_UNITS else "The orders are equal or opposite"
        return {**unknown, "spearman": r, "note": f"{why}: no interval."}
    half = norm.ppf(0.5 + confidence / 2) * np.sqrt((1 + r**2 / 2) / (len(first) - 3))
    low, high = np.tanh(np.arctanh(r) - half), np.tanh(np.arctanh(r) + half)
    return {"spearman": r, "low": float(low), "high": float(high), "note": ""}
