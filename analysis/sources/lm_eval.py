"""Results and samples that lm-evaluation-harness writes.

    results_<date>.json          "results": {task: {"acc,none": ...}}, "n-samples", "config": {"model_args": ...}
    samples_<task>_<date>.jsonl  beside it, with --log_samples: {"doc_id", "doc", "acc", ...}, a line per pair

Results of its versions before 0.4 have "acc" for "acc,none", no "n-samples", and any name that ends in .json. A task of
BLiMP is a paradigm. If all results have their samples beside them, single pairs are known, too. The tasks of a run may
be in several files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.published import published_file
from analysis.sources.files import read_lines, read_object
from analysis.sources.published import BLIMP, COLUMNS, RUN, Outcomes
from analysis.sources.settings import ResultsConfig
from analysis.sources.sizes import parts_of, pattern_size, seed_of
from analysis.sources.table import number_of
from eval.benchmarks.cells import shown
from pairscale.errors import InputError, first_few

ENDINGS = (".json",)
_DATE = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.:-]+)$")  # in the names of files
_PATH = re.compile(r"(?:pretrained|model|path)=([^,]+)")  # in model_args
_REVISION = re.compile(r"revision=([^,]+)")


@dataclass(frozen=True)
class _Results:
    """One file of results: its rows (published.COLUMNS), the model in full, and whether `results.pattern` has a seed.

    `named` is the model as EleutherAI/pythia-70m, and "" if `results.pattern` names it.
    """

    file: Path
    rows: pd.DataFrame
    named: str
    seeded: bool


def lm_eval_outcomes(files: Sequence[Path], settings: ResultsConfig) -> Outcomes:
    """Read the rows of files of results. Raises InputError for other files, and without a size."""
    benchmark = settings.benchmark or BLIMP
    found = [_read(file, benchmark, settings) for file in sorted(files, key=_date)]
    results = [one for one in found if one is not None]
    if not results:
        raise InputError(
            f"{first_few([str(file) for file in files], 1)}: no results of tasks {benchmark}_* or {benchmark}. "
            "results.benchmark=NAME gives the beginning of their names."
        )
    _check_models(results)
    rows, notes = _latest(results, benchmark)
    if (rows["pair"] == "").any():
        rows = _counted(rows)
    if settings.n is not None:
        rows["n"] = rows["n"].fillna(settings.n)
    seeded: dict[str, bool] = {}
    for one in results:
        model = str(one.rows["model"].iloc[0])
        seeded[model] = seeded.get(model, False) or one.seeded
    origin = f"results of lm-evaluation-harness ({settings.metric})"
    return Outcomes(rows, benchmark, settings.metric, origin, seeded, notes)


def _date(file: Path) -> tuple[str, Path]:
    """Return the date in a file's name, "" without one, and the file: what files are sorted by."""
    date = _DATE.search(file.stem)
    return date[1] if date else "", file


def _latest(results: Sequence[_Results], benchmark: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of all files, those of the latest file if a run has a task in several, and notes on that.

    The group of all tasks only counts for runs of which nothing else is known, because it is a mean over them.
    """
    rows = pd.concat([one.rows.assign(file=place) for place, one in enumerate(results)], ignore_index=True)
    task = rows["paradigm"] != benchmark
    rows = rows[task | ~task.groupby([rows[name] for name in RUN]).transform("any")]
    latest = rows.groupby([*RUN, "paradigm"])["file"].transform("max")
    older = sorted({str(results[place].file) for place in rows.loc[rows["file"] < latest, "file"]})
    notes = [f"Some tasks of {first_few(older)} are read from later files, which have them, too."] if older else []
    return rows.loc[rows["file"] == latest, list(COLUMNS)], notes


def _check_models(results: Sequence[_Results]) -> None:
    """Raise InputError if two models would be one run, because their last names are the same."""
    first: dict[tuple[Any, ...], _Results] = {}
    for one in results:
        other = first.setdefault(tuple(one.rows[RUN].iloc[0]), one)
        if other.named != one.named:
            raise InputError(
                f"{one.file}: {one.named} would be one run with {other.named} ({other.file}). results.pattern='...' "
                "with (?P<model>...) or (?P<seed>...), and (?P<size>...), tells them apart."
            )


def _read(file: Path, benchmark: str, settings: ResultsConfig) -> _Results | None:
    """Return what a file of results contains, by pairs if it has samples beside it; None without the benchmark."""
    data = read_object(file)
    tasks = data.get("results")
    if not isinstance(tasks, dict):
        raise InputError(f"{file}: these are not results of lm-evaluation-harness, because they have no 'results'.")
    paradigms = _paradigms(data, benchmark)
    if not paradigms:
        return None
    run, named, seeded = _run(file, data, settings)
    rows: list[dict[str, Any]] = []
    for task, paradigm in paradigms.items():
        shared = {**run, "run": "", "paradigm": paradigm, "phenomenon": "", "tests": False}
        samples = _samples(file, task)
        if samples is not None:
            rows += _pairs(samples, shared, settings.metric)
        else:
            place = f"{file}: {task}"
            accuracy = _accuracy(tasks[task], settings.metric, place)
            rows.append(shared | {"pair": "", "place": place, "accuracy": accuracy, "n": _number(data, task)})
    return _Results(file, pd.DataFrame(rows)[list(COLUMNS)], named, seeded)


def _paradigms(data: Mapping[str, Any], benchmark: str) -> dict[str, str]:
    """Return the paradigms of a benchmark by task, blimp_adjunct_island: adjunct_island; its group is one if alone.

    BLiMP's paradigms are known. For others they are the tasks, without groups of tasks, below the benchmark if it is a
    group, or else those whose names begin with its name.
    """
    raw = data.get("group_subtasks")
    groups = {name: of for name, of in raw.items() if of and isinstance(of, list)} if isinstance(raw, dict) else {}
    below: set[str] = set()
    waiting = list(groups.get(benchmark, ()))
    while waiting:
        name = str(waiting.pop())
        if name not in below:
            below.add(name)
            waiting += groups.get(name, ())
    known = set(published_file("blimp_paradigms")["paradigm"]) if benchmark == BLIMP else None
    paradigms: dict[str, str] = {}
    for task in data["results"]:
        name = task.removeprefix(f"{benchmark}_").lstrip("_")
        chosen = task in below if below and known is None else task.startswith(f"{benchmark}_")
        if chosen and task not in groups and (known is None or name in known):
            paradigms[task] = name
    return paradigms or {task: task for task in data["results"] if task == benchmark}


def _run(file: Path, data: Mapping[str, Any], settings: ResultsConfig) -> tuple[dict[str, Any], str, bool]:
    """Return the columns of RUN for a file of results, and `named` and `seeded` of _Results."""
    config = data.get("config")
    arguments = config.get("model_args") if isinstance(config, dict) else None
    if isinstance(arguments, dict):
        values = {key: value for key, value in arguments.items() if isinstance(value, str | int | float)}
        arguments = ",".join(f"{key}={value}" for key, value in values.items())
    text = str(arguments or "")
    revision, found = _REVISION.search(text), _PATH.search(text)
    # A folder such as step2_eval/ may be named for any reason, but model_args for what was loaded.
    parts = parts_of(f"{file.as_posix()} {text}", settings, (revision[1] if revision else "", text))
    path = Path(str(data.get("model_name") or (found[1] if found else None) or file.parent.name))
    size = pattern_size(parts, settings, str(file))
    if size is None:
        raise InputError(
            f"{file}: no size in its path or model_args ({text[:60]}). Give results.size=SIZE or "
            "results.pattern='(?P<size>...)'."
        )
    run = {"model": parts.get("model") or path.name, "removed": "", "size": size, "seed": seed_of(parts, str(file))}
    return run, "" if "model" in parts else str(path), "seed" in parts


def _samples(file: Path, task: str) -> Path | None:
    """Return the samples of a task that were written with a file of results."""
    date = _DATE.search(file.stem)
    path = file.with_name(f"samples_{task}{date[0]}.jsonl") if date else None
    return path if path is not None and path.is_file() else None


def _pairs(file: Path, shared: Mapping[str, Any], metric: str) -> list[dict[str, Any]]:
    rows = []
    for where, sample in read_lines(file):
        doc: Any = sample.get("doc")
        doc = doc if isinstance(doc, dict) else {}
        if "doc_id" not in sample:
            raise InputError(f"{where}: this is not a sample of lm-evaluation-harness, because it has no 'doc_id'.")
        judged = {"accuracy": _accuracy(sample, metric, where), "n": 1.0, "place": where}
        phenomenon, pair = str(doc.get("linguistics_term") or ""), str(doc.get("pairID", sample["doc_id"]))
        rows.append({**shared, **judged, "phenomenon": phenomenon, "pair": pair})
    if not rows:
        raise InputError(f"{file}: contains no samples.")
    return rows


def _accuracy(of: Any, metric: str, where: str) -> float:
    """Return a metric of results or of a sample: "acc", or "acc,none" since version 0.4."""
    values: dict[str, Any] = of if isinstance(of, dict) else {}
    value = values.get(metric, values.get(f"{metric},none"))
    if value is None:
        there = sorted({name.partition(",")[0] for name, one in values.items() if isinstance(one, int | float)})
        raise InputError(f"{where}: no {metric} (results.metric). There are: {', '.join(there) or 'none'}.")
    number = number_of(value)
    if number is None or not 0 <= number <= 1:
        raise InputError(f"{where}: {metric} is {shown(value)}, must be from 0 to 1 (results.metric).")
    return number


def _number(data: Mapping[str, Any], task: str) -> float:
    """Return the number of a task's pairs, NaN if it is not known."""
    counts = data.get("n-samples")
    of = counts.get(task) if isinstance(counts, dict) else None
    number = of.get("effective") if isinstance(of, dict) else None
    return float(number) if isinstance(number, int) and number > 0 else float("nan")


def _counted(rows: pd.DataFrame) -> pd.DataFrame:
    """Return accuracies of paradigms, because only some results have samples of pairs."""
    rest = {name: (name, "first") for name in ("run", "phenomenon", "pair", "tests", "place")}
    how = {**rest, "accuracy": ("accuracy", "mean"), "n": ("n", "sum")}
    of_pairs = rows["pair"] != ""
    counted = rows[of_pairs].groupby([*RUN, "paradigm"], sort=False, as_index=False).agg(**how)
    counted[["pair", "phenomenon"]] = ""  # results without samples don't name the phenomenon
    return pd.concat([rows[~of_pairs], counted], ignore_index=True)[list(COLUMNS)]
