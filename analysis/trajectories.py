"""Trajectories: accuracy over the words seen while one run trains, repeats included; never in one fit with curves.

A curve's points are runs of their own, independent of each other; those of a trajectory are one run at several moments,
so no line is fitted here and nothing is said about slopes: each moment has its own interval over runs.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.intervals import t_limits
from corpora.errors import RunError

KEYS = ["group", "level", "name"]
POINTS = [*KEYS, "run", "words_seen", "accuracy"]


def trajectories(points: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Mean accuracy of the runs of a group at each moment.

    `points`: POINTS, one row per run, unit and moment; runs of a group were trained on samples of one size, so a group
    names the size too. Returns group, level, name, words_seen, runs, accuracy, low, high (t intervals over runs, NaN
    for one run). Runs that ended earlier are missing at later moments, and `runs` says how many are there. Raises
    RunError where a run has two accuracies at one moment, or where moments are taken for sizes: a column sample_words
    of more than one value within a group.
    """
    if points.duplicated([*KEYS, "run", "words_seen"]).any():
        run = points.loc[points.duplicated([*KEYS, "run", "words_seen"]), "run"].iloc[0]
        raise RunError(f"{run}: two accuracies at one number of words seen")
    if "sample_words" in points:
        sizes = points.groupby("group")["sample_words"].nunique()
        if (sizes > 1).any():
            raise RunError(
                f"{sizes.idxmax()}: runs on samples of {sizes.max()} sizes in one trajectory; "
                "a group over words seen holds runs of one size"
            )
    grouped = points.groupby([*KEYS, "words_seen"], sort=False)["accuracy"]
    table = grouped.agg(runs="size", accuracy="mean", deviation="std").reset_index()
    runs = table["runs"].to_numpy(dtype=np.float64)
    error = table["deviation"].to_numpy(dtype=np.float64) / np.sqrt(runs)  # NaN for one run
    low, high = t_limits(table["accuracy"].to_numpy(dtype=np.float64), error, np.maximum(runs - 1, 1), confidence)
    table = table.assign(low=np.clip(low, 0, 1), high=np.clip(high, 0, 1)).drop(columns="deviation")
    return table.sort_values([*KEYS, "words_seen"], kind="stable", ignore_index=True)
