"""How often intervals held the truth in simulated studies, of designs like a study's (tests/bench/coverage.py)."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.designs import design_of
from analysis.intervals import OVERLAP_LIMIT

FILE = Path(__file__).parent / "results" / "coverage.csv"
DESIGN = ["design", "runs", "samples", "pairs"]  # columns that name a design: runs of each size, from the smallest


def counts_text(counts: Iterable[int]) -> str:
    """Runs of each size, from the smallest: "5,5,3"."""
    return ",".join(str(int(count)) for count in counts)


def coverage_for(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of coverage.csv of intervals in use, for designs with as many runs at each size as some group of `runs`.

    `runs`: rows of Study.runs. Samples must be nested, overlap by more than OVERLAP_LIMIT, or be independent, as there.
    No rows where nothing like this study was simulated.
    """
    with (files("analysis") / "results" / "coverage.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, dtype={"runs": str})
    designs = [design_of(of) for _, of in runs.groupby("group", sort=False)]
    wanted = set()
    for design in designs:
        overlaps = design.overlap is not None and bool((design.overlap > OVERLAP_LIMIT).any())
        samples = "nested" if design.nested else "overlapping" if overlaps else "independent"
        wanted.add((counts_text(design.counts), samples))
    known = np.array([key in wanted for key in zip(table["runs"], table["samples"], strict=True)], dtype=bool)
    kept: pd.DataFrame = table[known & table["used"] & (table["none"] < 1)]
    return kept.reset_index(drop=True)
