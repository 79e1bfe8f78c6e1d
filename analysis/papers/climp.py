"""CLiMP's comparisons: words against characters, and sizes of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import pandas as pd

from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.accuracies import axis_start, condition_chart
from analysis.exhibits.figures.style import Chart
from analysis.exhibits.tables.text import signed_text
from analysis.measures.accuracies import OVERALL, against, wide


def model_table(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return table 2 of Xiang et al. 2021: a row per model, the overall accuracy and a column per phenomenon."""
    table = pd.concat([wide(accuracies, OVERALL), wide(accuracies, "phenomenon")]).T
    return table.rename_axis("model", axis=0).rename_axis(None, axis=1).reset_index()


def units_exhibit(name: str, heading: str, about: str, rows: pd.DataFrame) -> Exhibit | None:
    """Compare words with characters; `rows`: kind, size, unit (words, characters), accuracy. None without a pair.

    Sizes keep the order of the rows.
    """
    rows = rows.sort_values("unit", key=lambda column: column != "words", kind="stable")
    table = against(rows, "unit")
    if table.empty:
        return None
    table["gain"] = table["characters"] - table["words"]
    shown = rows.merge(table[["kind", "size"]], on=["kind", "size"])
    drawn = shown.assign(model=shown["kind"] + " · " + shown["size"], condition=shown["unit"])
    charts = {
        "units": lambda width: condition_chart(
            drawn, width=width, domain=(axis_start(drawn["accuracy"]), _above(drawn))
        )
    }
    return Exhibit(name, heading, about, table, cells={"gain": signed_text}, charts=charts)


def sizes_exhibit(name: str, heading: str, about: str, rows: pd.DataFrame, sizes: Sequence[str]) -> Exhibit | None:
    """Compare the same models on more text, from the smallest of `sizes` up; None where no model has two."""
    ordered = rows.sort_values("size", key=lambda column: column.map(list(sizes).index), kind="stable")
    table = against(ordered, "size")
    if table.empty:
        return None
    drawn = ordered.assign(model=ordered["kind"] + " · " + ordered["unit"], condition=ordered["size"])
    drawn = drawn.sort_values("model", kind="stable")
    charts = {"sizes": partial(_sizes, drawn)}
    return Exhibit(name, heading, about, table, charts=charts)


def _sizes(drawn: pd.DataFrame, width: int | str) -> Chart:
    return condition_chart(drawn, width=width, domain=(axis_start(drawn["accuracy"]), _above(drawn)))


def _above(rows: pd.DataFrame) -> float:
    """Return a limit of the axis, in whole tenths, that leaves room for the marks."""
    return min(1.0, math.ceil(float(rows["accuracy"].max()) * 10 + 0.2) / 10)
