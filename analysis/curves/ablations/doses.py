"""Accuracy over doses of a construction: the share of its sentences that the training text keeps."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.ablations.effects import estimate
from analysis.curves.designs import design_of, slope_weights
from analysis.curves.units import Units
from analysis.study.judgements import Judgements

LEAST_DOSES = 2  # between none of the construction and all of it
WHOLE = {"0", "1"}


def dose_response(
    judged: Judgements, groups: Mapping[str, str], units: Units, config: CurvesConfig
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return accuracy at each dose, the linear trend over doses, and the ids of runs that are left out.

    `groups`: dose -> group. Both tables have a row per unit: the first dose, share (as a number), accuracy, limits,
    runs; the second the columns of effects.Estimate, difference being the accuracy gained from dose 0 to dose 1 by the
    least-squares line over doses, paired by size and seed: each pair of runs gives a line, over whose slopes, sizes
    equally weighted, the t interval is. Runs of a size and seed that not all doses have are left out. Both tables are
    empty without LEAST_DOSES doses between 0 and 1, or without a size and seed that all have.
    """
    keys = {
        dose: {
            (str(size), int(seed)): row
            for row, (of, size, seed) in enumerate(judged.runs[["group", "size", "seed"]].itertuples(index=False))
            if of == group
        }
        for dose, group in groups.items()
    }
    shared = [key for key in next(iter(keys.values())) if all(key in of for of in keys.values())]
    left = [str(judged.runs.index[row]) for of in keys.values() for key, row in of.items() if key not in shared]
    if len(set(groups) - WHOLE) < LEAST_DOSES or not shared:
        return pd.DataFrame(), pd.DataFrame(), left
    rows = {dose: np.asarray([of[key] for key in shared], dtype=np.intp) for dose, of in keys.items()}
    shares = np.asarray([float(Fraction(dose)) for dose in groups])
    parts = []
    for (dose, of), share in zip(rows.items(), shares, strict=True):
        result = estimate(judged.outcome[of], design_of(judged.runs.iloc[of]), units)
        low, high, low_both, high_both = result.limits(config.confidence)
        limits = {"low": low, "high": high, "low_new_pairs": low_both, "high_new_pairs": high_both}
        limits = {name: np.clip(limit, 0, 1) for name, limit in limits.items()}
        about = {"group": groups[dose], "dose": dose, "share": share, "runs": len(of), "note": result.note}
        parts.append(units.table.assign(**about, accuracy=result.value, **limits))
    weights = slope_weights(shares, np.ones((1, len(shares))))[0]
    slopes = np.tensordot(weights, np.stack([judged.outcome[of].astype(np.float64) for of in rows.values()]), 1)
    design = design_of(judged.runs.iloc[next(iter(rows.values()))])
    trend = estimate(slopes, design, replace(units, differences=True))
    columns = trend.columns(config.confidence)
    table = units.table.assign(doses=len(shares), **columns, runs=len(shared) * len(shares), note=trend.note)
    return pd.concat(parts, ignore_index=True), table, left
