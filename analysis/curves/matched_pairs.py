"""Two sets of pairs of the same paradigms, judged by the same runs.

Frozen pairs beside generated ones, or pairs of any words beside pairs of known words. Both are cut to the paradigms
that they share, and to equal numbers of pairs of each length; the difference of slopes is the slope of the differences.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.designs import sizes_of
from analysis.curves.fit import ALL_PAIRS, fit_curves
from analysis.curves.groups import GroupFit, fit_groups, fitted_slopes
from analysis.curves.intervals import Interval, run_terms
from analysis.curves.units import units_of
from analysis.curves.variance import Array
from analysis.curves.words_to_people import fieller
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from eval.scores.files import read_scores, score_path

GENERATED = "generated"
FROZEN = ("blimp", "climp")
_VOCABULARY = re.compile(r"(study|run)-k\d+|words-.+")  # the part of a label that names the words of its pairs
SHARES = ["group", "level", "name", "from_words", "to_words", "runs", "slope_any", "slope_known", "share", "low",
          "high", "bounded"]  # fmt: skip
MIN_PAIRS = 50  # of a paradigm, matched, for it to be compared


@dataclass(frozen=True)
class Matched:
    """Two sets of judgements by the same runs, in one order, on equal numbers of pairs of each length and paradigm.

    paradigms: paradigm, phenomenon, first, second (pairs that each has), matched (pairs compared; 0 below MIN_PAIRS).
    """

    first: Judgements
    second: Judgements
    paradigms: pd.DataFrame


def is_restricted(label: str) -> bool:
    """True for the label of generated pairs of known words only."""
    return any(_VOCABULARY.fullmatch(part) for part in label.split("+"))


def companions(labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return the labels that `match` may compare: frozen pairs with generated ones, any words with known words."""
    generated = [label for label in labels if label.partition("+")[0] == GENERATED]
    frozen = [label for label in labels if label.partition("+")[0] in FROZEN]
    any_words = [label for label in generated if not is_restricted(label)]
    known = [label for label in generated if is_restricted(label)]
    return [*product(frozen, generated), *product(any_words, known)]


def match(study: Study, first: Judgements, second: Judgements, seed: int) -> Matched | None:
    """Cut both to the runs, paradigms and numbers of pairs of each length (words of both sentences) that they share.

    None where they share no run, no paradigm or no policy, or where judgements of single pairs are not known.
    """
    runs = [run for run in first.runs.index if run in second.runs.index]
    common = sorted({*first.pairs["paradigm"]} & {*second.pairs["paradigm"]})
    alike = all(first.policies[group] == second.policies[group] for group in first.policies if group in second.policies)
    if not runs or not common or not alike or first.of_paradigms or second.of_paradigms:
        return None
    both = [_with_lengths(study, judged, runs[0]) for judged in (first, second)]
    rng = np.random.default_rng(seed)
    chosen = [np.zeros(len(pairs), dtype=bool) for pairs in both]
    rows = []
    for paradigm in common:
        parts = [pairs[pairs["paradigm"] == paradigm] for pairs in both]
        lengths = [part["words"].value_counts() for part in parts]
        number = pd.concat(lengths, axis=1, keys=("first", "second")).fillna(0).min(axis=1).astype(int)
        matched = int(number.sum()) if number.sum() >= MIN_PAIRS else 0
        row = {"paradigm": paradigm, "phenomenon": parts[0]["phenomenon"].iloc[0]}
        rows.append({**row, "first": len(parts[0]), "second": len(parts[1]), "matched": matched})
        if not matched:
            continue
        for part, mask in zip(parts, chosen, strict=True):
            for words, of_length in part.groupby("words"):
                mask[rng.choice(of_length.index.to_numpy(), number[words], replace=False)] = True
    if not chosen[0].any():
        return None
    paradigms = pd.DataFrame(rows)
    first, second = (judged.of_runs(runs).select(mask) for judged, mask in zip((first, second), chosen, strict=True))
    phenomenon = second.pairs["paradigm"].map(paradigms.set_index("paradigm")["phenomenon"])
    pairs = second.pairs.assign(phenomenon=phenomenon).sort_values(["phenomenon", "paradigm"], kind="stable")
    arrays = {name: getattr(second, name)[:, pairs.index] for name in ("outcome", "tie", "unk")}
    return Matched(first, replace(second, pairs=pairs.reset_index(drop=True), **arrays), paradigms)


def _with_lengths(study: Study, judged: Judgements, run: str) -> pd.DataFrame:
    """Return `judged.pairs` with the words of both sentences, which are the same for all runs."""
    scores, _ = read_scores(score_path(study.folders[run].scores(judged.label), judged.method))
    words = scores.assign(words=scores["good_words"] + scores["bad_words"]).drop_duplicates(["paradigm", "pair_id"])
    return judged.pairs.merge(words[["paradigm", "pair_id", "words"]], on=["paradigm", "pair_id"], how="left")


def _change(a: Judgements, b: Judgements) -> Judgements:
    """Subtract the outcomes of `b` from those of `a`: pairs are matched at random, so both add to the variance."""
    return replace(a, outcome=a.outcome - b.outcome, unk=np.zeros_like(a.unk))


def slopes_of_both(matched: Matched, config: CurvesConfig) -> pd.DataFrame:
    """Return the slopes on both sets of pairs, and by how much the second is steeper.

    One row per group and unit: group, level, name, paradigms, n_pairs (of each set), runs, sizes, accuracies (means
    over sizes), slopes (accuracy per doubling), difference, limits (paired by run; new pairs: both drawn anew), method.
    """
    both = [fit_curves(judged, config) for judged in (matched.first, matched.second)]
    change = _change(matched.second, matched.first)
    units = replace(units_of(matched.first.pairs), differences=True)
    keys = ["group", "level", "name"]
    table = pd.concat(table for _, table in fitted_slopes(change, units, config))
    table = table.rename(columns={"slope": "difference"})
    for name, curves in zip(("first", "second"), both, strict=True):
        of_all = curves.slopes[curves.slopes["pairs"] == ALL_PAIRS]
        table = table.merge(of_all[[*keys, "slope"]].rename(columns={"slope": f"slope_{name}"}), on=keys)
        at = curves.accuracies[curves.accuracies["pairs"] == ALL_PAIRS]
        means = at.groupby(keys, sort=False)["accuracy"].mean().rename(f"accuracy_{name}")
        table = table.merge(means, left_on=keys, right_index=True)
    columns = ["paradigms", "n_pairs", "runs", "sizes", "accuracy_first", "accuracy_second", "slope_first"]
    columns += ["slope_second", "difference", "low", "high", "low_new_pairs", "high_new_pairs", "method"]
    return table[[*keys, *columns]]


def vocabulary_share(matched: Matched, config: CurvesConfig) -> pd.DataFrame:
    """Return the share of the early slope on pairs of any words (the first set) that known words (the second) lack.

    Early: the smaller half of the sizes of a group, two at least; a group of one size is left out. One row of SHARES
    per group, the whole and each phenomenon: share is 1 - slope_known / slope_any, low and high its limits (Fieller
    1954, with the covariance of the slopes over runs), bounded False where the slope on any words may be 0: no limits.
    """
    by_group = [runs for _, runs in matched.first.runs.groupby("group", sort=False) if runs["size"].nunique() > 1]
    early = [run for runs in by_group for run in _smaller_half(runs).index]
    if not early:
        return pd.DataFrame(columns=SHARES)
    any_words, known = (judged.of_runs(early) for judged in (matched.first, matched.second))
    units = units_of(any_words.pairs)
    fits = [fit_groups(judged, units, config.interval) for judged in (any_words, known)]
    fits.append(fit_groups(_change(any_words, known), replace(units, differences=True), config.interval))
    rows = []
    for of_any, of_known, change_fit in zip(*fits, strict=True):
        words = any_words.runs.loc[any_words.runs["group"] == of_any.group, "sample_words"]
        change, slope = change_fit.line.slope, of_any.line.slope
        variances = change_fit.errors.runs**2, of_any.errors.runs**2, slope_covariance(change_fit, of_any)
        quantile = np.asarray(student.ppf(0.5 + config.confidence / 2, change_fit.errors.degrees))
        low, high, bounded = fieller(change, slope, variances, quantile)
        table = units.table.assign(
            group=of_any.group, from_words=words.min(), to_words=words.max(), runs=len(words), slope_any=slope,
            slope_known=of_known.line.slope, share=change / np.where(slope == 0, np.nan, slope),
            low=np.where(bounded, low, np.nan), high=np.where(bounded, high, np.nan), bounded=bounded,
        )  # fmt: skip
        rows.append(table[table["level"] != "paradigm"])
    return pd.concat(rows, ignore_index=True)[SHARES]


def slope_covariance(first: GroupFit, second: GroupFit) -> Array:
    """Return the (U,) covariance over runs of two slopes of the same runs; a variance's floor keeps the correlation."""
    if first.method == Interval.NONE:
        return np.full(first.y.shape[1], np.nan)
    terms = run_terms(first.method, first.design, first.design.contrast)
    return np.asarray(terms.correlation(terms, first.y, second.y) * first.errors.runs * second.errors.runs)


def _smaller_half(runs: pd.DataFrame) -> pd.DataFrame:
    sizes = sizes_of(runs)
    return runs[runs["size"].isin(sizes[: max(2, math.ceil(len(sizes) / 2))])]
