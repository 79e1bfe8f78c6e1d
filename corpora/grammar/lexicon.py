"""Read tables of words, and select their rows by conditions, forms and, optionally, a vocabulary."""

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from corpora.grammar.symbols import Symbol
from pairscale.errors import InputError

MISSING_FORM = "-"  # the cell for a form that does not exist

Row = dict[str, str]  # cells by column


class NothingFits(InputError):
    """The error for a valid symbol that doesn't fit any word of the lexicon, or of the restricting vocabulary."""


class Entry(str):
    """A word with its row, drawn from a table whose rows must be distinct within a pair."""

    row: Row


class Lexicon:
    """Tables of words, with weights for drawing their rows.

    Args:
        tables: The rows of each table by its name.
        zipf: The values of "shift" and "exponent". The r-th matching row has the weight (r + shift) ** -exponent. With
            None, all rows have the same weight. A column `weight` overrides both.
        distinct: Tables whose words are drawn as `Entry`, with their row.
        knows: Function that returns True if a word is in the vocabulary. All other forms are treated as missing. None
            for no restriction.
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
            raise InputError(
                f"grammar.yaml: distinct: the lexicon has no table '{missing[0]}'. Add the table, or remove it from "
                "`distinct`."
            )

    def check_known(self, word: str) -> None:
        """Raise NothingFits if a word is not in the vocabulary."""
        if self._knows is not None and not self._knows(word):
            raise NothingFits(f"'{word}' is not in the vocabulary")

    def rows(self, symbol: Symbol, forms: Iterable[str]) -> tuple[list[Row], list[float]]:
        """Return a table's rows that meet a symbol's conditions and have all `forms`, and the rows' weights.

        Raises InputError if the table or a column doesn't exist, and NothingFits if no row matches.
        """
        key = symbol, tuple(forms)
        if key not in self._matches:
            try:
                self._matches[key] = self._rows(*key)
            except NothingFits as error:
                self._matches[key] = str(error)  # cached, because the same failures recur often
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
                raise NothingFits(f"{symbol}: no fitting row of the table '{symbol.name}' is in the vocabulary")
        if not fit:
            raise NothingFits(f"{symbol}: no row of the table '{symbol.name}' fits")
        if "weight" in fit[0]:
            return fit, [float(row["weight"]) for row in fit]
        if self._zipf is None:
            return fit, [1.0] * len(fit)
        shift, exponent = self._zipf["shift"], self._zipf["exponent"]
        return fit, [(rank + shift) ** -exponent for rank in range(1, len(fit) + 1)]

    def _meeting(self, table: str, condition: str) -> frozenset[int]:
        """Return the numbers of the rows that meet a condition. Cache them, because symbols share most conditions."""
        key = table, condition
        if key not in self._met:
            column, _, values = condition.partition("=")
            shared, wanted = not column.endswith("!"), set(values.split("|"))
            cells = (row[column.rstrip("!")].split("|") for row in self._tables[table])
            self._met[key] = frozenset(i for i, cell in enumerate(cells) if wanted.isdisjoint(cell) != shared)
        return self._met[key]

    def check_columns(self, symbol: Symbol, forms: Iterable[str]) -> None:
        """Raise InputError unless the symbol's table exists and has columns for all its conditions and all `forms`."""
        rows = self._tables.get(symbol.name)
        columns = [*(argument.partition("=")[0].rstrip("!") for argument in symbol.arguments), *forms]
        if not rows or not set(columns) <= set(rows[0]):
            raise InputError(
                f"{symbol}: the lexicon has no table '{symbol.name}' with the columns {', '.join(columns)}. Add them, "
                "or correct the symbol."
            )

    def entry(self, symbol: Symbol, row: Row, form: str) -> str:
        """Return a form of a row, which is an `Entry` if its table is one of `distinct`."""
        if symbol.name not in self.distinct:
            return row[form]
        entry = Entry(row[form])
        entry.row = row
        return entry


def with_aliases(table: str, rows: list[Row], names: Mapping[str, str]) -> list[Row]:
    """Add a column for each alias. `names` maps aliases to columns. Raises InputError for an unknown column."""
    for column in names.values():
        if not rows or column not in rows[0]:
            raise InputError(
                f"grammar.yaml: aliases: the lexicon has no table '{table}' with the column '{column}'. Correct the "
                "alias."
            )
    return [{**row, **{alias: row[column] for alias, column in names.items()}} for row in rows]


def read_table(file: Path) -> list[Row]:
    """Read the rows of a table of words. Raises InputError, with the line, if a cell is empty or missing."""
    with file.open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header) or not all(row):
            raise InputError(
                f"{file}:{number}: the cells of this line are {row}. It must have {len(header)} non-empty cells "
                f"({', '.join(header)})."
            )
    return [dict(zip(header, row, strict=True)) for row in rows]
