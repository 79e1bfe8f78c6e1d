"""Tables of words: rows that meet conditions, in forms that exist and, where there is a vocabulary, are in it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from corpora.grammar.symbols import Symbol
from pairscale.errors import InputError

MISSING_FORM = "-"

Row = dict[str, str]  # of a table of words: column to cell


class NothingFits(InputError):
    """What is asked for is well formed, but the lexicon, or the vocabulary that it is restricted to, has none of it."""


class Entry(str):
    """A drawn word of a table whose rows are to be distinct."""

    row: Row


class Lexicon:
    """Tables of words by name, and how often their rows are drawn.

    zipf: the r-th row of those that fit has the weight (r + shift) ** -exponent; None: all alike; a table's own column
    `weight` goes before both. distinct: tables whose drawn words can be told from others. knows: whether a word, as it
    is written, may be used; forms of which it says no count as missing.
    """

    def __init__(
        self,
        tables: Mapping[str, list[Row]],
        zipf: Mapping[str, float] | None = None,
        distinct: Iterable[str] = (),
        knows: Callable[[str], bool] | None = None,
    ):
        self._tables = tables
        self._zipf = zipf
        self.distinct = frozenset(distinct)
        self._knows = knows
        self._found: dict[tuple[Symbol, tuple[str, ...]], tuple[list[Row], list[float]] | str] = {}
        if missing := sorted(self.distinct - set(tables)):
            raise InputError(f"grammar.yaml: distinct: no table '{missing[0]}' in the lexicon")

    def check_known(self, word: str) -> None:
        """Raise NothingFits for a word that is not in the vocabulary."""
        if self._knows is not None and not self._knows(word):
            raise NothingFits(f"'{word}' is not in the vocabulary")

    def rows(self, symbol: Symbol, forms: Iterable[str]) -> tuple[list[Row], list[float]]:
        """The rows of a table that meet a symbol's conditions and have all `forms`, and their weights.

        Raises InputError where there is no such table or column, NothingFits where no row is left.
        """
        key = symbol, tuple(forms)
        if key not in self._found:
            try:
                self._found[key] = self._rows(*key)
            except NothingFits as error:
                self._found[key] = str(error)  # a dead end is met again and again
        found = self._found[key]
        if isinstance(found, str):
            raise NothingFits(found)
        return found

    def _rows(self, symbol: Symbol, forms: tuple[str, ...]) -> tuple[list[Row], list[float]]:
        conditions = []
        for argument in symbol.arguments:
            column, _, values = argument.partition("=")
            conditions.append((column.rstrip("!"), not column.endswith("!"), set(values.split("|"))))
        self.check_columns(symbol, forms)
        fit = [
            row
            for row in self._tables[symbol.name]
            if all(values.isdisjoint(row[column].split("|")) != shared for column, shared, values in conditions)
            and all(row[form] != MISSING_FORM for form in forms)
        ]
        if fit and self._knows is not None:
            fit = [row for row in fit if all(map(self._knows, (row[form] for form in forms)))]
            if not fit:
                raise NothingFits(f"{symbol}: no row of the table '{symbol.name}' that fits is in the vocabulary")
        if not fit:
            raise NothingFits(f"{symbol}: no row of the table '{symbol.name}' fits")
        if "weight" in fit[0]:
            return fit, [float(row["weight"]) for row in fit]
        if self._zipf is None:
            return fit, [1.0] * len(fit)
        shift, exponent = self._zipf["shift"], self._zipf["exponent"]
        return fit, [(rank + shift) ** -exponent for rank in range(1, len(fit) + 1)]

    def check_columns(self, symbol: Symbol, forms: Iterable[str]) -> None:
        """Raise InputError where there is no such table, or it lacks a column of the conditions or one of `forms`."""
        rows = self._tables.get(symbol.name)
        columns = [*(argument.partition("=")[0].rstrip("!") for argument in symbol.arguments), *forms]
        if not rows or not set(columns) <= set(rows[0]):
            raise InputError(f"{symbol}: no table '{symbol.name}' with the columns {', '.join(columns)} in the lexicon")

    def entry(self, symbol: Symbol, row: Row, form: str) -> str:
        """A form of a row; one that can be told from others where the rows of its table are to be distinct."""
        if symbol.name not in self.distinct:
            return row[form]
        entry = Entry(row[form])
        entry.row = row
        return entry


def with_aliases(table: str, rows: list[Row], names: Mapping[str, str]) -> list[Row]:
    """Rows with further names of columns, alias: column. Raises InputError where there is no such column."""
    for column in names.values():
        if not rows or column not in rows[0]:
            raise InputError(f"grammar.yaml: aliases: {table}: no table of that name with the column {column}")
    return [{**row, **{alias: row[column] for alias, column in names.items()}} for row in rows]


def read_table(file: Path) -> list[Row]:
    """Rows of a table of words. Raises InputError, with the line, for a row that has another number of cells."""
    with file.open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header) or not all(row):
            raise InputError(f"{file}:{number}: must hold {len(header)} cells ({', '.join(header)}), got {row}")
    return [dict(zip(header, row, strict=True)) for row in rows]
