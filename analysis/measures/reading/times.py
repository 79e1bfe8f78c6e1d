"""Words that people read, and their times."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from eval.benchmarks.cells import shown
from eval.benchmarks.files import file_rows, format_of
from pairscale.errors import InputError

WORDS = ("text", "sentence", "number", "word", "log_frequency")
_END = re.compile(r"[.?!…][\"'”’»)\]]*$")
_NO_END = re.compile(r"^[\"'“‘(]*(Mr|Mrs|Ms|Dr|St|Prof|Rev|Col|Gen|Capt|Lt|Sgt|Jr|Sr|vs|e\.g|i\.e|[A-Z])\.$")


@dataclass(frozen=True)
class Times:
    """Texts word by word, and how long each word was read.

    words: a row for each word of each text, in order: text, sentence (number in the text, from 1), number (of the word
    in the text, from 1), word, log_frequency (NaN where the file has none). readings: word (row of words), time (ms, or
    another measure), participant ("" where a time is a mean over people).
    """

    words: pd.DataFrame
    readings: pd.DataFrame

    @property
    def participants(self) -> int:
        """How many people read; 0 where times are means."""
        named = self.readings["participant"]
        return 0 if (named == "").all() else int(named.nunique())


def columns_of(
    path: Path, key: str, required: Sequence[str], optional: Sequence[str] = (), quotes: bool = True
) -> tuple[dict[str, list[Any]], list[str]]:
    """Return columns of a table by name, None for an optional one that is missing, and the place of each row.

    key: of the configuration, for errors. Raises ConfigError, InputError for a file or a column that is missing.
    """
    if not path.is_file():
        raise InputError(f"{key}={path}: no such file")
    format_of(path, key)
    columns: dict[str, list[Any]] = {name: [] for name in (*required, *optional)}
    places: list[str] = []
    for where, cells in file_rows(path, quotes=quotes):
        if not places and (missing := [name for name in required if name not in cells]):
            raise InputError(f"{where}: no column {missing[0]}; there are {', '.join(map(str, cells))}")
        places.append(where)
        for name, column in columns.items():
            column.append(cells.get(name))
    return columns, places


def whole_number(cell: Any, where: str, column: str) -> int:
    """Return a cell that must hold a whole number from 1. Raises InputError for anything else."""
    text = str(cell).strip()
    if isinstance(cell, bool) or not re.fullmatch(r"[0-9]{1,9}(\.0)?", text) or int(float(text)) < 1:
        raise InputError(f"{where}: {column} is {shown(cell)}, must be a whole number from 1")
    return int(float(text))


def number_or_nan(cell: Any, where: str, column: str) -> float:
    """Return a cell that must hold a number, NaN if it is empty or NA. Raises InputError for anything else."""
    if cell is None or str(cell).strip().lower() in ("", "na", "nan"):
        return np.nan
    try:
        value = float(cell)
    except (TypeError, ValueError):
        value = np.inf
    if not np.isfinite(value):
        raise InputError(f"{where}: {column} is {shown(cell)}, must be a number")
    return value


def assembled(rows: pd.DataFrame, places: Sequence[str]) -> Times:
    """Return times of rows text, number, word, time, and, if there, participant, sentence and log_frequency.

    A row is a reading; several of one (text, number) are of several people. Raises InputError where two rows have
    another word at one place, or a text lacks one.
    """
    rows = rows.reset_index(drop=True)
    keys = ["text", "number"]
    words = rows.drop_duplicates(keys).drop(columns=["time", "participant"], errors="ignore")
    order = words["text"].drop_duplicates().reset_index(drop=True)
    words = words.assign(order=words["text"].map({text: place for place, text in enumerate(order)}))
    words = words.sort_values(["order", "number"]).drop(columns="order").reset_index(drop=True)
    at = rows[keys].merge(words[keys].reset_index(names="at"), on=keys, how="left")["at"].to_numpy()
    other = np.flatnonzero(words["word"].to_numpy()[at] != rows["word"].to_numpy())
    if len(other):
        row = rows.iloc[other[0]]
        raise InputError(
            f"{places[other[0]]}: word {row['number']} of text {row['text']} is {row['word']!r}, in an earlier row "
            f"{words['word'].iloc[at[other[0]]]!r}"
        )
    _check_whole(words)
    if "sentence" not in words:
        words["sentence"] = _sentences(words)
    if "log_frequency" not in words:
        words["log_frequency"] = np.nan
    readings = pd.DataFrame({
        "word": at, "time": rows["time"].to_numpy(dtype=np.float64),
        "participant": rows["participant"].to_numpy() if "participant" in rows else "",
    })  # fmt: skip
    readings = readings[readings["time"].notna()].reset_index(drop=True)
    if readings.empty:
        raise InputError(f"{places[0].partition(':')[0]}: holds no time")
    return Times(words[list(WORDS)], readings)


def _check_whole(words: pd.DataFrame) -> None:
    for text, of in words.groupby("text", sort=False):
        if len(of) != of["number"].iloc[-1]:
            missing = next(number for number, of_row in enumerate(of["number"], start=1) if number != of_row)
            raise InputError(
                f"times: text {text} has no word {missing}, but {of['number'].iloc[-1]:,} words: surprisal needs whole "
                f"texts; give words without times an empty time, or reading.words=FILE, which has all words"
            )


def _sentences(words: pd.DataFrame) -> pd.Series:
    """Number the sentences of each text: one ends in . ? ! or …, with quotation marks and brackets after it."""
    ends = words["word"].map(lambda word: bool(_END.search(word)) and not _NO_END.match(word))
    before = ends.groupby(words["text"], sort=False).shift(1, fill_value=False).astype(int)
    return before.groupby(words["text"], sort=False).cumsum() + 1


def words_rows(times: Times) -> list[dict[str, Any]]:
    """Return the rows that `python -m eval.surprisal` reads: a text for each sentence, a document for each text."""
    words = times.words
    names = words["text"] + ":" + words["sentence"].astype(str)
    return [
        {"text_id": name, "document": text, "word": word}
        for name, text, word in zip(names, words["text"], words["word"], strict=True)
    ]
