"""Make the part of a report about the tasks of the BabyLM challenge, from the accuracies that eval.babylm wrote."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.config import AnalysisConfig
from analysis.curves.lines import add_intervals, estimate, fit_line
from analysis.curves.units import check_columns
from analysis.figures.charts import curve_chart
from analysis.figures.style import Chart, looks_of
from analysis.formats import level_text, plural, rows_of
from analysis.published import published_file
from analysis.report.exhibit import Exhibit
from analysis.report.findings import size_text
from analysis.report.labels import display_names, renamed
from analysis.report.write import Part
from analysis.study.long_table import tie_and_chance
from analysis.study.run_folders import Studies
from eval.babylm import COLUMNS, MAIN
from eval.submission import NEAR, TASKS

TITLES = {task.name: task.title for task in TASKS} | {"spr": "SPR", "rt": "Eye", "glue": "GLUE"}


def babylm_part(studies: Studies, config: AnalysisConfig) -> Part | None:
    """Return the part about BabyLM's tasks, or None if `python -m eval.babylm` hasn't scored these studies.

    Raises InputError if accuracies.csv lacks a column.
    """
    rows = _read_tasks(studies, config)
    main, confidence = rows[rows["revision"] == MAIN], config.analysis.confidence
    if main.empty:
        return None
    means, findings = _means(main, ["model", "task"], confidence), []
    for row in rows_of(means[means["task"] == means["task"].iloc[0]]):
        sure = f"{level_text(confidence)} confidence interval {row.low:.0%} to {row.high:.0%}"
        over = f" (mean over {plural(row.runs, 'run')}; {sure if row.low == row.low else 'no confidence interval'})"
        findings.append((row.model, f"accuracy on {row.task} is {row.value:.0%}{over}."))
    methods = (
        "The accuracy on a task is the mean over its subtasks. As in the challenge, ties are broken at random. The "
        f"{level_text(confidence)} confidence interval of a mean over R runs uses Student's t with R - 1 degrees of "
        "freedom. It applies to new samples of this corpus and new initialisations, on the same items (or only to new "
        "initialisations, if the runs of a model share a sample)."
    )
    lead = f"The tasks of the BabyLM challenge were scored in {plural(main['run'].nunique(), 'run')}."
    exhibits = [_exhibit(studies, rows, means, confidence)]
    return Part("babylm", "BabyLM", lead, exhibits=exhibits, findings=findings, methods=[methods])


def _read_tasks(studies: Studies, config: AnalysisConfig) -> pd.DataFrame:
    """Return one row per run, revision, words_seen and task, with its value, its model, and the columns of the run.

    The value is the mean over the subtasks that all runs have. Tasks have their titles, in the order of TITLES.
    """
    parts = [pd.DataFrame(columns=["study", *COLUMNS])]
    for study in studies.names:
        if (path := Path(config.paths.reports) / study / "babylm" / "accuracies.csv").is_file():
            parts.append(pd.read_csv(path, dtype={"run": str}).assign(study=study))
            check_columns(parts[-1], COLUMNS, f"python -m eval.babylm, which wrote {path}")
    options, runs = config.analysis, studies.runs[studies.runs["baseline"] == ""].drop(columns="words_seen")
    runs = renamed(runs, display_names(list(runs["curve"].unique()), options.labels), options.order)
    scores = pd.concat(parts[1:] or parts, ignore_index=True).merge(runs[["study", "run"]])
    names = scores["task"].mask(scores["task"] == "reading", scores["subtask"])
    order = {name: place for place, name in enumerate(TITLES)}
    scores = scores.assign(task=names).sort_values("task", key=lambda of: of.map(order), kind="stable")
    keys, kind = ["study", "run", "revision", "words_seen"], [scores["revision"] == MAIN, scores["task"]]
    models = scores.groupby(keys, dropna=False).ngroup()
    counts = models.groupby([*kind, scores["subtask"]]).transform("nunique")
    shared = scores[counts == models.groupby(kind).transform("nunique")]
    values = shared.groupby([*keys, "task"], dropna=False, sort=False)["accuracy"].mean() / 100
    sizes = [f", {size_text(of.sample_words, of.unit)}" if pd.notna(of.sample_words) else "" for of in rows_of(runs)]
    table = runs.assign(model=runs["curve"] + sizes).merge(values.rename("value").reset_index(), on=["study", "run"])
    return table.assign(task=table["task"].replace(TITLES))


def _means(rows: pd.DataFrame, by: Sequence[str], confidence: float) -> pd.DataFrame:
    """Return the mean value over the runs of each group, with the columns `by`, value, runs, low and high."""
    found = []
    for key, values in rows.groupby(list(by), sort=False)["value"]:
        line = fit_line(np.zeros(len(values)), np.zeros(len(values), dtype=np.intp))
        (value,), (variance,), (df,) = estimate([(line, values.to_numpy(float)[:, None])], slope=False)
        found.append((*key, value, len(values), np.sqrt(variance), df))
    return add_intervals(pd.DataFrame(found, columns=[*by, "value", "runs", "se", "df"]), "value", confidence)


def _exhibit(studies: Studies, rows: pd.DataFrame, means: pd.DataFrame, confidence: float) -> Exhibit:
    """Return the table of the finished models and published baselines, and the figure of the snapshots."""
    models, tasks = list(means["model"].unique()), list(means["task"].unique())
    wide = means.pivot(index="model", columns="task", values=["value", "low", "high"]).loc[models]
    wide.columns = wide.columns.map(" ".join).str.removeprefix("value ")
    theirs = published_file("babylm").replace({"task": TITLES}).pivot(index="model", columns="task", values="accuracy")
    wide = pd.concat([wide.assign(runs=means.groupby("model")["runs"].max()), theirs])
    columns = ["runs", *(f"{end}{task}" for task in tasks for end in ("", "low ", "high "))]
    table = wide.reindex(columns=columns).dropna(axis=1, how="all").rename_axis("model").reset_index()
    about = (
        "The table shows the accuracy of the finished models on all items, with confidence intervals if there are "
        "several runs, and baselines of the challenge. For reading times (SPR, Eye), it shows the share of the "
        "variance that only surprisal explains."
    )
    charts, looks, snapshots = {}, looks_of(models), rows[rows["revision"] != MAIN]
    if len(snapshots):
        charts = _panels(studies, snapshots, looks, tasks, confidence)
        about += (
            " The figure shows the accuracy of snapshots by words seen in training, with chance as a dashed line. They "
            "are scored on the challenge's fast subsets, which contain other items."
        )
    heading = "Tasks of the BabyLM challenge"
    return Exhibit("babylm", heading, about, table, {}, confidence, charts, legend=looks)


def _panels(
    studies: Studies, rows: pd.DataFrame, looks: pd.DataFrame, tasks: Sequence[str], confidence: float
) -> dict[str, Callable[[], Chart]]:
    """Return functions that draw one panel per task: accuracy by words seen, with means over runs and intervals."""
    rows = rows.sort_values(["model", "words_seen"], kind="stable")
    # Snapshots of runs with different seeds have seen almost the same number of words.
    begins = (rows["words_seen"] > (1 + NEAR) * rows["words_seen"].shift()) | (rows["model"] != rows["model"].shift())
    words = rows.groupby(begins.cumsum())["words_seen"].transform("mean").round()
    units = rows.assign(curve=rows["model"], level="task", name=rows["task"], sample_words=words, unit="words seen")
    lines = _means(units, ["curve", "level", "name", "sample_words"], confidence).rename(columns={"value": "accuracy"})
    units, levels = units.assign(accuracy=units["value"]), pd.DataFrame({"name": [], "accuracy": []}, dtype=float)
    folders = {label.partition("+")[0]: label for label in studies.files["benchmark"]}
    # Chance is 0 for correlations (WUG) and shares of the variance.
    with_chance = [task for task in TASKS if task.benchmark in folders and not task.name.startswith("wug")]
    chance = {task.title: tie_and_chance(studies, folders[task.benchmark])[1] for task in with_chance}
    draw = partial(curve_chart, units, lines, looks, levels)
    shown = [task for task in tasks if task in set(units["name"])]
    return {task: partial(draw, unit=("task", task), chance=chance.get(task, 0.0)) for task in shown}
