"""Exhibits from score files: judgement methods and shallow predictors, at each curve's largest size."""

from collections.abc import Container, Mapping
from functools import partial

import pandas as pd

from analysis.curves.designs import design_of
from analysis.curves.p_values import ALPHA
from analysis.exhibits.exhibit import Exhibit, existing
from analysis.exhibits.figures.accuracies import axis_start, condition_chart
from analysis.exhibits.figures.methods import (
    bands_note,
    difference_chart,
    length_chart,
    method_chart,
    predictor_chart,
    prefix_chart,
)
from analysis.exhibits.sentences.curves import plural
from analysis.exhibits.sentences.takeaways import by_curve, ranges, values
from analysis.exhibits.tables.text import accuracy_text, difference_text, per_cent_text, short_text, signed_text, title
from analysis.measures.accuracies import correlation
from analysis.measures.items import largest_size
from analysis.measures.methods import (
    MARGIN,
    accuracy_by_attractor,
    accuracy_by_difference,
    accuracy_limits,
    beside_prefix_methods,
    compare_methods,
    count_judgements,
    difference_of_methods,
    equivalent,
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


def score_exhibits(
    study: Study, judged: Judgements, ties: str, runs: pd.DataFrame | None = None, margin: float = MARGIN
) -> list[Exhibit]:
    """Return exhibits of one benchmark from the score files of its runs; none without files (W&B).

    `runs`: rows of Study.runs over which methods are compared, where they are more than those of `judged`. `margin`: of
    equivalence of two methods, in accuracy.
    """
    runs = judged.runs if runs is None else runs
    files = score_files(study, judged.label)
    files = files[files["run"].isin(runs.index)].reset_index(drop=True)
    if judged.of_paradigms or files.empty:
        return []
    files["group"] = files["run"].map(runs["group"])
    items, _ = read_items(files["path"].iloc[0].parent)
    of_all, by_difference = count_judgements(files, ties, judged.left_out)
    at = set(runs.index[largest_size(runs)])
    files, by_paradigm, by_difference = (part[part["run"].isin(at)] for part in (files, of_all, by_difference))
    groups = files.drop_duplicates("run").set_index("run")["group"]
    outcomes = pair_outcomes(files, ties, judged.left_out) if files["method"].nunique() > 1 else pd.DataFrame()
    overlaps = _overlaps(runs.loc[groups.index])
    judged_files = files[files["run"].isin(judged.runs.index)]
    return [
        *existing([
            _methods(by_paradigm, by_difference, groups, outcomes, overlaps),
            _compared(outcomes, groups, overlaps, margin),
            _by_size(of_all, runs),
            _lengths(by_difference, groups),
            _differences(by_paradigm, groups),
            _shuffled(by_paradigm, items, groups),
            attractors(by_paradigm, groups),
            _prefixes(by_paradigm, items, groups),
            _predictors(files[files["method"] == "lp"], ties, judged.left_out),
        ]),
        *item_exhibits(judged, judged_files, items),
    ]  # fmt: skip


def _overlaps(runs: pd.DataFrame) -> pd.Series:
    """Return the share of text that each run's sample shares with those of its group and size; 0 where unknown."""
    shares = pd.Series(0.0, index=runs.index)
    for _, of_group in runs[runs["sample_words"].notna()].groupby("group", sort=False):
        overlap = design_of(of_group).overlap
        shares[of_group.index] = 0.0 if overlap is None else overlap
    return shares


def _over_runs(rows: pd.DataFrame, groups: pd.Series, by: list[str]) -> pd.DataFrame:
    grouped = rows.assign(group=rows["run"].map(groups)).groupby(["group", *by], as_index=False, sort=False)
    return grouped.mean(numeric_only=True)


def _methods(
    by_paradigm: pd.DataFrame,
    by_difference: pd.DataFrame,
    groups: pd.Series,
    outcomes: pd.DataFrame,
    overlaps: pd.Series,
) -> Exhibit | None:
    if by_paradigm["method"].nunique() < 2:
        return None
    keys = ["group", "method"]
    accuracies = method_accuracies(by_paradigm)
    templates = accuracies.assign(group=accuracies["run"].map(groups)).groupby(keys)["best"]
    best = templates.agg(lambda names: " ".join(dict.fromkeys(names))).reset_index()
    bias = _over_runs(length_bias(by_difference), groups, ["method"])[[*keys, "r", "low", "high"]]
    limits = accuracy_limits(outcomes, groups, overlaps)[[*keys, "low", "high"]]
    rows = _over_runs(accuracies, groups, ["method"]).merge(best, on=keys, how="left")
    rows = rows.merge(bias.rename(columns={"low": "r low", "high": "r high"}), on=keys, how="left")
    rows = rows.merge(limits, on=keys, how="left")
    columns = {"method": "method", "group": "curve", "accuracy": "accuracy", "low": "low", "high": "high", "sd": "±",
               "best_accuracy": "best", "best": "template", "share_of_a": "share of A", "ties": "tied",
               "r": "r with length", "r low": "r low", "r high": "r high"}  # fmt: skip
    table = rows[list(columns)].rename(columns=columns).dropna(axis="columns", how="all")
    if (accuracies["repeats"] == 1).all():
        table = table.drop(columns=["best", "template"], errors="ignore")
    intervals = {"95% interval": ("accuracy", "low", "high"), "95% interval of r": ("r with length", "r low", "r high")}
    definitions = {
        "95% interval": "For new runs and new pairs of the same paradigms (of a single run, for new pairs; none where "
        "runs share their text).",
        "±": "Standard deviation over templates or trials (Ide et al. 2024, tables 3, 9 and 10).",
        "Best, template": "The template with the highest accuracy.",
        "r with length": "Point-biserial correlation between a correct judgement and the tokens of the good sentence "
        "minus those of the bad one (table 4), with its 95% interval for new pairs.",
    }
    return Exhibit(
        "methods",
        "Judgement methods",
        "Overall accuracy by method, means over runs at each curve's largest size.",
        table,
        cells={"tied": per_cent_text, "r with length": signed_text},
        intervals={heading: of for heading, of in intervals.items() if set(of) <= set(table)},
        charts={"accuracy": partial(method_chart, rows)},
        takeaways=by_curve(table, partial(values, name="method", value="accuracy")),
        definitions=definitions,
        optional=["95% interval of r"],
    )


def _compared(outcomes: pd.DataFrame, groups: pd.Series, overlaps: pd.Series, margin: float) -> Exhibit | None:
    rows = compare_methods(outcomes, groups, overlaps, margin) if len(outcomes) else outcomes
    if rows.empty:
        return None
    named = rows.assign(methods=rows["method"] + " − " + rows["other"])
    columns = {"methods": "methods", "group": "curve", "paradigms": "paradigms", "runs": "runs",
               "difference": "difference", "low": "low", "high": "high", "p": "p", "p_holm": "p (Holm)",
               "p_equivalent": "p (equivalence)", "over": "interval over"}  # fmt: skip
    table = named[list(columns)].rename(columns=columns)
    differ = int((rows["p_holm"] < ALPHA).sum())
    alike, within = int(equivalent(rows).sum()), accuracy_text(margin).rstrip("0")
    takeaway = (
        f"{differ} of {plural(len(rows), 'comparison')} of methods differ (p < .05, corrected by Holm); {alike} "
        f"{'is' if alike == 1 else 'are'} equivalent within {within} (two one-sided tests, p < .05, corrected by Holm, "
        "and an interval within it)."
    )
    about = (
        "Overall accuracy by one method minus that by another, on the paradigms that both judge, paired by pair and "
        "run."
    )
    definitions = {
        "95% interval": "With Student's t, for new runs and new pairs of the same paradigms (of a single run, for new "
        "pairs).",
        "p (Holm)": f"Corrected for all {plural(len(rows), 'comparison')} of methods here.",
        "p (equivalence)": f"Of two one-sided tests (Schuirmann 1987) that the methods differ by {within} or more "
        "(analysis.method_margin), corrected in the same way.",
    }
    return Exhibit(
        "methods-compared", "Methods compared", about, table, cells={"difference": signed_text},
        takeaways=[("", takeaway)], definitions=definitions,
    )  # fmt: skip


def _by_size(by_paradigm: pd.DataFrame, runs: pd.DataFrame) -> Exhibit | None:
    sizes = runs.groupby("size")["sample_words"].mean().sort_values().index
    if by_paradigm["method"].nunique() < 2 or len(sizes) < 2:
        return None
    accuracies = method_accuracies(by_paradigm)
    accuracies = accuracies.assign(group=accuracies["run"].map(runs["group"]), size=accuracies["run"].map(runs["size"]))
    wide = accuracies.pivot_table(index=["method", "group"], columns="size", values="accuracy", sort=False)
    wide = wide.reindex(columns=sizes).reset_index()
    table = pd.DataFrame({"method": wide["method"], "curve": wide["group"], **{size: wide[size] for size in sizes}})
    about = "Overall accuracy by method and size, means over runs."
    takeaways = by_curve(
        table.melt(["method", "curve"], list(sizes), value_name="accuracy"),
        lambda rows: f"{sizes[0]} to {sizes[-1]}: {ranges(rows, 'method', 'accuracy')}",
    )
    return Exhibit("methods-by-size", "Methods by size", about, table, takeaways=takeaways)


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
    cells = {"difference": difference_text}
    charts = {f"curve-{i}": partial(length_chart, parts[group], heading=group) for i, group in enumerate(parts)}
    about = (
        "Accuracy by the tokens of the good sentence minus those of the bad one, with 95% intervals for new pairs: a "
        "level line is a method without bias towards longer or shorter sentences (Ide et al. 2024, figure 2)."
        + bands_note(rows["method"])
    )
    takeaways = by_curve(
        table, lambda rows: f"from longer bad to longer good sentences: {ranges(rows, 'method', 'accuracy')}"
    )
    return Exhibit("lengths", "Unequal lengths", about, table, cells=cells, charts=charts, takeaways=takeaways)


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
    cells = {"r": signed_text}
    charts = {str(name): partial(difference_chart, drawn, str(name)) for name in drawn["method"].unique()}
    about = (
        "Accuracy of a method minus that of in_template_lp, against the tokens of the good sentences minus those of "
        "the bad ones, a point per paradigm, and their correlation with 95% intervals over paradigms (Ide et al. 2024, "
        "figure 6)."
    )
    return Exhibit("method-differences", "Where methods differ", about, pd.DataFrame(rows), cells=cells, charts=charts)


def _shuffled(by_paradigm: pd.DataFrame, items: pd.DataFrame, groups: pd.Series) -> Exhibit | None:
    shuffled = shuffled_paradigms(items)
    if not shuffled.any() or shuffled.all():
        return None
    known = by_paradigm.assign(shuffled=by_paradigm["paradigm"].map(shuffled))
    known["accuracy"] = known["right"] / known["pairs"]
    means = _over_runs(known, groups, ["method", "shuffled"])
    wide = means.pivot_table(index=["method", "group"], columns="shuffled", values="accuracy", sort=False)
    wide = wide.dropna().reset_index()
    table = pd.DataFrame(
        {"method": wide["method"], "curve": wide["group"], "word-shuffling": wide[True], "others": wide[False]}
    )
    about = (
        f"Accuracy on {plural(int(shuffled.sum()), 'paradigm')} whose two sentences are the same words in another "
        f"order, and on {plural(int((~shuffled).sum()), 'other')} (Ide et al. 2024, section 6)."
    )
    takeaways = by_curve(
        table.melt(["method", "curve"], ["word-shuffling", "others"], value_name="accuracy"),
        lambda rows: f"word-shuffling paradigms to others: {ranges(rows, 'method', 'accuracy')}",
    )
    return Exhibit("shuffled", "Word-shuffling paradigms", about, table, takeaways=takeaways)


def attractors(by_paradigm: pd.DataFrame, groups: pd.Series) -> Exhibit | None:
    accuracies = accuracy_by_attractor(by_paradigm)
    if accuracies["method"].nunique() < 2:
        return None
    rows = _over_runs(accuracies, groups, ["method", "condition"])
    conditions = list(dict.fromkeys(rows["condition"]))
    table = rows.pivot(index=["method", "group"], columns="condition", values="accuracy")[conditions]
    table = table.reindex(rows.set_index(["method", "group"]).index.drop_duplicates()).rename_axis(None, axis=1)
    loss = (table[conditions[0]] - table[conditions[1:]].mean(axis=1)).to_numpy()
    table = table.reset_index().rename(columns={"group": "curve"}).assign(loss=loss)
    drawn, domain = rows.rename(columns={"group": "model"}), (axis_start(rows["accuracy"]), 1.0)
    draw = partial(condition_chart, domain=domain)
    charts = {str(name): partial(draw, of, heading=str(name)) for name, of in drawn.groupby("method", sort=False)}
    about = (
        "Subject-verb agreement without an attractor, with a relational noun, and with one in a relative clause, by "
        "method (Ide et al. 2024, figure 4): of its best template or trial where it has several, means over runs; "
        "loss: the first minus the mean of the last two."
    )
    cells = {"loss": signed_text}
    takeaways = by_curve(table, lambda rows: f"loss by method: {values(rows, 'method', 'loss', signed_text)}")
    return Exhibit(
        "attractor-methods", "Attractors under each method", about, table, cells=cells, charts=charts,
        takeaways=takeaways,
    )  # fmt: skip


def _prefixes(by_paradigm: pd.DataFrame, items: pd.DataFrame, groups: pd.Series) -> Exhibit | None:
    phenomena = items.drop_duplicates("paradigm").set_index("paradigm")["phenomenon"]
    accuracies = beside_prefix_methods(by_paradigm, phenomena)
    if accuracies.empty:
        return None
    rows = _over_runs(accuracies, groups, ["method", "level", "name"])
    columns = {"method": "method", "name": "phenomenon", "group": "curve", "paradigms": "paradigms",
               "accuracy": "accuracy", "full": "full sentence"}  # fmt: skip
    named = rows.assign(name=rows["name"].map(title))
    table = named[list(columns)].rename(columns=columns)
    charts = {str(name): partial(prefix_chart, named, str(name)) for name in named["method"].unique()}
    about = (
        "Accuracy when only the critical words are judged, after one prefix or two, beside that of full sentences on "
        "the same paradigms (Warstadt et al. 2020, section 6.4 and figure 6)."
    )
    return Exhibit("prefixes", "Full sentences and prefixes", about, table, charts=charts)


def _predictors(files: pd.DataFrame, ties: str, left_out: pd.DataFrame) -> Exhibit | None:
    rows = accuracy_by_predictor(files[["group", "path"]], ties, left_out=left_out) if len(files) else files
    if rows.empty:
        return None
    about = (
        "Accuracy by the length, perplexity and log-probability of the good sentence and by the model's confidence "
        "(Warstadt et al. 2020, section 5.2 and figure 2, whose bins pool paradigms), in ten bins, with 95% intervals "
        "for new pairs."
    )
    bins = (
        "Quantiles within each paradigm: the difference of a bin from its paradigms' own accuracies is added to the "
        "mean of all, so that no line rises because easy paradigms have long sentences."
    )
    return binned_exhibit("predictors", "Shallow predictors", about, bins, rows, PREDICTORS, log={"perplexity"})


def binned_exhibit(
    name: str, heading: str, about: str, bins: str, rows: pd.DataFrame, labels: Mapping[str, str], log: Container[str]
) -> Exhibit:
    """Return accuracy over bins of predictors, a panel for each.

    bins: what they are. labels: of the predictors' axes. log: logarithmic ones.
    """
    columns = {"group": "curve", "predictor": "predictor", "x": "median"}
    names = [predictor for predictor in labels if predictor in set(rows["predictor"])]
    table = rows[[*columns, "judgements", "accuracy", "low", "high"]].rename(columns=columns)
    charts = {of: partial(predictor_chart, rows, of, labels[of], log=of in log) for of in names}
    cells, definitions = {"median": short_text}, {"Bins": bins}
    takeaways = by_curve(table, lambda rows: f"accuracy, first to last bin: {ranges(rows, 'predictor', 'accuracy')}")
    about += bands_note(rows["group"])
    return Exhibit(
        name, heading, about, table, cells=cells, charts=charts, definitions=definitions, takeaways=takeaways
    )


@contributes(70, from_files=True)
def methods(section: Section, report: Report) -> list[Exhibit]:
    margin = report.config.analysis.method_margin
    return score_exhibits(report.study, section.judged, report.config.ties, margin=margin)
