"""An exhibit: a table, a figure or both under a heading, for files, the terminal and a page."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text

from analysis.config import FigureConfig
from analysis.exhibits.figures.files import write_figure
from analysis.exhibits.figures.style import PAGE, Chart, finished, style
from analysis.exhibits.tables.latex import latex_escape, latex_number, latex_table
from analysis.exhibits.tables.text import (
    DASH,
    accuracy_text,
    as_it_is,
    count,
    p_text,
    row_digits,
    title,
    with_minus_signs,
)
from pairscale.files import write_text
from pairscale.tables import write_csv

Cell = Callable[[Any], str]
_NAMES = ("field", "phenomenon", "paradigm")  # columns of names with underscores
_NAMED = (*_NAMES, "curve", "model", "other", "slope of")  # columns of names, which are long, but no sentences
# How numbers of a column are written, by its name; those of other columns are accuracies.
_NUMBERS: dict[str, Cell] = {
    **dict.fromkeys(("judgements", "pairs", "paradigms", "runs"), count),
    **dict.fromkeys(("p", "p (Holm)", "p (equivalence)"), p_text),
}
TOP = 6  # rows of a long table that the page shows before it is asked for all (report.css)
LONG = 40  # characters of a cell that may break


@dataclass(frozen=True)
class Column:
    """A column as readers see it: texts, and the numbers to sort them by; None of a column of text."""

    name: str
    texts: Sequence[str]
    values: Sequence[Any] | None = None

    @property
    def numeric(self) -> bool:
        return self.values is not None


@dataclass
class Exhibit:
    """A heading, a text (`about`), and a table, a figure or both.

    name: of its files and its anchor on the page; letters, digits, _ and -. table: its columns named as readers see
    them; the CSV file holds its values unrounded. cells: formatters of columns that are neither text nor accuracies.
    texts: columns that are formatted already. heads: headings that are not the column's name. intervals: heading ->
    estimate, low, high: columns of the table, of which readers see the limits in one column, each row with the digits
    that its interval supports (the first one of an estimate); None: of the column before "low" and "high", if there are
    such. confidence: of that. charts: by name, functions of `frame` (figures.style.Frame); panels of one figure.
    columns: most panels in a row of the figure's file. legend: names in a legend; choosing one on the page fades
    the others. takeaways: (subject, sentence), what it shows; the subject may be "". definitions: term -> what it
    means, on the page behind a button. filtered: the page's table can be searched, and limited to a phenomenon or
    paradigm. optional: headings of columns that the page shows on demand.
    """

    name: str
    heading: str
    about: str
    table: pd.DataFrame | None = None
    cells: Mapping[str, Cell] = field(default_factory=dict)
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    heads: Mapping[str, str] = field(default_factory=dict)
    intervals: Mapping[str, tuple[str, str, str]] | None = None
    confidence: float = 0.95
    charts: Mapping[str, Callable[..., Chart]] = field(default_factory=dict)
    columns: int = 2
    legend: Sequence[str] = ()
    takeaways: Sequence[tuple[str, str]] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    filtered: bool = False
    optional: Sequence[str] = ()

    @cached_property
    def shown(self) -> list[Column]:
        """The columns of the table as readers see them."""
        if self.table is None:
            return []
        table, intervals = self.table, self._intervals()
        digits: dict[str, list[int]] = {}
        for of, low, high in intervals.values():
            digits.setdefault(of, row_digits(table[low], table[high]))
        heading_of = {low: heading for heading, (_, low, _) in intervals.items()}
        highest = {high for _, _, high in intervals.values()}
        columns: list[Column] = []
        for name in map(str, table.columns):
            if name in heading_of:
                of, low, high = intervals[heading_of[name]]
                cell = self._cell(of)
                texts = [
                    DASH if math.isnan(a) or math.isnan(b) else f"[{cell(a, digits=places)}, {cell(b, digits=places)}]"
                    for a, b, places in zip(table[low], table[high], digits[of], strict=True)
                ]
                columns.append(Column(heading_of[name], texts, table[low].tolist()))
            elif name not in highest:
                columns.append(self._column(name, digits.get(name)))
        return columns

    def _intervals(self) -> Mapping[str, tuple[str, str, str]]:
        if self.intervals is not None or self.table is None:
            return self.intervals or {}
        names = [str(name) for name in self.table.columns]
        at = names.index("low") if "low" in names else 0
        return {f"{self.confidence:.0%} interval": (names[at - 1], "low", "high")} if at else {}

    def _column(self, name: str, digits: Sequence[int] | None) -> Column:
        assert self.table is not None
        values = self.table[name].tolist()
        cell = self._cell(name)
        if name in self.texts:
            texts = self.texts[name]
        elif digits is None:
            texts = [cell(value) for value in values]
        else:
            texts = [cell(value, digits=places) for value, places in zip(values, digits, strict=True)]
        return Column(self.heads.get(name, name), texts, values if self._is_numeric(name) else None)

    def _cell(self, name: str) -> Callable[..., str]:
        return self.cells.get(name, _formatter(name, self._is_numeric(name)))

    def _is_numeric(self, name: str) -> bool:
        return self.table is not None and pd.api.types.is_numeric_dtype(self.table[name].dtype)

    @property
    def overall(self) -> list[int]:
        """Positions of the rows of the whole benchmark, which stand out."""
        if self.table is None or "phenomenon" not in self.table:
            return []
        return [row for row, name in enumerate(self.table["phenomenon"]) if name == "overall"]

    def rows(self) -> list[list[str]]:
        """Return the table as text; an unknown number is a dash."""
        return [list(row) for row in zip(*(column.texts for column in self.shown), strict=True)]

    def for_page(self, prefix: str = "") -> dict[str, Any]:
        """Return the values of exhibits.html; numbers carry their value, for sorting. `prefix`: of file names."""
        shown = sorted(self.shown, key=_place)
        columns = [
            {"name": column.name, "numeric": column.numeric, "choice": column.name in _NAMES,
             "optional": column.name in self.optional, "look": _look(column)}
            for column in shown
        ]  # fmt: skip
        cells = [
            [
                {"text": with_minus_signs(text) if column.numeric else text, "value": value, "numeric": column.numeric}
                for text, value in zip(column.texts, column.values or column.texts, strict=True)
            ]
            for column in shown
        ]
        rows = [list(row) for row in zip(*cells, strict=True)]
        return {
            "name": self.name, "anchor": prefix + self.name, "heading": self.heading, "about": self.about,
            "takeaways": list(self.takeaways), "definitions": dict(self.definitions), "columns": columns,
            "rows": rows, "overall": self.overall, "clipped": len(rows) > TOP + 2,
            "charts": [f"{prefix}{self.name}-{chart}" for chart in self.charts], "filtered": self.filtered,
            "small": self.columns > 2, "wide": self.columns == 1, "legend": style(self.legend).to_dict("records"),
            "files": self.files(prefix),
        }  # fmt: skip

    def files(self, prefix: str = "") -> dict[str, str]:
        """Return the files that `write` writes, by their kind."""
        kinds = {"SVG": "svg", "PDF": "pdf", "PNG": "png"} if self.charts else {}
        kinds |= {"CSV": "csv", "LaTeX": "tex"} if self.table is not None and len(self.table) else {}
        return {kind: f"{prefix}{self.name}.{suffix}" for kind, suffix in kinds.items()}

    def specifications(self, prefix: str = "") -> dict[str, dict[str, Any]]:
        """Return the charts of the page, by their names in `for_page`."""
        return {f"{prefix}{self.name}-{name}": finished(draw(frame=PAGE)) for name, draw in self.charts.items()}

    def write(self, folder: Path, prefix: str = "", figure: FigureConfig | None = None, **made_by: Any) -> None:
        """Write <prefix><name>.csv and .tex, .svg, .pdf and .png; `made_by`: further columns of the CSV file."""
        path, figure = folder / f"{prefix}{self.name}", figure or FigureConfig()
        if self.table is not None:
            assert made_by.keys().isdisjoint(self.table.columns), (self.name, list(self.table.columns))
            write_csv(path.with_name(f"{path.name}.csv"), self.table.assign(**made_by))
            write_text(path.with_name(f"{path.name}.tex"), self.latex(f"tab:{prefix}{self.name}", figure.narrow))
        if self.charts:
            write_figure(folder, path.name, [*self.charts.values()], figure, self.columns, self.legend)

    def latex(self, label: str, narrow: bool = False) -> str:
        """Return the table for a paper; `narrow`: for a column of two, if it can be."""
        columns = [
            [(latex_number if column.numeric else latex_escape)(text) for text in column.texts] for column in self.shown
        ]
        head = [latex_escape(column.name) for column in self.shown]
        rows = [list(row) for row in zip(*columns, strict=True)]
        defined = " ".join(f"{term}: {meaning}" for term, meaning in self.definitions.items())
        caption = f"{self.heading}. {self.about} {defined}".rstrip()
        return latex_table(head, [("", rows)], caption, label, [column.numeric for column in self.shown], narrow)

    def terminal(self, width: int) -> list[Text | Table]:
        """Return heading and table for a terminal of `width` characters; columns that do not fit follow below."""
        shown = self.shown
        # Headings and texts may break at spaces, numbers may not.
        need = [
            max([*map(len, column.name.split()), *(map(len, column.texts) if column.numeric or i == 0 else ())])
            for i, column in enumerate(shown)
        ]
        parts: list[list[int]] = [[]]
        for i in range(1, len(shown)):
            taken = need[0] + sum(need[j] + 2 for j in [*parts[-1], i])
            if taken > width and parts[-1]:
                parts.append([])
            parts[-1].append(i)
        tables = [self._table([shown[i] for i in [0, *part]]) for part in parts if shown]
        return [Text(self.heading, "bold"), *tables]

    def _table(self, columns: Sequence[Column]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        for i, column in enumerate(columns):
            head = Text(column.name.replace(" ", "\n") if column.numeric else column.name)
            fixed = column.numeric or i == 0
            table.add_column(head, justify="right" if column.numeric else "left", no_wrap=fixed)
        for i, row in enumerate(zip(*(column.texts for column in columns), strict=True)):
            table.add_row(*map(Text, row), style="bold" if i in self.overall else None)
        return table


def _is_long(column: Column) -> bool:
    return _look(column) == "long"


def _look(column: Column) -> str:
    """Return the class of a column whose texts may break (report.css): long for sentences, names for long names."""
    if column.numeric or all(len(text) <= LONG for text in column.texts):
        return ""
    return "names" if column.name in _NAMED else "long"


def _place(column: Column) -> int:
    """Return where a column stands on the page: paradigms first, in sight; sentences last, so that numbers are, too.

    A column with empty cells names no rows.
    """
    return 0 if column.name == "paradigm" and all(column.texts) else 1 + _is_long(column)


def _formatter(column: str, numeric: bool) -> Cell:
    if numeric:
        return _NUMBERS.get(column, accuracy_text)
    return title if column in _NAMES else as_it_is


def existing(exhibits: Iterable[Exhibit | None]) -> list[Exhibit]:
    """Return the exhibits that have data."""
    return [exhibit for exhibit in exhibits if exhibit is not None]
