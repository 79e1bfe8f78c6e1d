"""An exhibit: a table, a figure or both, with a text; as files, in the terminal, on a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text

from analysis.exhibits.figures.style import Chart, finished, side_by_side, style, write_figure
from analysis.exhibits.tables.latex import latex_escape, latex_number, latex_table, write_csv
from analysis.exhibits.tables.text import accuracy_text, as_it_is, title
from pairscale.files import write_text

Cell = Callable[[Any], str]
_NAMES = ("field", "phenomenon", "paradigm")  # columns whose text is a name with underscores
FIGURE_WIDTH = 420  # pixels of a panel in a file, less where more than two stand in a row; in a page as there is room


@dataclass
class Exhibit:
    """The content of a report under one heading.

    name: of its files and its place on the page: letters, digits, _ and -.
    table: as people read it, under the names of its columns; its CSV holds it as it is.
    cells: how a column's cells are written where numbers are no accuracies, or text is no name.
    charts: name -> a function from a width (pixels or "container") to a chart; side by side in the file.
    columns: panels beside each other in the file. legend: names that are no part of its charts' own legends on the
    page, where choosing one fades the others.
    strong: rows that stand out, by their number. folded: the page shows the table only when asked. filtered: there it
    can be searched, and cut to a phenomenon or paradigm.
    """

    name: str
    heading: str
    about: str
    table: pd.DataFrame | None = None
    cells: Mapping[str, Cell] = field(default_factory=dict)
    charts: Mapping[str, Callable[[int | str], Chart]] = field(default_factory=dict)
    columns: int = 2
    legend: Sequence[str] = ()
    strong: tuple[int, ...] = ()
    folded: bool = False
    filtered: bool = False

    @property
    def head(self) -> list[str]:
        return [] if self.table is None else [str(column) for column in self.table.columns]

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        return [] if self.table is None else [pd.api.types.is_numeric_dtype(dtype) for dtype in self.table.dtypes]

    def rows(self) -> list[list[str]]:
        """Return the table as text; a number that is not known is a dash."""
        if self.table is None:
            return []
        write = [
            self.cells.get(name, accuracy_text if numeric else title if name in _NAMES else as_it_is)
            for name, numeric in zip(self.head, self.numeric, strict=True)
        ]
        columns = [self.table.iloc[:, i].map(cell) for i, cell in enumerate(write)]
        return [list(row) for row in zip(*columns, strict=True)]

    def for_page(self, prefix: str = "") -> dict[str, Any]:
        """Return what exhibits.html shows; numbers carry their value, for sorting. Files are named with `prefix`."""
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
            "head": list(zip(self.head, self.numeric, strict=True)), "rows": rows, "strong": self.strong,
            "charts": [f"{prefix}{self.name}-{chart}" for chart in self.charts], "folded": self.folded,
            "filtered": self.filtered, "choices": [name for name in self.head if name in _NAMES],
            "small": self.columns > 2, "legend": style(self.legend).to_dict("records"),
        }  # fmt: skip

    def specifications(self, prefix: str = "") -> dict[str, dict[str, Any]]:
        """Return the charts of a page, under the names that `for_page` gives them."""
        return {f"{prefix}{self.name}-{name}": finished(draw("container")) for name, draw in self.charts.items()}

    def write(self, folder: Path, prefix: str = "", **made_by: Any) -> None:
        """Write <prefix><name>.csv and .tex of the table, .svg and .png of the figure; `made_by`: further columns."""
        path = folder / f"{prefix}{self.name}"
        if self.table is not None:
            assert made_by.keys().isdisjoint(self.head), (self.name, self.head)
            write_csv(path.with_name(f"{path.name}.csv"), self.table.assign(**made_by))
            write_text(path.with_name(f"{path.name}.tex"), self.latex(f"tab:{prefix}{self.name}"))
        if self.charts:
            width = FIGURE_WIDTH * 2 // max(2, self.columns)
            panels = [draw(width) for draw in self.charts.values()]
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
        # A heading may break at spaces, a number may not; text may.
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
        for i, row in enumerate(rows):
            shown.add_row(*(Text(row[column]) for column in columns), style="bold" if i in self.strong else None)
        return shown
