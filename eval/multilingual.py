"""The multilingual track of BabyLM: its tasks, and results in the form of lm-evaluation-harness.

<paths.reports>/<study>/babylm/multilingual/
    accuracies.csv                                               one row per run, task and subtask (COLUMNS)
    results/<run>/results.json                                   zero-shot tasks, for print_results_table.py
    finetune/results/<run>/<language>/<task>/all_results.json    fine-tuning, for print_finetune_results.py
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from eval.benchmarks.config import ColumnsConfig
from eval.scores.accuracy import outcomes
from eval.scores.files import read_items, read_scores, score_path, with_phenomena
from eval.scores.table import WIDTH
from eval.submission import Task
from pairscale.console import print_text
from pairscale.files import write_text
from pairscale.tables import filled_table, print_table, write_csv
from train.runs.folder import RunFolder

LANGUAGES = {"eng": "en", "nld": "nl", "zho": "zh"}  # the codes of languages, and their folders in the data
FINE_TUNING = ("arc", "belebele", "bmlama", "include", "mnli", "sib200", "truthfulqa", "xnli")
COLUMNS = ["run", "kind", "language", "task", "subtask", "items", "accuracy"]  # accuracies are in percent
_MUBENCH = ("winogrande", "xstorycloze", "hellaswag")
_HARNESS = {"multiblimp": "{task}_{language}", "xcomps": "{task}_{code}"} | dict.fromkeys(
    _MUBENCH, "{task}_{code}_mubench"
)
_ZERO_SHOT = {  # as in zeroshot_eng.yaml, zeroshot_nld.yaml and zeroshot_zho.yaml
    "eng": ("multiblimp", "blimp", *_MUBENCH),
    "nld": ("multiblimp", "winogrande", "hellaswag", "xcomps", "blimp_nl", "xstorycloze"),
    "zho": (*_MUBENCH, "xcomps", "zhoblimp"),
}


def zero_shot_tasks(data: Path, languages: Sequence[str] | None) -> list[Task]:
    """Return the zero-shot tasks of some languages, by default of those that have a folder of a task in `data`."""
    tasks = []
    for language, code in LANGUAGES.items():
        folders = {task: f"multilingual/{code}/{task}" for task in _ZERO_SHOT[language]}
        if language in languages if languages else any((data / folder).is_dir() for folder in folders.values()):
            for task, folder in folders.items():
                benchmark = "mubench" if task in _MUBENCH else task
                tasks.append(Task(_harness_name(task, language), task, benchmark, folder, None, items=0))
    return tasks


def _harness_name(task: str, language: str) -> str:
    """Return the name of a task in lm-evaluation-harness."""
    return _HARNESS.get(task, task).format(task=task, language=language, code=LANGUAGES[language])


def settings(task: Task, folder: Path) -> dict[str, Any]:
    """Return a task's settings of its benchmark, with the harness's space before each sentence or option."""
    named = {"name": f"zeroshot_{task.name}", "language": Path(task.full).parent.name}
    found: dict[str, Any] = {**named, "files": None, "separator": " "}
    if task.benchmark == "blimp_nl" and not any(folder.glob("Phenomenon*.csv")):  # the pairs of the hub's copy
        found |= {"columns": ColumnsConfig(), "labels": None}
    return found


def report(runs: Sequence[RunFolder], scored: Sequence[tuple[Task, str]], seed: int, folder: Path) -> None:
    """Write and print accuracies on tasks (with score folders) and fine-tuning. Raises RunError for damaged files."""
    table = pd.concat([_accuracies(run, scored, seed) for run in runs], ignore_index=True)
    write_csv(folder / "accuracies.csv", table)
    means = _means(table)
    for run, rows in means[means["kind"] == "zero-shot"].groupby("run"):
        write_text(folder / "results" / str(run) / "results.json", json.dumps(_harness_results(rows), indent=2))
    for row in means[means["kind"] == "fine-tuning"].to_dict("records"):
        place = f"finetune/results/{row['run']}/{LANGUAGES[row['language']]}/{row['task']}/all_results.json"
        write_text(folder / place, json.dumps({"eval_accuracy": row["accuracy"] / 100, "eval_samples": row["items"]}))
    _print(means, folder)


def _accuracies(run: RunFolder, scored: Sequence[tuple[Task, str]], seed: int) -> pd.DataFrame:
    """Return the accuracies of a run, with the columns of accuracies.csv."""
    rows: list[tuple[Any, ...]] = []
    for language, code in LANGUAGES.items():
        for task, label in scored:
            if task.full.startswith(f"multilingual/{code}/"):
                for subtask, right in _right(run.scores(label)).groupby("paradigm", sort=False)["right"]:
                    rows.append(("zero-shot", language, task.title, subtask, len(right), 100 * right.mean()))
        for name in FINE_TUNING:
            tuned = run.finetuned(f"{name}_{code}", seed)
            if tuned.done:
                table = pd.read_csv(tuned.path / "predictions.csv", dtype=str)
                right = table["predicted"] == table["label"]
                rows.append(("fine-tuning", language, name, name, len(table), 100 * right.mean()))
    return pd.DataFrame(rows, columns=COLUMNS[1:]).assign(run=run.path.name)[COLUMNS]


def _right(folder: Path) -> pd.DataFrame:
    """Return the paradigm of each item, and whether the first of the best options, as in the harness, is right."""
    paths = [path for path in (score_path(folder, "lp"), score_path(folder, "pll")) if path.exists()]
    if not paths:
        return pd.DataFrame(columns=["paradigm", "right"])
    items, _ = read_items(folder)
    scores = with_phenomena(read_scores(paths[0])[0], items)
    scores = scores.merge(items[["paradigm", "pair_id", "gold"]], on=["paradigm", "pair_id"], validate="one_to_one")
    is_later = (scores["rival"] < scores["gold"]).fillna(False).to_numpy(dtype=np.bool_)
    right = np.where(is_later, outcomes(scores, "wrong"), outcomes(scores, "right"))
    return scores[["paradigm"]].assign(right=right)


def _means(table: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy on each task: the mean over items, or over paradigms for BLiMP, as in the harness."""
    weights = table["items"].where(table["task"] != "blimp", 1)
    rows = table.assign(weight=weights, accuracy=weights * table["accuracy"], right=table["items"] * table["accuracy"])
    sums = rows.groupby(["run", "kind", "language", "task"], sort=False)[["items", "right", "weight", "accuracy"]].sum()
    sums["accuracy"] /= sums.pop("weight")
    return sums.reset_index()


def _harness_results(rows: pd.DataFrame) -> dict[str, Any]:
    """Return a run's accuracies on zero-shot tasks as in the harness's file of results."""
    results: dict[str, Any] = {}
    for language, tasks in rows.groupby("language", sort=False):
        group = f"zeroshot_{language}"
        results[group] = {"alias": group, "acc,none": tasks["right"].sum() / tasks["items"].sum() / 100}
        for task, share in zip(tasks["task"], tasks["accuracy"] / 100, strict=True):
            name = _harness_name(task, str(language))
            results[name] = {"alias": f" - {name}", "acc,none": share}
    return {"results": results}


def _print(means: pd.DataFrame, folder: Path) -> None:
    """Print tables with the accuracy of each run on each task, and their mean, for each language."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    for (language, kind), rows in means.groupby(["language", "kind"], sort=False):
        names, cells = list(dict.fromkeys(rows["task"])), []
        for run, tasks in rows.groupby("run", sort=False):
            # Python's `round`, as in their scripts, because pandas rounds some halves to another digit.
            of_tasks = {name: round(value, 2) for name, value in zip(tasks["task"], tasks["accuracy"], strict=True)}
            texts = [f"{of_tasks[name]:.2f}" if name in of_tasks else "" for name in names]
            cells.append([str(run), *texts, f"{round(sum(of_tasks.values()) / len(of_tasks), 2):.2f}"])
        print_text(console, f"{language}, {kind}")
        print_table(console, filled_table(["run", *names, "mean"], cells, ["run"]))
    print_text(console, f"Accuracy in %. Written to {folder}")
