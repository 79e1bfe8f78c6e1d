"""Coverage of the intervals in simulated studies of designs like a study's (tests/bench/coverage.py)."""

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.curves.designs import OVERLAP_LIMIT, design_of
from analysis.curves.intervals import Interval

FILE = Path(__file__).parents[1] / "results" / "coverage.csv"
MOST_WITHOUT = 0.9  # share of studies without limits, above which the others are too few, and too special, to tell
DESIGN = ["design", "runs", "samples", "pairs"]  # columns that name a design: runs of each size, from the smallest


def counts_text(counts: Iterable[int]) -> str:
    """Format runs of each size, from the smallest: "5,5,3"."""
    return ",".join(str(int(count)) for count in counts)


def coverage_for(runs: pd.DataFrame, slopes: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of coverage.csv for intervals in use and designs with the run counts of some group of `runs`.

    `runs`: rows of Study.runs; `slopes`: Curves.slopes of them. Interval and samples (nested, overlapping by more than
    OVERLAP_LIMIT, independent) are the group's. No rows where nothing like this study was simulated, and for groups
    without limits.
    """
    with (files("analysis") / "results" / "coverage.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, dtype={"runs": str})
    known = slopes[slopes["low"].notna()].drop_duplicates("group").set_index("group")
    methods = known["method"].map(lambda name: Interval(name).rule)
    studied = set()
    for group, of_group in runs[runs["group"].isin(known.index)].groupby("group", sort=False):
        design = design_of(of_group)
        overlaps = design.overlap is not None and bool((design.overlap > OVERLAP_LIMIT).any())
        samples = "nested" if design.nested else "overlapping" if overlaps else "independent"
        studied.add((counts_text(design.counts), samples, methods[group]))
    used = table["used"] & (table["none"] <= MOST_WITHOUT)
    keys = zip(table["runs"], table["samples"], table["interval"], strict=True)
    alike = used & (table["quantity"] == "slope") & np.array([key in studied for key in keys], dtype=bool)
    covered: pd.DataFrame = table[used & table["design"].isin(table.loc[alike, "design"])]
    return covered.reset_index(drop=True)
