"""Make the part of a report about the tasks of the BabyLM challenge, from the accuracies that eval.babylm wrote."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.curves.lines import ROUNDING, add_intervals
from analysis.curves.units import check_columns
from analysis.figures.charts import Axis, curve_chart, line_chart
from analysis.figures.style import Chart, looks_of
from analysis.formats import accuracy_text, level_text, plural, rows_of
from analysis.published import published_file
from analysis.report.exhibit import Exhibit
from analysis.report.findings import size_text
from analysis.report.labels import display_names, renamed
from analysis.report.write import Part
from analysis.study.long_table import tie_and_chance
from analysis.study.run_folders import Studies
from eval.submission import GLUE, MAIN, NEAR, TASKS

COLUMNS = ["run", "revision", "words_seen", "task", "subtask", "accuracy"]  # eval/babylm.py loads torch
Draw = Callable[[], Chart]
TITLES = {task.name: task.title for task in TASKS} | {"spr": "SPR", "rt": "Eye", "glue": "GLUE"}


def babylm_part(studies: Studies, config: AnalysisConfig) -> Part | None:
    """Return the part about BabyLM's tasks, or None if `python -m eval.babylm` hasn't scored these studies.

    Raises InputError if accuracies.csv lacks a column.
    """
    rows = _read_tasks(studies, config)
    if (main := rows[rows["revision"] == MAIN]).empty:
        return None
    confidence = config.analysis.confidence
    means, findings = _means(main, ["model", "task"], confidence), []
    for row in rows_of(means[means["task"] == means["task"].iloc[0]]):
        sure = f"{level_text(confidence)} confidence interval {row.low:.0%} to {row.high:.0%}"
        over = f" (mean over {plural(row.runs, 'run')}; {sure if row.low == row.low else 'no confidence interval'})"
        findings.append((row.model, f"accuracy on {row.task} is {row.value:.0%}{over}."))
    methods = (
        "The accuracy on a task is the mean over its subtasks. As in the challenge, ties are broken at random. The "
        f"{level_text(confidence)} confidence interval of a mean over R runs uses Student's t with R - 1 degrees of "
        "freedom. It applies to new initialisations and, if the runs of a model have different samples, to new samples."
    )
    lead = f"The tasks of the BabyLM challenge were scored in {plural(main['run'].nunique(), 'run')}."
    exhibit = _exhibit(studies, rows, means, confidence)
    return Part("babylm", "BabyLM", lead, exhibits=[exhibit], findings=findings, methods=[methods])


def _read_tasks(studies: Studies, config: AnalysisConfig) -> pd.DataFrame:
    """Return one row per run, revision, words_seen and task, with its value, its model, and the columns of the run.

    The value is the mean over the subtasks that all runs have. Tasks have their titles.
    """
    parts = [pd.DataFrame(columns=["study", *COLUMNS])]
    for study in studies.names:
        if (path := Path(config.paths.reports) / study / "babylm" / "accuracies.csv").is_file():
            parts.append(pd.read_csv(path, dtype={"run": str}).assign(study=study))
            check_columns(parts[-1], COLUMNS, f"python -m eval.babylm, which wrote {path}")
    options, runs = config.analysis, studies.runs[studies.runs["baseline"] == ""].drop(columns="words_seen")
    runs = renamed(runs, display_names(list(runs["curve"].unique()), options.labels), options.order)
    scores = pd.concat(parts[1:] or parts, ignore_index=True).merge(runs[["study", "run"]])
    scores["task"] = scores["task"].mask(scores["task"] == "reading", scores["subtask"]).replace(TITLES)
    # A mean over some of GLUE's tasks can't be compared with others.
    of_run = scores.groupby(["study", "run", "task"])["subtask"].transform("nunique")
    scores = scores[(scores["task"] != "GLUE") | (of_run == len(GLUE))]
    keys, kind = ["study", "run", "revision", "words_seen"], [scores["revision"] == MAIN, scores["task"]]
    models = scores.groupby(keys, dropna=False).ngroup()
    counts = models.groupby([*kind, scores["subtask"]]).transform("nunique")
    shared = scores[counts == models.groupby(kind).transform("nunique")]
    values = shared.groupby([*keys, "task"], dropna=False, sort=False)["accuracy"].mean() / 100
    sizes = [f", {size_text(of.sample_words, of.unit)}" if pd.notna(of.sample_words) else "" for of in rows_of(runs)]
    return runs.assign(model=runs["curve"] + sizes).merge(values.rename("value").reset_index(), on=["study", "run"])


def _means(rows: pd.DataFrame, by: Sequence[str], confidence: float) -> pd.DataFrame:
    """Return the mean value over the runs of each group, with the columns `by`, value, runs, low and high."""
    means = rows.groupby(list(by), sort=False)["value"].agg(value="mean", se="sem", runs="size").reset_index()
    means = means.assign(df=means["runs"] - 1, se=means["se"].where(means["se"] ** 2 > ROUNDING))
    return add_intervals(means, "value", confidence)


def _exhibit(studies: Studies, rows: pd.DataFrame, means: pd.DataFrame, confidence: float) -> Exhibit:
    """Return the table of the finished models and published baselines, and the figure of the snapshots."""
    models, looks = list(means["model"].unique()), looks_of(list(means["model"].unique()))
    wide = means.pivot(index="model", columns="task", values=["value", "low", "high"]).loc[models]
    wide.columns = wide.columns.map(" ".join).str.removeprefix("value ")
    theirs = published_file("babylm").replace({"task": TITLES}).pivot(index="model", columns="task", values="accuracy")
    wide = pd.concat([wide.assign(runs=means.groupby("model")["runs"].max()), theirs])
    columns = ["runs", *(f"{end}{task}" for task in means["task"].unique() for end in ("", "low ", "high "))]
    table = wide.reindex(columns=columns).dropna(axis=1, how="all").rename_axis("model").reset_index()
    about = (
        "The table shows the accuracy of finished models on all items, with confidence intervals if there are several "
        "runs. For reading times (SPR, Eye), it shows the share of the variance that only surprisal explains."
    )
    if charts := _panels(studies, rows[rows["revision"] != MAIN], looks, confidence):
        about += (
            " The figure shows the same for snapshots, by words seen in training, with chance as a dashed line. They "
            "are scored on the challenge's fast subsets, which contain other items."
        )
    cells = dict.fromkeys([one for one in columns if one.endswith(("SPR", "Eye"))], partial(accuracy_text, digits=4))
    return Exhibit("babylm", "Tasks of the BabyLM challenge", about, table, cells, confidence, charts, legend=looks)


def _panels(studies: Studies, rows: pd.DataFrame, looks: pd.DataFrame, confidence: float) -> dict[str, Draw]:
    """Return functions that draw one panel per task: accuracy by words seen, with means over runs and intervals."""
    rows = rows.sort_values(["model", "words_seen"], kind="stable")
    # Snapshots of runs with different seeds have seen almost the same number of words.
    begins = (rows["words_seen"] > (1 + NEAR) * rows["words_seen"].shift()) | (rows["model"] != rows["model"].shift())
    words = rows.groupby(begins.cumsum())["words_seen"].transform("mean").round()
    units = rows.assign(curve=rows["model"], level="task", name=rows["task"], sample_words=words, unit="words seen")
    lines = _means(units, ["curve", "level", "name", "sample_words"], confidence).rename(columns={"value": "accuracy"})
    units, levels = units.assign(accuracy=units["value"]), pd.DataFrame({"name": [], "accuracy": []}, dtype=float)
    folders = {label.partition("+")[0]: label for label in studies.files["benchmark"]}
    tasks = [task for task in TASKS if task.benchmark in folders]
    chance = {task.title: tie_and_chance(studies, folders[task.benchmark])[1] for task in tasks}
    charts: dict[str, Draw] = {}
    for name, of_task in units.groupby("name", sort=False):
        axis = Axis("Share of the variance" if name in ("SPR", "Eye") else "Value", ".4~f")
        charts[str(name)] = partial(line_chart, of_task, "value", axis, looks, unit="words seen", heading=str(name))
        if name in chance:
            draw = partial(curve_chart, units, lines, looks, levels, unit=("task", str(name)))
            charts[str(name)] = partial(draw, chance=chance[str(name)])
    return charts
