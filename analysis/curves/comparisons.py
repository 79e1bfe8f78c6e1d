"""Tests of differences: between groups in slope, and between two ways of scoring the same runs in accuracy.

P values of one family are corrected for multiple comparisons (Holm 1979); overall, phenomena and paradigms are three
families. Only a test of equivalence shows that two slopes do not differ, never a large p value.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.designs import Design, design_of, sample_digests, sizes_of
from analysis.curves.groups import ROUGH, GroupFit, cautions, cautions_left, fit_group
from analysis.curves.intervals import (
    NOTHING_VARIES,
    Interval,
    at_least,
    contrast_variance,
    hidden_text,
    mean_method,
    plausible,
    run_terms,
    t_limits,
    with_pairs,
    with_text,
)
from analysis.curves.p_values import equivalence, holm, two_sided
from analysis.curves.units import Units, paradigm_accuracies, units_of
from analysis.curves.variance import Array, Numbers, pair_variance, satterthwaite
from analysis.study.judgements import Judgements
from pairscale.errors import RunError

FAMILIES = {
    "overall": "pairs of groups",
    "phenomenon": "pairs of groups x phenomena",
    "paradigm": "pairs of groups x paradigms",
}
P_VALUES = {"p": "p_holm", "p_new_pairs": "p_new_pairs_holm", "p_tost": "p_equivalent"}
SLOPE_COLUMNS = [
    "group", "other", "level", "name", "difference", "low", "high", "p", "p_holm", "low_new_pairs", "high_new_pairs",
    "p_new_pairs", "p_new_pairs_holm", "margin", "p_tost", "p_equivalent", "sizes", "from_size", "to_size", "runs",
    "paired", "pairs", "family", "method", "note", "caution",
]  # fmt: skip
POLICY_COLUMNS = [
    "group", "size", "level", "name", "runs", "first", "second", "difference", "low", "high", "p", "p_holm", "note",
]  # fmt: skip


def compare_slopes(judged: Judgements, config: CurvesConfig) -> pd.DataFrame:
    """Compare the slopes of every two groups in each unit; of several studies, those of two groups of different ones.

    One row per pair of groups and unit: group, other, level, name, difference (slope of group minus that of other,
    accuracy per doubling), low, high, p (these pairs), p_holm, low_new_pairs, high_new_pairs, p_new_pairs,
    p_new_pairs_holm, margin, p_tost and p_equivalent (two one-sided tests that the difference lies within the margin;
    the second by Holm), sizes (that both have; no others count), from_size, to_size, runs (of both, at these), paired
    (True if runs of one size, seed and text are compared), pairs (of runs), family, method, note (why no test),
    caution (groups.cautions, of either slope).

    Variances over runs are those of the two slopes (analysis.curves.intervals, by the smallest number of runs that
    either group has at a size). Runs that trained on the same sample with the same seed are one draw: what each adds to
    both slopes is subtracted before it is squared. Others are independent: degrees of freedom by Welch 1947 and by
    Satterthwaite 1946. A pair is judged by both groups: its slopes are subtracted before their variance is taken.
    """
    units = units_of(judged.pairs)
    studies = judged.runs.groupby("group", sort=False)["study"].agg(frozenset)
    several = len(frozenset().union(*studies)) > 1
    # A study's own report compares its groups, corrected for its own number of tests.
    chosen = [(a, b) for a, b in combinations(studies.index, 2) if not several or studies[a] != studies[b]]
    if not chosen:
        return pd.DataFrame(columns=SLOPE_COLUMNS)
    parts = [compare_groups(judged, (str(a), str(b)), units, config) for a, b in chosen]
    return _corrected(pd.concat(parts, ignore_index=True))[SLOPE_COLUMNS]


def compare_groups(judged: Judgements, groups: tuple[str, str], units: Units, config: CurvesConfig) -> pd.DataFrame:
    """Return the rows of `compare_slopes` for two groups, p values not corrected."""
    runs = judged.runs
    sizes = [sizes_of(runs[runs["group"] == group]) for group in groups]
    common = [size for size in sizes[0] if size in sizes[1]]
    rows = [np.flatnonzero((runs["group"] == group) & runs["size"].isin(common)) for group in groups]
    named = units.table.assign(
        group=groups[0], other=groups[1], sizes=len(common), from_size=common[0] if common else "",
        to_size=common[-1] if common else "", runs=len(rows[0]) + len(rows[1]), margin=config.equivalence_margin,
    )  # fmt: skip
    if len(common) < 2:
        shared_sizes = f"only {common[0]} is a size of both" if common else "no size of both"
        lone = [f"{group}: one size only: no slope" for group, of in zip(groups, sizes, strict=True) if len(of) < 2]
        none = dict.fromkeys(["difference", *P_VALUES, "low", "high", "low_new_pairs", "high_new_pairs"], np.nan)
        note = "; ".join(lone) or f"{shared_sizes}: no slopes to compare"
        return named.assign(**none, paired=False, pairs=0, method=Interval.NONE.value, note=note, caution="")
    designs = [design_of(runs.iloc[of]) for of in rows]
    fewest = int(np.argmin([design.counts.min() for design in designs]))
    a, b = fits = [
        fit_group(group, judged.outcome[of], design, units, config.interval, designs[fewest])
        for group, of, design in zip(groups, rows, designs, strict=True)
    ]
    shared = same_draws(runs.iloc[rows[0]], runs.iloc[rows[1]], fits)
    columns = slope_difference(a, b, config, shared)
    notes = "; ".join(f"{fit.group}: {fit.note}" for fit in fits if fit.note)
    methods = " / ".join(dict.fromkeys(fit.method.rule for fit in fits))
    paired = bool((shared >= 0).any())
    draws = [{*_draws(runs.iloc[of])} - {None} for of in rows]
    pairs = len(draws[0] & draws[1]) if paired else 0
    nothing = np.isnan(columns["low"]) & (a.errors.floor + b.errors.floor == 0)
    caution, left_out = cautions_left(difference_cautions(a, b), config)
    difference = columns.pop("difference")
    columns = {name: np.where(left_out == "", of, np.nan) for name, of in columns.items()}
    return named.assign(
        difference=difference, **columns, paired=paired, pairs=pairs, method=methods,
        note=np.where(left_out != "", left_out, np.where(nothing, NOTHING_VARIES, notes)), caution=caution,
    )  # fmt: skip


def difference_cautions(a: GroupFit, b: GroupFit) -> npt.NDArray[np.str_]:
    """Return the (U,) cautions on the limits of differences: those of either slope, rough ones before others."""
    first, second = cautions(a), cautions(b)
    return np.where((first == "") | np.char.startswith(second, ROUGH), second, first)


def same_draws(first: pd.DataFrame, second: pd.DataFrame, fits: Sequence[GroupFit]) -> Numbers:
    """Return (J,), for each Design.cluster of the second group, the first group's of the same text and seed, or -1.

    The text is the sample's digest in a run's manifest. Seeds of nested samples are paired if any of their runs are.
    """
    keys = [_draws(runs) for runs in (first, second)]
    partner = np.full(fits[1].design.cluster.max() + 1, -1, dtype=np.intp)
    if fits[0].design.nested != fits[1].design.nested:
        return partner
    of_first = {key: int(cluster) for key, cluster in zip(keys[0], fits[0].design.cluster, strict=True) if key}
    for j in range(len(partner)):
        of_cluster = [keys[1][r] for r in np.flatnonzero(fits[1].design.cluster == j)]
        clusters = {of_first[key] for key in of_cluster if key in of_first}
        partner[j] = clusters.pop() if len(clusters) == 1 else -1
    return partner


def _draws(runs: pd.DataFrame) -> list[tuple[str, int, str] | None]:
    """Return size, seed and digest of the sample of each run; None where no sample is recorded."""
    named = zip(runs["size"], runs["seed"], sample_digests(runs), strict=True)
    return [(str(size), int(seed), digest) if digest else None for size, seed, digest in named]


def slope_difference(a: GroupFit, b: GroupFit, config: CurvesConfig, shared: Numbers) -> dict[str, Array]:
    """Return difference, limits and p values, each (U,); `shared`: of `same_draws`. NaN where a slope has no limits."""
    units, difference = a.units, a.line.slope - b.line.slope
    columns: dict[str, Array] = {"difference": difference}
    if Interval.NONE in (a.method, b.method):
        none = np.full(len(difference), np.nan)
        return columns | dict.fromkeys([*P_VALUES, "low", "high", "low_new_pairs", "high_new_pairs"], none)
    both_y = np.concatenate([a.y, b.y])
    methods = {a.method, b.method}
    if methods == {Interval.T_HC3, Interval.T_POOLED}:  # the curves of one group bend
        a, b = (replace(fit, method=Interval.T_POOLED) for fit in (a, b))
    of_a, of_b = (run_terms(fit.method, fit.design, fit.design.contrast) for fit in (a, b))
    terms = of_a.minus(of_b, shared)
    floor = a.errors.floor + b.errors.floor
    degrees = terms.degrees(both_y)
    runs, degrees = with_text(plausible(terms.variance(both_y), degrees, floor), degrees, *text_of_both(a, b, shared))
    of_pair = a.design.contrast @ a.outcome - b.design.contrast @ b.outcome
    pairs = pair_variance(of_pair, units.bounds, units.weights) - a.errors.chance - b.errors.chance
    both, degrees_both = with_pairs(runs, degrees, pairs, units.pair_degrees)
    for suffix, variance, free in (("", runs, degrees), ("_new_pairs", both, degrees_both)):
        error = np.sqrt(variance)
        columns[f"low{suffix}"], columns[f"high{suffix}"] = t_limits(difference, error, free, config.confidence)
        columns[f"p{suffix}"] = two_sided(difference, error, free)
    columns["p_tost"] = equivalence(difference, np.sqrt(runs), degrees, config.equivalence_margin)
    limits = at_least((columns["low_new_pairs"], columns["high_new_pairs"]), (columns["low"], columns["high"]))
    columns["low_new_pairs"], columns["high_new_pairs"] = limits
    columns["p_new_pairs"] = np.maximum(columns["p_new_pairs"], columns["p"])
    return columns


def text_of_both(a: GroupFit, b: GroupFit, shared: Numbers) -> tuple[Array, Array]:
    """Return the (U,) variance of a difference that overlapping samples hide, and its degrees of freedom.

    Of the differences of runs if all of them are paired.
    """
    rows = shared[b.design.cluster]
    if a.design.nested or a.design.overlap is None or (rows < 0).any() or len(rows) < len(a.y):
        of_both = (hidden_text(fit.design, fit.design.contrast, fit.y, fit.outcome, fit.units) for fit in (a, b))
        variances, few = (np.stack(parts) for parts in zip(*of_both, strict=True))
        return variances.sum(axis=0), satterthwaite(variances, few)
    design = replace(b.design, overlap=a.design.overlap[rows])
    return hidden_text(design, design.contrast, a.y[rows] - b.y, a.outcome[rows] - b.outcome, a.units)


def _corrected(table: pd.DataFrame) -> pd.DataFrame:
    """Add the family and p values by Holm's method: each level is a family."""
    table = table.assign(family=table["level"].map(FAMILIES))
    for name, corrected in P_VALUES.items():
        if name in table:
            table[corrected] = np.nan
            for level in FAMILIES:
                of = (table["level"] == level).to_numpy()
                table.loc[of, corrected] = holm(table.loc[of, name].to_numpy(dtype=float))
    return table


def compare_policies(
    first: Judgements, second: Judgements, confidence: float, by: Sequence[str] = ("group",)
) -> pd.DataFrame:
    """Compare two scoring policies (such as two values of `context`) on the same runs.

    One row per group (of `first`; with by=("group", "size") per group and size, smallest first) and unit: group, size
    ("all" for runs of all sizes together), level, name, runs, first, second (mean accuracies), difference
    (second minus first), low, high, p, p_holm (over these rows of one level), note. Sizes weigh equally, however many
    runs each has. The variance of the difference over new runs is that of a mean of the sizes' changes, estimated as
    that of a slope is (analysis.curves.intervals.contrast_variance): at one size it is the paired t test over runs;
    nested seeds are one draw each; text that samples share is in it. Raises RunError if the two judge other pairs or
    have no run in common.
    """
    common = first.runs.index[first.runs.index.isin(second.runs.index)]
    if common.empty:
        raise RunError(f"{first.label} and {second.label}: no run was scored under both")
    if not _named(first.pairs).equals(_named(second.pairs)):
        raise RunError(f"{first.label} and {second.label}: not the same pairs, so they cannot be compared run by run")
    units = units_of(first.pairs)
    runs = first.runs.loc[common].sort_values("sample_words", kind="stable")
    groups = list(first.runs["group"].unique())
    rows = []
    for cell, of_cell in sorted(runs.groupby(list(by), sort=False), key=lambda item: groups.index(item[0][0])):
        design = design_of(of_cell)
        before, after = (
            judged.outcome[judged.runs.index.get_indexer(of_cell.index)].astype(np.float64)
            for judged in (first, second)
        )
        weights = design.mean_weights
        means = {
            name: weights @ paradigm_accuracies(outcome, units.bounds) @ units.weights
            for name, outcome in (("first", before), ("second", after), ("difference", after - before))
        }
        error, degrees, note = mean_error(design, weights, after - before, units)
        low, high = t_limits(means["difference"], error, degrees, confidence)
        p = two_sided(means["difference"], error, degrees)
        named = {"size": "all", **{key: str(value) for key, value in zip(by, cell, strict=True)}}
        rows.append(units.table.assign(**named, runs=len(of_cell), **means, low=low, high=high, p=p, note=note))
    return _corrected(pd.concat(rows, ignore_index=True))[POLICY_COLUMNS]


def _named(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return what identifies the pairs; of judgements by paradigm, the paradigms and their numbers of pairs."""
    return pairs[["phenomenon", "paradigm", "n_pairs" if "n_pairs" in pairs else "pair_id"]]


def mean_error(design: Design, weights: Array, change: Array, units: Units) -> tuple[Array, Array, str]:
    """Return the (U,) standard error of a mean change over new runs, its degrees of freedom, and why both are NaN.

    `weights` (R,) give the mean, `change` (R, P) is the difference of outcomes.
    """
    method, note = mean_method(design)
    if method == Interval.NONE:
        none = np.full(units.weights.shape[1], np.nan)
        return none, none, note
    method = Interval.T_POOLED if method == Interval.T_BENT else method  # how a mean bends does not matter
    y = paradigm_accuracies(change, units.bounds) @ units.weights
    variance, degrees, *_ = contrast_variance(method, weights, y, change, design, units)
    return np.sqrt(variance), degrees, note
