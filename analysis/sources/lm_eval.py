"""Results and samples that lm-evaluation-harness writes.

    results_<date>.json          "results": {task: {"acc,none": ...}}, "n-samples", "config": {"model_args": ...}
    samples_<task>_<date>.jsonl  beside it, with --log_samples: {"doc_id", "doc", "acc", ...}, a line per pair

Results of its versions before 0.4 have "acc" for "acc,none", no "n-samples", and any name that ends in .json. A task of
BLiMP is a paradigm. If all results have their samples beside them, single pairs are known, too. The tasks of a run may
be in several files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.published import published_file
from analysis.sources.published import BLIMP
from analysis.sources.rows import COLUMNS, RUN, check_cells, number_of, read_object, run_of
from analysis.sources.settings import ResultsConfig
from eval.benchmarks.files import file_rows
from pairscale.errors import InputError, first_few

ENDINGS = (".json",)
_DATE = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.:-]+)$")  # in the names of files


def lm_eval_rows(files: Sequence[Path], settings: ResultsConfig) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of files of results (rows.COLUMNS), and notes.

    If a run has a task in several files, the latest one counts. The group of all tasks only counts for runs of which
    nothing else is known, because it is a mean over them. Raises InputError for other files, without a size, and for
    two models that would be one run, because their last names are the same.
    """
    ordered = sorted(files, key=lambda file: (_date(file), file))
    found = [row | {"file": place} for place, file in enumerate(ordered) for row in _read(file, settings)]
    if not found:
        raise InputError(
            f"{first_few([str(file) for file in files], 1)}: no results of tasks {settings.benchmark}_* or "
            f"{settings.benchmark}. results.benchmark=NAME gives the beginning of their names."
        )
    rows = pd.DataFrame(found)
    rows["accuracy"] = rows["accuracy"].map(number_of)
    check_cells(rows["accuracy"].rename(settings.metric), rows["accuracy"].between(0, 1), rows["place"], "from 0 to 1")
    first = rows.groupby(RUN)["path"].transform("first")
    if (others := rows["path"] != first).any():
        row = rows[others].iloc[0]
        raise InputError(
            f"{row['place']}: {row['path']} would be one run with {first[others].iloc[0]}. results.pattern='...' with "
            "(?P<model>...) or (?P<seed>...), and (?P<size>...), tells them apart."
        )
    is_alone = rows.groupby(RUN)["paradigm"].transform("nunique") == 1
    rows = rows[(rows["paradigm"] != settings.benchmark) | is_alone]
    is_older = rows["file"] < rows.groupby([*RUN, "paradigm"])["file"].transform("max")
    older = sorted({str(ordered[place]) for place in rows.loc[is_older, "file"]})
    notes = [f"Some tasks of {first_few(older)} are read from later files, which have them, too."] if older else []
    rows = rows.loc[~is_older, COLUMNS]
    if (rows["pair"] == "").any():  # only some results have samples of pairs, which name the phenomenon
        rows = rows.assign(phenomenon="", pair=None)
    origin = f"results of lm-evaluation-harness ({settings.metric})"
    return rows, [*notes, f"The accuracies were read from {origin}, not from run folders."]


def _date(file: Path) -> str:
    """Return the date in a file's name as it stands there, "" without one."""
    found = _DATE.search(file.stem)
    return found[1] if found else ""


def _read(file: Path, settings: ResultsConfig) -> Iterator[dict[str, Any]]:
    """Yield a row per paradigm of the benchmark, or per pair if there are samples beside the file."""
    data = read_object(file)
    try:
        paradigms = _paradigms(data, str(settings.benchmark))
        run = _run(file, data, settings) if paradigms else {}
        counts = data.get("n-samples") or {}
        for task, paradigm in paradigms.items():
            row = {**run, "paradigm": paradigm, "phenomenon": "", "pair": "", "place": f"{file}: {task}"}
            samples = file.with_name(f"samples_{task}_{_date(file)}.jsonl")
            if not samples.is_file():
                row["accuracy"] = _value(data["results"][task], settings.metric, row["place"])
                yield row | {"n": counts.get(task, {}).get("effective", np.nan)}
                continue
            for place, sample in file_rows(samples):
                doc, accuracy = sample.get("doc") or {}, _value(sample, settings.metric, place)
                phenomenon, pair = doc.get("linguistics_term") or "", str(doc.get("pairID", sample["doc_id"]))
                judged = {"phenomenon": phenomenon, "pair": pair, "accuracy": accuracy, "n": 1.0, "place": place}
                yield row | judged
    except (AttributeError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{file}: these are not results of lm-evaluation-harness ({reason}).") from None


def _paradigms(data: Mapping[str, Any], benchmark: str) -> dict[str, str]:
    """Return the paradigms of a benchmark by task, blimp_adjunct_island: adjunct_island; its group is one if alone.

    BLiMP's paradigms are known. For others they are the tasks, without groups of tasks, below the benchmark if it is a
    group, or else those whose names begin with its name.
    """
    groups = {name: set(of) for name, of in data.get("group_subtasks", {}).items() if of}
    below = groups.get(benchmark, set())
    while more := set().union(*(groups.get(name, ()) for name in below)) - below:
        below |= more
    tasks = [task for task in data["results"] if task not in groups]
    tasks = [task for task in tasks if (task in below if below else task.startswith(f"{benchmark}_"))]
    chosen = {task: task.removeprefix(f"{benchmark}_").lstrip("_") for task in tasks}
    if benchmark == BLIMP:
        known = set(published_file("blimp_paradigms")["paradigm"])
        chosen = {task: name for task, name in chosen.items() if name in known}
    return chosen or ({benchmark: benchmark} if benchmark in data["results"] else {})


def _run(file: Path, data: Mapping[str, Any], settings: ResultsConfig) -> dict[str, Any]:
    """Return the columns about a file's run, and `path`: the model in full, or "" if results.pattern names it."""
    arguments = (data.get("config") or {}).get("model_args") or ""
    if isinstance(arguments, dict):
        arguments = ",".join(f"{key}={value}" for key, value in arguments.items())
    revision = re.search(r"revision=([^,]+)", arguments)
    path = re.search(r"(?:pretrained|model|path)=([^,]+)", arguments)
    named = data.get("model_name") or (path[1] if path else file.parent.name)
    step = revision[1] if revision else ""
    # A folder such as step2_eval/ may be named for any reason, but model_args for what was loaded.
    run = run_of(file, named, step, (step, arguments, f"{file.as_posix()} {arguments}"), settings)
    about = {"model": Path(named).name, "path": named} if run["model"] == named else {"path": ""}
    return {**run, "run": "", "method": settings.metric, "tests": False, **about}


def _value(of: Mapping[str, Any], metric: str, where: str) -> Any:
    """Return a metric of results or of a sample: "acc", or "acc,none" since version 0.4."""
    for name in (metric, f"{metric},none"):
        if name in of:
            return of[name]
    there = sorted({name.partition(",")[0] for name, one in of.items() if isinstance(one, int | float)})
    raise InputError(f"{where}: no {metric} (results.metric). There are: {', '.join(there) or 'none'}.")
