"""Make the part of a report about the tasks of the BabyLM challenge, from the accuracies that eval.babylm wrote."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.config import AnalysisConfig
from analysis.curves.lines import add_intervals, estimate, fit_line
from analysis.figures.charts import curve_chart
from analysis.figures.style import Chart, looks_of
from analysis.formats import joined, level_text, plural, rows_of
from analysis.published import published_file
from analysis.report.exhibit import Exhibit
from analysis.report.findings import size_text
from analysis.report.labels import display_names, renamed
from analysis.report.write import Part
from analysis.study.long_table import tie_and_chance
from analysis.study.run_folders import Studies
from eval.babylm import COLUMNS, MAIN
from eval.submission import NEAR, TASKS
from pairscale.errors import InputError

TITLES = {task.name: task.title for task in TASKS} | {"spr": "SPR", "rt": "Eye", "glue": "GLUE"}
_READING = {
    "SPR": "The share of the variance of self-paced reading times that only surprisal explains.",
    "Eye": "The same for the times of eye tracking (mean of four measures).",
}


def babylm_part(studies: Studies, config: AnalysisConfig) -> Part | None:
    """Return the part about BabyLM's tasks, or None if `python -m eval.babylm` hasn't scored these studies.

    Raises InputError if accuracies.csv lacks a column.
    """
    rows = _read_tasks(studies, config)
    main = rows[rows["revision"] == MAIN]
    if main.empty:
        return None
    level, sizes = config.analysis.confidence, main.groupby("model", sort=False)
    means = _means(main, ["model", "task"], level)
    runs, tasks = sizes["run"].nunique(), [name for name in TITLES.values() if name in set(main["task"])]
    tasks += sorted(set(main["task"]).difference(tasks))
    findings = []
    for row in rows_of(means[means["task"] == tasks[0]]):
        sure = f" ({level_text(level)} confidence interval {row.low:.0%} to {row.high:.0%})" if row.low > -1 else ""
        over = f", as a mean over {plural(row.runs, 'run')}" if row.runs > 1 else ""
        findings.append((row.model, f"accuracy on {row.task} is {row.value:.0%}{over}{sure}."))
    shared = [str(name) for name, of in sizes["sample"] if runs[name] > 1 and of.notna().all() and of.nunique() == 1]
    return Part(
        label="babylm",
        name="BabyLM",
        lead=f"The tasks of the BabyLM challenge were scored in {plural(int(runs.sum()), 'run')}.",
        exhibits=[_exhibit(studies, rows, means, tasks, level)],
        findings=findings,
        notes=[f"The runs of {joined(shared)} share a sample, so intervals only apply to new initialisations."]
        if shared
        else [],
        methods=[
            "Accuracies are counted as in the challenge: ties are broken at random, and the accuracy on a task is the "
            f"mean over its subtasks. The {level_text(level)} confidence interval of a mean over R runs uses Student's "
            "t with R - 1 degrees of freedom. It applies to new samples of this corpus and new initialisations, on the "
            "same items."
        ],
    )


def _read_tasks(studies: Studies, config: AnalysisConfig) -> pd.DataFrame:
    """Return one row per run, revision and task, with the columns of the runs, model, revision, words_seen and value.

    The value is the mean over the subtasks that all runs have. Tasks have their titles.
    """
    parts = [pd.DataFrame(columns=["study", *COLUMNS])]
    for study in studies.names:
        if (path := Path(config.paths.reports) / study / "babylm" / "accuracies.csv").is_file():
            parts.append(pd.read_csv(path, dtype={"run": str}).assign(study=study))
            if lacking := sorted(set(COLUMNS) - set(parts[-1])):
                again = f"Write it again: python -m eval.babylm study={study}"
                raise InputError(f"{path}: this file has no column {lacking[0]}. {again}")
    runs = renamed(
        studies.runs, display_names(list(studies.runs["curve"].unique()), config.analysis.labels), config.analysis.order
    )
    of_text = [
        f", {size_text(words, unit)}" if words > 0 else ""
        for words, unit in runs[["sample_words", "unit"]].fillna(0).to_numpy()
    ]
    runs = runs.drop(columns="words_seen").assign(model=runs["curve"] + of_text)
    scores = pd.concat(parts[1:] or parts, ignore_index=True)
    scores["task"] = scores["task"].mask(scores["task"] == "reading", scores["subtask"])
    scores["task"] = scores["task"].map(TITLES).fillna(scores["task"])
    moment = ["run", "revision", "words_seen"]
    keys = scores[moment].astype(str).agg(" ".join, axis=1)
    everywhere = keys.groupby([scores["task"], scores["subtask"]]).transform("nunique")
    scores = scores[everywhere == keys.groupby(scores["task"]).transform("nunique")]
    values = scores.groupby(["study", *moment, "task"], dropna=False, sort=False)["accuracy"].mean() / 100
    return runs[runs["baseline"] == ""].merge(values.rename("value").reset_index(), on=["study", "run"])


def _means(rows: pd.DataFrame, by: Sequence[str], confidence: float) -> pd.DataFrame:
    """Return the mean value over the runs of each group, with the columns `by`, value, runs, low and high."""
    found = []
    for key, values in rows.groupby(list(by), sort=False)["value"]:
        line = fit_line(np.zeros(len(values)), np.zeros(len(values), dtype=np.intp))
        (value,), (variance,), (df,) = estimate([(line, values.to_numpy(float)[:, None])], slope=False)
        found.append((*key, value, len(values), np.sqrt(variance), df))
    return add_intervals(pd.DataFrame(found, columns=[*by, "value", "runs", "se", "df"]), "value", confidence)


def _exhibit(
    studies: Studies, rows: pd.DataFrame, means: pd.DataFrame, tasks: Sequence[str], confidence: float
) -> Exhibit:
    """Return the table of the finished models and published baselines, and the figure of the snapshots."""
    models = list(means["model"].unique())
    wide = means.pivot(index="model", columns="task", values=["value", "low", "high"]).loc[models]
    wide.columns = wide.columns.map(" ".join).str.removeprefix("value ")
    wide.insert(0, "runs", means.groupby("model")["runs"].max())
    theirs = published_file("babylm").assign(task=lambda table: table["task"].map(TITLES))
    theirs = theirs.pivot(index="model", columns="task", values="accuracy")
    columns = ["runs", *(name for task in tasks for name in (task, f"low {task}", f"high {task}"))]
    table = pd.concat([wide, theirs]).reindex(columns=columns).dropna(axis=1, how="all").rename_axis("model")
    about = (
        "The table shows the accuracy of the finished models on all items, and published baselines of the challenge. "
        f"{'Brackets enclose confidence intervals. ' if means['low'].notna().any() else ''}"
    )
    charts, looks = {}, looks_of(models)
    if len(snapshots := rows[rows["revision"] != MAIN]):
        charts = _panels(studies, snapshots, looks, tasks, confidence)
        about += (
            "The figure shows accuracy by words seen in training, with chance as a dashed line. Snapshots are scored "
            "on the challenge's fast subsets, whose items aren't those of the table."
        )
    reading = {name: meaning for name, meaning in _READING.items() if name in table}
    return Exhibit(
        "babylm",
        "Tasks of the BabyLM challenge",
        about,
        table.reset_index(),
        {},
        confidence,
        charts,
        legend=looks,
        definitions=reading,
    )


def _panels(
    studies: Studies, rows: pd.DataFrame, looks: pd.DataFrame, tasks: Sequence[str], confidence: float
) -> dict[str, Callable[[], Chart]]:
    """Return functions that draw one panel per task: accuracy by words seen, with means over runs and intervals."""
    rows = rows.sort_values(["model", "words_seen"], kind="stable")
    # Runs with other seeds have snapshots after almost the same number of words.
    begins = rows["words_seen"] > (1 + NEAR) * rows["words_seen"].shift()
    rows["moment"] = (begins | (rows["model"] != rows["model"].shift())).cumsum()
    words = rows.groupby("moment")["words_seen"].transform("mean").round()
    names = {"curve": rows["model"], "name": rows["task"], "sample_words": words, "accuracy": rows["value"]}
    units = rows.assign(level="task", unit="words seen", **names)
    by = ["curve", "level", "name", "sample_words"]
    lines = _means(units, by, confidence).rename(columns={"value": "accuracy"})
    labels = {label.partition("+")[0]: label for label in studies.files["benchmark"]}
    benchmarks = {task.title: labels.get(task.benchmark) for task in TASKS}
    charts: dict[str, Callable[[], Chart]] = {}
    for task in [task for task in tasks if task in set(units["name"])]:
        label = benchmarks.get(task) if "WUG" not in task else None
        chance = tie_and_chance(studies, label)[1] if label else 0.0  # correlations and shares of the variance are 0
        levels = pd.DataFrame(columns=["name", "accuracy"], dtype=float)
        charts[task] = partial(curve_chart, units, lines, looks, levels, unit=("task", task), chance=chance)
    return charts
