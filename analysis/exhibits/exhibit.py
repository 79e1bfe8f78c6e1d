"""An exhibit: a table, a figure or both under a heading, for files, the terminal and a page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text

from analysis.exhibits.figures.style import Chart, finished, side_by_side, style, write_figure
from analysis.exhibits.tables.latex import latex_escape, latex_number, latex_table, write_csv
from analysis.exhibits.tables.text import accuracy_text, as_it_is, count, p_text, title
from pairscale.files import write_text

Cell = Callable[[Any], str]
_NAMES = ("field", "phenomenon", "paradigm")  # columns of names with underscores
# How numbers of a column are written, by its name; those of other columns are accuracies.
_NUMBERS: dict[str, Cell] = {
    **dict.fromkeys(("judgements", "pairs", "paradigms", "runs"), count),
    **dict.fromkeys(("p", "p (Holm)", "p (equivalence)"), p_text),
}
FIGURE_WIDTH = 420  # pixels of a panel in a file, less where more than two stand in a row; pages use their own width


@dataclass
class Exhibit:
    """A heading, a text (`about`), and a table, a figure or both.

    name: of its files and its anchor on the page; letters, digits, _ and -. table: its columns named as readers see
    them; the CSV file holds its values unrounded. cells: formatters of columns that are neither text nor accuracies.
    charts: by name, functions of `width` (pixels or "container"); panels of one figure. columns: panels in a row of
    the figure's file. legend: names in a legend above the panels of the page; choosing one fades the others. folded:
    the page hides the table until it is opened. filtered: the page's table can be searched, and limited to a
    phenomenon or paradigm.
    """

    name: str
    heading: str
    about: str
    table: pd.DataFrame | None = None
    cells: Mapping[str, Cell] = field(default_factory=dict)
    charts: Mapping[str, Callable[..., Chart]] = field(default_factory=dict)
    columns: int = 2
    legend: Sequence[str] = ()
    folded: bool = False
    filtered: bool = False

    @property
    def head(self) -> list[str]:
        return [] if self.table is None else [str(column) for column in self.table.columns]

    @property
    def numeric(self) -> list[bool]:
        """True for each column of numbers."""
        return [] if self.table is None else [pd.api.types.is_numeric_dtype(dtype) for dtype in self.table.dtypes]

    @property
    def overall(self) -> list[int]:
        """Positions of the rows of the whole benchmark, which stand out."""
        if self.table is None or "phenomenon" not in self.table:
            return []
        return [row for row, name in enumerate(self.table["phenomenon"]) if name == "overall"]

    def rows(self) -> list[list[str]]:
        """Return the table as text; an unknown number is a dash."""
        if self.table is None:
            return []
        columns = [
            self.table.iloc[:, i].map(self.cells.get(name, _formatter(name, numeric)))
            for i, (name, numeric) in enumerate(zip(self.head, self.numeric, strict=True))
        ]
        return [list(row) for row in zip(*columns, strict=True)]

    def for_page(self, prefix: str = "") -> dict[str, Any]:
        """Return the values of exhibits.html; numbers carry their value, for sorting. `prefix`: of file names."""
        values = [] if self.table is None else self.table.to_numpy().tolist()
        rows = [
            [
                {"text": text.replace("-", "\N{MINUS SIGN}", 1) if right and text[:1] == "-" else text,
                 "value": value if right else None, "numeric": right}
                for text, value, right in zip(texts, of_row, self.numeric, strict=True)
            ]
            for texts, of_row in zip(self.rows(), values, strict=True)
        ]  # fmt: skip
        return {
            "name": self.name, "file": prefix + self.name, "heading": self.heading, "about": self.about,
            "head": list(zip(self.head, self.numeric, strict=True)), "rows": rows, "overall": self.overall,
            "charts": [f"{prefix}{self.name}-{chart}" for chart in self.charts], "folded": self.folded,
            "filtered": self.filtered, "choices": [name for name in self.head if name in _NAMES],
            "small": self.columns > 2, "legend": style(self.legend).to_dict("records"),
        }  # fmt: skip

    def specifications(self, prefix: str = "") -> dict[str, dict[str, Any]]:
        """Return the charts of the page, by their names in `for_page`."""
        return {f"{prefix}{self.name}-{name}": finished(draw(width="container")) for name, draw in self.charts.items()}

    def write(self, folder: Path, prefix: str = "", **made_by: Any) -> None:
        """Write <prefix><name>.csv and .tex, .svg and .png; `made_by`: further columns of the CSV file."""
        path = folder / f"{prefix}{self.name}"
        if self.table is not None:
            assert made_by.keys().isdisjoint(self.head), (self.name, self.head)
            write_csv(path.with_name(f"{path.name}.csv"), self.table.assign(**made_by))
            write_text(path.with_name(f"{path.name}.tex"), self.latex(f"tab:{prefix}{self.name}"))
        if self.charts:
            width = FIGURE_WIDTH * 2 // max(2, self.columns)
            panels = [draw(width=width) for draw in self.charts.values()]
            write_figure(folder, path.name, side_by_side(panels, self.columns))

    def latex(self, label: str) -> str:
        """Return the table for a paper."""
        rows = [
            [latex_number(text) if right else latex_escape(text) for text, right in zip(row, self.numeric, strict=True)]
            for row in self.rows()
        ]
        head = [latex_escape(name) for name in self.head]
        return latex_table(head, [("", rows)], f"{self.heading}. {self.about}", label, self.numeric)

    def terminal(self, width: int) -> list[Text | Table]:
        """Return heading and table for a terminal of `width` characters; columns that do not fit follow below."""
        rows = self.rows()
        # Headings and texts may break at spaces, numbers may not.
        need = [
            max([*map(len, name.split()), *(len(row[i]) if self.numeric[i] or i == 0 else 0 for row in rows)])
            for i, name in enumerate(self.head)
        ]
        parts: list[list[int]] = [[]]
        for i in range(1, len(self.head)):
            taken = need[0] + sum(need[j] + 2 for j in [*parts[-1], i])
            if taken > width and parts[-1]:
                parts.append([])
            parts[-1].append(i)
        return [Text(self.heading, "bold"), *(self._columns([0, *part], rows) for part in parts if rows)]

    def _columns(self, columns: list[int], rows: list[list[str]]) -> Table:
        shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        for i in columns:
            number = self.numeric[i]
            head = Text(self.head[i].replace(" ", "\n") if number else self.head[i])
            shown.add_column(head, justify="right" if number else "left", no_wrap=number or i == 0)
        overall = self.overall
        for i, row in enumerate(rows):
            shown.add_row(*(Text(row[column]) for column in columns), style="bold" if i in overall else None)
        return shown


def _formatter(column: str, numeric: bool) -> Cell:
    if numeric:
        return _NUMBERS.get(column, accuracy_text)
    return title if column in _NAMES else as_it_is


def existing(exhibits: Iterable[Exhibit | None]) -> list[Exhibit]:
    """Return the exhibits that have data."""
    return [exhibit for exhibit in exhibits if exhibit is not None]
