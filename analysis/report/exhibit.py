"""An exhibit: a table, a figure or both under a heading, for files and for the page."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from analysis.config import FigureConfig
from analysis.figures.files import write_figure
from analysis.figures.style import Chart
from analysis.formats import (
    DASH,
    accuracy_text,
    as_it_is,
    count,
    level_text,
    p_text,
    supported_digits,
    title,
    with_minus_signs,
)
from pairscale.files import write_text
from pairscale.tables import write_csv

Cell = Callable[..., str]
_NAMES = ("phenomenon", "paradigm")  # columns of names with underscores
# How numbers of a column are written, by its name; those of other columns are proportions.
_NUMBERS: dict[str, Cell] = {
    **dict.fromkeys(("pairs", "paradigms", "runs", "sizes", "seeds", "judgments"), count),
    **dict.fromkeys(("p", "p (Holm)", "p (lack of fit)"), p_text),
}
_LATEX = {"\N{MINUS SIGN}": r"\ensuremath{-}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
LONG = 40  # characters of a cell that may break


@dataclass
class Exhibit:
    """A heading, a text, and a table, a figure or both.

    Attributes:
        name: the name of its files and its anchor on the page, of letters, digits, _ and -.
        heading: a few words.
        about: what the table and the figure show, in full sentences.
        table: the columns are named as readers see them. The CSV file holds unrounded values.
        cells: formats of the columns that don't contain text or proportions.
        confidence: the level of the interval of which `low` and `high` are the limits, and the column before them the
            estimate. Readers see the limits in one column, with as many digits as the interval supports.
        charts: functions of a `frame` (analysis.figures.style.Frame) that draw the panels of one figure, by name.
        columns: how many panels stand in a row of the figure's file, at most.
        legend: the look of names in a legend above the figure (analysis.figures.style.looks_of).
        takeaways: (subject, sentence) pairs that say what the exhibit shows. The subject may be "".
        definitions: terms and what they mean.
    """

    name: str
    heading: str
    about: str
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    cells: Mapping[str, Cell] = field(default_factory=dict)
    confidence: float = 0.95
    charts: Mapping[str, Callable[..., Chart]] = field(default_factory=dict)
    columns: int = 2
    legend: pd.DataFrame | None = None
    takeaways: Sequence[tuple[str, str]] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return len(self.table)

    @cached_property
    def texts(self) -> pd.DataFrame:
        """The table as readers see it: formatted texts, and each interval in one column."""
        table = self.table
        texts = pd.DataFrame({str(name): list(map(self._cell(str(name)), values)) for name, values in table.items()})
        estimate = dict(zip(table.columns[1:], table.columns, strict=False)).get("low", "")
        headings = {"": f"{level_text(self.confidence)} interval", " new items": "with new items"}
        for end, heading in headings.items() if estimate else ():
            low, high = f"low{end}", f"high{end}"
            if low not in table:
                continue
            digits = list(map(supported_digits, table[low].astype(float), table[high].astype(float)))
            for name in (estimate, low, high):
                texts[name] = list(map(self._cell(estimate), table[name], digits))
            is_known = (texts[low] != DASH) & (texts[high] != DASH)
            texts[low] = ("[" + texts[low] + ", " + texts[high] + "]").where(is_known, DASH)
            texts = texts.drop(columns=high).rename(columns={low: heading})
        return texts.map(with_minus_signs)

    def _cell(self, name: str) -> Cell:
        if name in self.cells:
            return self.cells[name]
        if self.is_numeric(name):
            return _NUMBERS.get(name, accuracy_text)
        return title if name in _NAMES else as_it_is

    def is_numeric(self, name: str) -> bool:
        """Return True for a column of numbers; intervals count as numbers."""
        return name not in self.table or is_numeric_dtype(self.table[name].dtype)

    def html(self) -> str:
        """Return the table for the page; its text is escaped."""
        texts = self.texts
        looks = pd.DataFrame({name: self._look(name, column) for name, column in texts.items()}, index=texts.index)
        whole = texts.iloc[:, 0].str.lower().eq("overall")
        looks = looks.apply(lambda column: column + whole.map({True: " overall", False: ""}))
        styler = texts.style.hide(axis="index").format(escape="html").format_index(escape="html", axis=1)
        html: str = styler.set_td_classes(looks).to_html(table_attributes='class="sortable"', cell_ids=False)
        return re.sub(r' id="T_\w+"', "", html[html.index("<table") :])  # no empty style, no random names

    def _look(self, name: Any, column: pd.Series) -> str:
        """Return the class of a column (report.css): "text", and "long" for one whose texts may break."""
        if self.is_numeric(str(name)):
            return "number"
        return "text long" if column.str.len().max() > LONG else "text"

    def latex(self, label: str) -> str:
        """Return the table for a paper, with booktabs rules."""
        texts = self.texts
        sides = "".join("r" if self.is_numeric(str(name)) else "l" for name in texts)
        styler = texts.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
        terms = " ".join(f"{term}: {meaning}" for term, meaning in self.definitions.items())
        caption = pd.Series([f"{self.heading}. {self.about} {terms}".strip()])
        caption_text = caption.to_frame("c").style.hide().hide(axis=1).format(escape="latex").to_string().strip()
        table: str = styler.to_latex(hrules=True, column_format=sides, caption=caption_text, label=label, position="t")
        for character, command in _LATEX.items():  # which pandas doesn't escape, and LaTeX's usual font lacks
            table = table.replace(character, command)
        return table

    def files(self) -> dict[str, str]:
        """Return the files that `write` writes, by what they are."""
        kinds = {kind: f"figures/{self.name}.{kind.lower()}" for kind in ("SVG", "PDF", "PNG")} if self.charts else {}
        if self.rows:
            kinds |= {"CSV": f"tables/{self.name}.csv", "LaTeX": f"tables/{self.name}.tex"}
        return kinds

    def write(self, folder: Path, figure: FigureConfig) -> None:
        """Write the table as CSV and LaTeX into `tables/`, and the figure as SVG, PDF and PNG into `figures/`."""
        if self.rows:
            write_csv(folder / "tables" / f"{self.name}.csv", self.table)
            write_text(folder / "tables" / f"{self.name}.tex", self.latex(f"tab:{self.name}"))
        if self.charts:
            write_figure(folder / "figures", self.name, [*self.charts.values()], figure, self.columns, self.legend)
