"""Judgement methods compared: accuracy over templates, bias towards A and towards short sentences.

The analyses of Ide et al. 2024 and, for the prefix methods, of Warstadt et al. 2020, section 6.4. Polars counts score
files run by run; the rest works on the counts.

Columns of counts by paradigm: run, method, repeat (template or trial; "" for a method without either), paradigm, pairs,
right (sum of outcomes), ties, decided and chose_a (judgements of an A/B prompt that are no ties, and those for A),
difference (mean over pairs of the tokens of the good sentence less those of the bad one, NaN if unknown).
By difference: run, method, repeat, difference, pairs, right, squares (sum of squared outcomes: ties may count half).

Differences of methods are paired by runs and pairs. Their variance is that over runs plus that over pairs within
paradigms minus chance in single judgements, which both hold (analysis/curves/variance.py).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from scipy.stats import norm
from scipy.stats import t as student

from analysis.curves.designs import SAME_TEXT
from analysis.curves.fit import inverse_trials, wilson_limits
from analysis.curves.intervals import t_limits
from analysis.curves.p_values import ALPHA, equivalence, holm, two_sided
from analysis.curves.units import paradigm_accuracies, units_of
from analysis.curves.variance import (
    Array,
    cluster_weights,
    judgement_variance,
    pair_variance,
    satterthwaite,
    shared_text_variance,
    stratum_products,
)
from analysis.measures.accuracies import ATTRACTOR, by_condition
from analysis.measures.items import stacked
from analysis.study.collect import Study
from analysis.study.judgements import methods_of
from eval.config import is_of_pairs
from eval.scores.accuracy import TIE_WORTH
from eval.scores.files import read_score_table, score_path
from pairscale.shares import wilson

CONFIDENCE = 0.95
MARGIN = 0.02  # accuracy: differences of methods within it are equivalent, unless analysis.method_margin says otherwise
OF_SENTENCES = ("lp", "mean_lp", "pen_lp")  # methods that count the tokens of the sentences alone
PREFIX_METHODS = ("one_prefix", "two_prefix")
COMPARED = [
    "group", "method", "other", "paradigms", "runs", "difference", "low", "high", "p", "p_holm", "p_equivalent",
    "margin", "over",
]  # fmt: skip
_KEY = ["paradigm", "pair_id"]
_RUN = ["run", "method"]
_JUDGED = [*_KEY, "template", "trial", "good", "bad", "order"]
_BY_PARADIGM = [*_RUN, "repeat", "paradigm", "pairs", "right", "ties", "decided", "chose_a", "difference"]
_BY_DIFFERENCE = [*_RUN, "repeat", "difference", "pairs", "right", "squares"]


def score_files(study: Study, label: str) -> pd.DataFrame:
    """Return score files of a benchmark: run, method, path; trajectories and other files are left out."""
    assert is_of_pairs(label), label
    rows = [
        {"run": run, "method": method, "path": score_path(study.folders[run].scores(label), method)}
        for run in study.runs.index
        for method in methods_of(study, run, label)
    ]
    return pd.DataFrame(rows, columns=["run", "method", "path"])


def count_judgements(
    files: pd.DataFrame, ties: str, left_out: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return counts by paradigm and by difference of lengths (columns: see the module); `files` of `score_files`.

    left_out: pairs that do not count (paradigm, pair_id).

    Raises RunError for a damaged file.
    """
    by_paradigm, by_difference = [], []
    for run, of_run in files.groupby("run", sort=False):
        paths = dict(zip(of_run["method"], of_run["path"], strict=True))
        lengths = _lengths(paths)
        for method, path in paths.items():
            rows = _outcomes(path, ties, left_out).with_columns(run=pl.lit(run), method=pl.lit(method))
            if lengths is None:
                rows = rows.with_columns(difference=pl.lit(None, dtype=pl.Int32))
            else:
                rows = rows.join(lengths, on=_KEY, how="left")
                by = rows.drop_nulls("difference").group_by(*_RUN, "repeat", "difference", maintain_order=True)
                squares = (pl.col("outcome") ** 2).sum()
                by_difference.append(by.agg(pairs=pl.len(), right=pl.col("outcome").sum(), squares=squares))
            by = rows.group_by(*_RUN, "repeat", "paradigm", maintain_order=True)
            sums = pl.col("ties", "decided", "chose_a").sum()
            difference = pl.col("difference").mean()
            by_paradigm.append(by.agg(sums, difference, pairs=pl.len(), right=pl.col("outcome").sum()))
    return _joined(by_paradigm, _BY_PARADIGM), _joined(by_difference, _BY_DIFFERENCE)


def _joined(parts: list[pl.DataFrame], columns: list[str]) -> pd.DataFrame:
    if not parts:
        return pd.DataFrame(columns=columns)
    table: pd.DataFrame = pl.concat(parts).select(columns).to_pandas()
    return table


def _outcomes(path: Path, ties: str, left_out: pd.DataFrame | None) -> pl.DataFrame:
    """Return one row per judgement: paradigm, pair_id, repeat, outcome, ties, decided, chose_a."""
    good, bad = pl.col("good").fill_null(np.nan), pl.col("bad").fill_null(np.nan)
    known = good.is_not_nan() & bad.is_not_nan()  # to Polars NaN is equal to itself and larger than all numbers
    better, tie = known & (good > bad), ~known | (good == bad)  # as eval.scores.accuracy.tied
    decided = pl.col("order").is_not_null() & known & (good != bad)
    table = _read(path, _JUDGED)
    if left_out is not None and len(left_out):
        table = table.join(pl.DataFrame({name: left_out[name].tolist() for name in _KEY}), on=_KEY, how="anti")
    return table.select(
        *_KEY,
        repeat=pl.coalesce(pl.col("template"), pl.col("trial").cast(pl.String), pl.lit("")),
        outcome=better.cast(pl.Float64) + tie.cast(pl.Float64) * TIE_WORTH[ties],
        ties=tie,
        decided=decided,
        chose_a=decided & ((pl.col("order") == "A") == better),
    )


def pair_outcomes(files: pd.DataFrame, ties: str, left_out: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return (paradigm, pair_id) x (method, run) outcomes, means over repeats; NaN for pairs that a method skips.

    `files` as of `score_files`, `left_out` as of `count_judgements`. Raises RunError for a damaged file.
    """
    columns = {}
    for run, method, path in files[["run", "method", "path"]].itertuples(index=False):
        means = _outcomes(path, ties, left_out).group_by(_KEY, maintain_order=True).agg(pl.col("outcome").mean())
        columns[method, run] = means.to_pandas().set_index(_KEY)["outcome"]
    return pd.DataFrame(columns).sort_index().rename_axis(columns=["method", "run"])


def crossed_mean(outcome: Array, paradigms: Sequence[str], overlap: float = 0.0) -> tuple[float, float, float, str]:
    """Return the mean over paradigms of (R, P) values, its standard error, degrees of freedom, and over what.

    `paradigms` (P,) are sorted. Over new runs and new pairs of the same paradigms; over new pairs where there is one
    run. `overlap`: share of text that the runs' samples have in common (analysis.curves.variance.shared_text_variance).
    The error is NaN of runs on the same text and where a paradigm has one pair, and 0 where all values are equal.
    """
    starts = np.flatnonzero(np.append(True, np.asarray(paradigms)[1:] != np.asarray(paradigms)[:-1]))
    bounds = np.append(starts, len(paradigms)).astype(np.intp)
    units = np.full((len(starts), 1), 1 / len(starts))
    runs = len(outcome)
    mean = np.full(runs, 1 / runs)
    estimate = float((paradigm_accuracies(outcome, bounds) @ units).mean())
    of_pairs = pair_variance(mean @ outcome, bounds, units)
    free = np.array([[max(len(paradigms) - len(starts), 1)]])
    if runs == 1:
        variances, degrees, over = of_pairs[None], free, "pairs"
    elif overlap > SAME_TEXT:
        return estimate, float("nan"), float("nan"), "none: the runs share their text"
    else:
        stratum, runs_alone = np.zeros(runs, dtype=np.intp), np.arange(runs)
        weights = cluster_weights(mean, stratum, runs_alone)
        y = paradigm_accuracies(outcome, bounds) @ units
        terms = weights @ y
        of_runs = stratum_products(terms, terms, stratum)
        chance = judgement_variance(outcome, weights, stratum, bounds, units)
        text = shared_text_variance(mean, y, stratum, np.full(runs, overlap))
        # Degrees of freedom stay at the floor too: 99.7% coverage for two runs, with those of the floor 89%.
        variances = np.stack([np.maximum(of_runs[0], chance) + text, np.maximum(of_pairs - chance, 0)])
        degrees, over = np.array([[runs - 1], [free[0, 0]]]), "runs and pairs"
    return estimate, float(np.sqrt(variances.sum())), float(satterthwaite(variances, degrees)[0]), over


def accuracy_limits(outcomes: pd.DataFrame, groups: pd.Series, overlaps: pd.Series | None = None) -> pd.DataFrame:
    """Return overall accuracy of each group by each method, with 95% Wilson limits of the variance of `crossed_mean`.

    As of analysis.curves.fit.spread_limits, and no closer than chance in single judgements of new pairs gives.
    `outcomes`: of `pair_outcomes`; `groups`: run -> group; `overlaps`: run -> share of text in common with the other
    runs of its group, None: none. One row each: group, method, accuracy, low, high, over.
    """
    rows = []
    for group, of in _by_group(outcomes, groups):
        for method, values in of.items():
            judged = values.dropna(axis=1)
            paradigms = judged.columns.get_level_values(0)
            overlap = _overlap(judged.index, overlaps)
            accuracy, error, degrees, over = crossed_mean(judged.to_numpy(), list(paradigms), overlap)
            pairs = pd.DataFrame({"phenomenon": "", "paradigm": paradigms})
            # New pairs have one outcome each, the mean over runs.
            per_trial = inverse_trials(judged.to_numpy().mean(axis=0)[None], np.zeros(1, np.intp), units_of(pairs))
            binomial = accuracy * (1 - accuracy)
            varied = student.ppf(0.5 + CONFIDENCE / 2, degrees) ** 2 * error**2 / (binomial if binomial > 0 else np.inf)
            square = np.maximum(varied, norm.ppf(0.5 + CONFIDENCE / 2) ** 2 * per_trial[0, 0])
            low, high = (float(limit) for limit in wilson_limits(np.asarray(accuracy), square))
            rows.append((group, method, accuracy, low, high, over))
    return pd.DataFrame(rows, columns=["group", "method", "accuracy", "low", "high", "over"])


def _overlap(runs: pd.Index, overlaps: pd.Series | None) -> float:
    return 0.0 if overlaps is None else float(overlaps.reindex(runs).fillna(0).mean())


def compare_methods(
    outcomes: pd.DataFrame, groups: pd.Series, overlaps: pd.Series | None = None, margin: float = MARGIN
) -> pd.DataFrame:
    """Compare every two methods of a group over the pairs that both judge: COMPARED.

    Arguments as of `accuracy_limits`. difference: overall accuracy of method less that of other; low, high (95%) and p
    by Student's t (`crossed_mean`), NaN where no judgement differs; p_holm: corrected for all comparisons of methods in
    all groups (Holm 1979); p_equivalent: of two one-sided tests that the difference lies outside of the margin,
    corrected likewise.
    """
    rows = []
    for group, of in _by_group(outcomes, groups):
        for method, other in combinations(of, 2):
            runs = of[method].index.intersection(of[other].index)
            change = (of[method].loc[runs] - of[other].loc[runs]).dropna(axis=1)
            if change.empty:
                continue
            paradigms = list(change.columns.get_level_values(0))
            difference, error, degrees, over = crossed_mean(change.to_numpy(), paradigms, _overlap(runs, overlaps))
            spread = np.asarray(error if error > 0 else np.nan), np.asarray(degrees)
            low, high = t_limits(np.asarray(difference), *spread, CONFIDENCE)
            p = float(two_sided(np.asarray(difference), *spread))
            outside = float(equivalence(np.asarray(difference), *spread, margin))
            counts = len(set(paradigms)), len(runs)
            limits = float(low), float(high)
            rows.append((group, method, other, *counts, difference, *limits, p, np.nan, outside, margin, over))
    table = pd.DataFrame(rows, columns=COMPARED)
    corrected = {name: holm(table[of].to_numpy(np.float64)) for name, of in
                 (("p_holm", "p"), ("p_equivalent", "p_equivalent"))}  # fmt: skip
    return table.assign(**corrected)


def equivalent(compared: pd.DataFrame) -> pd.Series:
    """Return which rows of COMPARED are equivalent: by their test, and by an interval within the margin."""
    within = (compared["low"] > -compared["margin"]) & (compared["high"] < compared["margin"])
    return within & (compared["p_equivalent"] < ALPHA)


def _by_group(outcomes: pd.DataFrame, groups: pd.Series) -> Iterator[tuple[str, dict[str, pd.DataFrame]]]:
    """Yield each group with its runs x pairs by method."""
    methods = dict.fromkeys(outcomes.columns.get_level_values("method"))
    for group in groups.unique():
        runs = set(groups.index[groups == group])
        of = {str(method): outcomes[method].T for method in methods}
        of = {method: rows[rows.index.isin(runs)] for method, rows in of.items()}
        yield str(group), {method: rows for method, rows in of.items() if len(rows)}


def _lengths(paths: dict[str, Path]) -> pl.DataFrame | None:
    """Return paradigm, pair_id, difference: tokens of the good sentence less those of the bad one; None if unknown."""
    path = next((paths[method] for method in OF_SENTENCES if method in paths), None)
    if path is None:
        return None
    table = _read(path, [*_KEY, "good_tokens", "bad_tokens"])
    return table.select(*_KEY, difference=pl.col("good_tokens") - pl.col("bad_tokens"))


def _read(path: Path, columns: list[str]) -> pl.DataFrame:
    table = pl.from_arrow(read_score_table(path)[0].select(columns))
    assert isinstance(table, pl.DataFrame)
    return table


def method_accuracies(by_paradigm: pd.DataFrame) -> pd.DataFrame:
    """Return one row per run and method, as tables 3, 9 and 10 of Ide et al. 2024 have them.

    accuracy: mean over repeats of the mean over paradigms; sd: over repeats (NaN for one); repeats; best,
    best_accuracy: the best repeat; ties: share of judgements; share_of_a: of those that are no ties, or NaN.
    """
    overall = _accuracy(by_paradigm).groupby([*_RUN, "repeat"], sort=False)["accuracy"].mean().reset_index()
    best = overall.loc[overall.groupby(_RUN, sort=False)["accuracy"].idxmax()].set_index(_RUN)
    rows = overall.groupby(_RUN, sort=False)["accuracy"].agg(accuracy="mean", sd="std", repeats="size")
    rows = rows.assign(best=best["repeat"], best_accuracy=best["accuracy"])
    totals = by_paradigm.groupby(_RUN, sort=False)[["pairs", "ties", "decided", "chose_a"]].sum()
    rows["ties"] = totals["ties"] / totals["pairs"]
    rows["share_of_a"] = totals["chose_a"] / totals["decided"].where(totals["decided"] > 0)
    return pd.DataFrame(rows.reset_index())


def _accuracy(counts: pd.DataFrame) -> pd.DataFrame:
    return counts.assign(accuracy=counts["right"] / counts["pairs"])


def length_bias(by_difference: pd.DataFrame) -> pd.DataFrame:
    """Correlate success with the difference of lengths (point-biserial; Ide et al. 2024, section 6, table 4).

    One row per run and method: r, the mean over repeats of Pearson's r of outcomes and differences; NaN where either
    does not vary. low, high: Fisher's 95% interval over pairs, each counted once however many repeats judge it.
    """
    rows = []
    for (run, method), of_method in by_difference.groupby(_RUN, sort=False):
        repeats = of_method.groupby("repeat", sort=False)
        r = float(np.mean([_point_biserial(repeat) for _, repeat in repeats]))
        pairs = float(repeats["pairs"].sum().max())
        half = norm.ppf(0.975) / np.sqrt(pairs - 3) if pairs > 3 else np.nan
        rows.append((run, method, r, *np.tanh([np.arctanh(r) - half, np.arctanh(r) + half])))
    return pd.DataFrame(rows, columns=["run", "method", "r", "low", "high"])


def _point_biserial(counts: pd.DataFrame) -> float:
    """Return Pearson's r of outcomes and differences from their counts, which no library reads."""
    names = ("difference", "pairs", "right", "squares")
    x, n, right, squares = (counts[name].to_numpy(dtype=np.float64) for name in names)
    mean_x, mean_y = n @ x / n.sum(), right.sum() / n.sum()
    covariance = right @ x / n.sum() - mean_x * mean_y
    variances = (n @ (x - mean_x) ** 2 / n.sum()) * (squares.sum() / n.sum() - mean_y**2)
    return float(covariance / np.sqrt(variances)) if variances > 0 else float("nan")


def accuracy_by_difference(by_difference: pd.DataFrame, largest: int = 5) -> pd.DataFrame:
    """Return accuracy over the difference of lengths (Ide et al. 2024, figure 2), those beyond `largest` tokens joined.

    Columns: method, difference, judgements, accuracy, low, high (Wilson's 95% over the pairs of one run's one repeat).
    """
    clipped = by_difference.assign(difference=by_difference["difference"].clip(-largest, largest))
    summed = clipped.groupby(["method", "difference"], as_index=False, sort=True)[["pairs", "right"]].sum()
    judged = by_difference.groupby("method").apply(lambda rows: len(rows[["run", "repeat"]].drop_duplicates()))
    rows = []
    for method, difference, pairs, right in summed.itertuples(index=False):
        share = right / pairs
        rows.append((method, int(difference), int(pairs), share, *wilson(share, pairs / judged[method])))
    return pd.DataFrame(rows, columns=["method", "difference", "judgements", "accuracy", "low", "high"])


def shuffled_paradigms(items: pd.DataFrame) -> pd.Series:
    """Return paradigm -> True if it shuffles words: both sentences of all its pairs have the same words, case aside.

    Ide et al. 2024, section 6, whose numbers of people (83.1% and 89.7%) come out where punctuation marks are words.
    `items`: paradigm, good, bad. Pairs of equal sentences do not count.
    """
    differing = items[items["good"] != items["bad"]]
    same = [_bag(good) == _bag(bad) for good, bad in zip(differing["good"], differing["bad"], strict=True)]
    return pd.Series(same, index=differing["paradigm"].to_numpy()).groupby(level=0).all()


def _bag(sentence: str) -> list[str]:
    return sorted(re.findall(r"\w+|[^\w\s]", sentence.lower()))


def accuracy_by_attractor(by_paradigm: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy of subject-verb agreement by what stands between the two (Ide et al. 2024, figure 4).

    Columns: run, method, condition (of accuracies.ATTRACTOR), accuracy, of the template (or trial) with the highest
    overall accuracy. Empty where a paradigm of them is missing.
    """
    best = method_accuracies(by_paradigm)[[*_RUN, "best"]].rename(columns={"best": "repeat"})
    chosen = _accuracy(by_paradigm.merge(best, on=[*_RUN, "repeat"])).assign(level="paradigm")
    parts = [
        by_condition(part.rename(columns={"paradigm": "name", "run": "model"}), ATTRACTOR).assign(method=method)
        for method, part in chosen.groupby("method", sort=False)
    ]
    return stacked(parts, ["model", "method", "condition", "accuracy"]).rename(columns={"model": "run"})


def difference_of_methods(by_paradigm: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """Return accuracy of `one` less that of `other` by run and paradigm, and the difference of lengths (figure 6)."""
    mean = _accuracy(by_paradigm).groupby([*_RUN, "paradigm"], sort=False)[["accuracy", "difference"]].mean()
    wide = mean["accuracy"].unstack("method")
    if one not in wide or other not in wide:
        return pd.DataFrame(columns=["run", "paradigm", "accuracy_difference", "length_difference"])
    lengths = mean["difference"].groupby(["run", "paradigm"]).first()
    both = pd.DataFrame({"accuracy_difference": wide[one] - wide[other], "length_difference": lengths}).dropna()
    return both.reset_index()


def beside_prefix_methods(by_paradigm: pd.DataFrame, phenomena: pd.Series) -> pd.DataFrame:
    """Return full sentences beside one and two prefixes (Warstadt et al. 2020, figure 6); `phenomena`: by paradigm.

    One row per run, prefix method, level and name: paradigms, accuracy, full (lp on the same paradigms), if any.
    """
    wide = _accuracy(by_paradigm).pivot_table(index=["run", "paradigm"], columns="method", values="accuracy")
    parts = []
    for method in [name for name in PREFIX_METHODS if name in wide and "lp" in wide]:
        both = wide[["lp", method]].dropna().reset_index()
        both["overall"], both["phenomenon"] = "overall", both["paradigm"].map(phenomena)
        for level in ("overall", "phenomenon"):
            by = both.rename(columns={level: "name"}).groupby(["run", "name"], sort=True)
            mean = by.agg(paradigms=("paradigm", "size"), accuracy=(method, "mean"), full=("lp", "mean"))
            parts.append(mean.reset_index().assign(method=method, level=level))
    return stacked(parts, ["run", "method", "level", "name", "paradigms", "accuracy", "full"])
