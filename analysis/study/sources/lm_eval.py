"""The source `lm_eval`: results and samples that lm-evaluation-harness writes.

    results_<date>.json          "results": {task: {"acc,none": ...}}, "n-samples", "config": {"model_args": ...}
    samples_<task>_<date>.jsonl  beside it, with --log_samples: {"doc_id", "doc", "acc", ...}, a line a pair

Results of its versions before 0.4 have "acc" for "acc,none", no "n-samples", and any name that ends in .json. A task of
BLiMP is a paradigm. Where all results have their samples beside them, judgements are of pairs, else of paradigms. Tasks
of a run may be in several files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.published import published_file
from analysis.study.collect import Study
from analysis.study.sources.config import ResultsConfig
from analysis.study.sources.json_files import read_lines, read_object
from analysis.study.sources.outcomes import (
    BLIMP,
    COLUMNS,
    RUN,
    Outcomes,
    outcome_judgements,
    read_cell_number,
    study_of,
    with_number,
)
from analysis.study.sources.paths import given_paths, study_name
from analysis.study.sources.sizes import fixed_size, parts_of, pattern_size, seed_of, size_text
from analysis.study.sources.source import source
from eval.benchmarks.cells import shown
from pairscale.errors import InputError, first_few

_UNREAD = ("results.full", "results.pairs", "results.percent")
_DATE = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.:-]+)$")  # of file names
_PATH = re.compile(r"(?:pretrained|model|path)=([^,]+)")  # in model_args
_REVISION = re.compile(r"revision=([^,]+)")


@dataclass(frozen=True)
class Results:
    """One file of results: its rows (outcomes.COLUMNS), and when it was written (-inf: not known).

    named: the model in full, such as EleutherAI/pythia-70m; "" where `results.pattern` names it. seeded: True if that
    finds a seed.
    """

    file: Path
    rows: pd.DataFrame
    named: str
    seeded: bool
    written: float


@source("lm_eval", judge=outcome_judgements, keys=("path", "results"), unread=_UNREAD)
def from_lm_eval(config: AnalysisConfig) -> list[Study]:
    """Read the study of the results at `config.path`. Raises ConfigError without a path, InputError for other files."""
    files = given_paths(config.path, "lm_eval", (".json",))
    benchmark = config.results.benchmark or BLIMP
    found = [read_results(file, benchmark, config.results) for file in files]
    results = [one for one in found if one is not None]
    if not results:
        raise InputError(
            f"{first_few([str(file) for file in files], 1)}: no results of tasks {benchmark}_*, nor {benchmark}; "
            "results.benchmark=NAME gives the beginning of their names"
        )
    table, notes = _joined(results, benchmark, config.results.unit)
    if (table["pair"] == "").any():
        table = _counted(table)
    table, known = with_number(table, config.results.n)
    seeds: dict[str, bool] = {}
    for one in results:
        model = str(one.rows["model"].iloc[0])
        seeds[model] = seeds.get(model, False) or one.seeded
    name = study_name(config.study, files[0], config.path)
    origin = f"results of lm-evaluation-harness ({config.results.metric})"
    outcomes = Outcomes(table, benchmark, config.results.metric, origin, seeds, known, notes)
    return [study_of(name, outcomes, config)]


def _joined(results: Sequence[Results], benchmark: str, unit: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of all files, of a task that a run has in several those of the latest, and notes.

    Notes are on the other files, and on models that are one curve. The group of all tasks counts only in runs of which
    nothing else is known: it is a mean over them.
    """
    by_date = sorted(results, key=lambda one: one.written)
    _check_models(by_date)
    table = pd.concat([one.rows.assign(file=place) for place, one in enumerate(by_date)], ignore_index=True)
    task = table["paradigm"] != benchmark
    table = table[task | ~task.groupby([table[name] for name in RUN]).transform("any")]
    latest = table.groupby([*RUN, "paradigm"])["file"].transform("max")
    again = table.assign(latest=latest)[table["file"] < latest].drop_duplicates(["file", "latest"])
    notes = _curve_notes(by_date)
    for row in again.itertuples(index=False):
        older, later = by_date[cast(int, row.file)], by_date[cast(int, row.latest)]
        how = "by date" if later.written > older.written else "by path, as no date tells"
        notes.append(
            f"Two results of {row.model} at {size_text(cast(float, row.size), unit)}: tasks of {_short(older.file)} "
            f"that {_short(later.file)} has too are read from that, the later one {how}."
        )
    return table.loc[table["file"] == latest, [*COLUMNS]], notes


def _check_models(results: Sequence[Results]) -> None:
    """Raise InputError where two models, in full, are one run."""
    first: dict[tuple[Any, ...], Results] = {}
    for one in results:
        other = first.setdefault(tuple(one.rows[[*RUN]].iloc[0]), one)
        if other.named != one.named:
            raise InputError(
                f"{one.file}: {one.named} would be one run with {other.named} ({other.file}), as both are "
                f"{one.rows['model'].iloc[0]} at one size; results.pattern='...' with (?P<model>...) or (?P<seed>...), "
                "and (?P<size>...), tells them apart"
            )


def _curve_notes(results: Sequence[Results]) -> list[str]:
    """Say which models, in full, are one curve as their last names are alike."""
    full: dict[str, set[str]] = {}
    for one in results:
        full.setdefault(str(one.rows["model"].iloc[0]), set()).add(one.named)
    return [
        f"{first_few(sorted(named))} are one curve, {model}; results.pattern='...' with (?P<model>...) and "
        "(?P<size>...) tells them apart."
        for model, named in full.items()
        if len(named) > 1
    ]


def _short(file: Path) -> str:
    return "/".join(file.parts[-2:])


def read_results(file: Path, benchmark: str, settings: ResultsConfig) -> Results | None:
    """Return what one file of results holds, of pairs if it has samples beside it.

    None if it has no task of the benchmark. Raises InputError for a file of another kind, and without a size.
    """
    data = read_object(file)
    tasks = data.get("results")
    if not isinstance(tasks, dict):
        raise InputError(f"{file}: no results of lm-evaluation-harness: it has no 'results'")
    paradigms = _paradigms(data, benchmark)
    if not paradigms:
        return None
    run, named, seeded = _run(file, data, settings)
    rows: list[dict[str, Any]] = []
    for task, paradigm in paradigms.items():
        shared = {**run, "paradigm": paradigm, "phenomenon": "", "tests": False}
        samples = _samples(file, task)
        if samples is not None:
            rows += _pairs(samples, shared, settings.metric)
        else:
            place = f"{file}: {task}"
            rows.append(shared | {
                "pair": "", "place": place, "accuracy": _accuracy(tasks[task], settings.metric, place),
                "n": _number(data, task),
            })  # fmt: skip
    return Results(file, pd.DataFrame(rows)[[*COLUMNS]], named, seeded, _written(file, data))


def _paradigms(data: Mapping[str, Any], benchmark: str) -> dict[str, str]:
    """Return the paradigms of a benchmark by task, blimp_adjunct_island: adjunct_island; its group is one if alone.

    Of BLiMP they are known; of others, tasks that are no groups of tasks: below the benchmark where it is a group, else
    of its name.
    """
    raw = data.get("group_subtasks")
    groups = {name: of for name, of in raw.items() if of and isinstance(of, list)} if isinstance(raw, dict) else {}
    below = _below(benchmark, groups)
    known = set(published_file("blimp_paradigms")["paradigm"]) if benchmark == BLIMP else None
    paradigms: dict[str, str] = {}
    for task in data["results"]:
        name = task.removeprefix(f"{benchmark}_").lstrip("_")
        of = task in below if below and known is None else task.startswith(f"{benchmark}_")
        if of and task not in groups and (known is None or name in known):
            paradigms[task] = name
    return paradigms or {task: task for task in data["results"] if task == benchmark}


def _below(group: str, groups: Mapping[str, list[Any]]) -> set[str]:
    """Return all tasks and groups below a group."""
    found: set[str] = set()
    waiting = list(groups.get(group, ()))
    while waiting:
        name = str(waiting.pop())
        if name not in found:
            found.add(name)
            waiting += groups.get(name, ())
    return found


def _written(file: Path, data: Mapping[str, Any]) -> float:
    """Return when results were written, in seconds: their date, or that of the file's name; -inf without one."""
    date = data.get("date")
    if isinstance(date, int | float):
        return float(date)
    named = _DATE.search(file.stem)
    day, _, time = named[1].partition("T") if named else ("", "", "")
    try:
        return datetime.fromisoformat(f"{day}T{time.replace('-', ':')}").timestamp()
    except ValueError:
        return float("-inf")


def _run(file: Path, data: Mapping[str, Any], settings: ResultsConfig) -> tuple[dict[str, Any], str, bool]:
    """Return model, removed, size and seed of a file of results; `named` and `seeded` of Results."""
    config = data.get("config") if isinstance(data.get("config"), dict) else {}
    arguments = (config or {}).get("model_args")
    written = (
        ",".join(f"{key}={value}" for key, value in arguments.items() if isinstance(value, str | int | float))
        if isinstance(arguments, dict)
        else str(arguments or "")
    )
    revision = _REVISION.search(written)
    # A folder such as step2_eval/ is named for many reasons, model_args by what was loaded.
    parts = parts_of(f"{file.as_posix()} {written}", settings, (revision[1] if revision else "", written))
    found = _PATH.search(written)
    named = data.get("model_name") or (found[1] if found else None) or file.parent.name
    fixed = fixed_size(settings)
    size = pattern_size(parts, settings, file) if fixed is None else fixed
    if size is None:
        raise InputError(
            f"{file}: no size in its path or model_args ({written[:60]}); give results.size=SIZE, or "
            "results.pattern='(?P<size>...)'"
        )
    path = Path(str(named))
    run = {"model": parts.get("model") or path.name, "removed": "", "size": size, "seed": seed_of(parts, file)}
    return run, "" if "model" in parts else str(path), "seed" in parts


def _samples(file: Path, task: str) -> Path | None:
    """Return the samples of a task that were written with a file of results."""
    date = _DATE.search(file.stem)
    path = file.with_name(f"samples_{task}{date[0]}.jsonl") if date else None
    return path if path is not None and path.is_file() else None


def _pairs(file: Path, shared: Mapping[str, Any], metric: str) -> list[dict[str, Any]]:
    rows = []
    for where, sample in read_lines(file):
        raw = sample.get("doc")
        doc: dict[str, Any] = raw if isinstance(raw, dict) else {}
        if "doc_id" not in sample:
            raise InputError(f"{where}: no sample of lm-evaluation-harness: it has no 'doc_id'")
        rows.append({
            **shared, "phenomenon": str(doc.get("linguistics_term") or ""),
            "pair": str(doc.get("pairID", sample["doc_id"])),
            "accuracy": _accuracy(sample, metric, where), "n": 1.0, "place": where,
        })  # fmt: skip
    if not rows:
        raise InputError(f"{file}: holds no samples")
    return rows


def _accuracy(of: Any, metric: str, where: str) -> float:
    """Return a metric of results or of a sample: "acc", or "acc,none" since version 0.4."""
    values: dict[str, Any] = of if isinstance(of, dict) else {}
    value = values.get(metric, values.get(f"{metric},none"))
    if value is None:
        there = sorted({name.partition(",")[0] for name, one in values.items() if isinstance(one, int | float)})
        raise InputError(f"{where}: no {metric} (results.metric); there are: {', '.join(there) or 'none'}")
    number = read_cell_number(value)
    if number is None or not 0 <= number <= 1:
        raise InputError(f"{where}: {metric} is {shown(value)}, must be from 0 to 1 (results.metric)")
    return number


def _number(data: Mapping[str, Any], task: str) -> float:
    counts = data.get("n-samples")
    of = counts.get(task) if isinstance(counts, dict) else None
    number = of.get("effective") if isinstance(of, dict) else None
    return float(number) if isinstance(number, int) and number > 0 else float("nan")


def _counted(rows: pd.DataFrame) -> pd.DataFrame:
    """Return accuracies of paradigms, where only some results have samples of pairs."""
    keys = [*RUN, "paradigm"]
    how = {"phenomenon": "first", "pair": "first", "accuracy": "mean", "n": "sum", "tests": "first", "place": "first"}
    of_pairs = rows["pair"] != ""
    counted = rows[of_pairs].groupby(keys, sort=False, as_index=False).agg(how).assign(pair="")
    counted["phenomenon"] = ""  # results without samples do not name it
    return pd.concat([rows[~of_pairs], counted], ignore_index=True)[[*COLUMNS]]
