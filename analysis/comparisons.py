"""Differences between groups in slope, and between two ways of scoring the same runs in accuracy, with tests.

Groups are whatever differs within a study: models, tokenizers, any ablation. P values of one family are corrected for
their number (Holm 1979); the whole is a family of its own, apart from its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves import GroupFit, fit_groups
from analysis.intervals import NO_INTERVAL, ONE_TRAINING, at_least, is_trajectory, slope_weights, t_limits
from analysis.judgements import Judgements
from analysis.units import Units, paradigm_accuracies, units_of
from analysis.variance import Array, pair_variance, satterthwaite
from corpora.errors import RunError

FAMILIES = {
    "overall": "pairs of groups",
    "phenomenon": "pairs of groups x phenomena",
    "paradigm": "pairs of groups x paradigms",
}


def holm(p: Array) -> Array:
    """(M,) p values of one family -> those corrected by Holm's step-down method (1979); NaN are no tests and stay."""
    corrected = np.full(len(p), np.nan)
    (tests,) = np.nonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    steps = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * steps), 1)
    return corrected


def compare_slopes(judged: Judgements, config: CurvesConfig) -> pd.DataFrame:
    """Slopes of every two groups of the study, in each unit; of several studies, of two groups of different ones.

    One row per pair of groups and unit: group, other, level, name, difference (slope of group minus that of other,
    accuracy per doubling), low, high, p (these pairs), p_holm, low_new_pairs, high_new_pairs, p_new_pairs, family (what
    p_holm is corrected for the number of), method (of the slopes' variances), note (why there is no test).

    Variances over runs are those of the two slopes, added: of the regression (both with R - 2 degrees of freedom) or,
    with five runs at each size, of runs within sizes, as resampled by the bootstrap; degrees by Welch 1947 and
    Satterthwaite 1946. All runs are taken to be independent: where those of one seed share their text, intervals are a
    little too wide. A pair is judged by both groups: its slopes are subtracted before their variance is taken.
    """
    units = units_of(judged.pairs)
    fits = fit_groups(judged, units, config.interval)
    studies = judged.runs.groupby("group")["study"].agg(frozenset)
    all_of = frozenset().union(*studies)
    columns = ["group", "other", "level", "name", "difference", "low", "high", "p", "p_holm"]
    columns += ["low_new_pairs", "high_new_pairs", "p_new_pairs", "family", "method", "note"]
    parts = []
    for a, b in combinations(fits, 2):
        if len(all_of) > 1 and studies[a.group] == studies[b.group]:
            continue  # what one study says by itself is in its own report, corrected for its own number of tests
        found = slope_difference(a, b, judged.outcome[a.rows], judged.outcome[b.rows], units, config.confidence)
        notes = "; ".join(f"{fit.group}: {fit.note}" for fit in (a, b) if fit.method == NO_INTERVAL)
        methods = " / ".join(dict.fromkeys([a.method, b.method]))
        parts.append(units.table.assign(group=a.group, other=b.group, **found, method=methods, note=notes))
    if not parts:
        return pd.DataFrame(columns=columns)
    return _corrected(pd.concat(parts, ignore_index=True))[columns]


def slope_difference(
    a: GroupFit, b: GroupFit, outcome_a: Array, outcome_b: Array, units: Units, confidence: float
) -> dict[str, Array]:
    """difference, low, high, p, and the same of new pairs too, each (U,); outcomes (R, P) of the two groups' runs.

    NaN limits where one of the slopes has none.
    """
    difference = a.line.slope - b.line.slope
    runs = np.stack([a.errors.runs**2, b.errors.runs**2])
    degrees = np.stack([a.errors.degrees, b.errors.degrees])
    of_pair = _pair_slopes(a, outcome_a) - _pair_slopes(b, outcome_b)
    pairs = pair_variance(of_pair, units.bounds, units.weights) - a.errors.chance - b.errors.chance
    both, degrees_both = np.stack([*runs, np.maximum(pairs, 0)]), np.stack([*degrees, units.pair_degrees])
    found: dict[str, Array] = {"difference": difference}
    for suffix, variances, freedom in (("", runs, degrees), ("_new_pairs", both, degrees_both)):
        error, of_sum = np.sqrt(variances.sum(axis=0)), satterthwaite(variances, freedom)
        found[f"low{suffix}"], found[f"high{suffix}"] = t_limits(difference, error, of_sum, confidence)
        found[f"p{suffix}"] = two_sided(difference, error, of_sum)
    limits = at_least((found["low_new_pairs"], found["high_new_pairs"]), (found["low"], found["high"]))
    found["low_new_pairs"], found["high_new_pairs"] = limits
    found["p_new_pairs"] = np.maximum(found["p_new_pairs"], found["p"])
    return found


def _pair_slopes(fit: GroupFit, outcome: Array) -> Array:
    """(P,) slope of each pair's outcomes over the runs of a group."""
    of_pair: Array = slope_weights(fit.design.x, np.ones((1, len(outcome))))[0] @ outcome
    return of_pair


def two_sided(estimate: Array, error: Array, degrees: Array) -> Array:
    """P values of Student's test that an estimate is 0; NaN where nothing varies."""
    t = np.abs(estimate) / np.where(error > 0, error, np.nan)
    return np.asarray(2 * student.sf(t, degrees))


def _corrected(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with p_holm and family: each level is a family."""
    table = table.assign(p_holm=np.nan, family=table["level"].map(FAMILIES))
    for level in FAMILIES:
        of = (table["level"] == level).to_numpy()
        table.loc[of, "p_holm"] = holm(table.loc[of, "p"].to_numpy(dtype=float))
    return table


def compare_policies(
    first: Judgements, second: Judgements, confidence: float, by: Sequence[str] = ("group",)
) -> pd.DataFrame:
    """What another policy changes (what stands before a sentence, `context`, say): the same runs scored in two ways.

    One row per group (of `first`; with by=("group", "size") per group and size, smallest first) and unit: group, size
    ("all" where runs of all sizes are taken together), level, name, runs, first, second (mean accuracies), difference
    (second minus first), low, high, p (paired t over runs, runs - 1 degrees of freedom), p_holm (over these rows of one
    level), note. Raises RunError where the two judge other pairs, or have no run in common.
    """
    common = [run for run in first.runs.index if run in second.runs.index]
    if not common:
        raise RunError(f"{first.label} and {second.label}: no run was scored under both")
    keys = ["phenomenon", "paradigm", "pair_id"]
    if not first.pairs[keys].equals(second.pairs[keys]):
        raise RunError(f"{first.label} and {second.label}: not the same pairs, so they cannot be compared run by run")
    units = units_of(first.pairs)
    y = [
        paradigm_accuracies(judged.outcome[judged.runs.index.get_indexer(pd.Index(common))], units.bounds)
        @ units.weights
        for judged in (first, second)
    ]
    described = first.runs.loc[common].sort_values("sample_words", kind="stable")
    place = {group: number for number, group in enumerate(first.runs["group"].unique())}
    rows = []
    for cell, of_cell in sorted(described.groupby(list(by), sort=False), key=lambda item: place[item[0][0]]):
        at = pd.Index(common).get_indexer(of_cell.index)
        before, after = (values[at] for values in y)
        change, runs = after - before, len(at)
        means = {"first": before.mean(axis=0), "second": after.mean(axis=0), "difference": change.mean(axis=0)}
        several = runs > 1 and not is_trajectory(of_cell)
        error = change.std(axis=0, ddof=1) / np.sqrt(runs) if several else np.full(change.shape[1], np.nan)
        degrees = np.full(change.shape[1], max(runs - 1, 1))
        low, high = t_limits(means["difference"], error, degrees, confidence)
        p = two_sided(means["difference"], error, degrees)
        note = "" if several else "one run: no interval" if runs == 1 else ONE_TRAINING
        named = {"size": "all", **{key: str(value) for key, value in zip(by, cell, strict=True)}}
        rows.append(units.table.assign(**named, runs=runs, **means, low=low, high=high, p=p, note=note))
    columns = ["group", "size", "level", "name", "runs", "first", "second", "difference", "low", "high", "p", "p_holm"]
    columns.append("note")
    return _corrected(pd.concat(rows, ignore_index=True))[columns]
