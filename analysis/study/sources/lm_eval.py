"""The source `lm_eval`: results and samples that lm-evaluation-harness writes.

    results_<date>.json          "results": {task: {"acc,none": ...}}, "n-samples", "config": {"model_args": ...}
    samples_<task>_<date>.jsonl  beside it, with --log_samples: {"doc_id", "doc", "acc", ...}, a line a pair

Results of its versions before 0.4 have "acc" for "acc,none", no "n-samples", and any name that ends in .json. A task of
BLiMP is a paradigm. Where all results have their samples beside them, judgements are of pairs, else of paradigms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.config import AnalysisConfig
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
from analysis.study.sources.sizes import fixed_size, parts_of, size_of
from analysis.study.sources.source import source
from eval.benchmarks.cells import shown
from pairscale.errors import InputError, first_few

_DATE = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.:-]+)$")  # of file names
_PATH = re.compile(r"(?:pretrained|model|path)=([^,]+)")  # in model_args


@source("lm_eval", judge=outcome_judgements, keys=("path", "results"))
def from_lm_eval(config: AnalysisConfig) -> list[Study]:
    """Read the study of the results at `config.path`. Raises ConfigError without a path, InputError for other files."""
    files = given_paths(config.path, "lm_eval", (".json",))
    benchmark = config.results.benchmark or BLIMP
    parts, notes = [], []
    for file in files:
        rows = read_results(file, benchmark, config.results)
        if rows is not None:
            parts.append(rows)
    if not parts:
        raise InputError(
            f"{first_few([str(file) for file in files], 1)}: no results of tasks {benchmark}_*, nor {benchmark}; "
            "results.benchmark=NAME gives the beginning of their names"
        )
    newest: dict[tuple[Any, ...], pd.DataFrame] = {}
    for rows in parts:
        run = tuple(rows[[*RUN]].iloc[0])
        if run in newest:
            older = str(newest[run]["place"].iloc[0]).partition(":")[0]
            notes.append(f"Two results of {run[0]} at {run[2]:g}: of {Path(older).name} the later one is read.")
        newest[run] = rows
    table = pd.concat(newest.values(), ignore_index=True)
    if (table["pair"] == "").any():
        table = _counted(table)
    table, known = with_number(table, config.results.n)
    lacking = tuple(name for name, absent in (("seed", table["seed"].nunique() == 1), ("n", not known)) if absent)
    name = study_name(config.study, files[0], config.path)
    origin = f"results of lm-evaluation-harness ({config.results.metric})"
    return [study_of(name, Outcomes(table, benchmark, config.results.metric, origin, lacking, notes), config)]


def read_results(file: Path, benchmark: str, settings: ResultsConfig) -> pd.DataFrame | None:
    """Return the rows (outcomes.COLUMNS) of one file of results, of pairs if it has samples beside it.

    None if it has no task of the benchmark. Raises InputError for a file of another kind, and without a size.
    """
    data = read_object(file)
    tasks = data.get("results")
    if not isinstance(tasks, dict):
        raise InputError(f"{file}: no results of lm-evaluation-harness: it has no 'results'")
    paradigms = {task: _paradigm(task, benchmark) for task in tasks if _paradigm(task, benchmark) is not None}
    if len(paradigms) > 1:
        paradigms.pop(benchmark, None)  # the group of all tasks, a mean over them
    if not paradigms:
        return None
    run = _run(file, data, settings)
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
    return pd.DataFrame(rows)[[*COLUMNS]]


def _paradigm(task: str, benchmark: str) -> str | None:
    """Return the paradigm of a task: blimp_adjunct_island -> adjunct_island; None if it is of another benchmark."""
    if task == benchmark:
        return task
    return task.removeprefix(f"{benchmark}_") if task.startswith(f"{benchmark}_") else None


def _run(file: Path, data: Mapping[str, Any], settings: ResultsConfig) -> dict[str, Any]:
    """Return model, removed, size and seed of a file of results."""
    config = data.get("config") if isinstance(data.get("config"), dict) else {}
    arguments = (config or {}).get("model_args")
    written = (
        ",".join(f"{key}={value}" for key, value in arguments.items() if isinstance(value, str | int | float))
        if isinstance(arguments, dict)
        else str(arguments or "")
    )
    parts = parts_of(f"{file.as_posix()} {written}", settings)
    found = _PATH.search(written)
    named = data.get("model_name") or (found[1] if found else None) or file.parent.name
    size = fixed_size(settings)
    if size is None and "size" not in parts:
        raise InputError(
            f"{file}: no size in its path or model_args ({written[:60]}); give results.size=SIZE, or "
            "results.pattern='(?P<size>...)'"
        )
    size = size_of(parts["size"], settings, str(file)) if size is None else size
    seed = parts.get("seed", "1")
    if not seed.isdecimal():
        raise InputError(f"{file}: results.pattern: seed is {seed!r}, must be a whole number")
    return {"model": parts.get("model") or Path(str(named)).name, "removed": "", "size": size, "seed": int(seed)}


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
