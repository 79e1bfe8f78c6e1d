"""Anyone's accuracies as CSV, TSV, JSON lines or Parquet: a row per run and paradigm, phenomenon or pair."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.sources.published import COLUMNS, RUN, Outcomes
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from analysis.sources.sizes import fixed_size, size_of
from eval.benchmarks.cells import shown
from eval.benchmarks.files import csv_records, file_rows, format_of, text_lines
from pairscale.errors import InputError

# The names that columns go by; the others are found under our own.
USUAL = {
    "model": ("model", "arch", "architecture", "model_name", "group"),
    "size": ("size", "sample_words", "train_size"),
    "seed": ("seed",),
    "run": ("run",),
    "paradigm": ("paradigm", "UID", "task"),
    "phenomenon": ("phenomenon", "linguistics_term"),
    "accuracy": ("accuracy", "acc"),
    "n": ("n", "n_pairs", "pairs"),
    "correct": ("correct",),
    "pair_id": ("pair_id", "pairID", "pair_ID"),
    "removed": ("removed",),
    "tests": ("tests",),
}
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz")
UNNAMED = "minimal_pairs"  # the benchmark of a table that nobody names

_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_EMPTY = ("", "na", "nan", "none")
_DELIMITERS = ",;\t"  # of CSV
_FIRST_ROWS = 20
_SEPARATOR = re.compile(r"sep=([,;\t|])")  # as Excel writes it
Cells = tuple[str, Mapping[str, Any]]  # a row's place, and its cells by column


def table_outcomes(files: Sequence[Path], columns: OutcomeColumns, settings: ResultsConfig) -> Outcomes:
    """Read the rows of tables. Raises InputError, with file and line, for columns and cells that can't be used."""
    parts, seeded = [], {}
    for file in files:
        rows, seeded[str(file)] = _read(file, columns, settings)
        parts.append(rows)
    rows = pd.concat(parts, ignore_index=True)
    if settings.n is not None:
        rows["n"] = rows["n"].fillna(settings.n)
    origin = "the table " + " and ".join(file.name for file in files[:3]) + (" and others" if len(files) > 3 else "")
    return Outcomes(rows, settings.benchmark or UNNAMED, "accuracy", origin, seeded)


def _read(file: Path, columns: OutcomeColumns, settings: ResultsConfig) -> tuple[pd.DataFrame, bool]:
    """Return the rows of a file, with published.COLUMNS, and whether it has seeds."""
    _, ending = format_of(file, "path")
    rows: list[Cells] = list(file_rows(file, _delimiter(file) if ending == ".csv" else None))
    where, first = rows[0]
    places = _places(tuple(map(str, first)), columns, settings, where)
    for where, cells in rows:
        missing = next((name for names in places.values() for name in names if name not in cells), None)
        if missing is not None:
            raise InputError(f"{where}: no column '{missing}', which the rows before it have.")
    texts = {name: _texts(rows, places.get(name, ())) for name in ("run", "paradigm", "phenomenon", "removed")}
    models = _texts(rows, places["model"]) if "model" in places else [file.name.partition(".")[0]] * len(rows)
    needed = {"model": models} if "phenomenon" in places else {"model": models, "paradigm": texts["paradigm"]}
    for name, values in needed.items():
        if name in places and "" in values:
            raise InputError(f"{rows[values.index('')][0]}: {places[name][0]} is empty, must name the {name}.")
    fixed = fixed_size(settings)
    sizes = [fixed if fixed is not None else size_of(cells[places["size"][0]], settings, at) for at, cells in rows]
    one_pair = "correct" in places
    table = pd.DataFrame({
        "model": models, **texts, "size": sizes,
        "seed": _numbers(rows, places, "seed", 0) if "seed" in places else 1,
        "pair": _texts(rows, places.get("pair_id", ())) if one_pair else "",
        "accuracy": _correct(rows, places) if one_pair else _accuracies(rows, places, settings),
        "n": 1.0 if one_pair else _numbers(rows, places, "n", 1) if "n" in places else np.nan,
        "place": [at for at, _ in rows],
    })[[name for name in COLUMNS if name != "tests"]]  # fmt: skip
    table["removed"] = table["removed"].where(table["removed"] != settings.full, "")
    table["tests"] = _tests(rows, places, list(table["removed"] != ""))
    if one_pair and "pair_id" not in places:  # pairs without ids are counted
        how = {"run": "first", "pair": "first", "accuracy": "mean", "n": "sum", "tests": "first", "place": "first"}
        table = table.groupby([*RUN, "paradigm", "phenomenon"], sort=False, as_index=False).agg(how)
    return table.astype({"seed": "int64"})[list(COLUMNS)], "seed" in places


def _delimiter(file: Path) -> str:
    """Return what separates the cells of a CSV file: what its first line sep=; says, or what makes a table of it.

    That is the one that splits the header and the first rows into as many cells, of several the one with most cells:
    a name such as "accuracy (0,1)" has a comma, too.
    """
    header = next((line for _, line in text_lines(file) if line.strip()), "")
    if named := _SEPARATOR.fullmatch(header):
        return named[1]

    def width(delimiter: str) -> int:
        try:
            rows = list(islice((cells for _, cells, _ in csv_records(file, delimiter) if cells), _FIRST_ROWS))
        except InputError:
            return 0
        widths = set(map(len, rows))
        return widths.pop() if len(widths) == 1 and widths != {1} else 0

    return max(_DELIMITERS, key=lambda one: (width(one), one in header))


def _places(
    there: Sequence[str], columns: OutcomeColumns, settings: ResultsConfig, where: str
) -> dict[str, tuple[str, ...]]:
    """Return which columns have which contents. Raises InputError for one that is named, or needed, and missing."""
    places: dict[str, tuple[str, ...]] = {}
    for name, value in vars(columns).items():
        if value:
            places[name] = tuple(value) if isinstance(value, list) else (value,)
            if missing := [column for column in places[name] if column not in there]:
                raise InputError(f"{where}: no column '{missing[0]}' (columns.{name}).{_near(missing[0], there)}")
        elif value is None and (usual := [column for column in USUAL[name] if column in there]):
            if len(usual) > 1:
                raise InputError(
                    f"{where}: {' and '.join(usual)} may both contain the {name}. Say columns.{name}=NAME."
                )
            places[name] = (usual[0],)
    if "accuracy" in places and "correct" in places:
        if columns.correct and columns.accuracy:
            raise InputError(f"{where}: columns.accuracy and columns.correct: a row is a paradigm or a pair; give one.")
        places.pop("accuracy" if columns.correct else "correct")
    if settings.size is not None and "size" in places:
        raise InputError(
            f"{where}: results.size={settings.size}, but column '{places['size'][0]}' has sizes. "
            "columns.size='' leaves that column out."
        )
    judged = "correct" if "correct" in places else "accuracy"
    grouped = "phenomenon" if "phenomenon" in places or columns.paradigm == "" else "paradigm"
    for name in ([grouped] if columns.paradigm != "" else []) + [judged, *(["size"] if settings.size is None else [])]:
        if name not in places:
            more = {
                "size": " or results.size=SIZE for all rows",
                "accuracy": " or columns.correct=NAME for rows of pairs",
            }
            raise InputError(
                f"{where}: no column for the {name}. Give columns.{name}=NAME{more.get(name, '')}."
                f"{_near(USUAL[name][0], there)}"
            )
    return places


def _near(name: str, there: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower(), [column.lower() for column in there], n=1)
    meant = [column for column in there if near and column.lower() == near[0]]
    return (f" Did you mean '{meant[0]}'?" if meant else "") + f" The columns are {', '.join(there)}."


def _texts(rows: Sequence[Cells], names: Sequence[str]) -> list[str]:
    """Return the texts of columns, joined by commas."""
    cells = ([str("" if of[name] is None else of[name]).strip() for name in names] for _, of in rows)
    return [", ".join(filter(None, parts)) for parts in cells]


def number_of(cell: Any) -> float | None:
    """Return the number in a cell; NaN if it is empty or NA, None if it contains something else."""
    if cell is None or str(cell).strip().lower() in _EMPTY:
        return float("nan")
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) and not isinstance(cell, bool) else None


def _numbers(rows: Sequence[Cells], places: Mapping[str, tuple[str, ...]], name: str, least: int) -> list[float]:
    """Return whole numbers, and NaN for an empty number of pairs."""
    column, numbers = places[name][0], []
    for where, cells in rows:
        value = number_of(cells[column])
        empty = name == "n" and value is not None and np.isnan(value)
        if value is None or (not empty and (value != np.round(value) or not least <= value < 2**53)):
            raise InputError(
                f"{where}: {column} is {shown(cells[column])}, must be a whole number from {least} ({name})."
            )
        numbers.append(value)
    return numbers


def _correct(rows: Sequence[Cells], places: Mapping[str, tuple[str, ...]]) -> list[float]:
    column, values = places["correct"][0], []
    for where, cells in rows:
        value = _TRUTH.get(str(cells[column]).strip().lower(), number_of(cells[column]))
        if value is None or value not in (0, 0.5, 1):
            raise InputError(
                f"{where}: {column} is {shown(cells[column])}, must be true, false, yes, no, 1, 0, or .5 for a tie of "
                f"one pair. If it is a share of several, say columns.accuracy={column}."
            )
        values.append(value)
    return values


def _accuracies(rows: Sequence[Cells], places: Mapping[str, tuple[str, ...]], settings: ResultsConfig) -> list[float]:
    column, most, values = places["accuracy"][0], 100 if settings.percent else 1, []
    for where, cells in rows:
        value = number_of(cells[column])
        if value is None or np.isnan(value):
            raise InputError(f"{where}: {column} is {shown(cells[column])}, must be an accuracy such as 0.63.")
        if not 0 <= value <= most:
            hint = " If it is per cent, say results.percent=true." if 1 < value <= 100 else ""
            raise InputError(f"{where}: {column} is {value:g}, must be from 0 to {most}.{hint}")
        values.append(value / most)
    if settings.percent and 0 < max(values) <= 0.01:
        raise InputError(f"{rows[0][0]}: no accuracy is above 1 per cent. Leave out results.percent=true.")
    return values


def _tests(rows: Sequence[Cells], places: Mapping[str, tuple[str, ...]], needed: Sequence[bool]) -> list[bool]:
    """Return whether paradigms test what is removed; an empty cell means no, unless something is removed."""
    if "tests" not in places:
        return [False] * len(rows)
    column, values = places["tests"][0], []
    for (where, cells), must in zip(rows, needed, strict=True):
        value = _TRUTH.get(str(cells[column]).strip().lower(), number_of(cells[column]))
        value = 0.0 if value is not None and np.isnan(value) and not must else value
        if value not in (0, 1):
            raise InputError(
                f"{where}: {column} is {shown(cells[column])}, must be true, false, yes, no, 1 or 0 (tests)."
            )
        values.append(bool(value))
    return values
