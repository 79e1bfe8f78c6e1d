"""Readers of files of reading times, one for each form (reading.form).

table             any table: text, number, word, time; and, if there, participant, sentence, frequency
natural_stories   Futrell et al. 2021: processed_RTs.tsv (readings) or processed_wordinfo.tsv (means)
babylm            reading_data.csv of the BabyLM evaluation, or all_measures.csv of de Varda et al. 2023 (means)
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.measures.reading.config import ReadingConfig
from analysis.measures.reading.times import Times, assembled, columns_of, number_or_nan, whole_number
from eval.benchmarks.cells import name_of, sentence_of
from pairscale.errors import ConfigError, InputError

Rows = tuple[pd.DataFrame, list[str]]
_BABYLM = "self_paced_reading_time"


def read_times(path: Path, config: ReadingConfig) -> Times:
    """Return the words and times of a file. Raises ConfigError, and InputError with file and row for what is wrong."""
    read = _FORMS[config.form]
    rows, places = read(path, "times", config.measure)
    if config.words is not None:
        if config.form == "babylm":
            raise ConfigError("reading.words: not of reading.form=babylm, whose rows hold the words before theirs")
        more, more_places = read(Path(config.words).expanduser(), "reading.words", config.measure)
        rows, places = pd.concat([rows, more.assign(time=np.nan)], ignore_index=True), [*places, *more_places]
    return assembled(rows, places)


def _table(path: Path, key: str, measure: str | None) -> Rows:
    time = measure or "time"
    required = ["text", "number", "word"] + ([time] if key == "times" else [])
    optional = ["participant", "sentence", "frequency"]
    columns, places = columns_of(path, key, required, [*optional, *({time} - set(required))])
    rows = {
        "text": _cells(columns["text"], places, "text", name_of),
        "number": _cells(columns["number"], places, "number", whole_number),
        "word": _cells(columns["word"], places, "word", _word),
        "time": _cells(columns[time], places, time, number_or_nan),
    }
    if any(cell is not None for cell in columns["participant"]):
        rows["participant"] = _cells(columns["participant"], places, "participant", name_of)
    if any(cell is not None for cell in columns["sentence"]):
        rows["sentence"] = _cells(columns["sentence"], places, "sentence", whole_number)
    frequency = _cells(columns["frequency"], places, "frequency", number_or_nan)
    for where, value in zip(places, frequency, strict=True):
        if value <= 0:
            raise InputError(f"{where}: frequency is {value:g}, must be above 0, or empty")
    return pd.DataFrame({**rows, "log_frequency": np.log2(frequency)}), places


def _natural_stories(path: Path, key: str, measure: str | None) -> Rows:
    readings = ["WorkerId", "RT"]
    columns, places = columns_of(path, key, ["item", "zone", "word"], [*readings, "meanItemRT"], quotes=False)
    single = all(cell is not None for cell in columns["WorkerId"])
    time = measure or ("RT" if single else "meanItemRT")
    if time not in columns:
        raise ConfigError(f"reading.measure={time}: must be one of RT, meanItemRT, or null")
    times = columns[time]
    if key == "times" and all(cell is None for cell in times):
        raise InputError(f"{places[0]}: no column {time}; processed_RTs.tsv has RT, processed_wordinfo.tsv meanItemRT")
    rows = {
        "text": _cells(columns["item"], places, "item", name_of),
        "number": _cells(columns["zone"], places, "zone", whole_number),
        "word": _cells(columns["word"], places, "word", _word),
        "time": _cells(times, places, time, number_or_nan),
    }
    if single:
        rows["participant"] = _cells(columns["WorkerId"], places, "WorkerId", name_of)
    return pd.DataFrame(rows), places


def _babylm(path: Path, key: str, measure: str | None) -> Rows:
    """Put the words, each of which has its context in the column item, together to sentences.

    A context that several sentences share has a row for each of them; which belongs to which makes no difference.
    """
    measure = measure or _BABYLM
    columns, places = columns_of(path, key, ["item", "word", measure], ["Subtlex_log10"])
    words = _cells(columns["word"], places, "word", _word)
    contexts = [str(cell or "").split() for cell in columns["item"]]
    read = [(*context, word) for context, word in zip(contexts, words, strict=True)]
    times = _cells(columns[measure], places, measure, number_or_nan)
    frequencies = _cells(columns["Subtlex_log10"], places, "Subtlex_log10", number_or_nan)
    rows_of: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, beginning in enumerate(read):
        rows_of[beginning].append(row)
    longer = {beginning[:end] for beginning in read for end in range(1, len(beginning))}
    sentences = [beginning for beginning in rows_of if beginning not in longer]
    sentences = [sentence for sentence in sentences for _ in rows_of[sentence]]
    made = []
    for number, sentence in enumerate(sentences, start=1):
        for end, word in enumerate(sentence, start=1):
            rows = rows_of.get(sentence[:end])
            at = rows.pop(0) if rows else None
            time, frequency = (np.nan, np.nan) if at is None else (times[at], frequencies[at])
            made.append((str(number), end, 1, word, time, frequency, places[at or 0]))
    table = pd.DataFrame(made, columns=["text", "number", "sentence", "word", "time", "log_frequency", "where"])
    return table.drop(columns="where"), table["where"].tolist()


def _cells(cells: Sequence[Any], places: Sequence[str], column: str, read: Callable[[Any, str, str], Any]) -> list[Any]:
    """Read each cell of a column; `read` raises InputError, with the place, for one that it does not know."""
    return [read(cell, where, column) for cell, where in zip(cells, places, strict=True)]


def _word(cell: Any, where: str, column: str) -> str:
    return " ".join(sentence_of(cell, where, column).split())


_FORMS: dict[str, Callable[[Path, str, str | None], Rows]] = {
    "table": _table,
    "natural_stories": _natural_stories,
    "babylm": _babylm,
}
