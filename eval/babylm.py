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
from eval.submission import MAIN, TASKS, Task
from pairscale.command.compose import compose
from pairscale.command.line import Line, current
from pairscale.command.main import main
from pairscale.console import print_text, say
from pairscale.errors import ConfigError, InputError, RunError, first_few
from pairscale.files import write_text
from pairscale.tables import filled_table, print_table, write_csv
from train.runs.folder import RunFolder, study_runs

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
    failure = None
    try:  # BLiMP comes last, because the line of a run shows its last accuracy.
        score_study(*(part.config for part in reversed(parts)), tables=config.verbose)
    except RunError as error:  # some runs could not be scored, but the others can be submitted
        failure = error
    done = [one for one in study_runs(config.paths.runs, config.study) if one.done]
    if done and not config.dry_run:
        _report(config, parts, done)
    if failure is not None:
        raise failure


def _report(config: BabylmConfig, parts: list[Part], done: list[RunFolder]) -> None:
    """Write the submissions and the accuracies of finished runs, and print these."""
    folder = Path(config.paths.reports) / str(config.study) / "babylm"
    if config.track == "multilingual":
        multilingual.report(done, parts, config.languages, folder / "multilingual")
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
    methods = dict.fromkeys(("lp", "pll", *task.methods))  # a report reads lp and pll by default
    words = (f"benchmark={task.benchmark}", f"method=[{','.join(methods)}]")
    whole: EvalConfig = compose("eval", Line(words, current().folders))
    shared = {key.name: getattr(config, key.name) for key in dataclasses.fields(config) if hasattr(whole, key.name)}
    has_snapshots = bool(suffix) if config.track != "multilingual" else config.scoring.snapshots
    shared["scoring"] = dataclasses.replace(config.scoring, snapshots=has_snapshots)
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
        steps = one.snapshots if part.fast else (None,)
        found = [of for step in steps if (of := submission.judged(task, scores, step, str(part.config.ties)))]
        revisions = submission.revisions_of(config.track, [of["words_seen"] for _, of in found] if part.fast else ())
        for table, about in found:
            kinds.add(submission.backend(about))
            revision = revisions.get(about["words_seen"]) if part.fast else MAIN
            rows += _accuracies(table, revision, about.get("words_seen"), task.name)
            if not part.fast:
                results[task.name] = submission.collated(table)
            elif revision:
                fast.setdefault(task.name, {})[revision] = submission.accuracies_of(table)
            if len(table) != (official := task.fast_items if part.fast else task.items):
                notes.append(f"{part.config.benchmark.name} has {len(table):,} items instead of {official:,}")
    tuned, measures = submission.finetuned(one, config.seed)
    results["glue"] = submission.collated(tuned)
    counts = tuned["subtask"].value_counts()
    rows += [(MAIN, None, "glue", name, counts[name], 100 * share) for name, share in measures.items()]
    rows += _reading_rows(one, config, fast)
    results |= _surprisals(one, config)
    if results["aoa"]:
        rows.append((MAIN, None, "aoa", "aoa", None, 100 * results["aoa"]["aoa"]))
    results["fast_eval_results"] = submission.fast_results(config.track, fast)
    if notes := [*dict.fromkeys(notes), *_lacking(config, results, counts)]:
        say(f"{one.path.name}: {'; '.join(notes)}", "Incomplete:", "yellow")
    name = f"all_full_preds_and_fast_scores_{min(kinds, default='causal')}.json"
    write_text(folder / name, json.dumps(results, ensure_ascii=False))
    return pd.DataFrame(rows, columns=COLUMNS[1:]).assign(run=one.path.name)[COLUMNS]


def _lacking(config: BabylmConfig, results: dict[str, Any], counts: pd.Series) -> Iterator[str]:
    """Yield what a submission lacks. `counts` has the number of predictions for each task of GLUE."""
    if missing := [name for name, found in results.items() if found is None]:
        yield f"there are no results for {', '.join(missing)}"
    if missing := [name for name in submission.GLUE if name not in counts]:
        yield f"fine-tuning with seed={config.seed} isn't finished for {', '.join(missing)}"
    for name, official in submission.GLUE.items():
        if counts.get(name, official) != official:
            yield f"{name} has {counts[name]:,} items instead of {official:,}"
    fast, names = results["fast_eval_results"], [*submission.CHECKPOINTS[config.track]]
    if absent := [task for task, of in fast.items() if not any(of)]:
        yield f"there are no results at checkpoints for {', '.join(absent)}"
    some = [of for of in fast.values() if any(of)]
    if missing := [name for place, name in enumerate(names) if any(of[place] is None for of in some)]:
        yield f"there are no results at some checkpoints ({first_few(missing, 5)})"
    if (config.policy.score_eos, config.policy.pll) != (False, "original"):
        yield "the scores aren't the pipeline's, because policy.score_eos or policy.pll has another value"


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
        of_run = table[table["run"] == one.path.name] if {*READING} <= set(table) else table[:0]
        is_fast = file == "snapshots.csv"
        seen = of_run["words_seen"].astype(int) if is_fast and len(of_run) else ()
        revisions = submission.revisions_of(config.track, seen)
        for row in of_run.to_dict("records"):
            words = int(row["words_seen"]) if is_fast else None
            revision = revisions.get(words) if words is not None else MAIN
            for column, name in READING.items():
                yield revision, words, "reading", name, None, row[column]
            if words is not None and revision:
                fast.setdefault("reading", {})[revision] = {name: row[key] / 100 for key, name in READING.items()}


def _surprisals(one: RunFolder, config: BabylmConfig) -> dict[str, Any]:
    """Return the surprisals that `python -m eval.surprisal` wrote for reading times and ages, as in a submission.

    Raises InputError or RunError if they belong to other texts or another model.
    """
    data = Path(config.evaluation_data).expanduser()
    folder = Path(config.paths.reports) / str(config.study) / "surprisal"
    found: dict[str, Any] = {}
    read = score_path(folder / submission.READING_TEXT, one.path.name)
    if read.exists() and (data / submission.READING_DATA).exists():
        found["reading"] = submission.reading(data, submission.of_model(read, one.model.digest()))
    paths = [score_path(folder / ages.TEXT, one.path.name, step) for step in one.snapshots]
    seen = {read_metadata(path)["words_seen"]: path for path in paths if path.exists()}
    files = {name: seen[words] for words, name in submission.revisions_of(config.track, seen).items()}
    if results := ages.surprisals(submission.CHECKPOINTS[config.track], data, files):
        file = next(iter(files.values()))
        found["aoa_surprisals"] = {"results": results}
        score = ages.score(results, data, file, one.read_manifest()["vocabulary"])
        found["aoa"] = None if score is None else {"aoa": score}
    return found


def _print(table: pd.DataFrame, folder: Path) -> None:
    """Print the accuracy of each run on each task, which is the mean over its subtasks."""
    main = table[table["revision"] == MAIN]
    title = {task.name: task.title for task in TASKS} | {"glue": "GLUE", "aoa": "Ages"}
    named = main["task"].map(title).fillna(main["subtask"].map({"spr": "SPR", "rt": "Eye"}))
    groups = main.groupby(["run", named], sort=False)["accuracy"]
    # A mean over some of GLUE's tasks can't be compared with others.
    is_whole = (groups.size() == len(submission.GLUE)) | (groups.size().index.get_level_values(1) != "GLUE")
    means = groups.mean().where(is_whole).unstack().round(2).dropna(axis=1, how="all")
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    rows = [[str(name), *(f"{value:.2f}".replace("nan", "") for value in row)] for name, *row in means.itertuples()]
    print_table(console, filled_table(["run", *means.columns], rows, ["run"]))
    print_text(console, "Accuracy in %. SPR and Eye: the share of the variance of reading times, in %.")
    if "GLUE" in means:
        print_text(console, "GLUE: the mean over seven tasks, with F1 for mrpc and qqp. A run that lacks one has none.")
    if "aoa" in set(main["task"]):
        print_text(console, "Ages: the correlation of models' and children's ages of words, times 100.")
    print_text(console, f"Written to {folder}")


if __name__ == "__main__":
    main("babylm", run)
