"""The command `python -m eval.babylm`: score a study on the zero-shot tasks of BabyLM, and write its submissions.

<paths.reports>/<study>/babylm/
    <run>/all_full_preds_and_fast_scores_<backend>.json    a submission (eval/submission.py)
    accuracies.csv                                         one row per run, revision and subtask (COLUMNS)
    multilingual/                                          the results of track=multilingual (eval/multilingual.py)
"""

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from rich.console import Console

from eval import ages, multilingual, submission
from eval.config import BabylmConfig, EvalConfig, score_label
from eval.run import score_study
from eval.scores.files import read_metadata, score_path
from eval.scores.table import WIDTH
from eval.submission import TASKS, Task
from pairscale.command.compose import compose
from pairscale.command.line import Line, current
from pairscale.command.main import main
from pairscale.console import print_text, say
from pairscale.errors import ConfigError, InputError, first_few
from pairscale.files import write_text
from pairscale.tables import filled_table, print_table, write_csv
from train.runs.folder import RunFolder, study_runs

MAIN = "main"  # the revision of a finished model; snapshots that no track asks for have none
# Accuracies are in percent. `items` is empty for scores of reading times, which are shares of the variance, in percent,
# and for ages of acquisition, where the score is a correlation times 100.
COLUMNS = ["run", "revision", "words_seen", "task", "subtask", "items", "accuracy"]
READING = {"self_paced_r2": "spr", "eye_tracking_r2": "rt"}  # columns of the analysis, and names in a submission


class Part(NamedTuple):
    """A task, or its subset for checkpoints, with the configuration that scores it."""

    task: Task
    config: EvalConfig

    @property
    def fast(self) -> bool:
        """Whether this is the subset for checkpoints."""
        return bool(self.config.scoring.snapshots)


def run(config: BabylmConfig) -> None:
    """Score the finished runs of a study on every task whose data are there, and write a submission for each run.

    Raises:
        ConfigError: If no study is given.
        InputError: If no task has data, or if they can't be read.
        RunError: If no run is finished, or if a run can't be scored.
    """
    if config.study is None:
        raise ConfigError("Which study? Add study=NAME.")
    if config.evaluation_data.startswith("None/"):  # ${paths.data} is not set
        raise InputError(
            "Where are the challenge's data? Set PAIRSCALE_DATA to the folder that contains babylm/, or give "
            "evaluation_data=FOLDER."
        )
    parts = _parts(config)
    # BLiMP comes last, because the line of a run shows its last accuracy.
    score_study(*(part.config for part in reversed(parts)), tables=config.verbose)
    if config.dry_run:
        return
    folder = Path(config.paths.reports) / config.study / "babylm"
    done = [one for one in study_runs(config.paths.runs, config.study) if one.done]
    if config.track == "multilingual":
        scored = [(part.task, score_label(part.config.benchmark, part.config.policy)) for part in parts]
        multilingual.report(done, scored, config.seed, folder / "multilingual")
        return
    table = pd.concat([_submit(one, config, parts, folder / one.path.name) for one in done], ignore_index=True)
    write_csv(folder / "accuracies.csv", table)
    _print(table, folder)


def _parts(config: BabylmConfig) -> list[Part]:
    """Return the tasks that have data. Say which of them don't. Raises InputError if none has."""
    data, parts, missing = Path(config.evaluation_data).expanduser(), [], []
    is_multilingual = config.track == "multilingual"
    for task in multilingual.zero_shot_tasks(data, config.languages) if is_multilingual else TASKS:
        folders = {"": data / ("" if is_multilingual else "full_eval") / task.full}
        if task.fast and config.scoring.snapshots:
            folders["_fast"] = data / "fast_eval" / task.fast
        for suffix, folder in folders.items():
            if any(folder.glob("*.*" if is_multilingual else "*.jsonl")):
                parts.append(Part(task, _configuration(config, task, suffix, folder)))
            else:
                missing.append(f"{task.benchmark} ({folder.relative_to(data)})")
    if not parts:
        raise InputError(
            f"evaluation_data={data}: there are no data for any task in this folder. It must contain full_eval, as in "
            "the archive of the challenge (https://osf.io/ryjfm), or folders such as multilingual/en/blimp for "
            "track=multilingual."
        )
    if missing:
        remedy = f"They have no files in {data}. To find out how to get them, run python -m eval.fetch benchmark=NAME."
        say(f"{', '.join(missing)}. {remedy}", "Left out:", "yellow")
    return parts


def _configuration(config: BabylmConfig, task: Task, suffix: str, folder: Path) -> EvalConfig:
    """Return the configuration that scores a task as the challenge's pipeline does."""
    words = (f"benchmark={task.benchmark}", f"method=[{','.join(task.methods)}]")
    whole: EvalConfig = compose("eval", Line(words, current().folders))
    shared = {key.name: getattr(config, key.name) for key in dataclasses.fields(config) if hasattr(whole, key.name)}
    shared["scoring"] = dataclasses.replace(config.scoring, snapshots=bool(suffix))
    changed: dict[str, Any] = {"path": str(folder), "dataset": None, "subset": None, "split": None}
    changed |= {"name": task.benchmark + suffix}
    changed |= multilingual.settings(task, folder) if config.track == "multilingual" else {}
    benchmark = dataclasses.replace(whole.benchmark, **changed)
    return dataclasses.replace(whole, **shared, benchmark=benchmark, ties=f"random:{config.seed}")


def _submit(one: RunFolder, config: BabylmConfig, parts: list[Part], folder: Path) -> pd.DataFrame:
    """Write the submission of a run. Return its accuracies, with the columns of accuracies.csv."""
    results: dict[str, Any] = dict.fromkeys([*(task.name for task in TASKS), "reading", "aoa_surprisals", "aoa"])
    fast: dict[str, dict[str, Any]] = {}
    rows: list[tuple[Any, ...]] = []
    kinds, notes = set(), []
    for part in parts:
        task, scores = part.task, one.scores(score_label(part.config.benchmark, part.config.policy))
        for step in one.snapshots if part.fast else (None,):
            if (found := submission.judged(task, scores, step, str(part.config.ties))) is None:
                continue
            table, about = found
            kinds.add(submission.backend(about))
            words = about.get("words_seen")
            revision = submission.revision_of(config.track, about["words_seen"]) if part.fast else MAIN
            rows += _accuracies(table, revision, words, task.name)
            if not part.fast:
                results[task.name] = submission.collated(table)
            elif revision:
                fast.setdefault(task.name, {}).setdefault(revision, submission.accuracies_of(table))
            if len(table) != (official := task.fast_items if part.fast else task.items):
                notes.append(f"{part.config.benchmark.name} has {len(table):,} items instead of {official:,}")
    tuned = submission.finetuned(one, config.seed)
    results["glue"] = submission.collated(tuned)
    rows += _accuracies(tuned, MAIN, None, "glue")
    rows += _reading_rows(one, config, fast)
    results |= _surprisals(one, config)
    if results["aoa"]:
        rows.append((MAIN, None, "aoa", "aoa", None, 100 * results["aoa"]["aoa"]))
    results["fast_eval_results"] = submission.fast_results(config.track, fast)
    lacking = [name for name in submission.CHECKPOINTS[config.track] if any(name not in of for of in fast.values())]
    if lacking:
        notes.append(f"there are no results at some checkpoints ({first_few(lacking, 5)})")
    if notes:
        say(f"{one.path.name}: {'; '.join(dict.fromkeys(notes))}", "Incomplete:", "yellow")
    name = f"all_full_preds_and_fast_scores_{min(kinds, default='causal')}.json"
    write_text(folder / name, json.dumps(results, ensure_ascii=False))
    return pd.DataFrame(rows, columns=COLUMNS[1:]).assign(run=one.path.name)[COLUMNS]


def _accuracies(table: pd.DataFrame, revision: str | None, words: int | None, task: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of accuracies.csv, without the run, for the judgements of a task."""
    counts = table["subtask"].value_counts()
    for subtask, share in submission.accuracies_of(table).items():
        yield revision, words, task, subtask, counts[subtask], 100 * share


def _reading_rows(one: RunFolder, config: BabylmConfig, fast: dict[str, dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows with the scores of reading times that `python -m analysis.reading` wrote, and add those to `fast`."""
    folder = Path(config.paths.reports) / str(config.study) / "reading" / submission.READING_TEXT / "tables"
    for file in ("models.csv", "snapshots.csv"):
        table = pd.read_csv(folder / file) if (folder / file).exists() else pd.DataFrame({"run": []})
        for row in table[table["run"] == one.path.name].to_dict("records") if {*READING} <= set(table) else ():
            words = int(row["words_seen"]) if file == "snapshots.csv" else None
            revision = submission.revision_of(config.track, words) if words else MAIN
            for column, name in READING.items():
                yield revision, words, "reading", name, None, row[column]
            if words and revision:
                shares = {name: row[column] / 100 for column, name in READING.items()}
                fast.setdefault("reading", {}).setdefault(revision, shares)


def _surprisals(one: RunFolder, config: BabylmConfig) -> dict[str, Any]:
    """Return the surprisals that `python -m eval.surprisal` wrote for reading times and ages, as in a submission."""
    data, folder = (
        Path(config.evaluation_data).expanduser(),
        Path(config.paths.reports) / str(config.study) / "surprisal",
    )
    files: dict[str, Path] = {}
    for step in one.snapshots:
        if (path := score_path(folder / ages.TEXT, one.path.name, step)).exists():
            revision = submission.revision_of(config.track, read_metadata(path)["words_seen"])
            files.setdefault(str(revision), path)
    results = ages.surprisals(submission.CHECKPOINTS[config.track], data, files)
    score = ages.score(results, data, path, one.read_manifest()["vocabulary"]) if results else None
    return {
        "reading": submission.reading(data, score_path(folder / submission.READING_TEXT, one.path.name)),
        "aoa_surprisals": results and {"results": results},
        "aoa": None if score is None else {"aoa": score},
    }


def _print(table: pd.DataFrame, folder: Path) -> None:
    """Print the accuracy of each run on each task, which is the mean over its subtasks."""
    main = table[table["revision"] == MAIN]
    title = {task.name: task.title for task in TASKS} | {"glue": "GLUE", "aoa": "Ages"}
    named = main["task"].map(title).fillna(main["subtask"].map({"spr": "SPR", "rt": "Eye"}))
    means = main.groupby(["run", named], sort=False)["accuracy"].mean().unstack().round(2)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    rows = [[str(name), *(f"{value:.2f}".replace("nan", "") for value in row)] for name, *row in means.itertuples()]
    print_table(console, filled_table(["run", *means.columns], rows, ["run"]))
    print_text(console, "Accuracy in %. SPR and Eye: the share of the variance of reading times, in %.")
    if "aoa" in set(main["task"]):
        print_text(console, "Ages: the correlation of models' and children's ages of words, times 100.")
    there = [task for task in submission.GLUE if task in set(main["subtask"])]
    if there and len(there) < len(submission.GLUE):
        print_text(console, f"GLUE is the mean over {', '.join(there)}.")
    print_text(console, f"Written to {folder}")


if __name__ == "__main__":
    main("babylm", run)
