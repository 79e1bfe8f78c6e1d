"""Read files of reading times, which contain words and how long each word was read."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.reading.config import BABYLM, TABLE, ReadingConfig
from eval.benchmarks.cells import name_of, shown
from eval.benchmarks.files import file_rows, format_of
from pairscale.errors import InputError

COLUMNS = ["text", "number", "word", "sentence", "log_frequency", "time"]
LOST = "None"  # the context of "None of the ..." is empty in BabyLM's table, and its pipeline restores it
_STORIES = {"item": "text", "zone": "number", "WorkerId": "participant", "RT": "time", "meanItemRT": "time"}
_END = re.compile(r"[.?!…][\"'”’»)\]]*$")
_NO_END = re.compile(r"^[\"'“‘(]*(Mr|Mrs|Ms|Dr|St|Prof|Rev|Col|Gen|Capt|Lt|Sgt|Jr|Sr|vs|e\.g|i\.e|[A-Z])\.$")


def read_times(path: Path, config: ReadingConfig) -> pd.DataFrame:
    """Return the words of texts, and how long each was read.

    Returns:
        One row per word of each text, in order. The columns are text, number (of the word in the text, from 1), word,
        sentence (its number in the text), log_frequency (NaN if the file has none) and time (ms, or another measure). A
        time is the mean over the readings between `lowest` and `highest`, or NaN if there are none. These limits don't
        apply to times that are already means over people.

    Raises:
        ConfigError: If the file format is unknown.
        InputError: If the contents of the file are invalid.
    """
    rows = _babylm_rows(path, config) if config.form == BABYLM else _word_rows(path, "times", config)
    if config.words is not None:
        rows = pd.concat([rows, _word_rows(Path(config.words).expanduser(), "reading.words", config)])
    by_place = rows.reindex(columns=COLUMNS).groupby(["text", "number"], sort=False)
    words = by_place.first().assign(time=by_place["time"].mean(), words=by_place["word"].nunique()).reset_index()
    words = words.assign(order=words["text"].factorize()[0]).sort_values(["order", "number"], ignore_index=True)
    is_gap = words["number"] != words.groupby("order").cumcount() + 1
    if (is_wrong := is_gap | (words["words"] > 1)).any():
        place = "word {number} of text {text}".format(**words[is_wrong].iloc[0])
        raise InputError(
            f"{path}: {place} differs between rows or follows a gap. Add a row for every word, with an empty time if "
            "it wasn't read, or set reading.words to a file with all words."
        )
    if words["sentence"].isna().any():
        ends = words["word"].map(lambda word: bool(_END.search(word)) and not _NO_END.match(word)).astype(int)
        words["sentence"] = ends.groupby(words["order"]).transform(lambda of_text: of_text.cumsum() - of_text + 1)
    return words[COLUMNS].astype({"sentence": int})


def read_rows(path: Path, key: str, quotes: bool = True) -> pd.DataFrame:
    """Return the cells of a table. The index contains the file and line of each row.

    `key` is the configuration key of the path. Raises ConfigError if the file format is unknown, and InputError if the
    file is missing or damaged.
    """
    if not path.is_file():
        raise InputError(f"{key}={path}: this file does not exist. Correct the path.")
    format_of(path, key)
    rows = list(file_rows(path, quotes=quotes))
    return pd.DataFrame([row.cells for row in rows], [row.where for row in rows], dtype=object)


def column(rows: pd.DataFrame, *names: str) -> pd.Series:
    """Return the first of the named columns that a table of `read_rows` has. Raises InputError if it has none."""
    if present := [name for name in names if name in rows]:
        return rows[present[0]]
    there = ", ".join(map(str, rows))
    raise InputError(f"{rows.index[0]}: there is no column {' or '.join(names)}. Rename one of the columns ({there}).")


def texts(cells: pd.Series) -> pd.Series:
    """Return the texts of a column, with single spaces. Raises InputError if a cell has no text."""
    found = [" ".join(name_of(cell, str(where), str(cells.name)).split()) for where, cell in cells.items()]
    return pd.Series(found, cells.index, dtype=str)


def numbers(cells: pd.Series, low: float = -np.inf, high: float = np.inf, whole: bool = False) -> pd.Series:
    """Return the numbers of a column. An empty cell or NA becomes NaN, but isn't allowed for `whole` numbers.

    Raises InputError if a cell contains other text, or a number that isn't between `low` and `high`.
    """
    written = cells.fillna("").astype(str).str.strip()
    is_empty = written.str.lower().isin(["", "na", "nan"])
    values = pd.to_numeric(written.mask(is_empty), errors="coerce").astype(float)
    is_right = np.isfinite(values) & values.between(low, high)
    is_right = is_right & (values % 1 == 0) if whole else is_right | is_empty
    if not is_right.all():
        ends = f" from {low:g}" * (low > -np.inf) + f" to {high:g}" * (high < np.inf)
        at, wanted = int(is_right.argmin()), f"a {'whole ' * whole}number{ends}"
        raise InputError(f"{cells.index[at]}: {cells.name} is {shown(cells.iloc[at])}, but must be {wanted}.")
    return values.astype(int) if whole else values


def _word_rows(path: Path, key: str, config: ReadingConfig) -> pd.DataFrame:
    """Read a table with one row per word, or one row per reading of a word."""
    cells = read_rows(path, key, config.form == TABLE).rename(columns={} if config.form == TABLE else _STORIES)
    rows = pd.DataFrame({"text": texts(column(cells, "text")), "word": texts(column(cells, "word"))})
    rows["number"] = numbers(column(cells, "number"), 1, whole=True)
    if "sentence" in cells:
        rows["sentence"] = numbers(cells["sentence"], 1, whole=True)
    if "frequency" in cells:
        rows["log_frequency"] = np.log2(numbers(cells["frequency"], 0).replace(0, np.nan))
    if key == "times":
        rows["time"] = numbers(column(cells, config.measure or "time"))
        if "participant" in cells:
            rows["time"] = rows["time"].where(rows["time"].between(config.lowest or 0, config.highest or np.inf))
    return rows


def _babylm_rows(path: Path, config: ReadingConfig) -> pd.DataFrame:
    """Join words and their contexts into sentences. A context has one row per sentence that shares it."""
    cells = read_rows(path, "times")
    rows = pd.DataFrame({"time": numbers(column(cells, config.measure or "self_paced_reading_time"))})
    rows["log_frequency"] = numbers(cells["Subtlex_log10"]) if "Subtlex_log10" in cells else np.nan
    contexts = column(cells, "item").fillna(LOST).replace("", LOST)
    rows["words"] = (contexts + " " + texts(column(cells, "word"))).str.split().map(tuple)
    longer = {words[:end] for words in rows["words"] for end in range(1, len(words))}
    sentences = [words for words in Counter(rows["words"]).elements() if words not in longer]
    beginnings = {str(n): [of[:end] for end in range(1, len(of) + 1)] for n, of in enumerate(sentences, start=1)}
    table = pd.Series(beginnings, name="words").explode().rename_axis("text").reset_index()
    table = table.assign(number=table["words"].str.len(), word=table["words"].str[-1], sentence=1)
    table, rows = (one.assign(use=one.groupby("words", sort=False).cumcount()) for one in (table, rows))
    return table.merge(rows, on=["words", "use"], how="left")
