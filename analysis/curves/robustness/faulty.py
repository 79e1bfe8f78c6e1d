"""What known faulty pairs change: accuracies and slopes of the same runs with them and without."""

import numpy as np
import pandas as pd

from analysis.curves.designs import design_of, fit_lines
from analysis.curves.groups import rows_of
from analysis.curves.units import paradigm_accuracies, units_of
from analysis.study.faulty import faulty_mask
from analysis.study.judgements import Judgements

FAULTY_COLUMNS = [
    "group", "level", "name", "phenomenon", "n_pairs", "faulty", "accuracy", "accuracy_without", "slope",
    "slope_without",
]  # fmt: skip


def faulty_changes(judged: Judgements) -> pd.DataFrame:
    """Return units with faulty pairs: FAULTY_COLUMNS; no rows where none is known.

    accuracy: at the group's largest size. The slope is NaN of one size. Differences are exact: both are of the same
    runs. A paradigm all of whose pairs are faulty has no accuracy without them, and is left out of the means.
    """
    mask = faulty_mask(judged)
    if not mask.any():
        return pd.DataFrame(columns=FAULTY_COLUMNS)
    rest = judged.select(~mask)
    units, others = units_of(judged.pairs), units_of(rest.pairs)
    counts = others.table.set_index(["level", "name"])["n_pairs"]
    parts = []
    for group in judged.runs["group"].unique():
        rows = rows_of(judged, group)
        design = design_of(judged.runs.iloc[rows])
        largest = design.size == design.size[design.x.argmax()]
        values = {}
        for part, of in ((judged, units), (rest, others)):
            y = paradigm_accuracies(part.outcome[rows], of.bounds) @ of.weights
            several = len(design.counts) > 1
            slope = fit_lines(design.x, y, design.weights).slope if several else np.full(y.shape[1], np.nan)
            values[id(of)] = of.table.assign(accuracy=y[largest].mean(axis=0), slope=slope)
        table = values[id(units)].merge(
            values[id(others)][["level", "name", "accuracy", "slope"]], on=["level", "name"], suffixes=("", "_without")
        )
        left = [counts.get((level, name), 0) for level, name in table[["level", "name"]].itertuples(index=False)]
        parts.append(table.assign(group=group, faulty=table["n_pairs"] - left))
    table = pd.concat(parts, ignore_index=True)
    return table.loc[table["faulty"] > 0, FAULTY_COLUMNS].reset_index(drop=True)
