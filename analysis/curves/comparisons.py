"""Differences between the slopes of curves, with tests corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from analysis.curves.lines import NO_SPREAD, ONE_SIZE, ROUNDING, Array, add_intervals, estimate
from analysis.curves.units import Curve, join_notes, partners, read_curves
from pairscale.errors import InputError

COMPARISON_COLUMNS = [
    "benchmark", "method", "curve", "other", "level", "name", "difference", "se", "df", "low", "high", "p", "p_holm",
    "paired", "runs", "sizes", "equivalent", "note",
]  # fmt: skip


def compare(accuracies: pd.DataFrame, margin: float | None = None, confidence: float = 0.95) -> pd.DataFrame:
    """Compare the slopes of every two curves, at the sizes that both have.

    Two curves are paired if more than half of the runs of the smaller one have a partner, which has the same size, seed
    and sample. A line is then fitted to the differences of complete pairs, with HC3 errors and Student's t with R - 2
    degrees of freedom (of nested samples: one difference per seed, with S - 1). Other curves are independent: variances
    are added, with Welch's (1947) degrees of freedom.

    Args:
        accuracies: table of `accuracies()`.
        margin: accuracy per doubling below which a difference does not matter to you. Without it, nothing is called
            equivalent.
        confidence: level of the intervals.

    Returns:
        One row per benchmark, method, pair of curves (curve, other), level and name. difference: slope of `curve` less
        slope of `other`, accuracy per doubling; se, df, low, high; p: of the test that it is 0; p_holm: corrected (Holm
        1979) for all phenomena, or all paradigms, of this pair of curves, and overall for all pairs of curves; paired;
        runs: pairs of runs if paired, else runs of both curves; sizes; equivalent: whether the interval lies within the
        margin, missing without a margin or an interval; note: why there is no interval, and which runs are left out.

    Raises:
        InputError: as `fit_curves` does, and for a margin that is not above 0.
    """
    parts = [
        _compared(curve, other).assign(family=number)
        for number, curves in enumerate(read_curves(accuracies))
        for curve, other in combinations(curves, 2)
    ]
    if not parts:
        return pd.DataFrame(columns=COMPARISON_COLUMNS)
    table = pd.concat(parts, ignore_index=True)
    one_pair = (table["curve"] + "\0" + table["other"]).where(table["level"] != "overall", "")
    return add_tests(table, ["family", "level", one_pair], margin, confidence)[COMPARISON_COLUMNS]


def add_tests(
    table: pd.DataFrame, family: list[str | pd.Series], margin: float | None, confidence: float
) -> pd.DataFrame:
    """Add interval, p, p_holm (corrected within each `family`) and equivalent to differences with se and df."""
    if margin is not None and not margin > 0:
        raise InputError(f"margin={margin}: must be above 0. It is a difference that doesn't matter, such as 0.005.")
    table = add_intervals(table, "difference", confidence)
    table["p_holm"] = table.groupby(family, dropna=False)["p"].transform(lambda p: holm(p.to_numpy()))
    inside = (table["low"] > -(margin or 0)) & (table["high"] < (margin or 0))
    table["equivalent"] = inside.astype("boolean").where(table["low"].notna() & (margin is not None))
    return table


def holm(p: Array) -> Array:
    """Correct the p values of one family by Holm's step-down method (1979); NaN are no tests and stay."""
    p = np.asarray(p, dtype=np.float64)
    corrected = np.full(len(p), np.nan)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaN are sorted last
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected


def _compared(curve: Curve, other: Curve) -> pd.DataFrame:
    """Return the rows of two curves, without tests."""
    sides = at_common_sizes(curve, other)
    paired = partners(sides, ["size", "seed", "sample"])
    is_paired = len(paired[0].runs) > min(len(of.runs) for of in sides) / 2
    left_out = note_left_out([curve, other], paired if is_paired else sides)
    table = contrast(paired if is_paired else sides, [1, -1], is_paired, slope=True)
    about = {key: " / ".join(dict.fromkeys([curve.about[key], other.about[key]])) for key in ("benchmark", "method")}
    return table.assign(
        **about, curve=curve.about["curve"], other=other.about["curve"], note=join_notes(table["note"], left_out)
    )


def at_common_sizes(first: Curve, second: Curve) -> list[Curve]:
    """Return the runs of two curves at the sizes that both have; sizes in different units have nothing in common."""
    common = set(first.runs["size"]) & set(second.runs["size"])
    return [of.at(common if first.about["unit"] == second.about["unit"] else ()) for of in (first, second)]


def note_left_out(curves: Sequence[Curve], used: Sequence[Curve]) -> str:
    """Say how many runs of some curves are not compared, or return ""."""
    left = sum(len(of.runs) for of in curves) - sum(len(of.runs) for of in used)
    return f"Runs left out because the other curves have none that fits: {left}." if left else ""


def contrast(curves: Sequence[Curve], weights: Sequence[float], paired: bool, slope: bool) -> pd.DataFrame:
    """Return the weighted sum of curves' mean accuracies, or of their slopes, a row per unit.

    Args:
        curves: If paired, the runs in one row of all curves belong together, and a line is fitted to their weighted
            sums. Otherwise two curves, the second of which is subtracted from the first.
        weights: One per curve.
        paired: Whether runs are paired.
        slope: Whether slopes are compared, else means over the sizes.

    Returns:
        The units with the columns difference, se, df, paired, runs (rows of runs if paired), sizes and note.
    """
    units, runs, sizes = curves[0].units, len(curves[0].runs), curves[0].runs["size"].nunique()
    if not runs:
        unknown = dict.fromkeys(["difference", "se", "df"], np.nan)
        return units.assign(**unknown, paired=False, runs=0, sizes=0, note="The curves have no size in common.")
    if paired:
        lines = [max(curves, key=lambda of: of.is_nested).line]
        result = estimate(lines[0], np.tensordot(weights, [of.accuracy for of in curves], 1), slope)
    else:
        runs, lines = sum(len(of.runs) for of in curves), [of.line for of in curves]
        first, second = (estimate(of.line, of.accuracy, slope) for of in curves)
        result = first.less(second)
    variance = np.where(result.variance > ROUNDING, result.variance, np.nan)
    notes = {of.note for of in lines} - ({""} if slope else {"", ONE_SIZE})
    flat = np.isnan(variance) & (len(notes) == 0)
    return units.assign(
        difference=result.value, se=np.sqrt(variance), df=np.where(np.isnan(variance), np.nan, result.degrees),
        paired=paired, runs=runs, sizes=sizes,
        note=join_notes(*sorted(notes), np.where(flat, NO_SPREAD, ""), units["left_out"]),
    )  # fmt: skip
