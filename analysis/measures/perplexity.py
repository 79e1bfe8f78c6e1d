"""Perplexity against training text."""

import numpy as np
import pandas as pd

from analysis.curves.designs import design_of, fit_lines
from analysis.curves.intervals import run_limits


def perplexity_curves(runs: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Fit log2(perplexity) on log2(sample_words) per group: doubling the text multiplies perplexity by 2^slope.

    `runs` (rows of Study.runs) has valid_ppl; limits are those of slopes with fewer than five runs a size. One row per
    group: factor (2^slope), low, high, r2, runs.
    """
    rows = []
    for group, part in runs[runs["valid_ppl"].notna()].groupby("group", sort=False):
        design = design_of(part)
        y = np.log2(part["valid_ppl"].to_numpy(dtype=np.float64))[:, None]
        line = fit_lines(design.x, y, design.weights)
        limits = run_limits(line, y, design, confidence)
        factors = [float(2 ** value[0]) for value in (line.slope, *limits)]
        rows.append((group, *factors, line.r2[0], len(part)))
    return pd.DataFrame(rows, columns=["group", "factor", "low", "high", "r2", "runs"])
