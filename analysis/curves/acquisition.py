"""In which order phenomena are acquired, and whether two models agree on it, from the long table.

Start at words_to_threshold: the amount of text from which on a unit's accuracy stays above its baseline.
compare_orders correlates these amounts between curves.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import ndtri

from analysis.curves.lines import Array, t_quantile
from analysis.curves.units import unit_accuracies
from pairscale.errors import InputError

CHANCE = 0.5
BEFORE, ESTIMATED, NOT_YET = "before the smallest size", "estimated", "not by the largest size"  # column `status`
LEAST_UNITS = 6  # of a correlation with an interval
UNTRAINED = "untrained"
COLUMNS = [
    "benchmark", "method", "curve", "unit", "level", "name", "paradigms", "baseline", "threshold", "words", "low",
    "high", "status", "rank", "smallest_words", "largest_words", "runs", "sizes", "note",
]  # fmt: skip
ORDER_COLUMNS = [
    "benchmark", "method", "level", "curve", "other", "units", "reached", "spearman", "low", "high", "note",
]  # fmt: skip


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
    units["kind"] = units.pop("baseline").fillna("")
    units["size"] = units["size"].fillna(units["sample_words"].astype(str))  # others' sizes may have no names
    of_model = ["benchmark", "method", "model", "level", "name"]
    controls = units[units["kind"] != ""]
    largest = controls.groupby([*of_model, "kind"])["sample_words"].transform("max")
    controls = controls[(controls["kind"] == UNTRAINED) | (controls["sample_words"] == largest).fillna(False)]
    means = controls.groupby([*of_model, "kind"])["accuracy"].mean().groupby(of_model).max().rename("baseline")
    trained = units[(units["kind"] == "") & units["sample_words"].notna()].merge(means, "left", on=of_model)
    keys = ["benchmark", "method", "curve", "level", "name"]
    rows = [
        {**dict(zip(keys, key, strict=True)), **_crossing(of, margin, confidence)}
        for key, of in trained.groupby(keys, sort=False)
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["rank"] = table.assign(order=_order(table)).groupby(keys[:4])["order"].rank("min")
    return table


def _crossing(runs: pd.DataFrame, margin: float, confidence: float) -> dict[str, object]:
    """Return the columns of one unit of a curve, from its runs."""
    by_size = runs.groupby("size")
    means = by_size.agg(words=("sample_words", "mean"), accuracy=("accuracy", "mean"), runs=("run", "size"))
    means = means.sort_values("words", kind="stable").astype(np.float64)
    x, accuracy = np.log2(means["words"].to_numpy()), means["accuracy"].to_numpy()
    baseline = max(CHANCE, np.nan_to_num(runs["baseline"].max()))
    at = _crosses(x, accuracy, baseline + margin, last=True)
    free = len(runs) - len(means)
    degrees = min(runs["seed"].nunique() - 1, free) if runs["nested"].any() else free
    low, high, note = np.nan, np.nan, "One run of each size: no interval."
    if degrees > 0:
        squares = ((runs["accuracy"] - by_size["accuracy"].transform("mean")) ** 2).sum()
        half = t_quantile(confidence, degrees) * np.sqrt(squares / free / means["runs"].to_numpy())
        low = 2 ** _crosses(x, accuracy + half, baseline + margin, last=False)
        high, note = 2 ** _crosses(x, accuracy - half, baseline + margin, last=True), ""
    return {
        "unit": runs["unit"].iloc[0], "paradigms": runs["paradigms"].iloc[0], "baseline": baseline,
        "threshold": baseline + margin, "words": 2**at if np.isfinite(at) else np.nan, "low": low, "high": high,
        "status": ESTIMATED if np.isfinite(at) else BEFORE if at < 0 else NOT_YET,
        "smallest_words": means["words"].iloc[0], "largest_words": means["words"].iloc[-1], "runs": len(runs),
        "sizes": len(means), "note": note,
    }  # fmt: skip


def _crosses(x: Array, curve: Array, threshold: float, last: bool) -> float:
    """Return the x at which a curve through points (x, curve) reaches a threshold for the first or the last time.

    Minus infinity if that is before the first point, infinity if it is beyond the last.

    >>> _crosses(np.arange(3.0), np.asarray([0.5, 0.6, 0.8]), 0.7, last=True)
    1.5
    """
    above = curve >= threshold
    left = max(np.flatnonzero(~above), default=-1) if last else min(np.flatnonzero(above), default=len(x)) - 1
    if left in (-1, len(x) - 1):
        return -np.inf if left < 0 else np.inf
    share = (threshold - curve[left]) / (curve[left + 1] - curve[left])
    return float(x[left] + share * (x[left + 1] - x[left]))


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
    words = words[words["level"] != "overall"]
    for (benchmark, method, level), of in words.groupby(["benchmark", "method", "level"], sort=False):
        for curve, other in combinations(of["curve"].unique(), 2):
            both = of[of["curve"] == curve].merge(of[of["curve"] == other], on="name", suffixes=("", "_other"))
            first, second = _order(both), _order(both, "_other")
            reached = int((np.isfinite(first) & np.isfinite(second)).sum())
            about = [benchmark, method, level, curve, other, len(both), reached]
            rows.append([*about, *_correlation(first.rank(), second.rank(), confidence)])
    return pd.DataFrame(rows, columns=ORDER_COLUMNS)


def _order(words: pd.DataFrame, suffix: str = "") -> pd.Series:
    """Return amounts of text that can be ranked: -inf before the smallest size, inf beyond the largest."""
    amounts, status = words[f"words{suffix}"], words[f"status{suffix}"]
    return amounts.where(status == ESTIMATED, status.map({BEFORE: -np.inf, NOT_YET: np.inf})).astype(np.float64)


def _correlation(first: pd.Series, second: pd.Series, confidence: float) -> tuple[float, float, float, str]:
    """Return Spearman's correlation of two orders, the ends of its interval, and a note where there is none."""
    if len(first) < 3 or first.nunique() < 2 or second.nunique() < 2:
        note = "All units of a curve share a rank, or fewer than three units: no correlation."
        return np.nan, np.nan, np.nan, note
    from scipy.stats import spearmanr  # here, because it takes a second to import

    r = float(spearmanr(first, second).statistic)
    if len(first) < LEAST_UNITS or abs(r) > 1 - 1e-9:
        why = f"{len(first)} units" if len(first) < LEAST_UNITS else "The orders are equal or opposite"
        return r, np.nan, np.nan, f"{why}: no interval."
    half = ndtri(0.5 + confidence / 2) * np.sqrt((1 + r**2 / 2) / (len(first) - 3))
    return r, float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half)), ""
