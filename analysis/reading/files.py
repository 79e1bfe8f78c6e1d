"""Files of reading times: texts word by word, and how long each word was read.

The forms (`reading.form`) are
    table             any table: text, number, word, time; and, if present, participant, sentence, frequency
    natural_stories   Futrell et al. 2021: processed_RTs.tsv (single readings) or processed_wordinfo.tsv (means)
    babylm            reading_data.csv of the BabyLM evaluation, or all_measures.csv of de Varda et al. 2023 (means)
"""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.reading.config import BABYLM, TABLE, ReadingConfig
from eval.benchmarks.cells import name_of, sentence_of, shown
from eval.benchmarks.files import file_rows, format_of
from pairscale.errors import ConfigError, InputError

_TABLE_NAMES = {name: name for name in ("text", "number", "word", "participant")}
_STORY_NAMES = {"text": "item", "number": "zone", "word": "word", "participant": "WorkerId"}
_END = re.compile(r"[.?!…][\"'”’»)\]]*$")
_NO_END = re.compile(r"^[\"'“‘(]*(Mr|Mrs|Ms|Dr|St|Prof|Rev|Col|Gen|Capt|Lt|Sgt|Jr|Sr|vs|e\.g|i\.e|[A-Z])\.$")


@dataclass(frozen=True)
class ReadingTimes:
    """Texts word by word, and how long each word was read.

    Attributes:
        words: one row per word of each text, in order: text, sentence (its number in the text, from 1), number (of the
            word in the text, from 1), word and log_frequency (NaN if the file has none).
        readings: one row per reading: word (a row of `words`), time (ms, or another measure) and participant ("" if
            the times are means over people).
    """

    words: pd.DataFrame
    readings: pd.DataFrame

    @property
    def participants(self) -> int:
        """How many people read; 0 if the times are means."""
        return self.readings.loc[self.readings["participant"] != "", "participant"].nunique()


def read_times(path: Path, config: ReadingConfig) -> ReadingTimes:
    """Return the words and times of a file. Raises ConfigError, and InputError with the file and line of the fault."""
    if config.form == BABYLM:
        if config.words is not None:
            raise ConfigError("reading.words: the rows of reading.form=babylm contain all words, so leave it out.")
        return _assembled(_babylm_rows(path, config), path)
    rows = _word_rows(path, "times", config)
    if config.words is not None:
        more = _word_rows(Path(config.words).expanduser(), "reading.words", config)
        rows = pd.concat([rows, more.assign(time=np.nan)], ignore_index=True)
    return _assembled(rows, path)


def read_columns(path: Path, key: str, required: list[str], quotes: bool = True) -> pd.DataFrame:
    """Return the cells of a table as they are, and the column `where`: file and line.

    Args:
        path: a file that `eval.benchmarks.files.file_rows` reads.
        key: the configuration key that names it, for errors.
        required: columns that must be present.

    Raises ConfigError for another format, InputError for a file or column that is missing.
    """
    if not path.is_file():
        raise InputError(f"{key}={path}: no such file")
    format_of(path, key)
    rows = [{**row.cells, "where": row.where} for row in file_rows(path, quotes=quotes)]
    missing = [name for name in required if name not in rows[0]]
    if missing:
        there = ", ".join(str(name) for name in rows[0] if name != "where")
        raise InputError(f"{rows[0]['where']}: no column {missing[0]}; there are {there}")
    return pd.DataFrame(rows, dtype=object)


def converted(rows: pd.DataFrame, column: str, read: Callable[[Any, str, str], Any]) -> list[Any]:
    """Return a column's cells as `read` reads them; it raises InputError with the place of a wrong one."""
    return [read(cell, where, column) for cell, where in zip(rows[column], rows["where"], strict=True)]


def whole_number(cell: Any, where: str, column: str) -> int:
    """Return a whole number from 1. Raises InputError for anything else."""
    text = str(cell).strip()
    if isinstance(cell, bool) or not re.fullmatch(r"[0-9]{1,9}(\.0)?", text) or int(float(text)) < 1:
        raise InputError(f"{where}: {column} is {shown(cell)}, must be a whole number from 1")
    return int(float(text))


def number_or_nan(cell: Any, where: str, column: str) -> float:
    """Return a number, NaN if the cell is empty or NA. Raises InputError for anything else."""
    if cell is None or str(cell).strip().lower() in ("", "na", "nan"):
        return np.nan
    try:
        value = float(cell)
    except (TypeError, ValueError):
        value = np.inf
    if not np.isfinite(value):
        raise InputError(f"{where}: {column} is {shown(cell)}, must be a number")
    return value


def positive_or_nan(cell: Any, where: str, column: str) -> float:
    """Return a number above 0, NaN if the cell is empty or NA. Raises InputError for anything else."""
    value = number_or_nan(cell, where, column)
    if value <= 0:
        raise InputError(f"{where}: {column} is {value:g}, must be above 0, or empty")
    return value


def _word(cell: Any, where: str, column: str) -> str:
    return " ".join(sentence_of(cell, where, column).split())


def _word_rows(path: Path, key: str, config: ReadingConfig) -> pd.DataFrame:
    """Read a table with one row per word, or per reading of a word."""
    names = _TABLE_NAMES if config.form == TABLE else _STORY_NAMES
    file = read_columns(path, key, [names[name] for name in ("text", "number", "word")], quotes=config.form == TABLE)
    usual = "time" if config.form == TABLE else "RT" if names["participant"] in file else "meanItemRT"
    time = config.measure or usual
    if time not in file:
        if key == "times":
            there = ", ".join(str(name) for name in file if name != "where")
            raise InputError(f"{file['where'].iloc[0]}: no column {time}; there are {there}")
        file[time] = np.nan
    rows = pd.DataFrame({
        "text": converted(file, names["text"], name_of), "number": converted(file, names["number"], whole_number),
        "word": converted(file, names["word"], _word), "time": converted(file, time, number_or_nan),
        "where": file["where"],
    })  # fmt: skip
    if names["participant"] in file:
        rows["participant"] = converted(file, names["participant"], name_of)
    if config.form == TABLE and "sentence" in file:
        rows["sentence"] = converted(file, "sentence", whole_number)
    if config.form == TABLE and "frequency" in file:
        rows["log_frequency"] = np.log2(converted(file, "frequency", positive_or_nan))
    return rows


def _babylm_rows(path: Path, config: ReadingConfig) -> pd.DataFrame:
    """Put words, each of which has its context in the column item, together to sentences.

    A context that several sentences share has a row for each of them; which belongs to which makes no difference.
    """
    measure = config.measure or "self_paced_reading_time"
    file = read_columns(path, "times", ["item", "word", measure])
    words, times = converted(file, "word", _word), converted(file, measure, number_or_nan)
    frequencies = converted(file, "Subtlex_log10", number_or_nan) if "Subtlex_log10" in file else [np.nan] * len(file)
    beginnings = [(*str(context or "").split(), word) for context, word in zip(file["item"], words, strict=True)]
    rows_of: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, beginning in enumerate(beginnings):
        rows_of[beginning].append(row)
    longer = {beginning[:end] for beginning in beginnings for end in range(1, len(beginning))}
    sentences = [beginning for beginning in rows_of if beginning not in longer]
    sentences = [sentence for sentence in sentences for _ in rows_of[sentence]]
    made = []
    for number, sentence in enumerate(sentences, start=1):
        for end, word in enumerate(sentence, start=1):
            rows = rows_of.get(sentence[:end])
            time, frequency = np.nan, np.nan
            if rows:
                at = rows.pop(0)
                time, frequency = times[at], frequencies[at]
            made.append((str(number), end, 1, word, time, frequency))
    names = ["text", "number", "sentence", "word", "time", "log_frequency"]
    return pd.DataFrame(made, columns=names).assign(where=str(path))


def _assembled(rows: pd.DataFrame, path: Path) -> ReadingTimes:
    """Return the times of rows with text, number, word, time and, if present, the others; rows may be in any order.

    Raises InputError if two rows have different words at one place, and if a text lacks a word.
    """
    keys = ["text", "number"]
    words = rows.drop_duplicates(keys)
    order = pd.Series(range(len(words)), index=words.index).groupby(words["text"]).transform("min")
    words = words.assign(order=order).sort_values(["order", "number"], ignore_index=True)
    at = rows[keys].merge(words[keys].reset_index(names="at"), on=keys, how="left")["at"].to_numpy()
    first = words["word"].to_numpy()[at]
    wrong = np.flatnonzero(first != rows["word"].to_numpy())
    if len(wrong):
        row = rows.iloc[wrong[0]]
        place = f"{row['where']}: word {row['number']} of text {row['text']}"
        raise InputError(f"{place} is {row['word']!r}, in an earlier row {first[wrong[0]]!r}")
    for text, numbers in words.groupby("text", sort=False)["number"]:
        if len(numbers) != numbers.iloc[-1]:
            missing = next(number for number, there in enumerate(numbers, start=1) if number != there)
            raise InputError(
                f"{path}: text {text} has no word {missing}, but {numbers.iloc[-1]:,} words: surprisal needs whole "
                "texts. Give words without times an empty time, or give reading.words=FILE, which has all words."
            )
    if "sentence" not in words:
        words["sentence"] = _sentences(words)
    words = words.assign(log_frequency=words.get("log_frequency", np.nan))
    readings = pd.DataFrame(
        {"word": at, "time": rows["time"].astype(float), "participant": rows.get("participant", "")}
    )
    readings = readings[readings["time"].notna()].reset_index(drop=True)
    if readings.empty:
        raise InputError(f"{path}: contains no time")
    return ReadingTimes(words[["text", "sentence", "number", "word", "log_frequency"]], readings)


def _sentences(words: pd.DataFrame) -> pd.Series:
    """Number the sentences of each text: one ends in . ? ! or …, with quotation marks and brackets after it."""
    ends = words["word"].map(lambda word: bool(_END.search(word)) and not _NO_END.match(word))
    before = ends.groupby(words["text"], sort=False).shift(1, fill_value=False).astype(int)
    return before.groupby(words["text"], sort=False).cumsum() + 1
