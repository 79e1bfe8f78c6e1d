"""Read tables of accuracies (CSV, TSV, JSON lines, Parquet) with one row per run and paradigm, phenomenon or pair."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import pandas as pd

from analysis.sources.settings import OutcomeColumns
from corpora.sources.lines import lines
from eval.benchmarks.files import file_rows, format_of
from pairscale.errors import InputError

# Usual names of columns. Columns that aren't listed here must have pairscale's names.
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


def table_rows(files: Sequence[Path], columns: OutcomeColumns) -> pd.DataFrame:
    """Return the rows of outcomes (published.py) from tables, with cells as text.

    Raises InputError with file and line if a column is missing or a row can't be read.
    """
    return pd.concat([_read(file, columns) for file in files], ignore_index=True)


def _read(file: Path, columns: OutcomeColumns) -> pd.DataFrame:
    delimiter = None
    if format_of(file, "path")[1] == ".csv":  # the delimiter in Excel's first line sep=;, or the most frequent one
        delimiter = max(",;\t|", key=next((line for _, line in lines(file) if line.strip()), "").count)
    found = list(file_rows(file, delimiter))
    cells = pd.DataFrame([row.cells for row in found], dtype=object).rename(columns=str)
    names = _names(list(map(str, cells)), columns, file)
    rows = pd.DataFrame({"place": [row.where for row in found], "model": file.name.partition(".")[0]})
    rows = rows.assign(**{name: _texts(cells[chosen]) for name, chosen in names.items()})
    if "correct" in rows:
        rows = rows.assign(accuracy=rows["correct"], n=1, **({} if "pair_id" in rows else {"pair_id": None}))
    return rows


def _names(there: list[str], columns: OutcomeColumns, file: Path) -> dict[str, list[str]]:
    """Return the columns by their contents. Raises InputError if a named or necessary column is missing."""
    names: dict[str, list[str]] = {}
    known = f"The columns are {', '.join(there)}."
    for name, given in vars(columns).items():
        usual = [column for column in USUAL.get(name, (name,)) if column in there]
        if given is None and len(usual) > 1:
            raise InputError(
                f"{file}: both {' and '.join(usual)} may contain the {name}. Choose one with columns.{name}=NAME."
            )
        chosen = usual if given is None else given if isinstance(given, list) else [given]
        if missing := [column for column in chosen if column and column not in there]:
            raise InputError(f"{file}: there is no column '{missing[0]}'. Correct columns.{name}. {known}")
        names[name] = list(filter(None, chosen))
    others = set(there) - {column for chosen in names.values() for column in chosen}
    for name in (name for name, chosen in names.items() if not chosen and getattr(columns, name) is None):
        if close := get_close_matches(name, others, 1, 0.8):
            raise InputError(
                f"{file}: does column '{close[0]}' contain the {name}? If so, set columns.{name}={close[0]}. If not, "
                f"set columns.{name}=''."
            )
    names["accuracy" if columns.correct else "correct"] *= not (names["accuracy"] and names["correct"])
    if not names["accuracy"] and not names["correct"]:
        raise InputError(
            f"{file}: there is no column of accuracies. Set columns.accuracy=NAME or columns.correct=NAME. {known}"
        )
    return {name: chosen for name, chosen in names.items() if chosen}


def _texts(cells: pd.DataFrame) -> list[str]:
    """Return the texts of columns, joined by commas."""
    rows = cells.fillna("").astype(str).to_numpy()
    return [", ".join(filter(None, map(str.strip, row))) for row in rows]
