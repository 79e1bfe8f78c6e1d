"""Compare the slopes of curves, with p values corrected for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from analysis.curves.lines import NO_SPREAD, ONE_SIZE, Array, add_intervals, estimate
from analysis.curves.units import Curve, join_notes, partners, read_curves
from pairscale.errors import InputError
from pairscale.sizes import plural

COMPARISON_COLUMNS = [
    "benchmark", "method", "curve", "other", "level", "name", "difference", "se", "df", "low", "high", "p", "p_holm",
    "paired", "runs", "sizes", "equivalent", "note",
]  # fmt: skip


def compare(accuracies: pd.DataFrame, margin: float | None = None, confidence: float = 0.95) -> pd.DataFrame:
    """Compare the slopes of each pair of curves, at the sizes that both curves have.

    Runs are partners if they have the same size, seed and sample. Two curves are paired if more than half of the runs
    of the smaller one have a partner. A line is then fitted to the differences between partners, with HC3 standard
    errors. The degrees of freedom of Student's t are R - 2 for R differences. Nested samples have one difference for
    each of S seeds, with S - 1 degrees of freedom. Curves that aren't paired are treated as independent. Their
    variances are added, with Welch's (1947) degrees of freedom.

    Args:
        accuracies: The long table of `accuracies()`.
        margin: A difference between slopes that is too small to matter to you.
        confidence: The level of the intervals.

    Returns:
        One row per benchmark, method, pair of curves, level and name, with COMPARISON_COLUMNS. The columns include:

        - difference: the slope of `curve` minus the slope of `other`, in accuracy per doubling of the training text
        - p_holm: the p value, corrected (Holm 1979) for all phenomena or paradigms of this pair of curves or, for
          overall, for all pairs of curves
        - runs: the number of pairs of runs, or of all runs if they aren't paired
        - equivalent: whether the interval is within the margin (missing if there is no interval or no margin)
        - note: why there is no interval, and how many runs can't be compared

    Raises:
        InputError: In the same cases as `fit_curves`, or if the margin isn't above 0.
    """
    parts = []
    for number, curves in enumerate(read_curves(accuracies)):
        for pair in combinations(curves, 2):
            used, paired, left_out = match_runs(pair, ["size", "seed", "sample"], 0.5)
            one, other = (curve.about for curve in pair)
            about = {key: " / ".join(dict.fromkeys([one[key], other[key]])) for key in ("benchmark", "method")}
            about |= {"curve": one["curve"], "other": other["curve"]}
            parts.append(contrast(used, [1, -1], paired, True, left_out).assign(**about, family=number))
    table = pd.concat(parts or [pd.DataFrame(columns=["family", *COMPARISON_COLUMNS])], ignore_index=True)
    one_pair = (table["curve"] + "\0" + table["other"]).where(table["level"] != "overall", "")
    return add_tests(table, ["family", "level", one_pair], margin, confidence)[COMPARISON_COLUMNS]


def add_tests(
    table: pd.DataFrame, family: list[str | pd.Series], margin: float | None, confidence: float
) -> pd.DataFrame:
    """Add low, high, p, p_holm (corrected per `family`) and equivalent to a table with difference, se and df."""
    if margin is not None and not margin > 0:
        raise InputError(f"margin={margin}: the margin must be above 0. Try 0.005.")
    table = add_intervals(table, "difference", confidence)
    table["p_holm"] = table.groupby(family, dropna=False)["p"].transform(lambda p: holm(p.to_numpy()))
    inside = (table["low"] > -(margin or 0)) & (table["high"] < (margin or 0))
    table["equivalent"] = inside.astype("boolean").where(table["low"].notna() & (margin is not None))
    return table


def holm(p: Array) -> Array:
    """Correct the p values of one family with Holm's step-down method (1979). NaNs don't count as tests."""
    p = np.asarray(p, dtype=np.float64)
    corrected = np.full(len(p), np.nan)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaNs are sorted last
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected


def match_runs(curves: Sequence[Curve], by: list[str], least: float) -> tuple[list[Curve], bool, str]:
    """Return the curves with only the runs to compare, whether runs are paired, and a note on the other runs.

    Only sizes that all curves have are compared, and sizes in different units never match. Runs are paired by the
    columns `by` if the share of the smallest curve's runs with partners is above `least`.
    """
    sizes = set.intersection(*(set(of.runs["size"]) for of in curves))
    sides = [of.at(sizes if of.about["unit"] == curves[0].about["unit"] else ()) for of in curves]
    paired = partners(sides, by)
    is_paired = len(paired[0].runs) > least * min(len(of.runs) for of in sides)
    used = paired if is_paired else sides
    left = sum(len(of.runs) for of in curves) - sum(len(of.runs) for of in used)
    note = f"{plural(left, 'run')} can't be compared, because other curves have no matching runs." if left else ""
    return used, is_paired, note


def contrast(curves: Sequence[Curve], weights: Sequence[float], paired: bool, slope: bool, note: str) -> pd.DataFrame:
    """Return the weighted sum of the curves' mean accuracies or slopes, with one row per unit.

    Args:
        curves: The curves. If they are paired, runs in the same row of all curves are partners, and a line is fitted to
            their weighted sums. Otherwise the curves are independent.
        weights: One weight per curve.
        paired: Whether runs are paired.
        slope: Whether to compare slopes instead of means over the sizes.
        note: A text to add to the notes.

    Returns:
        The units with the columns difference, se, df, paired, runs (the number of pairs of runs if paired), sizes and
        note.
    """
    units, runs = curves[0].units, [len(of.runs) for of in curves]
    if not all(runs):
        unknown = dict.fromkeys(["difference", "se", "df"], np.nan)
        return units.assign(**unknown, paired=False, runs=0, sizes=0, note="The curves have no size in common.")
    parts = [(of.line, weight * of.accuracy) for of, weight in zip(curves, weights, strict=True)]
    if paired:
        line = max(curves, key=lambda of: of.is_nested).line
        parts = [(line, np.sum([y for _, y in parts], axis=0))]
    value, variance, degrees = estimate(parts, slope)
    notes = {line.note for line, _ in parts} - ({""} if slope else {"", ONE_SIZE})
    flat = "" if notes else np.where(np.isnan(variance), NO_SPREAD, "")
    return units.assign(
        difference=value, se=np.sqrt(variance), df=degrees, paired=paired, runs=runs[0] if paired else sum(runs),
        sizes=curves[0].runs["size"].nunique(), note=join_notes(*sorted(notes), flat, units["left_out"], note),
    )  # fmt: skip
