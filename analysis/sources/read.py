"""Read the external results that the settings `source`, `path`, `columns` and `results` describe."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.sources import babylm, lm_eval, table
from analysis.sources.published import BLIMP, Published, check_cells, published
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from analysis.study.long_table import ACCURACY_COLUMNS
from analysis.study.run_folders import FURTHER_COLUMNS, RUN_COLUMNS
from pairscale.errors import ConfigError, InputError, check_choice, first_few

FILES = "files"  # run folders, which aren't read here
OWN = "accuracies.csv"  # the table of accuracies in a folder with a study's tables
_ENDINGS = {"table": table.ENDINGS, "lm_eval": lm_eval.ENDINGS, "babylm": babylm.ENDINGS}
_TEXTS = dict.fromkeys(("study", "run", "curve", "size", "sample", "baseline", "dose", "construction"), str)
_READERS = {"lm_eval": lm_eval.lm_eval_rows, "babylm": babylm.babylm_rows}
SOURCES = (FILES, *_ENDINGS)
_UNUSED = {  # keys of `results` that a source doesn't use
    "table": ("metric", "pairs", "pattern"),
    "lm_eval": ("full", "pairs", "percent"),
    "babylm": ("full", "metric", "n", "percent"),
}


def read_source(
    source: str, path: Any, columns: OutcomeColumns, results: ResultsConfig, study: str | None = None
) -> Published:
    """Read external results.

    Args:
        source: The format: "table", "lm_eval" or "babylm".
        path: A file, a folder, or a list of these.
        columns: The columns of a table by their contents.
        results: The user's other settings for the results.
        study: The name of the study (default: the name of the file or folder).

    Raises:
        ConfigError: If the source is unknown, if there is no path, or if the source doesn't use a value.
        InputError: If a file or a cell can't be used.
    """
    check_choice("source", source, tuple(_ENDINGS))
    unused = [f"results.{name}" for name in _UNUSED[source] if getattr(results, name) != getattr(ResultsConfig(), name)]
    if unused or (source != "table" and columns != OutcomeColumns()):
        raise ConfigError(f"source={source} doesn't use {unused[0] if unused else 'columns'}. Leave it out.")
    results = replace(results, benchmark=results.benchmark or ("minimal_pairs" if source == "table" else BLIMP))
    files = _files(path, source)
    found = _own_table(files[0]) if source == "table" and len(files) == 1 else None
    if found is None:
        rows = table.table_rows(files, columns) if source == "table" else _READERS[source](files, results)
        place = Path(str(path[0] if isinstance(path, list) else path))
        name = place.name.partition(".")[0] if place.is_file() else place.name
        found = published(study or re.sub(r"[^\w.-]+", "_", name).strip("._-") or "others", rows, results)
    notes = [f"The accuracies were read from {first_few([file.name for file in files], 1)}, not from run folders."]
    runs = found.runs
    if runs[["sample", "overlap"]].isna().all(axis=None) and runs.duplicated(["curve", "size"]).any():
        notes.append(
            "The source doesn't show whether runs of one size were trained on the same text. If they were, intervals "
            "only apply to new initialisations."
        )
    return found._replace(notes=[*notes, *found.notes])


def _files(path: Any, source: str) -> list[Path]:
    """Return the files in `path`, which is a file, a folder (all files with an ending of the source) or a list.

    If a folder of tables contains OWN, only that file is used. Raises ConfigError if there is no path, and InputError
    if there is no such file.
    """
    endings, paths = _ENDINGS[source], path if isinstance(path, list) else [path]
    if path is None or not paths:
        raise ConfigError(
            f"source={source}: which files? Set path to a file, a folder, or a list of these ({', '.join(endings)})."
        )
    files: list[Path] = []
    for place in (Path(str(one)).expanduser() for one in paths):
        there = [file for file in sorted(place.rglob("[!.]*")) if file.name.lower().endswith(endings)]
        chosen = [place] if place.is_file() else there
        if not chosen:
            wanted = f"no file in this folder ends in {' or '.join(endings)}"
            problem = wanted if place.is_dir() else "there is no such file or folder"
            raise InputError(f"path={place}: {problem}. Correct the path.")
        files += [place / OWN] if source == "table" and place / OWN in chosen else chosen
    return files


def _own_table(file: Path) -> Published | None:
    """Return the tables of a file that `python -m analysis.table` wrote (what=accuracies), or None for other files.

    If there is a runs.csv (what=runs) in the same folder, details of runs are read from it.
    """
    try:
        table = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file, dtype=_TEXTS)
    except (ValueError, OSError):
        return None  # table_rows then reports what is wrong with it
    if not set(ACCURACY_COLUMNS) <= set(table.columns):
        return None
    table = table[list(ACCURACY_COLUMNS)].fillna({"baseline": ""})
    table = table.astype(dict.fromkeys(("sample_words", "seed", "pairs"), "Int64"))
    check_cells(
        table["accuracy"],
        table["accuracy"].between(0, 1),
        f"{file}: row " + pd.Series(range(1, len(table) + 1)).astype(str),
        "from 0 to 1",
    )
    runs_file = file.with_name("runs.csv")
    known = pd.read_csv(runs_file, dtype=_TEXTS) if runs_file.is_file() else pd.DataFrame()
    known = known.reindex(columns=["study", "run", *FURTHER_COLUMNS]).astype({"study": str, "run": str})
    runs = table[list(RUN_COLUMNS)].drop_duplicates(ignore_index=True).merge(known, on=["study", "run"], how="left")
    return Published(table, runs.fillna({"construction": ""}), None, [])
