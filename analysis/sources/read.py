"""The numbers of others that a configuration names: `source`, `path`, `columns` and `results`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.sources import babylm, lm_eval, table
from analysis.sources.published import BLIMP, SAME_TEXT, Published, published
from analysis.sources.rows import check_cells
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from analysis.study.long_table import ACCURACY_COLUMNS
from analysis.study.run_folders import FURTHER_COLUMNS, RUN_COLUMNS
from eval.config import is_of_pairs
from pairscale.errors import ConfigError, InputError, check_choice

FILES = "files"  # the source that is not here: run folders
COMMITTED = ("accuracies.csv", "points.csv")  # the table of accuracies in a folder of a study's tables, the first found
_ENDINGS = {"table": table.ENDINGS, "lm_eval": lm_eval.ENDINGS, "babylm": babylm.ENDINGS}
_READERS = {"lm_eval": lm_eval.lm_eval_rows, "babylm": babylm.babylm_rows}
SOURCES = (FILES, *_ENDINGS)
_UNUSED = {  # values of `results` that a source doesn't read
    "table": ("metric", "pairs", "pattern"),
    "lm_eval": ("full", "pairs", "percent"),
    "babylm": ("full", "metric", "n", "percent"),
}


def read_source(
    source: str, path: Any, columns: OutcomeColumns, results: ResultsConfig, study: str | None = None
) -> Published:
    """Read others' numbers.

    Args:
        source: "table", "lm_eval" or "babylm".
        path: a file, a folder, or a list of them.
        columns, results: what a user says about them (settings.py).
        study: the name of the study; None: that of the file or folder.

    Raises:
        ConfigError: for another source, without a path, and for values that the source doesn't use.
        InputError: for files, columns and cells that can't be used.
    """
    check_choice("source", source, tuple(_ENDINGS))
    unused = [f"results.{name}" for name in _UNUSED[source] if getattr(results, name) != getattr(ResultsConfig(), name)]
    if source != "table" and columns != OutcomeColumns():
        unused.append("columns")
    if unused:
        raise ConfigError(f"source={source} does not use {unused[0]}, so leave it out.")
    usual = "minimal_pairs" if source == "table" else BLIMP
    results = replace(results, benchmark=results.benchmark or usual)
    if not is_of_pairs(str(results.benchmark)):
        raise ConfigError(f"results.benchmark={results.benchmark}: this isn't a benchmark of pairs; choose a name.")
    files = _files(path, source)
    if source == "table" and len(files) == 1 and (own := _own_table(files[0])):
        return own
    rows, notes = table.table_rows(files, columns, results) if source == "table" else _READERS[source](files, results)
    found = published(study or _study_name(path), rows, results)
    runs = _with_runs_beside(found.runs, files[0]) if source == "table" else found.runs
    told = {SAME_TEXT} if runs["overlap"].notna().any() else set()
    return replace(found, runs=runs, notes=[*notes, *(note for note in found.notes if note not in told)])


def _files(path: Any, source: str) -> list[Path]:
    """Return the files of `path`: a file, a folder (all of its files with one of its endings, by path) or several.

    From a folder that has one of COMMITTED, a table reads just that file. Raises ConfigError without a path, and
    InputError where there is no such file.
    """
    endings, paths = _ENDINGS[source], path if isinstance(path, list) else [path]
    if path is None or not paths:
        raise ConfigError(f"source={source}: give path=FILE, a folder, or a list of them ({', '.join(endings)}).")
    files: list[Path] = []
    for place in (Path(str(one)).expanduser() for one in paths):
        chosen = [place] if place.is_file() else []
        if place.is_dir():
            there = sorted(file for file in place.rglob("[!.]*") if file.is_file())
            chosen = [file for file in there if file.name.lower().endswith(endings)]
        if not chosen:
            raise InputError(f"path={place}: no such file, or no file in this folder ends in {' or '.join(endings)}.")
        committed = [place / name for name in COMMITTED if source == "table" and place / name in chosen]
        files += committed[:1] or chosen
    return files


def _study_name(path: Any) -> str:
    """Return a study's name: that of the first file or folder of `path`."""
    first = Path(str(path[0] if isinstance(path, list) else path))
    name = first.name if first.is_dir() else first.name.partition(".")[0]
    return re.sub(r"[^\w.-]+", "_", name).strip("._-") or "others"


def _own_table(file: Path) -> Published | None:
    """Return the tables of a file that `python -m analysis.table` wrote (what=accuracies); None for other files."""
    texts = dict.fromkeys(("size", "sample", "baseline", "run", "study", "curve"), str)
    try:
        table = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file, dtype=texts)
    except (ValueError, OSError):
        return None  # the reader of any table says what is wrong with it
    if not set(ACCURACY_COLUMNS) <= set(table.columns):
        return None
    table = table[list(ACCURACY_COLUMNS)].fillna({"baseline": ""})
    table = table.astype(dict.fromkeys(("sample_words", "seed", "pairs"), "Int64") | {"nested": bool})
    places = pd.Series([f"{file}: row {row}" for row in range(1, len(table) + 1)])
    check_cells(table["accuracy"], table["accuracy"].between(0, 1), places, "from 0 to 1")
    runs = table[list(RUN_COLUMNS)].drop_duplicates(ignore_index=True)
    runs = runs.reindex(columns=[*RUN_COLUMNS, *FURTHER_COLUMNS])
    note = f"The accuracies were read from {file.name}."
    return Published(table, _with_runs_beside(runs, file), notes=[note])


def _with_runs_beside(runs: pd.DataFrame, file: Path) -> pd.DataFrame:
    """Fill in what runs.csv beside a file, as `python -m analysis.table what=runs` writes it, knows about its runs."""
    beside = file.with_name("runs.csv")
    if not beside.is_file():
        return runs
    texts = dict.fromkeys(("run", "dose", "filter", "construction"), str)
    known = pd.read_csv(beside, dtype=texts).rename(columns={"filter": "construction"})
    if "run" not in known or not set(runs["run"]) <= set(known["run"]):
        return runs
    known = known.drop_duplicates("run").set_index("run").loc[runs["run"]]
    filled = runs.assign(**{name: known[name].array for name in FURTHER_COLUMNS if name in known})
    return filled.fillna({"construction": ""})
