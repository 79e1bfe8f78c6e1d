"""Differences between the slopes of curves, with tests corrected for their number."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from analysis.curves.lines import Array, Estimate, Line, add_intervals
from analysis.curves.units import Curve, at_common_sizes, join_notes, partners, read_curves
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
    first, second = at_common_sizes(curve, other)
    rows = partners([first, second], ["size", "seed", "sample"])
    runs, sizes = len(first.x) + len(second.x), len(set(first.labels))
    paired, unknown, reason = False, np.full(len(curve.units), np.nan), ""
    notes = [f"Only sizes that both have are compared: {sizes}."] if {*curve.labels} != {*other.labels} else []
    if curve.unit != other.unit or sizes < 2:
        result, notes = Estimate(unknown, unknown, unknown), []
        reason = "The two curves have fewer than two sizes in common."
        if curve.unit != other.unit:
            reason = f"{curve.name} is measured in {curve.unit}, {other.name} in {other.unit}: no difference."
    elif len(rows[0]) > min(len(first.x), len(second.x)) / 2:
        if left := runs - 2 * len(rows[0]):
            notes.append(f"Runs without a partner are left out: {left}.")
        paired, runs = True, len(rows[0])
        first, second = first.of(rows[0]), second.of(rows[1])
        line = (second if first.seeds is None else first).line  # both have the same sizes and seeds
        result, reason = _slopes(line, first.accuracy - second.accuracy), line.note
    else:
        result = _slopes(first.line, first.accuracy).less(_slopes(second.line, second.accuracy))
        reason = " ".join(f"{of.name}: {of.line.note}" for of in (first, second) if of.line.note)
    flat = np.isnan(result.variance) & (reason == "")
    exact = np.where(flat, "All runs of a curve lie on its line: no interval.", "")
    return curve.units.assign(
        benchmark=curve.benchmark, method=" / ".join(dict.fromkeys([curve.method, other.method])), curve=curve.name,
        other=other.name, **result.columns(), paired=paired, runs=runs, sizes=sizes,
        note=join_notes(exact, reason, *notes, curve.units["left_out"]),
    )  # fmt: skip


def _slopes(line: Line, y: Array) -> Estimate:
    return Estimate(line.slope @ y, line.variances(y)[1], np.full(y.shape[1], line.degrees))
