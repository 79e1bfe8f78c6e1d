"""Simulated judgements by runs of known accuracies, for tests of curves."""

import numpy as np
import pandas as pd

from analysis.curves.fit import ALL_PAIRS
from analysis.study.judgements import Judgements


def judged_from(accuracies, sizes, seeds, pairs=100, nested=False, rng=None):
    """Return judgements of one paradigm by runs with these accuracies: exactly, or on average with an `rng`."""
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


def judged_once(accuracies, sizes):
    """Return judgements of 1,000 pairs by one run of each size."""
    return judged_from(accuracies, sizes, [1] * len(sizes), pairs=1000)


def judged_groups(groups, pairs=200, rng=None, label="b"):
    """Return judgements of two paradigms; `groups`: name -> (accuracies, sizes) of its runs."""
    rng = rng or np.random.default_rng(0)
    runs = pd.DataFrame(
        [
            {"study": "simulated", "group": name, "size": str(size), "seed": i, "sample_words": size, "nested": False}
            for name, (accuracies, sizes) in groups.items()
            for i, size in enumerate(sizes)
        ]
    )
    runs.index = [f"{row.group}{i}" for i, row in enumerate(runs.itertuples())]
    names = [("p", "p_1"), ("q", "q_1")]
    table = pd.DataFrame(
        [(part, name, f"{i:04d}") for part, name in names for i in range(pairs)],
        columns=["phenomenon", "paradigm", "pair_id"],
    )
    expected = np.concatenate([accuracies for accuracies, _ in groups.values()])
    outcome = (rng.uniform(size=(len(runs), 2 * pairs)) < expected[:, None]).astype(np.float32)
    flat = np.zeros(outcome.shape, dtype=bool)
    return Judgements(label, "lp", "d", {}, runs, table, outcome, flat, flat, pd.DataFrame())
