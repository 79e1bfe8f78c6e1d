"""The multilingual track of BabyLM: its tasks, and submissions in the form of its collate_results.py of July 2026.

<paths.reports>/<study>/babylm/multilingual/
    accuracies.csv                  one row per run, revision, task and subtask (COLUMNS)
    <run>/<run>_submission.json     task -> task, or language after fine-tuning -> accuracy, as a proportion
    <run>/<run>_predictions.json    results in the form of lm-evaluation-harness, predictions and log-probabilities
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from eval.benchmarks.config import ColumnsConfig
from eval.benchmarks.files import tables
from eval.config import EvalConfig, score_label
from eval.scores.accuracy import outcomes
from eval.scores.files import read_items, read_scores, score_path, with_phenomena
from eval.scores.table import WIDTH
from eval.submission import CHECKPOINTS, MAIN, MEANS, PIQA, Task, check_complete, predictions_of, revisions_of
from pairscale.console import print_text, say
from pairscale.errors import InputError, first_few
from pairscale.files import write_text
from pairscale.tables import filled_table, print_table, write_csv
from train.runs.folder import RunFolder

Part = tuple[Task, EvalConfig]
Predicted = Mapping[tuple[str, str], pd.DataFrame]  # predictions after fine-tuning, by task and language
LANGUAGES = {"eng": "en", "nld": "nl", "zho": "zh"}  # the codes of languages, and their folders in the data
FINE_TUNING = ("arc", "belebele", "bmlama", "include", "mnli", "sib200", "truthfulqa", "xnli")
# Accuracies are in percent. A snapshot that isn't a checkpoint of the challenge has no revision.
COLUMNS = ["run", "revision", "words_seen", "kind", "language", "task", "subtask", "items", "accuracy"]
_TRACK = "strict"  # the track with the same checkpoints
_MUBENCH = ("winogrande", "xstorycloze", "hellaswag")
_HANZI = ("hanzi_structure", "hanzi_pinyin")  # the challenge scores them from the log-probabilities
_BENCHMARKS = {"blimp": "babylm_blimp", **dict.fromkeys(_MUBENCH, "mubench"), **dict.fromkeys(_HANZI, "hanzi")}
_GROUPS = ("blimp", "zhoblimp")  # in the harness, each paradigm is a task of its own
_HARNESS = {
    "blimp": "blimp_babylm_filtered",
    "multiblimp": "{task}_{language}",
    **dict.fromkeys(("xcomps", *PIQA), "{task}_{code}"),
    **dict.fromkeys(_MUBENCH, "{task}_{code}_mubench"),
}
_ZERO_SHOT = {  # as in zeroshot_eng.yaml, zeroshot_nld.yaml and zeroshot_zho.yaml
    "eng": ("blimp", "multiblimp", *_MUBENCH, *PIQA),
    "nld": ("multiblimp", "winogrande", "hellaswag", "xcomps", "blimp_nl", "xstorycloze", *PIQA),
    "zho": (*_MUBENCH, "xcomps", "zhoblimp", *_HANZI, *PIQA),
}


def zero_shot_tasks(data: Path, languages: Sequence[str] | None) -> list[Task]:
    """Return the zero-shot tasks of some languages, by default of those that have a folder of a task in `data`."""
    tasks = []
    for language, code in LANGUAGES.items():
        folders = {task: f"multilingual/{code}/{task}" for task in _ZERO_SHOT[language]}
        if language in languages if languages else any((data / folder).is_dir() for folder in folders.values()):
            for task, folder in folders.items():
                name, benchmark = _harness_name(task, language), _BENCHMARKS.get(task, task)
                methods = MEANS if task in PIQA else ("lp", "pll")
                tasks.append(Task(name, task, benchmark, folder, None, items=0, methods=methods))
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
    if task.title in _HANZI:  # in the order of the file, for `_hidden`
        found |= {"columns": ColumnsConfig(paradigm="", phenomenon="", pair_id="")}
    return found


def report(runs: Sequence[RunFolder], parts: Sequence[Part], languages: Sequence[str] | None, folder: Path) -> None:
    """Write and print accuracies on tasks and after fine-tuning in some languages (None: all), and write submissions.

    Raises InputError if Hanzi pairs are in several tables, and RunError for damaged files.
    """
    found = []
    for run in runs:
        tuned = {(name, of): _predicted(run, name, of, parts) for of in languages or LANGUAGES for name in FINE_TUNING}
        predicted = {key: table for key, table in tuned.items() if table is not None}
        table = pd.DataFrame(_rows(run, parts, predicted), columns=COLUMNS[1:]).assign(run=run.path.name)[COLUMNS]
        _submit(run, parts, predicted, table, folder / run.path.name)
        found.append(table)
    table = pd.concat(found, ignore_index=True)
    write_csv(folder / "accuracies.csv", table.assign(accuracy=100 * table["accuracy"]))
    _print(_means(table[table["revision"] == MAIN]), folder)


def _rows(run: RunFolder, parts: Sequence[Part], predicted: Predicted) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of accuracies.csv for a run, without the run, and with accuracies as proportions."""
    for language, code in LANGUAGES.items():
        for task, config in parts:
            if not task.full.startswith(f"multilingual/{code}/"):
                continue
            steps = (None, *(run.snapshots if config.scoring.snapshots else ()))
            tables = {step: table for step in steps if (table := _judged(run, task, config, step)) is not None}
            seen = {step: table.attrs["words_seen"] for step, table in tables.items() if step is not None}
            revisions = revisions_of(_TRACK, seen.values())
            for step, table in tables.items():
                where = (MAIN, None) if step is None else (revisions.get(seen[step]), seen[step])
                for subtask, right in table.groupby("paradigm", sort=False)["right"]:
                    yield *where, "zero-shot", language, task.title, subtask, len(right), right.mean()
    for (name, language), table in predicted.items():
        share = (table["predicted"] == table["label"]).mean()
        yield MAIN, None, "fine-tuning", language, name, name, len(table), share


def _judged(run: RunFolder, task: Task, config: EvalConfig, step: int | None = None) -> pd.DataFrame | None:
    """Return the paradigm, the scores (good, bad) and the outcome (right) of each item in order, or None.

    As in the pipeline, a tie of k options counts as 1/k, but is wrong for Hanzi. For Global PIQA, the first one counts.
    """
    folder = run.scores(score_label(config.benchmark, config.policy))
    paths = [path for method in task.methods if (path := score_path(folder, method, step)).exists()]
    if not paths:
        return None
    items, _ = read_items(folder)
    scores, metadata = read_scores(paths[0])
    key = ["paradigm", "pair_id"]
    rows = items[[*key, "gold"]].merge(with_phenomena(scores, items), on=key, how="left", validate="one_to_one")
    check_complete(rows["good"], paths[0])
    right = outcomes(rows, "wrong" if task.title in _HANZI else "half")
    if task.title in PIQA:
        is_later = (rows["rival"] < rows["gold"]).fillna(False).to_numpy(dtype=np.bool_)
        right = np.where(is_later, outcomes(rows, "wrong"), outcomes(rows, "right"))
    table = rows[["paradigm", "good", "bad"]].assign(right=right)
    table.attrs["words_seen"] = metadata.get("words_seen")
    return table


def _predicted(run: RunFolder, task: str, language: str, parts: Sequence[Part]) -> pd.DataFrame | None:
    """Return the columns label and predicted after fine-tuning on a task, or None if it isn't finished."""
    tuned = run.finetuned(f"{task}_{LANGUAGES[language]}", parts[0][1].seed)
    return predictions_of(tuned) if tuned.done else None


def _means(table: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy on each task, which is the mean over items, as in the harness."""
    rows = table.assign(right=table["items"] * table["accuracy"])
    sums = rows.groupby(COLUMNS[:-3], sort=False, dropna=False)[["items", "right"]].sum().reset_index()
    return sums.assign(accuracy=sums["right"] / sums["items"])


def _submit(run: RunFolder, parts: Sequence[Part], predicted: Predicted, table: pd.DataFrame, folder: Path) -> None:
    """Write the two files of a run's submission. `table` has its accuracies, as proportions."""
    shares: dict[str, dict[str, dict[str, float]]] = {MAIN: {}, **{name: {} for name in CHECKPOINTS[_TRACK]}}
    for row in _means(table[table["revision"].notna()]).to_dict("records"):
        tuned = row["kind"] == "fine-tuning"
        name = row["task"] if tuned else _harness_name(row["task"], row["language"])
        of_task = shares[row["revision"]].setdefault(name, {})
        of_task.setdefault(LANGUAGES[row["language"]] if tuned else name, row["accuracy"])
    main = shares.pop(MAIN)
    zero_shot = table[(table["revision"] == MAIN) & (table["kind"] == "zero-shot")]
    predictions: dict[str, Any] = {
        "zeroshot": _harness_results(zero_shot),
        "finetune": {
            f"{task}_{LANGUAGES[of]}": [{"index": at, "prediction": text} for at, text in enumerate(found["predicted"])]
            for (task, of), found in predicted.items()
        },
        "hidden": {
            task.name: _hidden(config, found)
            for task, config in parts
            if task.title in _HANZI and (found := _judged(run, task, config)) is not None
        },
    }
    if parts[0][1].scoring.snapshots:
        predictions["fast_eval_results"] = [{name: of[name] for name, of in found.items()} for found in shares.values()]
        if lacking := [name for name, of in shares.items() if not of]:
            missing = f"there are no results at some checkpoints ({first_few(lacking, 5)})"
            say(f"{run.path.name}: {missing}", "Incomplete:", "yellow")
    submission = {name: of for name, of in main.items() if name not in _HANZI}
    for name, contents in {"submission": submission, "predictions": predictions}.items():
        write_text(folder / f"{run.path.name}_{name}.json", json.dumps(contents, ensure_ascii=False, indent=2))


def _harness_results(table: pd.DataFrame) -> dict[str, Any]:
    """Return a run's accuracies on zero-shot tasks and their groups as the harness writes them."""
    results: dict[str, Any] = {}
    for is_piqa in (False, True):
        metric = "acc_norm,none" if is_piqa else "acc,none"
        for language, rows in table[table["task"].isin(PIQA) == is_piqa].groupby("language", sort=False):
            group = f"global_piqa_{language}" if is_piqa else f"zeroshot_{language}"
            results[group] = {"alias": group, metric: np.average(rows["accuracy"], weights=rows["items"])}
            for row in _means(rows).to_dict("records"):
                name = _harness_name(row["task"], str(language))
                results[name] = {"alias": f" - {name}", metric: row["accuracy"]}
                subtasks = rows[(rows["task"] == row["task"]) & rows["task"].isin(_GROUPS)]
                for subtask, share in zip(subtasks["subtask"], subtasks["accuracy"], strict=True):
                    results[f"{name}_{subtask}"] = {"alias": f"  - {name}_{subtask}", metric: share}
    return results


def _hidden(config: EvalConfig, judged: pd.DataFrame) -> dict[str, Any]:
    """Return the log-probabilities of the pairs of a Hanzi task, by place and by the harness's hash of the table's row.

    As in collate_results.py, `has_unk` says that a pair isn't right although the good sentence has the higher score.
    """
    first, *others = tables(config.benchmark)
    if others:
        raise InputError(f"{config.benchmark.path}: there must be one table, as on the hub. Remove {others[0].source}.")
    rows = [row.cells for row in first.rows]
    found = {}
    columns = (judged[name].tolist() for name in ("good", "bad", "right"))
    for place, (cells, good, bad, right) in enumerate(zip(rows, *columns, strict=True)):
        text = json.dumps(cells, indent=2, ensure_ascii=False, default=str)
        key = f"{place}:{hashlib.sha256(text.encode()).hexdigest()}"
        found[key] = {"scores": [good, bad], "has_unk": bool(good >= bad and not right)}
    return found


def _print(means: pd.DataFrame, folder: Path) -> None:
    """Print tables with the accuracy of each run on each task, and their mean, for each language."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    for (language, kind), rows in means.groupby(["language", "kind"], sort=False):
        names, cells = list(dict.fromkeys(rows["task"])), []
        for run, tasks in rows.groupby("run", sort=False):
            # Python's `round`, as in their scripts, because pandas rounds some halves to another digit.
            of_tasks = {
                name: round(100 * value, 2) for name, value in zip(tasks["task"], tasks["accuracy"], strict=True)
            }
            texts = [f"{of_tasks[name]:.2f}" if name in of_tasks else "" for name in names]
            cells.append([str(run), *texts, f"{round(sum(of_tasks.values()) / len(of_tasks), 2):.2f}"])
        print_text(console, f"{language}, {kind}")
        print_table(console, filled_table(["run", *names, "mean"], cells, ["run"]))
    print_text(console, f"Accuracy in %. Written to {folder}")
