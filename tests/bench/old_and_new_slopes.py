"""Slopes of the committed studies under the old intervals and under HC3 with Student's t, side by side.

    python tests/bench/old_and_new_slopes.py    writes analysis/results/old_and_new_slopes.csv

One row per study, slope (other is empty) or difference of slopes, and unit: estimate, low and high, each old and new;
p_old and p_new (of differences, corrected by Holm); width_ratio (new over old); changed (whether the interval of a
slope, or the corrected p value of a difference, says something else about 0); reason (of another estimate or
conclusion). The old numbers are in slopes.csv and slope-differences.csv of each study.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.curves.comparisons import compare
from analysis.curves.fit import fit_curves
from pairscale.tables import write_csv
from tests.support.committed_results import committed_accuracies

RESULTS = Path(__file__).parents[2] / "analysis" / "results"
STUDIES = ("blimp_gpu", "blimp_long", "blimp_cpu", "blimp_families_small", "blimp_small", "ablation_small")
KEYS = ["curve", "other", "level", "name"]
NUMBERS = ["estimate", "low", "high"]


def old_numbers(study: str) -> pd.DataFrame:
    """Return KEYS, NUMBERS, p, method and old_note of the committed slopes and differences."""
    slopes = pd.read_csv(RESULTS / study / "slopes.csv").assign(other="", p=np.nan)
    differences = pd.read_csv(RESULTS / study / "slope-differences.csv")
    columns = [*KEYS, *NUMBERS, "p", "method", "old_note"]
    slopes = slopes.rename(columns={"group": "curve", "slope": "estimate", "note": "old_note"})[columns]
    named = {"group": "curve", "difference": "estimate", "note": "old_note"}
    differences = differences.drop(columns="p").rename(columns=named | {"p_holm": "p"})[columns]
    return pd.concat([slopes, differences], ignore_index=True)


def new_numbers(study: str) -> pd.DataFrame:
    """Return KEYS, NUMBERS, p, uneven (whether sizes have unequal numbers of runs) and note by the new functions."""
    accuracies = committed_accuracies(study)
    slopes = fit_curves(accuracies).assign(other="").drop(columns="p").rename(columns={"slope": "estimate"})
    differences = compare(accuracies).drop(columns="p").rename(columns={"difference": "estimate", "p_holm": "p"})
    table = pd.concat([slopes.assign(p=np.nan), differences], ignore_index=True)
    runs = accuracies.drop_duplicates("run").groupby(["curve", "size"]).size().groupby("curve").nunique()
    uneven = table[["curve", "other"]].isin(list(runs.index[runs > 1])).any(axis=1)
    return table.assign(uneven=uneven)[[*KEYS, *NUMBERS, "p", "uneven", "note"]]


def side_by_side(study: str) -> pd.DataFrame:
    """Return the rows of the table about one study."""
    both = old_numbers(study).merge(new_numbers(study), on=KEYS, suffixes=("_old", "_new"), validate="one_to_one")
    width_old, width_new = (both[f"high_{age}"] - both[f"low_{age}"] for age in ("old", "new"))
    says = [_conclusion(both, age) for age in ("old", "new")]
    both = both.assign(study=study, width_ratio=width_new / width_old, changed=says[0] != says[1])
    both["curves"] = both["curve"].nunique()
    both["reason"] = [_reason(row) for row in both.to_dict("records")]
    numbers = [f"{name}_{age}" for name in (*NUMBERS, "p") for age in ("old", "new")]
    return both[["study", *KEYS, *numbers, "width_ratio", "changed", "reason", "note"]]


def _conclusion(both: pd.DataFrame, age: str) -> pd.Series:
    low, high, p = (both[f"{name}_{age}"] for name in ("low", "high", "p"))
    other_than_0 = ((low > 0) | (high < 0)).where(both["other"] == "", p < 0.05)
    known = low.notna().where(both["other"] == "", p.notna())
    return other_than_0.astype(object).where(known, "no interval")


def _reason(row: dict) -> str:
    reasons = []
    if abs(row["estimate_new"] - row["estimate_old"]) > 1e-9:
        reasons.append("each run counts the same, not each size" if row["uneven"] else "not explained")
    if row["changed"] and np.isnan(row["low_new"]):
        reasons.append("all runs of a curve lie on its line, so HC3 gives no interval")
    elif row["changed"]:
        how = "wider" if row["width_ratio"] > 1 else "narrower"
        reasons.append(f"HC3 with t(R - 2), {how}, in place of {row['method']}")
        if "widened" in str(row["old_note"]):
            reasons.append("text that samples share no longer widens the interval")
        if row["other"] and row["level"] == "phenomenon" and row["curves"] > 2:
            reasons.append("Holm for one pair of curves, not for all pairs")
    return "; ".join(reasons)


def main() -> None:
    table = pd.concat([side_by_side(study) for study in STUDIES], ignore_index=True)
    numbers = table.select_dtypes("number").columns
    table[numbers] = table[numbers].map(lambda value: float(f"{value:.12g}"))
    write_csv(RESULTS / "old_and_new_slopes.csv", table)
    table["of"] = np.where(table["other"] == "", "slope", "difference")
    gap = (table["estimate_new"] - table["estimate_old"]).abs()
    groups = table.assign(gap=gap, new=table["low_new"].notna()).groupby(["study", "of"], sort=False)
    summary = groups.agg(
        rows=("name", "size"), largest_gap=("gap", "max"), width_ratio=("width_ratio", "median"),
        intervals=("new", "sum"), changed=("changed", "sum"),
    )  # fmt: skip
    print(summary.to_string())
    print(table.loc[table["changed"], ["study", *KEYS, "reason"]].to_string())


if __name__ == "__main__":
    main()
