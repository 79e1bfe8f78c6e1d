"""Anyone's accuracies as CSV, TSV, JSON lines or Parquet: a row per run and paradigm, phenomenon or pair."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.sources.rows import COLUMNS, check_cells, number_of
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from eval.benchmarks.files import file_rows, format_of, text_lines
from pairscale.errors import InputError, first_few

# The names that columns go by; the others are found under our own.
USUAL = {
    "model": ("model", "arch", "architecture", "model_name", "group"),
    "size": ("size", "sample_words", "train_size"),
    "paradigm": ("paradigm", "UID", "task"),
    "phenomenon": ("phenomenon", "linguistics_term"),
    "accuracy": ("accuracy", "acc"),
    "n": ("n", "n_pairs", "pairs"),
    "pair_id": ("pair_id", "pairID", "pair_ID"),
}
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz")

_NEEDED = (("accuracy", "correct"), ("size",), ("paradigm", "phenomenon"))  # one column of each
_TEXTS = ("model", "run", "paradigm", "phenomenon", "removed", "pair_id")
_MOST = 2**53  # the whole numbers that a float tells apart
_RULES: dict[str, tuple[Callable[[pd.Series], pd.Series], str]] = {  # which numbers a column may contain
    "seed": (lambda cells: cells.between(0, _MOST) & (cells % 1 == 0), "a whole number from 0"),
    "n": (lambda cells: cells.isna() | (cells.between(1, _MOST) & (cells % 1 == 0)), "a whole number from 1"),
    "correct": (
        lambda cells: cells.isin((0, 0.5, 1)),
        "true, false, yes, no, 1, 0, or .5 for a tie of one pair; if it is a share of several, say columns.accuracy",
    ),
    "tests": (lambda cells: cells.isna() | cells.isin((0, 1)), "true, false, yes, no, 1 or 0"),
    "accuracy": (lambda cells: cells.between(0, 1), "from 0 to 1, or per cent with results.percent=true"),
}


def table_rows(
    files: Sequence[Path], columns: OutcomeColumns, settings: ResultsConfig
) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of tables (rows.COLUMNS), and a note on where they are from.

    Raises InputError, with file and line, for columns and cells that can't be used.
    """
    rows = pd.concat([_read(file, columns, settings) for file in files], ignore_index=True)
    named = first_few([file.name for file in files])
    return rows, [f"The accuracies were read from the table {named}, not from run folders."]


def _read(file: Path, columns: OutcomeColumns, settings: ResultsConfig) -> pd.DataFrame:
    found = list(file_rows(file, _delimiter(file) if format_of(file, "path")[1] == ".csv" else None))
    cells, places = pd.DataFrame([row.cells for row in found], dtype=object), pd.Series([row.where for row in found])
    names = _names(list(map(str, cells)), columns, settings, places[0])
    rows = pd.DataFrame({name: _texts(cells[names.get(name, [])]) for name in _TEXTS})
    rows = rows.rename(columns={"pair_id": "pair"})
    rows["removed"] = rows["removed"].where(rows["removed"] != settings.full, "")
    if "model" not in names:
        rows["model"] = file.name.partition(".")[0]
    for name in ("model",) if "phenomenon" in names else ("model", "paradigm"):
        if name in names:
            check_cells(cells[names[name][0]], rows[name] != "", places, f"the name of a {name}")
    sizes = cells[names["size"][0]] if "size" in names else [settings.size] * len(rows)
    rows["size"] = [settings.size_of(cell, where) for cell, where in zip(sizes, places, strict=True)]
    numbers = {}
    for name, (allowed, must) in _RULES.items():
        if name in names:
            column = cells[names[name][0]]
            numbers[name] = column.map(number_of) / (100 if name == "accuracy" and settings.percent else 1)
            check_cells(column, allowed(numbers[name]), places, f"{must} (columns.{name})")
    if "tests" in names:  # where nothing is removed, an empty cell says that nothing is tested
        said = numbers["tests"].notna() | (rows["removed"] == "")
        check_cells(cells[names["tests"][0]], said, places, "true or false where a text is removed (columns.tests)")
    rows["seed"], rows["seeded"] = numbers.get("seed", pd.Series(1.0, rows.index)).astype("int64"), "seed" in names
    rows["method"], rows["place"] = "accuracy", places
    rows["tests"] = numbers["tests"] == 1 if "tests" in names else False
    if "correct" in names:
        rows = rows.assign(accuracy=numbers["correct"], n=1.0)[COLUMNS]
        return rows if "pair_id" in names else rows.assign(pair=None)
    if settings.percent and 0 < numbers["accuracy"].max() <= 0.01:
        raise InputError(f"{file}: no accuracy is above 1 per cent. Leave out results.percent=true.")
    return rows.assign(pair="", accuracy=numbers["accuracy"], n=numbers.get("n", np.nan))[COLUMNS]


def _delimiter(file: Path) -> str:
    """Return what separates the cells of a CSV file: what Excel's first line sep=; says, or is most often in it."""
    header = next((line for _, line in text_lines(file) if line.strip()), "")
    named = re.fullmatch(r"sep=([,;\t|])", header)
    return named[1] if named else max(",;\t", key=header.count)


def _names(there: list[str], columns: OutcomeColumns, settings: ResultsConfig, where: str) -> dict[str, list[str]]:
    """Return which columns have which contents. Raises InputError for one that is named, or needed, and missing."""
    names: dict[str, list[str]] = {}
    for name, given in vars(columns).items():
        usual = [column for column in USUAL.get(name, (name,)) if column in there]
        chosen = usual if given is None else given if isinstance(given, list) else [given]
        if given is None and len(usual) > 1:
            raise InputError(f"{where}: {' and '.join(usual)} may both contain the {name}. Say columns.{name}=NAME.")
        for column in filter(None, chosen):
            if column not in there:
                raise InputError(f"{where}: no column '{column}' (columns.{name}).{_near(column, there)}")
            names.setdefault(name, []).append(column)
    if "accuracy" in names and "correct" in names:
        del names["accuracy" if columns.correct else "correct"]
    if settings.size is not None and "size" in names:
        raise InputError(
            f"{where}: results.size={settings.size}, but column '{names['size'][0]}' has sizes. columns.size='' leaves "
            "that column out."
        )
    known = {*names, "size" if settings.size else "", "paradigm" if columns.paradigm == "" else ""}
    for contents in _NEEDED:
        if known.isdisjoint(contents):
            ways = [*(f"columns.{name}=NAME" for name in contents), *(["results.size=SIZE"] * ("size" in contents))]
            raise InputError(
                f"{where}: no column for the {contents[0]}. Give {' or '.join(ways)}.{_near(contents[0], there)}"
            )
    return names


def _near(name: str, there: list[str]) -> str:
    columns = {column.lower(): column for column in there}
    near = difflib.get_close_matches(name.lower(), columns, n=1)
    return (f" Did you mean '{columns[near[0]]}'?" if near else "") + f" The columns are {', '.join(there)}."


def _texts(cells: pd.DataFrame) -> list[str]:
    """Return the texts of columns, joined by commas."""
    rows = cells.fillna("").astype(str).to_numpy()
    return [", ".join(filter(None, map(str.strip, row))) for row in rows]
