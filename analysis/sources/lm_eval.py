"""Read the results and samples that lm-evaluation-harness writes.

    results_<date>.json          "results": {task: {"acc,none": ...}}, "n-samples", "config": {"model_args": ...}
    samples_<task>_<date>.jsonl  next to it, with --log_samples: {"doc_id", "doc", "acc", ...}, one line per pair

Versions before 0.4 write "acc" instead of "acc,none" and don't write "n-samples". Their files may have any name that
ends in .json. A task of BLiMP is a paradigm. The tasks of a run may be in several files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from analysis.published import published_file
from analysis.sources.published import BLIMP
from analysis.sources.settings import ResultsConfig
from eval.benchmarks.files import file_rows
from pairscale.errors import InputError
from pairscale.schema import read_json

ENDINGS = (".json",)


class _Results(msgspec.Struct):
    results: dict[str, dict[str, Any]]
    config: dict[str, Any] = {}
    model_name: str | None = None
    group_subtasks: dict[str, list[str]] = {}
    counts: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict, name="n-samples")


def lm_eval_rows(files: Sequence[Path], settings: ResultsConfig) -> pd.DataFrame:
    """Return the rows of outcomes (published.py) from files of results.

    If a run's task is in several files, the latest one is used. Raises InputError for other files, and if there is no
    task of the benchmark.
    """
    found: dict[tuple[str | None, ...], list[dict[str, Any]]] = {}
    for file in sorted(files, key=lambda file: (file.stem.rpartition("_")[2], file)):  # the last part is a date
        data = read_json(file, _Results, InputError, "use results of lm-evaluation-harness")
        run = _run(file, data, settings)
        for task, paradigm in _paradigms(data, str(settings.benchmark)).items():
            outcomes = _outcomes(file, data, task, settings.metric)
            found[(*run.values(), paradigm)] = [{**run, "paradigm": paradigm, **outcome} for outcome in outcomes]
    if not found:
        raise InputError(
            f"{files[0]}: there are no tasks called {settings.benchmark}_*. Set results.benchmark to the "
            "beginning of the tasks' names."
        )
    table = pd.DataFrame([row for rows in found.values() for row in rows]).assign(method=settings.metric)
    if settings.benchmark == BLIMP or (table["pair_id"] == "").any():  # only samples name phenomena
        table["phenomenon"] = ""
    return table


def _run(file: Path, data: _Results, settings: ResultsConfig) -> dict[str, str | None]:
    """Return the model, size and seed of a file's run, and the path of its model."""
    given = data.config.get("model_args") or ""
    arguments = ",".join(f"{key}={of}" for key, of in given.items()) if isinstance(given, dict) else str(given)
    revision = re.search(r"\brevision=([^,]+)", arguments)
    path = re.search(r"\b(?:pretrained|model|path)=([^,]+)", arguments)
    named = data.model_name or (path[1] if path else file.parent.name)
    step = revision[1] if revision else ""
    # model_args describes the loaded model, but the name of a folder such as step2_eval/ may mean something else.
    text = f"{step} {arguments} {file.as_posix()}"
    return settings.run_of(text, Path(named).name, step) | {"path": named}


def _paradigms(data: _Results, benchmark: str) -> dict[str, str]:
    """Return the paradigms of a benchmark by task, such as {"blimp_adjunct_island": "adjunct_island"}.

    BLiMP's paradigms are known. For other benchmarks, every task whose name begins with the name of the benchmark is a
    paradigm, except groups of tasks.
    """
    names = {task: task.removeprefix(f"{benchmark}_").lstrip("_") for task in data.results}
    known = set(published_file("blimp_paradigms")["paradigm"]) if benchmark == BLIMP else set(names.values())
    groups = {group for group, tasks in data.group_subtasks.items() if tasks}
    return {task: name for task, name in names.items() if name != task and name in known and task not in groups}


def _outcomes(file: Path, data: _Results, task: str, metric: str) -> Iterator[dict[str, Any]]:
    """Yield the accuracy of a task, or of each of its pairs if samples are next to the file.

    Metrics are named "acc", or "acc,none" since version 0.4.
    """
    samples = file.with_name(f"samples_{task}_{file.stem.removeprefix('results_')}.jsonl")
    if not samples.is_file():
        of, n = data.results[task], data.counts.get(task, {}).get("effective")
        yield {"accuracy": of.get(metric, of.get(f"{metric},none")), "n": n, "pair_id": "", "place": f"{file}: {task}"}
        return
    for place, sample in file_rows(samples):
        accuracy, doc = sample.get(metric, sample.get(f"{metric},none")), sample.get("doc")
        doc = doc if isinstance(doc, dict) else {}
        pair, term = str(doc.get("pairID", sample.get("doc_id"))), str(doc.get("linguistics_term") or "")
        yield {"phenomenon": term, "pair_id": pair, "accuracy": accuracy, "n": 1, "place": place}
