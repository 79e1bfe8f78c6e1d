"""Files of reading times: texts word by word, and how long each word was read.

The forms (`reading.form`) are
    table             any table: text, number, word, time; and, if present, participant, sentence, frequency
    natural_stories   Futrell et al. 2021: processed_RTs.tsv (single readings) or processed_wordinfo.tsv (means)
    babylm            reading_data.csv of the BabyLM evaluation, or all_measures.csv of de Varda et al. 2023 (means)
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.reading.config import BABYLM, TABLE, ReadingConfig
from eval.benchmarks.cells import name_of, shown
from eval.benchmarks.files import file_rows, format_of
from pairscale.errors import ConfigError, InputError

_STORY_NAMES = {"item": "text", "zone": "number", "WorkerId": "participant"}
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
        rows = pd.concat([rows, _word_rows(Path(config.words).expanduser(), "reading.words", config)])
    return _assembled(rows.reset_index(drop=True), path)


def read_columns(path: Path, key: str, quotes: bool = True) -> pd.DataFrame:
    """Return the cells of a table as they are, and the column `where`: file and line.

    Args:
        path: a file that `eval.benchmarks.files.file_rows` reads.
        key: the configuration key that names it, for errors.

    Raises ConfigError for another format, InputError for a file that is missing or damaged.
    """
    if not path.is_file():
        raise InputError(f"{key}={path}: no such file")
    format_of(path, key)
    return pd.DataFrame([{**row.cells, "where": row.where} for row in file_rows(path, quotes=quotes)], dtype=object)


def first_column(rows: pd.DataFrame, *names: str) -> str:
    """Return the first of `names` that is a column of `read_columns`' table. Raises InputError if there is none."""
    there = [str(name) for name in rows if name != "where"]
    if not (present := [name for name in names if name in there]):
        raise InputError(f"{rows['where'].iloc[0]}: no column {' or '.join(names)}; there are {', '.join(there)}")
    return present[0]


def texts(rows: pd.DataFrame, *names: str) -> pd.Series:
    """Return the first column that is present, with single blanks. Raises InputError for a cell without text."""
    column = first_column(rows, *names)
    cells = [name_of(cell, where, column) for cell, where in zip(rows[column], rows["where"], strict=True)]
    return pd.Series([" ".join(cell.split()) for cell in cells], rows.index, dtype=str)


def numbers(
    rows: pd.DataFrame, column: str, low: float = -np.inf, high: float = np.inf, whole: bool = False
) -> pd.Series:
    """Return a column of numbers from `low` to `high`, NaN where a cell is empty or NA; `whole` ones must be present.

    Raises InputError for any other cell, with its place.
    """
    cells = rows[first_column(rows, column)]
    is_empty = cells.isna() | cells.astype(str).str.strip().str.lower().isin(["", "na", "nan"])
    values = pd.to_numeric(cells.astype(str).mask(is_empty), errors="coerce").astype(float)
    wrong = ~(np.isfinite(values) & values.between(low, high) | is_empty)
    if whole:
        wrong |= values % 1 != 0
    if len(rows[wrong]):
        row = rows[wrong].iloc[0]
        limits = (f" from {low:g}" if np.isfinite(low) else "") + (f" to {high:g}" if np.isfinite(high) else "")
        wanted = f"a {'whole ' * whole}number{limits}"
        raise InputError(f"{row['where']}: {column} is {shown(row[column])}, must be {wanted}")
    return values.astype(int) if whole else values


def _word_rows(path: Path, key: str, config: ReadingConfig) -> pd.DataFrame:
    """Read a table with one row per word, or per reading of a word."""
    file, usual = read_columns(path, key, quotes=config.form == TABLE), "time"
    if config.form != TABLE:
        file = file.rename(columns=_STORY_NAMES)
        usual = "RT" if "participant" in file else "meanItemRT"
    rows = pd.DataFrame({"text": texts(file, "text"), "number": numbers(file, "number", 1, whole=True)})
    rows = rows.assign(word=texts(file, "word"), where=file["where"])
    if key == "times":
        rows["time"] = numbers(file, config.measure or usual)
    if "participant" in file:
        rows["participant"] = texts(file, "participant")
    if "sentence" in file:
        rows["sentence"] = numbers(file, "sentence", 1, whole=True)
    if "frequency" in file:
        rows["log_frequency"] = np.log2(numbers(file, "frequency", 0).replace(0, np.nan))
    return rows


def _babylm_rows(path: Path, config: ReadingConfig) -> pd.DataFrame:
    """Put words, each of which has its context in the column item, together to sentences.

    A context that several sentences share has a row for each of them; which belongs to which makes no difference.
    """
    file = read_columns(path, "times")
    rows = pd.DataFrame({"time": numbers(file, config.measure or "self_paced_reading_time")})
    rows["log_frequency"] = numbers(file, "Subtlex_log10") if "Subtlex_log10" in file else np.nan
    contexts = file[first_column(file, "item")].fillna("").astype(str).str.split()
    rows["beginning"] = [(*context, word) for context, word in zip(contexts, texts(file, "word"), strict=True)]
    longer = {beginning[:end] for beginning in rows["beginning"] for end in range(1, len(beginning))}
    sentences = [one for one in Counter(rows["beginning"]).elements() if one not in longer]
    words = pd.DataFrame(
        [
            (str(text), end, sentence[end - 1], sentence[:end])
            for text, sentence in enumerate(sentences, start=1)
            for end in range(1, len(sentence) + 1)
        ],
        columns=["text", "number", "word", "beginning"],
    )
    for table in (rows, words):
        table["use"] = table.groupby("beginning", sort=False).cumcount()
    return words.merge(rows, on=["beginning", "use"], how="left").assign(sentence=1, where=str(path))


def _assembled(rows: pd.DataFrame, path: Path) -> ReadingTimes:
    """Return the times of rows with text, number, word, time and, if present, the others; rows may be in any order.

    Raises InputError if two rows have different words at one place, and if a text lacks a word.
    """
    keys = ["text", "number"]
    words = rows.drop_duplicates(keys)
    words = words.assign(order=words["text"].factorize()[0]).sort_values(["order", "number"], ignore_index=True)
    rows = rows.merge(words[[*keys, "word"]].reset_index(names="at"), on=keys, how="left", suffixes=("", "_before"))
    different = rows[rows["word"] != rows["word_before"]]
    if len(different):
        row = different.iloc[0]
        place = f"{row['where']}: word {row['number']} of text {row['text']}"
        raise InputError(f"{place} is {row['word']!r}, in an earlier row {row['word_before']!r}")
    expected = words.groupby("text", sort=False).cumcount() + 1
    late = words.assign(expected=expected)[words["number"] != expected]
    if len(late):
        row = late.iloc[0]
        raise InputError(
            f"{path}: text {row['text']} has no word {row['expected']}, but later ones: surprisal needs whole texts. "
            "Give words without times an empty time, or give reading.words=FILE, which has all words."
        )
    if "sentence" not in words:
        words["sentence"] = _sentences(words)
    words["log_frequency"] = words.get("log_frequency", np.nan)
    readings = pd.DataFrame({"word": rows["at"], "time": rows["time"], "participant": rows.get("participant", "")})
    readings = readings.dropna(subset="time").reset_index(drop=True)
    if readings.empty:
        raise InputError(f"{path}: contains no time")
    return ReadingTimes(words[["text", "sentence", "number", "word", "log_frequency"]], readings)


def _sentences(words: pd.DataFrame) -> pd.Series:
    """Number the sentences of each text: one ends in . ? ! or …, with quotation marks and brackets after it."""
    ends = words["word"].map(lambda word: bool(_END.search(word)) and not _NO_END.match(word))
    before = ends.groupby(words["text"], sort=False).shift(1, fill_value=False).astype(int)
    return before.groupby(words["text"], sort=False).cumsum() + 1
