"""The tables of a study with interventions: differences, surviving shares, doses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.ablations.doses import dose_response
from analysis.curves.ablations.effects import differences, matched
from analysis.curves.ablations.matching import (
    CONTROL_FULL,
    SCOPE,
    TREATMENT_CONTROL,
    Comparison,
    comparisons,
    dose_groups,
    scoped_units,
    sizes_in_common,
)
from analysis.curves.ablations.shares import Baseline, chance, surviving_shares, untrained_baseline
from analysis.curves.p_values import holm
from analysis.curves.units import Units
from analysis.study.baselines import baseline_rows
from analysis.study.collect import UNTRAINED
from analysis.study.judgements import Judgements

P_VALUES = {"p": "p_holm", "p_new_pairs": "p_new_pairs_holm", "p_tost": "p_equivalent"}
FAMILIES = {
    "overall": "interventions", SCOPE: "interventions", "phenomenon": "interventions x phenomena",
    "paradigm": "interventions x paradigms",
}  # fmt: skip
_KEYS = ["kind", "base", "filter", "action", "dose", "group", "other"]
_UNIT = ["over", "level", "name", "phenomenon", "direct", "paradigms", "n_pairs"]
DIFFERENCES = [
    *_KEYS, *_UNIT, "first", "second", "difference", "low", "high", "p", "p_holm", "low_new_pairs", "high_new_pairs",
    "p_new_pairs", "p_new_pairs_holm", "margin", "p_tost", "p_equivalent", "runs", "pairs", "sizes", "differing",
    "family", "tests", "method", "note",
]  # fmt: skip
SHARES = [*_KEYS, *_UNIT, "share", "low", "high", "baseline", "note"]


@dataclass(frozen=True)
class Ablations:
    """What interventions change in one benchmark's judgements.

    differences: DIFFERENCES, a row per comparison (matching.Comparison), `over` (all sizes, each size, per doubling)
    and unit; first, second: mean accuracies of `group` and `other`; differing: judgements of paired runs that differ.
    shares: SHARES, of the comparisons of treatments. doses, trends: of doses.dose_response, with base and filter.
    notes: runs that are not compared.
    """

    comparisons: list[Comparison]
    differences: pd.DataFrame
    shares: pd.DataFrame
    doses: pd.DataFrame = field(default_factory=pd.DataFrame)
    trends: pd.DataFrame = field(default_factory=pd.DataFrame)
    notes: list[str] = field(default_factory=list)

    @property
    def primary(self) -> list[tuple[str, str]]:
        """(group, other) of each treatment: its matched control, or the full text where it has none."""
        chosen: dict[str, str] = {}
        for of in self.comparisons:
            if of.kind != CONTROL_FULL and (of.kind == TREATMENT_CONTROL or of.group not in chosen):
                chosen[of.group] = of.other
        return list(chosen.items())

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by the names of their files."""
        tables = {"differences": self.differences, "shares": self.shares, "doses": self.doses, "trends": self.trends}
        return {f"ablation-{name}": table for name, table in tables.items()}


def of_comparison(table: pd.DataFrame, group: str, other: str) -> pd.DataFrame:
    """Return the rows of one comparison."""
    return table[(table["group"] == group) & (table["other"] == other)]


def compare_ablations(
    judged: Judgements,
    direct: Mapping[str, Collection[str]],
    config: CurvesConfig,
    baselines: Judgements | None = None,
) -> Ablations | None:
    """Compare the runs of each intervention with their matched controls and with those on the full text.

    `direct`: filter -> the paradigms that test its construction. `baselines`: of analysis.study.baselines;
    the accuracy of untrained models takes the place of chance. P values of one family are corrected by Holm's
    method: the comparisons of one kind, over all sizes or per doubling, in the units of one level, or in one scope.
    None without an intervention to compare, and for checkpoints of one training.
    """
    if "action" not in judged.runs or judged.over_training:
        return None
    compared = comparisons(judged.runs)
    if not compared:
        return None
    tables, shares, notes = [], [], []
    for comparison in compared:
        units = scoped_units(judged.pairs, direct.get(comparison.filter, ()))
        sizes = sizes_in_common(judged.runs, comparison)
        named = {key: getattr(comparison, key) for key in _KEYS}
        table = differences(judged, comparison, units, sizes, config)
        tables.append(table.assign(**named, direct=table["name"].isin(list(direct.get(comparison.filter, ())))))
        if comparison.unpaired:
            notes.append(_not_compared(comparison))
        if comparison.kind == CONTROL_FULL:
            continue
        baseline = _baseline(baselines, comparison.group, units)
        for over, size in [("all sizes", None), *((size, size) for size in sizes)]:
            share = surviving_shares(matched(judged, comparison, units, size), baseline, config)
            is_direct = share["name"].isin(list(direct.get(comparison.filter, ())))
            shares.append(share.assign(**named, over=over, direct=is_direct))
    doses, trends, left = _doses(judged, direct, config)
    corrected = _corrected(pd.concat(tables, ignore_index=True).assign(margin=config.ablation_margin))
    return Ablations(
        compared, corrected[DIFFERENCES], pd.concat(shares, ignore_index=True)[SHARES] if shares else pd.DataFrame(
            columns=SHARES), doses, trends, list(dict.fromkeys([*notes, *left])),
    )  # fmt: skip


def _baseline(baselines: Judgements | None, group: str, units: Units) -> Baseline:
    rows = baseline_rows(baselines, group).get(UNTRAINED) if baselines is not None else None
    return chance(units) if baselines is None or rows is None else untrained_baseline(baselines.outcome[rows], units)


def _not_compared(comparison: Comparison) -> str:
    runs = ", ".join(comparison.unpaired)
    return f"Left out of {comparison.group} against {comparison.other}, without a run of their size and seed: {runs}."


def _doses(
    judged: Judgements, direct: Mapping[str, Collection[str]], config: CurvesConfig
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    doses, trends, notes = [], [], []
    for base, name, groups in dose_groups(judged.runs):
        units = scoped_units(judged.pairs, direct.get(name, ()))
        of_doses, trend, left = dose_response(judged, groups, units, config)
        if len(of_doses):
            doses.append(of_doses.assign(base=base, filter=name))
            trends.append(trend.assign(base=base, filter=name))
            if left:
                runs = ", ".join(left)
                notes.append(f"Left out of the doses of {name}, without runs of all doses: {runs}.")
    if not doses:
        return pd.DataFrame(), pd.DataFrame(), notes
    trend = pd.concat(trends, ignore_index=True)
    trend["p_holm"] = trend.groupby("level")["p"].transform(lambda p: holm(p.to_numpy()))
    return pd.concat(doses, ignore_index=True), trend, notes


def _corrected(table: pd.DataFrame) -> pd.DataFrame:
    """Add the family, its number of tests, and p values by Holm's method."""
    if "p_tost" not in table:
        table = table.assign(p_tost=np.nan)
    scope = table["name"].where(table["level"] == SCOPE, table["level"])
    table = table.assign(family=table["kind"] + ", " + scope + ": " + table["level"].map(FAMILIES))
    keys = ["family", "over"]
    table["tests"] = table.groupby(keys)["p"].transform("count")
    for name, corrected in P_VALUES.items():
        table[corrected] = table.groupby(keys)[name].transform(lambda p: holm(p.to_numpy(dtype=float)))
    return table
