"""Define exhibits, which combine a heading with a table, a figure or both, for files and for the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from analysis.config import FigureConfig
from analysis.figures.files import bare, write_figure
from analysis.figures.style import Chart, finished
from analysis.formats import (
    DASH,
    accuracy_text,
    count,
    decimal_text,
    factor_text,
    level_text,
    p_text,
    signed_text,
    slope_text,
    supported_digits,
    title,
    with_minus_signs,
)
from pairscale.files import write_text
from pairscale.tables import write_csv

Cell = Callable[..., str]
# Headings of columns. Other columns keep their names, with spaces instead of underscores.
_HEADINGS = {
    "name": "phenomenon", "smallest_accuracy": "smallest size", "largest_accuracy": "largest size",
    "lack_of_fit": "p (lack of fit)", "p_holm": "p (Holm)", "kind": "comparison", "other_accuracy": "other accuracy",
    "aicc_above_best": "AICc above the best", "error": "error of prediction", "sample_words": "words",
    "extrapolation": "beyond the largest size", "valid_ppl": "perplexity", "words_per_s": "words/s",
    "wall_s": "seconds", "pair_id": "pair", "reason": "known fault", "factor": "factor per doubling",
    "of_sentences": "all sentences", "of_words": "all words", "ties": "tied",
    "pairs_with_unk": "with an unknown word",
}  # fmt: skip
_COUNTS = (
    "pairs", "paradigms", "runs", "sizes", "seed", "seeds", "judgments", "rank", "items", "words", "words seen",
    "parameters", "words/s", "seconds", "sentences", "all sentences", "all words", "matching sentences", "rewritten",
)  # fmt: skip
# The format of the numbers in a column, by its heading. Other columns contain proportions.
_NUMBERS: dict[str, Cell] = {
    **dict.fromkeys(_COUNTS, count),
    **dict.fromkeys(("p", "p (Holm)", "p (lack of fit)"), p_text),
    **dict.fromkeys(("slope", "difference", "delta"), slope_text),
    **dict.fromkeys(("error of prediction", "margin"), signed_text),
    "factor per doubling": factor_text,
    **dict.fromkeys(("perplexity", "AICc above the best"), decimal_text),
}
_SYMBOLS = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater", "|": "bar"}
_ESCAPES = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {character: f"\\text{name}{{}}" for character, name in _SYMBOLS.items()}
    | {"\N{MINUS SIGN}": r"\ensuremath{-}"}
)
LONG = 40  # cells with more characters may wrap


def for_readers(table: pd.DataFrame, columns: str) -> pd.DataFrame:
    """Return columns of a table in the given order, with readable headings. Missing and empty columns are skipped."""
    table = table[[name for name in columns.split() if name in table]]
    table = table.loc[:, [bool(table[name].replace("", pd.NA).notna().any()) for name in table]]
    return table.rename(columns={name: _HEADINGS.get(str(name), str(name).replace("_", " ")) for name in table})


@dataclass
class Exhibit:
    """A heading and a text with a table, a figure or both.

    Attributes:
        name: The name of its files and its anchor on the page. It consists of letters, digits, _ and -.
        heading: A heading of a few words.
        about: What the table and the figure show, in full sentences.
        table: The table, with display names for its columns. The CSV file has unrounded values.
        cells: Formats of columns that don't use the default format.
        confidence: The level of the interval in the columns `low` and `high`, which follow the estimate. `texts` has
            the interval in one column, with as many digits as it supports. If a table has several estimates, the
            columns `low NAME` and `high NAME` are the interval of NAME, and `texts` has both in one cell.
        charts: Functions that draw the panels of one figure, by name.
        columns: The maximum number of panels per row in the figure's file.
        legend: The looks (analysis.figures.style.looks_of) in a legend that all panels on the page share.
        takeaways: (subject, sentence) pairs with the main results of the exhibit. The subject may be "".
        definitions: Terms and their meanings.
    """

    name: str
    heading: str
    about: str
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    cells: Mapping[str, Cell] = field(default_factory=dict)
    confidence: float = 0.95
    charts: Mapping[str, Callable[[], Chart]] = field(default_factory=dict)
    columns: int = 2
    legend: pd.DataFrame | None = None
    takeaways: Sequence[tuple[str, str]] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def drawn(self) -> dict[str, Chart]:
        """The panels of the figure, by name."""
        return {name: draw() for name, draw in self.charts.items()}

    @property
    def panels(self) -> dict[str, Chart]:
        """The panels for the page. If they share a legend, single panels have neither legends nor axis titles."""
        charts = self.drawn
        if self.legend is not None:
            charts = {name: bare(chart, x=True, y=True, legend=False) for name, chart in charts.items()}
        return {name: finished(chart | {"width": "container"}) for name, chart in charts.items()}

    @cached_property
    def texts(self) -> pd.DataFrame:
        """The table as it is shown, with formatted cells and each interval in one column."""
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
        for column in [column for column in texts if f"low {column}" in texts]:
            lows, highs = texts.pop(f"low {column}"), texts.pop(f"high {column}")
            texts[column] += (" [" + lows + ", " + highs + "]").where(lows != DASH, "")
        return texts.map(with_minus_signs)

    def _cell(self, name: str) -> Cell:
        if self._is_numeric(name):
            return self.cells.get(name) or _NUMBERS.get(name, accuracy_text)
        is_name = name in ("phenomenon", "paradigm")
        return self.cells.get(name) or (title if is_name else lambda value: "" if pd.isna(value) else str(value))

    def _is_numeric(self, name: str) -> bool:
        return name not in self.table or is_numeric_dtype(self.table[name].dtype)  # interval columns aren't in `table`

    @property
    def kinds(self) -> list[str]:
        """The kind of each column of `texts`: "number", "text", or "text long" if its cells may wrap."""
        longest = self.texts.map(len).max()
        texts = longest.map(lambda length: "text long" if length > LONG else "text")
        return ["number" if self._is_numeric(str(name)) else text for name, text in texts.items()]

    def latex(self, label: str) -> str:
        """Return the table as LaTeX with booktabs rules. Notes are left out, because they are too long for a column."""
        texts = self.texts.drop(columns="note", errors="ignore")
        kinds = [kind for name, kind in zip(self.texts, self.kinds, strict=True) if name in texts]
        terms = " ".join(f"{term}: {meaning}" for term, meaning in self.definitions.items())
        caption = f"{self.heading}. {self.about} {terms}".strip().translate(_ESCAPES)
        sides = "".join("r" if kind == "number" else "l" for kind in kinds)
        head, *rows = (" & ".join(cell.translate(_ESCAPES) for cell in row) for row in [list(texts), *texts.to_numpy()])
        body = " \\\\\n".join([f"\\toprule\n{head}", f"\\midrule\n{rows[0]}", *rows[1:], "\\bottomrule"])
        table = f"\\begin{{tabular}}{{{sides}}}\n{body}\n\\end{{tabular}}"
        look = "\\small\\setlength{\\tabcolsep}{3pt}"
        return f"\\begin{{table}}[t]\n{look}\n\\caption{{{caption}}}\n\\label{{{label}}}\n{table}\n\\end{{table}}\n"

    def files(self) -> dict[str, str]:
        """Return the names of the files that `write` creates, by kind (SVG, PDF, PNG, CSV, LaTeX)."""
        kinds = {kind: f"figures/{self.name}.{kind.lower()}" for kind in ("SVG", "PDF", "PNG")} if self.charts else {}
        if len(self.table):
            kinds |= {"CSV": f"tables/{self.name}.csv", "LaTeX": f"tables/{self.name}.tex"}
        return kinds

    def write(self, folder: Path, figure: FigureConfig) -> None:
        """Write the table as CSV and LaTeX into `tables/`, and the figure as SVG, PDF and PNG into `figures/`."""
        if len(self.table):
            write_csv(folder / "tables" / f"{self.name}.csv", self.table)
            write_text(folder / "tables" / f"{self.name}.tex", self.latex(f"tab:{self.name}"))
        if self.charts:
            write_figure(folder / "figures", self.name, list(self.drawn.values()), figure, self.columns)
