"""The source `table`: anyone's accuracies as CSV, TSV, JSON lines or Parquet, a row a paradigm of a run, or a pair."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.config import AnalysisConfig
from analysis.study.collect import Study
from analysis.study.sources.config import OutcomeColumns, ResultsConfig
from analysis.study.sources.outcomes import (
    COLUMNS,
    RUN,
    Outcomes,
    check_printable,
    outcome_judgements,
    read_cell_number,
    study_of,
    with_number,
)
from analysis.study.sources.paths import given_paths, study_name
from analysis.study.sources.sizes import fixed_size, size_of
from analysis.study.sources.source import source
from eval.benchmarks.cells import shown
from eval.benchmarks.files import csv_records, file_rows, format_of, text_lines
from pairscale.errors import InputError

# The names that columns go by; the others are found under our own.
USUAL = {
    "model": ("model", "arch", "architecture", "model_name"),
    "size": ("size", "sample_words", "train_size"),
    "seed": ("seed",),
    "paradigm": ("paradigm", "UID", "task"),
    "phenomenon": ("phenomenon", "linguistics_term"),
    "accuracy": ("accuracy", "acc"),
    "n": ("n", "n_pairs", "pairs"),
    "correct": ("correct",),
    "pair_id": ("pair_id", "pairID", "pair_ID"),
    "removed": ("removed",),
    "tests": ("tests",),
}
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
METHOD = "accuracy"
_DELIMITERS = ",;\t"  # of CSV
_FIRST_ROWS = 20
_SEPARATOR = re.compile(r"sep=([,;\t|])")  # as Excel writes it
_UNREAD = ("results.metric", "results.pairs", "results.pattern")
UNNAMED = "minimal_pairs"  # the benchmark of a table that nobody names
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz")


@source("table", judge=outcome_judgements, keys=("path", "columns", "results"), unread=_UNREAD)
def from_table(config: AnalysisConfig) -> list[Study]:
    """Read the study of the tables of `config.path`.

    Raises ConfigError without a path, InputError for a file, column or cell that cannot be used.
    """
    files = given_paths(config.path, "table", ENDINGS)
    parts = [read_outcomes(file, config.columns, config.results) for file in files]
    rows, n_known = with_number(pd.concat([rows for rows, _ in parts], ignore_index=True), config.results.n)
    seeds = {str(file): seeded for file, (_, seeded) in zip(files, parts, strict=True)}
    name = study_name(config.study, files[0], config.path)
    benchmark = config.results.benchmark or UNNAMED
    origin = "the table " + " and ".join(file.name for file in files[:3]) + (" and others" if len(files) > 3 else "")
    outcomes = Outcomes(rows, benchmark, METHOD, origin, seeds, n_known)
    names = "columns.model, columns.size and columns.seed"
    outcomes.told_apart_by = "columns.model and columns.size" if all(seeds.values()) else names
    return [study_of(name, outcomes, config)]


def read_outcomes(file: Path, columns: OutcomeColumns, settings: ResultsConfig) -> tuple[pd.DataFrame, bool]:
    """Return the rows of a table (outcomes.COLUMNS), and if it has seeds.

    Rows of single pairs without ids are counted: one row for each run and paradigm. Raises InputError.
    """
    _, ending = format_of(file, "path")
    rows: list[dict[str, Any]] = []
    places: dict[str, tuple[str, ...]] = {}
    for where, cells in file_rows(file, _delimiter(file) if ending == ".csv" else None):
        if not places:
            places = _places(tuple(map(str, cells)), columns, settings, where)
        missing = next((name for of in places.values() for name in of if name not in cells), None)
        if missing is not None:
            raise InputError(f"{where}: no column '{missing}', which the rows before it have")
        rows.append(_row(cells, places, settings, where) | {"model_of_file": file.name.partition(".")[0]})
    table = pd.DataFrame(rows)
    if "model" not in places:
        table["model"] = table["model_of_file"]
    table = table[[*COLUMNS]]
    if settings.percent:
        _check_percent(table, "correct" in places)
    if "correct" in places and "pair_id" not in places:
        table = _counted(table)
    return table, "seed" in places


def _check_percent(table: pd.DataFrame, of_pairs: bool) -> None:
    """Raise InputError where results.percent=true is said of rows of pairs, or of accuracies from 0 to 1."""
    if of_pairs:
        raise InputError(f"{table['place'].iloc[0]}: results.percent=true, but a row is a pair, without an accuracy")
    row = table[table["accuracy"] == table["accuracy"].max()].iloc[0]
    if 0 < row["accuracy"] <= 0.01:
        raise InputError(
            f"{row['place']}: the largest accuracy is {100 * row['accuracy']:g} with results.percent=true: must be per "
            "cent; leave it out where accuracies are from 0 to 1"
        )


def _delimiter(file: Path) -> str:
    """Return what separates the cells of a CSV file: what its first line sep=; says, or what makes a table of it.

    That is the one that splits the header and the first rows into as many cells, of several that into most: a name such
    as "accuracy (0,1)" has a comma too. Without one it is that of the header, whose reader tells what is wrong.
    """
    header = next((line for _, line in text_lines(file) if line.strip()), "")
    if named := _SEPARATOR.fullmatch(header):
        return named[1]
    return max(_DELIMITERS, key=lambda one: (_width(file, one), one in header))


def _width(file: Path, delimiter: str) -> int:
    """Return how many cells each of the first rows has; 0 if that differs, or is one."""
    try:
        rows = list(islice((cells for _, cells, _ in csv_records(file, delimiter) if cells), _FIRST_ROWS))
    except InputError:
        return 0
    widths = set(map(len, rows))
    return widths.pop() if len(widths) == 1 and widths != {1} else 0


def _places(
    there: Sequence[str], columns: OutcomeColumns, settings: ResultsConfig, where: str
) -> dict[str, tuple[str, ...]]:
    """Return which columns of a table hold what. Raises InputError for one that is named, or needed, and missing."""
    places: dict[str, tuple[str, ...]] = {}
    for name, value in vars(columns).items():
        if value:
            names = tuple(value) if isinstance(value, list) else (value,)
            if missing := [column for column in names if column not in there]:
                raise InputError(f"{where}: no column '{missing[0]}' (columns.{name}){_near(missing[0], there)}")
            places[name] = names
        elif value is None and (usual := [column for column in USUAL[name] if column in there]):
            if len(usual) > 1:
                raise InputError(f"{where}: {' and '.join(usual)} may both hold the {name}; say columns.{name}=NAME")
            places[name] = (usual[0],)
    if "accuracy" in places and "correct" in places:
        if columns.correct and columns.accuracy:
            raise InputError(f"{where}: columns.accuracy and columns.correct: a row is of a paradigm or of a pair")
        places.pop("accuracy" if columns.correct else "correct")
    if settings.size is not None and "size" in places:
        raise InputError(
            f"{where}: results.size={settings.size}, but column '{places['size'][0]}' holds sizes; "
            "columns.size='' leaves that column out"
        )
    needed = ["paradigm", "correct" if "correct" in places or columns.correct else "accuracy"]
    needed += ["size"] if settings.size is None else []
    for name in needed:
        if name not in places:
            more = " (or results.size=SIZE of all rows)" if name == "size" else ""
            more = " (or columns.correct=NAME, a row a pair)" if name == "accuracy" else more
            raise InputError(
                f"{where}: no column for the {name}; give columns.{name}=NAME{more}{_near(USUAL[name][0], there)}"
            )
    return places


def _near(name: str, there: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower(), [column.lower() for column in there], n=1)
    meant = [column for column in there if near and column.lower() == near[0]]
    return (f"; near it: {meant[0]}" if meant else "") + f"; there are: {', '.join(there)}"


def _row(
    cells: Mapping[str, Any], places: Mapping[str, tuple[str, ...]], settings: ResultsConfig, where: str
) -> dict[str, Any]:
    """Return one row of outcomes.COLUMNS."""

    def text(name: str) -> str:
        parts = {column: str("" if cells[column] is None else cells[column]).strip() for column in places.get(name, ())}
        for column, part in parts.items():
            check_printable(part, where, column)
        return ", ".join(filter(None, parts.values()))

    for name in ("model", "paradigm"):
        if name in places and not text(name):
            raise InputError(f"{where}: {places[name][0]} is empty, must name the {name}")
    fixed = fixed_size(settings)
    removed = "" if text("removed") == settings.full else text("removed")
    pair = text("pair_id") if "correct" in places else ""
    return {
        "model": text("model"), "removed": removed,
        "size": size_of(cells[places["size"][0]], settings, where) if fixed is None else fixed,
        "seed": _whole(cells, places, "seed", where, least=0) if "seed" in places else 1,
        "paradigm": text("paradigm"), "phenomenon": text("phenomenon"), "pair": pair,
        "accuracy": _accuracy(cells, places, settings, where),
        "n": 1.0 if "correct" in places else _whole(cells, places, "n", where, least=1) if "n" in places else np.nan,
        "tests": "tests" in places and _tests(cells[places["tests"][0]], places["tests"][0], bool(removed), where),
        "place": where,
    }  # fmt: skip


def _accuracy(
    cells: Mapping[str, Any], places: Mapping[str, tuple[str, ...]], settings: ResultsConfig, where: str
) -> float:
    name = "correct" if "correct" in places else "accuracy"
    column = places[name][0]
    cell = cells[column]
    if name == "correct":
        value = _TRUTH.get(str(cell).strip().lower(), read_cell_number(cell))
        if value is None or value not in (0, 0.5, 1):
            raise InputError(
                f"{where}: {column} is {shown(cell)}, must be true, false, yes, no, 1, 0, or .5 for a tie of one pair; "
                f"a share of several is columns.accuracy={column}"
            )
        return value
    value = read_cell_number(cell)
    if value is None or np.isnan(value):
        raise InputError(f"{where}: {column} is {shown(cell)}, must be an accuracy such as 0.63")
    most = 100 if settings.percent else 1
    if not 0 <= value <= most:
        hint = "; for per cent say results.percent=true" if not settings.percent and 1 < value <= 100 else ""
        raise InputError(f"{where}: {column} is {value:g}, must be from 0 to {most}{hint}")
    return value / most


def _tests(cell: Any, column: str, needed: bool, where: str) -> bool:
    """Return if a paradigm tests what is removed; an empty cell is false unless it is `needed`."""
    value = _TRUTH.get(str(cell).strip().lower(), read_cell_number(cell))
    if value is not None and np.isnan(value) and not needed:
        return False
    if value not in (0, 1):
        raise InputError(f"{where}: {column} is {shown(cell)}, must be true, false, yes, no, 1 or 0 (tests)")
    return bool(value)


def _whole(cells: Mapping[str, Any], places: Mapping[str, tuple[str, ...]], name: str, where: str, least: int) -> float:
    column = places[name][0]
    value = read_cell_number(cells[column])
    if name == "n" and value is not None and np.isnan(value):
        return np.nan
    if value is None or np.isnan(value) or value != round(value) or not least <= value < 2**53:
        raise InputError(f"{where}: {column} is {shown(cells[column])}, must be a whole number from {least} ({name})")
    return int(value)


def _counted(rows: pd.DataFrame) -> pd.DataFrame:
    """Return accuracies of paradigms, of rows of pairs without ids."""
    keys = [*RUN, "paradigm", "phenomenon"]
    how = {"pair": "first", "accuracy": "mean", "n": "sum", "tests": "first", "place": "first"}
    return rows.groupby(keys, sort=False, as_index=False).agg(how)[[*COLUMNS]]
