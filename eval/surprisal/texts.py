"""Read the user's texts from the lines of a text file, or from a table with one text or one word per row."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd

from corpora.sources.lines import lines
from eval.benchmarks.cells import name_of, sentence_of
from eval.benchmarks.files import Row, file_rows, format_of, read_column, table_of
from eval.config import SurprisalConfig
from eval.scores.schemas import WORDS
from pairscale.errors import InputError


def read_texts(path: Path, config: SurprisalConfig) -> pd.DataFrame:
    """Read the words of a file in one of eval.benchmarks.files.FORMATS, with one row per word.

    Rows with the same index are read together, as a text or, with context=document, as a document. The columns are
    text_id, number (from 1 in each text) and word. If the file is a table of words, its other columns follow. Columns
    with a name in WORDS get the suffix "_given". Any white space in a text counts as one space.

    Raises InputError, with file and row, if the file is missing, invalid or empty, or if a column is missing.
    """
    if not path.is_file():
        raise InputError(f"text={path}: this file doesn't exist. Correct the path.")
    rows = list(_rows(path, config))
    if not rows:
        raise InputError(f"text={path}: this file contains no text. Choose another file.")
    cells = table_of(rows)
    read = partial(read_column, cells, key="surprisal.*_column")
    has_words, has_documents = config.word_column in cells, config.context == "document"
    named = has_words or config.id_column in cells
    words = pd.DataFrame(
        {
            "text_id": read(config.id_column, name_of) if named else [str(n) for n in range(1, len(rows) + 1)],
            "word": read(config.word_column if has_words else config.text_column, sentence_of),
            "document": read(config.document_column, name_of) if has_documents else "",
        }
    )
    words["word"] = words["word"].str.split()
    texts = pd.Series(range(len(rows)))
    if has_words:
        texts = _changes(words[["text_id", "document"]])
        words["word"] = words["word"].str.join(" ")
    readings = _changes(words[["document"]]) if has_documents else texts
    words = words.drop(columns="document").assign(number=texts).set_index(readings.to_numpy()).explode("word")
    words["number"] = words.groupby("number").cumcount() + 1
    words = words[["text_id", "number", "word"]]
    return words if not has_words else pd.concat([words, _further(rows, path, config).set_index(words.index)], axis=1)


def _rows(path: Path, config: SurprisalConfig) -> Iterator[Row]:
    """Yield the rows of a table, or the lines of a text file. In a text file, empty lines separate documents."""
    if format_of(path, "text")[1] != ".txt":
        yield from file_rows(path)
        return
    document = 0
    for number, line in lines(path):
        if line.strip():
            cells = {config.text_column: line, config.id_column: number, config.document_column: document}
            yield Row(f"{path}: line {number}", cells)
        else:
            document += 1


def _changes(keys: pd.DataFrame) -> pd.Series:
    """Number the rows. Consecutive rows with the same keys have the same number."""
    return keys.ne(keys.shift()).any(axis=1).cumsum()


def _further(rows: list[Row], path: Path, config: SurprisalConfig) -> pd.DataFrame:
    """Return the further columns of a table of words, renamed if needed. Raises InputError if two names are equal."""
    own = [name for name, column in (("text_id", config.id_column), ("word", config.word_column)) if name == column]
    further = pd.DataFrame([row.cells for row in rows]).drop(columns=own)
    given = {name: f"{name}_given" for name in WORDS.names if name in further}
    if taken := [name for name in given if given[name] in further]:
        raise InputError(
            f"{path}: column {taken[0]} would become {given[taken[0]]}, which already exists. Rename one of them."
        )
    return further.rename(columns=given)
