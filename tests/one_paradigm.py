"""Judgements of one paradigm by runs of given accuracies, for tests of the curves."""

import numpy as np
import pandas as pd

from analysis.curves.fit import ALL_PAIRS
from analysis.study.judgements import Judgements


def judged_from(accuracies, sizes, seeds, pairs=100, nested=False, rng=None):
    """Judgements of one paradigm whose runs have the accuracies given (exactly, or drawn when there is an rng)."""
    runs = pd.DataFrame(
        {
            "group": "lstm", "size": [str(size) for size in sizes], "seed": seeds,
            "sample_words": sizes, "nested": nested,
        }
    )  # fmt: skip
    runs.index = [f"run{i}" for i in range(len(runs))]
    table = pd.DataFrame({"phenomenon": "p", "paradigm": "p_1", "pair_id": [f"{i:04d}" for i in range(pairs)]})
    accuracies = np.asarray(accuracies)[:, None]
    at = rng.uniform(size=(len(sizes), pairs)) if rng else (np.arange(pairs) + 0.5) / pairs
    outcome = (at < accuracies).astype(np.float32)
    flat = np.zeros(outcome.shape, dtype=bool)
    return Judgements("b", "lp", "d", {}, runs, table, outcome, flat, flat, pd.DataFrame())


def overall(curves, pairs=ALL_PAIRS):
    table = curves.slopes
    return table[(table["level"] == "overall") & (table["pairs"] == pairs)].iloc[0]
