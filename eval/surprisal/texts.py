"""The user's texts: lines of a text file, or rows of a table, each a text or a word of one."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import pandas as pd

from eval.benchmarks.cells import name_of, sentence_of
from eval.benchmarks.files import Row, file_rows, format_of, text_lines
from eval.surprisal.config import SurprisalConfig
from eval.surprisal.files import COLUMNS
from pairscale.errors import InputError

TEXT_ID, NUMBER, WORD = "text_id", "number", "word"  # columns of a result that say which word it is of


@dataclass(frozen=True)
class Text:
    """Words that are read with a space between each two; (text_id, number) of each, and further cells of its row.

    document: equal for texts that are read one after another.
    """

    words: list[str]
    places: list[tuple[str, int]]
    rows: list[Mapping[str, Any]]  # of a table of words; else empty
    document: Hashable = None

    @classmethod
    def of(cls, name: str, words: list[str], document: Hashable = None, rows: Sequence[Mapping[str, Any]] = ()) -> Self:
        """Return the text with the id `name`."""
        return cls(words, [(name, number) for number in range(1, len(words) + 1)], list(rows), document)

    @classmethod
    def joined(cls, texts: Sequence[Self]) -> Self:
        """Return texts of one document as one."""
        words, places, rows = ([one for text in texts for one in getattr(text, name)] for name in _OF_WORDS)
        return cls(words, places, rows, texts[0].document)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each word, in order: text_id, number (from 1), word, and the further columns of its row."""
        names, numbers = zip(*self.places, strict=True)
        own = pd.DataFrame({TEXT_ID: names, NUMBER: numbers, WORD: self.words})
        return pd.concat([own, pd.DataFrame(self.rows)], axis=1) if self.rows else own


_OF_WORDS = ("words", "places", "rows")


def read_texts(path: Path, config: SurprisalConfig) -> list[Text]:
    """Return the texts of a file (eval.benchmarks.files.FORMATS), or its documents with context=document.

    A text file has a text a line, and empty lines between documents. White space in a text counts as one space. Raises
    InputError, with file and row, for a file that is missing, not of its format, without texts or without a column.
    """
    if not path.is_file():
        raise InputError(f"text={path}: no such file")
    _, ending = format_of(path, "text")
    texts = list(_lines(path) if ending == ".txt" else _of_table(path, config))
    if not texts:
        raise InputError(f"text={path}: holds no text")
    if config.context == "text":
        return texts
    return [Text.joined(list(group)) for _, group in groupby(texts, key=lambda text: text.document)]


def _lines(path: Path) -> Iterator[Text]:
    document = 0
    for number, line in text_lines(path):
        if line.strip():
            yield Text.of(str(number), sentence_of(line, f"{path}: line {number}", "text").split(), document)
        else:
            document += 1


def _of_table(path: Path, config: SurprisalConfig) -> Iterator[Text]:
    rows = list(file_rows(path))
    by_word = config.word_column in rows[0].cells
    if not by_word:
        for number, row in enumerate(rows, start=1):
            words = sentence_of(_cell(row, config.text_column), row.where, config.text_column).split()
            name = (
                name_of(row.cells[config.id_column], row.where, config.id_column)
                if config.id_column in row.cells
                else str(number)
            )
            yield Text.of(name, words, _document(row, config))
        return

    def text(row: Row) -> tuple[str, str | None]:
        return name_of(_cell(row, config.id_column), row.where, config.id_column), _document(row, config)

    for (name, document), group in groupby(rows, key=text):
        of_text = list(group)
        words = [sentence_of(_cell(row, config.word_column), row.where, config.word_column) for row in of_text]
        further = [_further(row, config) for row in of_text]
        yield Text.of(name, [" ".join(word.split()) for word in words], document, further)


def _further(row: Row, config: SurprisalConfig) -> dict[str, Any]:
    """Return the cells of a row that a result keeps: a column with the name of one of ours gets "_given" after it."""
    there = {name for name, column in ((TEXT_ID, config.id_column), (WORD, config.word_column)) if name == column}
    further = {}
    for name, cell in row.cells.items():
        if name in there:
            continue
        kept = f"{name}_given" if name in COLUMNS else name
        if kept != name and kept in row.cells:
            raise InputError(
                f"{row.where}: column {name} would be written as {kept}, which is there too; rename one of them"
            )
        further[kept] = cell
    return further


def _document(row: Row, config: SurprisalConfig) -> str | None:
    if config.context == "text":
        return None
    return name_of(_cell(row, config.document_column), row.where, config.document_column)


def _cell(row: Row, column: str) -> Any:
    if column not in row.cells:
        raise InputError(
            f"{row.where}: no column {column}; there are {', '.join(map(str, row.cells))} (surprisal.*_column)"
        )
    return row.cells[column]
