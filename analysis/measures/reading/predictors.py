"""The rows of the regressions: words with what predicts their times, and the words that are left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.curves.variance import Array
from analysis.measures.reading.config import MIXED, NONE, SENTENCE, ReadingConfig
from analysis.measures.reading.times import Times
from corpora.word_counts import Counts
from corpora.words import words as reference_words

SURPRISAL, FREQUENCY = "surprisal", "log_frequency"


@dataclass(frozen=True)
class Rows:
    """The rows of all regressions, equal for all models.

    table: time, length, position, those of the words before as length_1, ..., text, sentence, participant, and word
    (row of Times.words). excluded: reason, words: how many words each further reason leaves out, the words that are
    left last. readings_excluded: single readings outside the limits.
    """

    times: Times
    table: pd.DataFrame
    excluded: pd.DataFrame
    readings_excluded: int
    spillover: int

    def of(self, values: npt.NDArray[Any], name: str) -> pd.DataFrame:
        """Return the columns `name`, name_1, ... of (W,) values of words, for each row."""
        lags = lagged(values, self.times.words["text"], self.spillover)
        at = self.table["word"].to_numpy()
        return pd.DataFrame({named(name, k): lag[at] for k, lag in enumerate(lags)}, index=self.table.index)


def named(name: str, lag: int) -> str:
    """Return the column of a word `lag` words before: "length", "length_1"."""
    return f"{name}_{lag}" if lag else name


def lagged(values: npt.NDArray[Any], text: pd.Series, spillover: int) -> list[Array]:
    """Return (W,) values of the words themselves and of those 1, ..., `spillover` words before, NaN in no text."""
    column = pd.Series(np.asarray(values, dtype=np.float64))
    return [column.groupby(text.to_numpy(), sort=False).shift(k).to_numpy() for k in range(spillover + 1)]


def rows_of(times: Times, known: Array, config: ReadingConfig) -> Rows:
    """Return the rows of words that count; `known` (W,): False for words that some model, or its frequency, lacks.

    With cross-validated regressions a row is a word, its time the mean over participants; with mixed ones a reading.
    """
    words, readings = times.words, times.readings
    within = np.ones(len(readings), dtype=bool)
    if times.participants:
        low = -np.inf if config.lowest is None else config.lowest
        high = np.inf if config.highest is None else config.highest
        within = readings["time"].between(low, high).to_numpy()
    kept = readings[within]
    has_time = np.isin(np.arange(len(words)), kept["word"])
    before = np.stack(lagged(np.asarray(known, dtype=np.float64), words["text"], config.spillover))
    reasons = {
        "no time, or none within the limits": ~has_time,
        f"first or last word of a {config.edges}": _edges(words, config.edges),
        f"fewer than {config.spillover} words before it": np.isnan(before).any(axis=0),
        "unknown to a model, or without a frequency; or the word before is": (before == 0).any(axis=0),
    }
    left = np.ones(len(words), dtype=bool)
    excluded = []
    for reason, out in reasons.items():
        excluded.append((reason, int((left & out).sum())))
        left &= ~out
    excluded.append(("left", int(left.sum())))
    if config.regression == MIXED:
        table = kept[left[kept["word"]]].reset_index(drop=True)
    else:
        table = kept[left[kept["word"]]].groupby("word", as_index=False)["time"].mean().assign(participant="")
    of_rows = words.iloc[table["word"]].reset_index(drop=True)
    table = table.assign(
        text=of_rows["text"],
        sentence=of_rows["text"] + ":" + of_rows["sentence"].astype(str),
        position=of_rows["number"].astype(np.float64),
    )
    counts = pd.DataFrame(excluded, columns=["reason", "words"])
    rows = Rows(times, table, counts, int((~within).sum()), config.spillover)
    return replace(rows, table=pd.concat([table, rows.of(words["word"].str.len().to_numpy(), "length")], axis=1))


def _edges(words: pd.DataFrame, edges: str) -> Array:
    if edges == NONE:
        return np.zeros(len(words), dtype=bool)
    unit = words["text"] + ":" + words["sentence"].astype(str) if edges == SENTENCE else words["text"]
    return np.asarray((unit != unit.shift(1)) | (unit != unit.shift(-1)))


def log_frequencies(words: Sequence[str], counts: Counts, reference: str) -> Array:
    """Return log2 of occurrences per million, plus half an occurrence, of each word's rarest part that is no mark.

    Parts are reference words (corpora/words.py); capitals do not count.
    """
    lowered: dict[str, int] = {}
    for word, number in counts.of.items():
        lowered[word.lower()] = lowered.get(word.lower(), 0) + number
    known: dict[str, float] = {}
    for word in dict.fromkeys(words):
        parts = [part for part in reference_words(word, reference) if any(map(str.isalnum, part))] or [word]
        known[word] = min((lowered.get(part.lower(), 0) + 0.5) / counts.words * 1e6 for part in parts)
    return np.log2([known[word] for word in words])
