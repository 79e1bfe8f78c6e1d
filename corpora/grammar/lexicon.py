"""Tables of words: rows that meet conditions and have certain forms, optionally all within a vocabulary."""

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from corpora.grammar.symbols import Symbol
from pairscale.errors import InputError

MISSING_FORM = "-"  # cell of a form that does not exist

Row = dict[str, str]  # column to cell


class NothingFits(InputError):
    """A well-formed symbol that no word of the lexicon, or of the vocabulary that restricts it, can stand for."""


class Entry(str):
    """A drawn word of a table whose rows are distinct within a pair."""

    row: Row


class Lexicon:
    """Tables of words by name, with weights for drawing their rows.

    zipf: the r-th matching row has the weight (r + shift) ** -exponent; None: equal weights. A column `weight` of a
        table overrides both.
    distinct: tables whose drawn words are entries that know their row.
    knows: returns True if a word is in the vocabulary; all other forms count as missing. None: no restriction.
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
        self._matches: dict[tuple[Symbol, tuple[str, ...]], tuple[list[Row], list[float]] | str] = {}
        self._met: dict[tuple[str, str], frozenset[int]] = {}
        if missing := sorted(self.distinct - set(tables)):
            raise InputError(f"grammar.yaml: distinct: no table '{missing[0]}' in the lexicon")

    def check_known(self, word: str) -> None:
        """Raise NothingFits for a word that is not in the vocabulary."""
        if self._knows is not None and not self._knows(word):
            raise NothingFits(f"'{word}' is not in the vocabulary")

    def rows(self, symbol: Symbol, forms: Iterable[str]) -> tuple[list[Row], list[float]]:
        """Return the rows of a table that meet a symbol's conditions and have all `forms`, and their weights.

        Raises InputError if there is no such table or column, NothingFits if no row matches.
        """
        key = symbol, tuple(forms)
        if key not in self._matches:
            try:
                self._matches[key] = self._rows(*key)
            except NothingFits as error:
                self._matches[key] = str(error)  # dead ends recur often
        match = self._matches[key]
        if isinstance(match, str):
            raise NothingFits(match)
        return match

    def _rows(self, symbol: Symbol, forms: tuple[str, ...]) -> tuple[list[Row], list[float]]:
        self.check_columns(symbol, forms)
        rows = self._tables[symbol.name]
        conditions = [*symbol.arguments, *(f"{form}!={MISSING_FORM}" for form in forms)]
        numbers = set(range(len(rows))).intersection(*(self._meeting(symbol.name, one) for one in conditions))
        fit = [rows[number] for number in sorted(numbers)]
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

    def _meeting(self, table: str, condition: str) -> frozenset[int]:
        """Return the numbers of the rows that meet a condition, sought once: thousands of symbols share a hundred."""
        key = table, condition
        if key not in self._met:
            column, _, values = condition.partition("=")
            shared, wanted = not column.endswith("!"), set(values.split("|"))
            cells = (row[column.rstrip("!")].split("|") for row in self._tables[table])
            self._met[key] = frozenset(i for i, cell in enumerate(cells) if wanted.isdisjoint(cell) != shared)
        return self._met[key]

    def check_columns(self, symbol: Symbol, forms: Iterable[str]) -> None:
        """Raise InputError if there is no such table, or it has no column for one of the conditions or `forms`."""
        rows = self._tables.get(symbol.name)
        columns = [*(argument.partition("=")[0].rstrip("!") for argument in symbol.arguments), *forms]
        if not rows or not set(columns) <= set(rows[0]):
            raise InputError(f"{symbol}: no table '{symbol.name}' with the columns {', '.join(columns)} in the lexicon")

    def entry(self, symbol: Symbol, row: Row, form: str) -> str:
        """Return a form of a row, as an `Entry` if its table is one of `distinct`."""
        if symbol.name not in self.distinct:
            return row[form]
        entry = Entry(row[form])
        entry.row = row
        return entry


def with_aliases(table: str, rows: list[Row], names: Mapping[str, str]) -> list[Row]:
    """Return rows with aliases (alias -> column) as additional columns. Raises InputError for an unknown column."""
    for column in names.values():
        if not rows or column not in rows[0]:
            raise InputError(f"grammar.yaml: aliases: no table '{table}' with the column {column}")
    return [{**row, **{alias: row[column] for alias, column in names.items()}} for row in rows]


def read_table(file: Path) -> list[Row]:
    """Return the rows of a table of words. Raises InputError, with the line, for an empty or a missing cell."""
    with file.open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header) or not all(row):
            raise InputError(f"{file}:{number}: must have {len(header)} cells ({', '.join(header)}), got {row}")
    return [dict(zip(header, row, strict=True)) for row in rows]
