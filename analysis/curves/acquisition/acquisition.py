"""Everything about acquisition that a report shows of one benchmark: sizes, shapes, ranks by size, orders, curves."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.acquisition.monotone import monotone
from analysis.curves.acquisition.orders import (
    Values,
    accuracy_ranks,
    crossing_ranks,
    draws_of_sizes,
    order_table,
    values_of,
)
from analysis.curves.acquisition.sizes import (
    SIZE_COLUMNS,
    bands_of,
    crossings,
    size_means,
    size_table,
    thresholds,
)
from analysis.curves.acquisition.smooths import Smooth, smooth
from analysis.curves.acquisition.turns import shape_table
from analysis.curves.designs import sizes_of
from analysis.curves.groups import GroupFit, fit_groups
from analysis.curves.units import units_of
from analysis.study.judgements import Judgements


@dataclass(frozen=True)
class Acquisition:
    """sizes: SIZE_COLUMNS. shapes: SHAPE_COLUMNS. ranks: of `orders.accuracy_ranks`. orders: ORDER_COLUMNS. curves: for
    the figure of shapes. values: of `orders.values_of` at the lowest level, one part for each group; margin: of the
    thresholds.
    """

    sizes: pd.DataFrame
    shapes: pd.DataFrame
    ranks: pd.DataFrame
    orders: pd.DataFrame
    curves: pd.DataFrame
    values: dict[str, list[list[Values]]]
    margin: float

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables with all their columns, for files."""
        return {"acquisition-sizes": self.sizes, "acquisition-turns": self.shapes, "acquisition-at-sizes": self.ranks}


def acquire(judged: Judgements, config: CurvesConfig, baselines: Judgements | None = None) -> Acquisition | None:
    """Find sizes, ranks, shapes and orders of all groups with two sizes or more; None if there is none.

    baselines: of analysis.study.baselines, for the thresholds. A trajectory has sizes alone, without limits.
    """
    units = units_of(judged.pairs)
    fits = [fit for fit in fit_groups(judged, units, config.interval) if len(fit.design.counts) > 1]
    if not fits:
        return None
    sizes, shapes, ranks, curves = [], [], [], []
    levels = [level for level in ("phenomenon", "paradigm") if (units.table["level"] == level).any()]
    values: dict[str, list[list[Values]]] = {level: [] for level in levels}
    for fit in fits:
        threshold, baseline = thresholds(fit, baselines, config.acquisition_margin)
        bands = bands_of(fit)
        found = crossings(fit, threshold, config.confidence, bands)
        rank, low, high = crossing_ranks(fit, found.x, threshold, bands, config.confidence)
        table = size_table(fit, threshold, baseline, config, bands).assign(rank=rank, rank_low=low, rank_high=high)
        sizes.append(table[SIZE_COLUMNS])
        curve = smooth(fit.y, fit.design)
        shapes.append(shape_table(fit, curve, config))
        curves.append(curve_points(fit, curve))
        runs = judged.runs[judged.runs["group"] == fit.group]
        names, draws = sizes_of(runs), draws_of_sizes(runs)
        if not fit.design.trajectory:
            ranks.append(accuracy_ranks(fit, names, config.confidence))
            for level in levels:
                values[level].append(values_of(fit, names, found.x, level, draws))
    orders = [order_table(values[level], level, config.confidence) for level in levels]
    return Acquisition(
        _joined(sizes), _joined(shapes), _joined(ranks), _joined(orders), _joined(curves), values,
        config.acquisition_margin,
    )  # fmt: skip


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def curve_points(fit: GroupFit, curve: Smooth | None) -> pd.DataFrame:
    """Return the points of the figure of shapes: group, level, name, kind (means, monotone or GAM), words, accuracy."""
    at, weights = size_means(fit.design)
    means = weights @ fit.y
    kinds = {"means": (at, means), "monotone": (at, monotone(means).nearest)}
    if curve is not None:
        kinds["GAM"] = (curve.x, curve.curve)
    named = fit.units.table[["level", "name"]]
    parts = [
        named.assign(group=fit.group, kind=kind, words=round(2**x, 3), accuracy=y)
        for kind, (of, values) in kinds.items()
        for x, y in zip(of, values, strict=True)
    ]
    return pd.concat(parts, ignore_index=True)
