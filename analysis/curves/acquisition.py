"""Estimate the order in which phenomena are acquired, by the text needed to exceed their baselines."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.curves.lines import Array, t_quantile
from analysis.curves.units import unit_accuracies
from pairscale.errors import InputError

CHANCE = 0.5
BEFORE, ESTIMATED, NOT_YET = "before the smallest size", "estimated", "not by the largest size"  # column `status`
UNTRAINED = "untrained"
COLUMNS = [
    "benchmark", "method", "curve", "unit", "level", "name", "paradigms", "baseline", "threshold", "words", "low",
    "high", "status", "rank", "smallest_words", "largest_words", "runs", "sizes", "note",
]  # fmt: skip


def words_to_threshold(
    accuracies: pd.DataFrame, margin: float = 0.1, confidence: float = 0.95, chance: float = CHANCE
) -> pd.DataFrame:
    """Estimate the amount of training text after which each unit is acquired.

    A unit is acquired when its mean accuracy reaches a threshold and stays there for all larger sizes. The threshold is
    a baseline plus `margin`. The baseline is the highest of chance, the mean accuracy of the model's untrained runs,
    and the mean accuracy of its largest runs on shuffled text. Between two sizes, mean accuracy follows a line over
    log2(sample_words).

    The interval contains each amount of text at which the confidence interval of the mean accuracy contains the
    threshold. The variance between runs is pooled over sizes. Student's t has runs - sizes degrees of freedom, or at
    most seeds - 1 for nested samples. The baseline is treated as exact.

    Args:
        accuracies: The long table of `accuracies()`, with baselines if there are any.
        margin: How far accuracy must stay above its baseline.
        confidence: The level of the intervals.
        chance: The accuracy of guessing.

    Returns:
        One row per benchmark, method, curve and unit (level, name), with COLUMNS. `words`, `low` and `high` are in the
        unit `unit`. `words` is missing if the threshold isn't crossed between the smallest and the largest size.
        `status` then says whether it is crossed before or after these sizes. `low` is 0 if it is below the smallest
        size, and `high` is infinite if it is above the largest. `rank` is 1 for the unit that is acquired first within
        a benchmark, method, curve and level. Units without `words` on the same side share a rank. `note` says why there
        is no interval.

    Raises:
        InputError: If the margin isn't above 0 and at most .5.
    """
    if not 0 < margin <= 0.5:
        raise InputError(f"margin={margin}: this gain in accuracy must be above 0 and at most 0.5. Try 0.1.")
    units = unit_accuracies(accuracies)
    units["kind"] = units.pop("baseline").fillna("")
    units["size"] = units["size"].fillna(units["sample_words"].astype(str))  # external sizes may have no names
    of_model = ["benchmark", "method", "model", "level", "name"]
    controls = units[units["kind"] != ""]
    largest = controls.groupby([*of_model, "kind"])["sample_words"].transform("max")
    controls = controls[(controls["kind"] == UNTRAINED) | (controls["sample_words"] == largest).fillna(False)]
    means = controls.groupby([*of_model, "kind"])["accuracy"].mean().groupby(of_model).max().rename("baseline")
    trained = units[(units["kind"] == "") & units["sample_words"].notna()].merge(means, "left", on=of_model)
    keys = ["benchmark", "method", "curve", "level", "name"]
    rows = [
        {**dict(zip(keys, key, strict=True)), **_crossing(of, margin, confidence, chance)}
        for key, of in trained.groupby(keys, sort=False)
    ]
    table = pd.DataFrame(rows, columns=[*COLUMNS, "at"])
    at = table["at"].astype(np.float64)
    table["words"] = 2 ** at.where(np.isfinite(at))
    table["status"] = np.select([at == -np.inf, at == np.inf], [BEFORE, NOT_YET], ESTIMATED)
    table["rank"] = table.groupby(keys[:4])["at"].rank("min")
    return table[COLUMNS]


def _crossing(runs: pd.DataFrame, margin: float, confidence: float, chance: float) -> dict[str, object]:
    """Return the columns of one unit of a curve from its runs, and `at`, which is log2 of the words or infinite."""
    by_size = runs.groupby("size")
    means = by_size.agg(words=("sample_words", "mean"), accuracy=("accuracy", "mean"), runs=("run", "size"))
    means = means.sort_values("words", kind="stable").astype(np.float64)
    x, accuracy = np.log2(means["words"].to_numpy()), means["accuracy"].to_numpy()
    baseline = max(chance, np.nan_to_num(runs["baseline"].max()))
    at = _crosses(x, accuracy, baseline + margin, last=True)
    free = len(runs) - len(means)
    degrees = min(runs["seed"].nunique() - 1, free) if runs["nested"].any() else free
    low, high, note = np.nan, np.nan, "There is one run per size, so there is no interval."
    if degrees > 0:
        squares = ((runs["accuracy"] - by_size["accuracy"].transform("mean")) ** 2).sum()
        half = t_quantile(confidence, degrees) * np.sqrt(squares / free / means["runs"].to_numpy())
        low = 2 ** _crosses(x, accuracy + half, baseline + margin, last=False)
        high, note = 2 ** _crosses(x, accuracy - half, baseline + margin, last=True), ""
    return {
        "unit": runs["unit"].iloc[0], "paradigms": runs["paradigms"].iloc[0], "baseline": baseline,
        "threshold": baseline + margin, "at": at, "low": low, "high": high,
        "smallest_words": means["words"].iloc[0], "largest_words": means["words"].iloc[-1], "runs": len(runs),
        "sizes": len(means), "note": note,
    }  # fmt: skip


def _crosses(x: Array, curve: Array, threshold: float, last: bool) -> float:
    """Return the x at which a curve through the points (x, curve) reaches a threshold for the first or the last time.

    The result is minus infinity before the first point, and infinity beyond the last.

    >>> _crosses(np.arange(3.0), np.asarray([0.5, 0.6, 0.8]), 0.7, last=True)
    1.5
    """
    above = curve >= threshold
    left = max(np.flatnonzero(~above), default=-1) if last else min(np.flatnonzero(above), default=len(x)) - 1
    if left in (-1, len(x) - 1):
        return -np.inf if left < 0 else np.inf
    share = (threshold - curve[left]) / (curve[left + 1] - curve[left])
    return float(x[left] + share * (x[left + 1] - x[left]))
