"""Exhibits from score files: methods, shallow predictors, and single pairs.

All but one are of the runs at each curve's largest size; each appears where the files for it are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd

from analysis.curves.designs import design_of
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.accuracies import axis_start, condition_chart
from analysis.exhibits.figures.methods import (
    difference_chart,
    length_chart,
    method_chart,
    predictor_chart,
    prefix_chart,
)
from analysis.exhibits.sentences.curves import plural
from analysis.exhibits.tables.text import (
    as_it_is,
    count,
    difference_text,
    p_text,
    per_cent_text,
    short_text,
    signed_text,
    title,
)
from analysis.measures.accuracies import correlation
from analysis.measures.items import largest_size
from analysis.measures.methods import (
    accuracy_by_attractor,
    accuracy_by_difference,
    accuracy_limits,
    beside_prefix_methods,
    compare_methods,
    count_judgements,
    difference_of_methods,
    length_bias,
    method_accuracies,
    pair_outcomes,
    score_files,
    shuffled_paradigms,
)
from analysis.measures.predictors import PREDICTORS, accuracy_by_predictor
from analysis.sections.items import item_exhibits
from analysis.sections.section import Report, Section, contributes
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from eval.scores.files import read_items


def score_exhibits(study: Study, judged: Judgements, ties: str, runs: pd.DataFrame | None = None) -> list[Exhibit]:
    """Return exhibits of one benchmark from the score files of its runs; none without files (W&B).

    `runs`: rows of Study.runs over which methods are compared, where they are more than those of `judged`.
    """
    runs = judged.runs if runs is None else runs
    files = score_files(study, judged.label)
    files = files[files["run"].isin(runs.index)].reset_index(drop=True)
    if judged.of_paradigms or files.empty:
        return []
    files["group"] = files["run"].map(runs["group"])
    items, _ = read_items(files["path"].iloc[0].parent)
    of_all, by_difference = count_judgements(files, ties)
    at = set(runs.index[largest_size(runs)])
    files, by_paradigm, by_difference = (part[part["run"].isin(at)] for part in (files, of_all, by_difference))
    groups = files.drop_duplicates("run").set_index("run")["group"]
    outcomes = pair_outcomes(files, ties) if files["method"].nunique() > 1 else pd.DataFrame()
    overlaps = _overlaps(runs.loc[groups.index])
    exhibits: Sequence[Exhibit | None] = [
        _methods(by_paradigm, by_difference, groups, outcomes, overlaps),
        _compared(outcomes, groups, overlaps),
        _by_size(of_all, runs),
        _lengths(by_difference, groups),
        _differences(by_paradigm, groups),
        _shuffled(by_paradigm, items, groups),
        _attractors(by_paradigm, groups),
        _prefixes(by_paradigm, items, groups),
        _predictors(files[files["method"] == "lp"], ties),
    ]
    of_judged = files[files["run"].isin(judged.runs.index)]
    return [*(exhibit for exhibit in exhibits if exhibit is not None), *item_exhibits(judged, of_judged, items)]


def _overlaps(runs: pd.DataFrame) -> pd.Series:
    """Return the share of text that each run's sample shares with those of its group and size; 0 where unknown."""
    shares = pd.Series(0.0, index=runs.index)
    for _, of_group in runs[runs["sample_words"].notna()].groupby("group", sort=False):
        overlap = design_of(of_group).overlap
        shares[of_group.index] = 0.0 if overlap is None else overlap
    return shares


def _over_runs(rows: pd.DataFrame, groups: pd.Series, by: list[str]) -> pd.DataFrame:
    """Average over the runs of a group."""
    return (
        rows.assign(group=rows["run"].map(groups))
        .groupby(["group", *by], as_index=False, sort=False)
        .mean(numeric_only=True)
    )


def _methods(
    by_paradigm: pd.DataFrame,
    by_difference: pd.DataFrame,
    groups: pd.Series,
    outcomes: pd.DataFrame,
    overlaps: pd.Series,
) -> Exhibit | None:
    if by_paradigm["method"].nunique() < 2:
        return None
    accuracies = method_accuracies(by_paradigm)
    best = accuracies.groupby([accuracies["run"].map(groups), "method"])["best"].agg(
        lambda names: " ".join(dict.fromkeys(names))
    )
    rows = _over_runs(accuracies, groups, ["method"])
    bias = _over_runs(length_bias(by_difference), groups, ["method"]).set_index(["group", "method"])
    limits = accuracy_limits(outcomes, groups, overlaps).set_index(["group", "method"])
    index = pd.MultiIndex.from_frame(rows[["group", "method"]])
    rows["best"] = best.reindex(index).to_numpy()
    for name, of in {"r": bias["r"], "r low": bias["low"], "r high": bias["high"], "low": limits["low"],
                     "high": limits["high"]}.items():  # fmt: skip
        rows[name] = of.reindex(index).to_numpy()
    columns = {"method": "method", "group": "curve", "accuracy": "accuracy", "low": "low", "high": "high", "sd": "±",
               "best_accuracy": "best", "best": "template", "share_of_a": "share of A", "ties": "tied",
               "r": "r with length", "r low": "r low", "r high": "r high"}  # fmt: skip
    table = rows[list(columns)].rename(columns=columns)
    table = table.dropna(axis="columns", how="all")
    if (accuracies["repeats"] == 1).all():
        table = table.drop(columns=["best", "template"], errors="ignore")
    return Exhibit(
        "methods",
        "Methods of judgement",
        "Overall accuracy by each method that the runs were scored with, means over runs, with 95% intervals over new "
        "runs and new pairs of the same paradigms (of one run over pairs; none where runs share their text); ±: "
        "standard deviation over templates or "
        "trials, best: the template with the highest accuracy (Ide et al. 2024, tables 3, 9 and 10). r with length: "
        "point-biserial correlation of being right with the tokens of the good sentence less those of the bad one "
        "(table 4), with its 95% interval over pairs.",
        table,
        cells={
            "method": as_it_is,
            "curve": as_it_is,
            "template": as_it_is,
            "tied": per_cent_text,
            **dict.fromkeys(("r with length", "r low", "r high"), signed_text),
        },
        charts={"accuracy": lambda width: method_chart(rows, width=width)},
    )


def _compared(outcomes: pd.DataFrame, groups: pd.Series, overlaps: pd.Series) -> Exhibit | None:
    rows = compare_methods(outcomes, groups, overlaps) if len(outcomes) else outcomes
    if rows.empty:
        return None
    named = rows.assign(methods=rows["method"] + " − " + rows["other"])
    columns = {"methods": "methods", "group": "curve", "paradigms": "paradigms", "runs": "runs",
               "difference": "difference", "low": "low", "high": "high", "p": "p", "p_holm": "p (Holm)",
               "over": "interval over"}  # fmt: skip
    return Exhibit(
        "methods-compared",
        "Methods compared",
        "Overall accuracy by one method less that by another, on the paradigms that both judge, paired by pair and "
        "run, with 95% intervals and Student's t over new runs and new pairs of the same paradigms (of one run over "
        f"pairs). p (Holm) is corrected for all {len(rows)} comparisons of methods here.",
        named[list(columns)].rename(columns=columns),
        cells={"methods": as_it_is, "curve": as_it_is, "paradigms": count, "runs": count, "difference": signed_text,
               "low": signed_text, "high": signed_text, "p": p_text, "p (Holm)": p_text, "interval over": as_it_is},
        folded=True,
    )  # fmt: skip


def _by_size(by_paradigm: pd.DataFrame, runs: pd.DataFrame) -> Exhibit | None:
    sizes = runs.groupby("size")["sample_words"].mean().sort_values().index
    if by_paradigm["method"].nunique() < 2 or len(sizes) < 2:
        return None
    accuracies = method_accuracies(by_paradigm)
    accuracies = accuracies.assign(group=accuracies["run"].map(runs["group"]), size=accuracies["run"].map(runs["size"]))
    wide = accuracies.pivot_table(index=["method", "group"], columns="size", values="accuracy", sort=False)
    wide = wide.reindex(columns=sizes).reset_index()
    return Exhibit(
        "methods-by-size",
        "Methods by size",
        "Overall accuracy by each method at each size, means over runs.",
        pd.DataFrame({"method": wide["method"], "curve": wide["group"], **{size: wide[size] for size in sizes}}),
        cells={"method": as_it_is, "curve": as_it_is},
        folded=True,
    )


def _lengths(by_difference: pd.DataFrame, groups: pd.Series) -> Exhibit | None:
    parts = {
        str(group): accuracy_by_difference(by_difference[by_difference["run"].map(groups) == group])
        for group in groups.unique()
    }
    parts = {group: rows for group, rows in parts.items() if rows["difference"].nunique() > 1}
    if not parts:
        return None
    rows = pd.concat([rows.assign(curve=group) for group, rows in parts.items()], ignore_index=True)
    table = rows[["curve", "method", "difference", "judgements", "accuracy", "low", "high"]]

    def chart(group: str) -> Callable[[int | str], Any]:
        return lambda width: length_chart(parts[group], width=width).properties(title=group)

    return Exhibit(
        "lengths",
        "Unequal lengths",
        "Accuracy by how many tokens longer the good sentence is than the bad one; a level line is a method without a "
        "bias towards either (Ide et al. 2024, figure 2). Bands: 95% intervals over pairs.",
        table,
        cells={"curve": as_it_is, "method": as_it_is, "difference": difference_text, "judgements": count},
        charts={f"curve-{number}": chart(group) for number, group in enumerate(parts)},
        folded=True,
    )


def _differences(by_paradigm: pd.DataFrame, groups: pd.Series) -> Exhibit | None:
    """Return figure 6 of Ide et al. 2024, as correlations."""
    methods = [method for method in dict.fromkeys(by_paradigm["method"]) if method != "in_template_lp"]
    rows, points = [], []
    for method in methods if "in_template_lp" in set(by_paradigm["method"]) else []:
        both = difference_of_methods(by_paradigm, method, "in_template_lp")
        for group, part in both.groupby(both["run"].map(groups), sort=False):
            mean = part.groupby("paradigm")[["accuracy_difference", "length_difference"]].mean()
            if len(mean) > 2 and mean["length_difference"].std() > 0 and mean["accuracy_difference"].std() > 0:
                r, low, high = correlation(mean["accuracy_difference"], mean["length_difference"])
                of = {"method": method, "curve": group, "paradigms": len(mean)}
                rows.append({**of, "r": r, "low": low, "high": high})
                points.append(mean.reset_index().assign(method=method, group=group))
    if not rows:
        return None
    drawn = pd.concat(points, ignore_index=True)
    return Exhibit(
        "method-differences",
        "Where methods differ",
        "How much better a method is than in_template_lp against how much longer the good sentences are than the bad "
        "ones, a point a paradigm, and their correlation with 95% intervals over paradigms (Ide et al. 2024, figure "
        "6).",
        pd.DataFrame(rows),
        cells={
            "method": as_it_is,
            "curve": as_it_is,
            "paradigms": count,
            "r": signed_text,
            "low": signed_text,
            "high": signed_text,
        },
        charts={str(name): partial(_difference_panel, drawn, str(name)) for name in drawn["method"].unique()},
    )


def _difference_panel(rows: pd.DataFrame, name: str, width: int | str) -> Any:
    return difference_chart(rows, name, width=width)


def _shuffled(by_paradigm: pd.DataFrame, items: pd.DataFrame, groups: pd.Series) -> Exhibit | None:
    shuffled = shuffled_paradigms(items)
    if not shuffled.any() or shuffled.all():
        return None
    known = by_paradigm.assign(
        accuracy=by_paradigm["right"] / by_paradigm["pairs"], shuffled=by_paradigm["paradigm"].map(shuffled)
    )
    mean = _over_runs(known, groups, ["method", "shuffled"]).pivot_table(
        index=["method", "group"], columns="shuffled", values="accuracy", sort=False
    )
    mean = mean.dropna().reset_index()
    table = pd.DataFrame(
        {"method": mean["method"], "curve": mean["group"], "word-shuffling": mean[True], "others": mean[False]}
    )
    return Exhibit(
        "shuffled",
        "Word-shuffling paradigms",
        f"Accuracy on {plural(int(shuffled.sum()), 'paradigm')} whose two sentences have the same words in another "
        f"order, and on {plural(int((~shuffled).sum()), 'other')} (Ide et al. 2024, section 6).",
        table,
        cells={"method": as_it_is, "curve": as_it_is},
    )


def _attractors(by_paradigm: pd.DataFrame, groups: pd.Series) -> Exhibit | None:
    accuracies = accuracy_by_attractor(by_paradigm)
    if accuracies["method"].nunique() < 2:
        return None
    rows = _over_runs(accuracies, groups, ["method", "condition"])
    conditions = list(dict.fromkeys(rows["condition"]))
    table = rows.pivot(index=["method", "group"], columns="condition", values="accuracy")[conditions]
    table = table.reindex(rows.set_index(["method", "group"]).index.drop_duplicates()).rename_axis(None, axis=1)
    loss = (table[conditions[0]] - table[conditions[1:]].mean(axis=1)).to_numpy()
    drawn, low = rows.rename(columns={"group": "model"}), axis_start(rows["accuracy"])
    return Exhibit(
        "attractor-methods",
        "Attractors under each method",
        "Subject-verb agreement with no attractor, with one as a relational noun, and with one in a relative clause, "
        "by each method (Ide et al. 2024, figure 4), of its best template or trial where it has several, means over "
        "runs; loss: how far the mean of the last two lies below the first.",
        table.reset_index().rename(columns={"group": "curve"}).assign(loss=loss),
        cells={"method": as_it_is, "curve": as_it_is, "loss": signed_text},
        charts={str(name): partial(_attractor_panel, drawn, str(name), low) for name in drawn["method"].unique()},
    )


def _attractor_panel(rows: pd.DataFrame, method: str, low: float, width: int | str) -> Any:
    return condition_chart(rows[rows["method"] == method], width=width, heading=method, domain=(low, 1.0))


def _prefixes(by_paradigm: pd.DataFrame, items: pd.DataFrame, groups: pd.Series) -> Exhibit | None:
    phenomena = items.drop_duplicates("paradigm").set_index("paradigm")["phenomenon"]
    accuracies = beside_prefix_methods(by_paradigm, phenomena)
    if accuracies.empty:
        return None
    rows = _over_runs(accuracies, groups, ["method", "level", "name"])
    columns = ["method", "name", "group", "paradigms", "accuracy", "full"]
    named = rows.assign(name=rows["name"].map(title))
    return Exhibit(
        "prefixes",
        "Full sentences and prefixes",
        "Accuracy when only the critical words are judged, after one prefix or after two, beside that of full "
        "sentences on the same paradigms (Warstadt et al. 2020, section 6.4 and figure 6).",
        named[columns].rename(columns={"name": "phenomenon", "group": "curve", "full": "full sentence"}),
        cells={"method": as_it_is, "phenomenon": as_it_is, "curve": as_it_is, "paradigms": count},
        charts={str(name): partial(_prefix_panel, named, str(name)) for name in named["method"].unique()},
        folded=True,
    )


def _predictors(files: pd.DataFrame, ties: str) -> Exhibit | None:
    if files.empty:
        return None
    rows = accuracy_by_predictor(files[["group", "path"]], ties)
    if rows.empty:
        return None
    table = rows[["group", "predictor", "x", "judgements", "accuracy", "low", "high"]]
    return Exhibit(
        "predictors",
        "Shallow predictors",
        "Accuracy by the length, perplexity and log-probability of the good sentence and by the model's confidence "
        "(Warstadt et al. 2020, section 5.2 and figure 2, whose bins pool paradigms): in ten bins of quantiles within "
        "each paradigm, what a bin lies above its paradigms' own accuracies being added to the mean of all, so that "
        "no line rises because easy paradigms have long sentences. Bands: 95% intervals over pairs.",
        table.rename(columns={"group": "curve", "x": "median"}),
        cells={"curve": as_it_is, "predictor": as_it_is, "median": short_text, "judgements": count},
        charts={name: partial(_predictor_panel, rows, name) for name in PREDICTORS if name in set(rows["predictor"])},
        folded=True,
    )


def _predictor_panel(rows: pd.DataFrame, name: str, width: int | str) -> Any:
    return predictor_chart(rows, name, width=width)


def _prefix_panel(rows: pd.DataFrame, name: str, width: int | str) -> Any:
    return prefix_chart(rows, name, width=width)


@contributes(70)
def methods(section: Section, report: Report) -> list[Exhibit]:
    return score_exhibits(report.study, section.judged, report.config.ties) if report.from_files else []
