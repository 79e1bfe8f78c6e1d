"""An exhibit: a table, a figure or both under a heading, for files and for the page."""

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
# What readers call a column; others keep their names, with blanks.
_HEADINGS = {
    "name": "phenomenon", "smallest_accuracy": "smallest size", "largest_accuracy": "largest size",
    "lack_of_fit": "p (lack of fit)", "p_holm": "p (Holm)", "kind": "comparison", "other_accuracy": "of the other",
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
# How numbers of a column are written, by its heading; those of other columns are proportions.
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
LONG = 40  # characters of a cell that may break


def for_readers(table: pd.DataFrame, columns: str) -> pd.DataFrame:
    """Return the columns of a table that it has, in an order, under the names that readers see, without empty ones."""
    shown = table[[name for name in columns.split() if name in table]]
    shown = shown.loc[:, [bool(shown[name].replace("", pd.NA).notna().any()) for name in shown]]
    return shown.rename(columns={name: _HEADINGS.get(str(name), str(name).replace("_", " ")) for name in shown})


@dataclass
class Exhibit:
    """A heading, a text, and a table, a figure or both.

    Attributes:
        name: the name of its files and its anchor on the page, of letters, digits, _ and -.
        heading: a few words.
        about: what the table and the figure show, in full sentences.
        table: the columns are named as readers see them. The CSV file holds unrounded values.
        cells: formats of columns, in place of the usual ones.
        confidence: the level of the interval of which `low` and `high` are the limits, and the column before them the
            estimate. Readers see the limits in one column, with as many digits as the interval supports.
        charts: functions that draw the panels of one figure, by name.
        columns: how many panels stand in a row of the figure's file, at most.
        legend: on the page, the look of the names that all panels share (analysis.figures.style.looks_of).
        takeaways: (subject, sentence) pairs that say what the exhibit shows. The subject may be "".
        definitions: terms and what they mean.
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
        """The panels for the page, which says once what those with a common legend share."""
        charts = self.drawn
        if self.legend is not None:
            charts = {name: bare(chart, x=True, y=True, legend=False) for name, chart in charts.items()}
        return {name: finished(chart | {"width": "container"}) for name, chart in charts.items()}

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
        if self._is_numeric(name):
            return self.cells.get(name) or _NUMBERS.get(name, accuracy_text)
        is_name = name in ("phenomenon", "paradigm")
        return self.cells.get(name) or (title if is_name else lambda value: "" if pd.isna(value) else str(value))

    def _is_numeric(self, name: str) -> bool:
        return name not in self.table or is_numeric_dtype(self.table[name].dtype)  # an interval isn't in `table`

    @property
    def kinds(self) -> list[str]:
        """What the columns of `texts` contain: "number", "text", or "text long", which may break."""
        longest = self.texts.map(len).max()
        texts = longest.map(lambda length: "text long" if length > LONG else "text")
        return ["number" if self._is_numeric(str(name)) else text for name, text in texts.items()]

    def latex(self, label: str) -> str:
        """Return the table for a paper, with booktabs rules and without notes, which are too long for a column."""
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
        """Return the files that `write` writes, by what they are."""
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
