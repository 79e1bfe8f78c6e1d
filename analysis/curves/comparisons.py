"""Differences between the slopes of curves, with tests corrected for their number."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.curves.lines import ROUNDING, Array, Numbers, t_p_values
from analysis.curves.units import Curve, check_confidence, read_curves
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
    check_confidence(confidence)
    if margin is not None and not margin > 0:
        raise InputError(f"margin={margin}: must be above 0. It is a difference of slopes, such as 0.005 per doubling.")
    parts = [
        _compared(curve, other).assign(family=number)
        for number, curves in enumerate(read_curves(accuracies))
        for curve, other in combinations(curves, 2)
    ]
    if not parts:
        return pd.DataFrame(columns=COMPARISON_COLUMNS)
    table = pd.concat(parts, ignore_index=True)
    half = student.ppf(0.5 + confidence / 2, table["df"]) * table["se"]
    table = table.assign(low=table["difference"] - half, high=table["difference"] + half)
    table["p"] = t_p_values(table["difference"].to_numpy(), table["se"].to_numpy(), table["df"].to_numpy())
    one_pair = (table["curve"] + "\0" + table["other"]).where(table["level"] != "overall", "")
    table["p_holm"] = table.groupby(["family", "level", one_pair])["p"].transform(lambda p: holm(p.to_numpy()))
    table["equivalent"] = pd.array([pd.NA] * len(table), dtype="boolean")
    if margin is not None:
        table["equivalent"] = ((table["low"] > -margin) & (table["high"] < margin)).astype("boolean").where(
            table["low"].notna()
        )  # fmt: skip
    return table[COMPARISON_COLUMNS]


def holm(p: Array) -> Array:
    """Correct the p values of one family by Holm's step-down method (1979); NaN are no tests and stay."""
    p = np.asarray(p, dtype=np.float64)
    corrected = np.full(len(p), np.nan)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaN are sorted last
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected


class _Estimate(NamedTuple):
    """Differences with their variances and degrees of freedom, each (U,), and a note."""

    value: Array
    variance: Array
    degrees: Array
    note: str


def _compared(curve: Curve, other: Curve) -> pd.DataFrame:
    """Return the rows of two curves, without tests."""
    methods = " / ".join(dict.fromkeys([curve.method, other.method]))
    row = {"benchmark": curve.benchmark, "method": methods, "curve": curve.name, "other": other.name}
    common = set(curve.labels) & set(other.labels)
    first, second = (of.of(np.flatnonzero([label in common for label in of.labels])) for of in (curve, other))
    partners = _partners(first, second)
    runs, paired = [len(first.x), len(second.x)], len(partners[0]) > min(len(first.x), len(second.x)) / 2
    dropped = [len(set(of.labels) - common) for of in (curve, other)]
    notes = [f"Only sizes that both have are compared: {len(common)}."] if any(dropped) else []
    if curve.unit != other.unit or len(common) < 2:
        unknown = np.full(len(curve.units), np.nan)
        note = "The two curves have fewer than two sizes in common."
        if curve.unit != other.unit:
            note = f"{curve.name} is measured in {curve.unit}, {other.name} in {other.unit}: no difference."
        estimate, paired, notes = _Estimate(unknown, unknown, unknown, note), False, []
    elif paired:
        a, b = first.of(partners[0]), second.of(partners[1])
        estimate = _of_pairs(a, b)
        if left := sum(runs) - 2 * len(partners[0]):
            notes.append(f"Runs without a partner are left out: {left}.")
    else:
        estimate = _of_both(first, second)
    count = len(partners[0]) if paired else sum(runs)
    of_curves = " ".join(filter(None, [estimate.note, *notes]))
    known = ~np.isnan(estimate.variance)
    reasons = np.where(known | (estimate.note != ""), "", "All runs of a curve lie on its line: no interval.")
    sentences = [
        " ".join(filter(None, of))
        for of in zip(reasons, [of_curves] * len(known), curve.units["left_out"], strict=True)
    ]
    return curve.units.assign(
        **row, difference=estimate.value, se=np.sqrt(estimate.variance), df=np.where(known, estimate.degrees, np.nan),
        paired=paired, runs=count, sizes=len(common), note=sentences,
    )  # fmt: skip


def _partners(first: Curve, second: Curve) -> tuple[Numbers, Numbers]:
    """Return the row numbers of runs of both curves that have the same size, seed and sample."""
    keys = [
        pd.DataFrame({"size": of.labels, "seed": of.runs["seed"].to_numpy(), "sample": of.runs["sample"].to_numpy()})
        for of in (first, second)
    ]
    keys = [of.dropna().drop_duplicates().reset_index(names="row") for of in keys]
    both = keys[0].merge(keys[1], on=["size", "seed", "sample"])
    return both["row_x"].to_numpy(dtype=np.intp), both["row_y"].to_numpy(dtype=np.intp)


def _of_pairs(first: Curve, second: Curve) -> _Estimate:
    line = (first if first.nested else second).line  # both have the same sizes and seeds
    change = first.accuracy - second.accuracy
    degrees = np.full(change.shape[1], line.degrees)
    return _Estimate(line.slope @ change, line.variances(change)[1], degrees, line.note)


def _of_both(first: Curve, second: Curve) -> _Estimate:
    """Return the difference of two independent slopes, with Welch's degrees of freedom."""
    lines = [of.line for of in (first, second)]
    values = [line.slope @ of.accuracy for line, of in zip(lines, (first, second), strict=True)]
    a, b = (line.variances(of.accuracy)[1] for line, of in zip(lines, (first, second), strict=True))
    spread = a**2 / lines[0].degrees + b**2 / lines[1].degrees
    degrees = (a + b) ** 2 / np.where(spread > ROUNDING**2, spread, np.nan)
    notes = [f"{of.name}: {line.note}" for line, of in zip(lines, (first, second), strict=True) if line.note]
    return _Estimate(values[0] - values[1], a + b, degrees, " ".join(notes))
