"""Sentences above exhibits, read off their tables: values of single rows, in the digits of the table."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from analysis.exhibits.sentences.curves import joined
from analysis.exhibits.tables.text import accuracy_text


def by_curve(table: pd.DataFrame, text: Callable[[pd.DataFrame], str], of: str = "curve") -> list[tuple[str, str]]:
    """Return a sentence for each curve: `text` of its rows, without the full stop; `of`: the column of their names."""
    return [(str(curve), f"{text(rows)}.") for curve, rows in table.groupby(of, sort=False)]


def values(rows: pd.DataFrame, name: str, value: str, cell: Callable[[Any], str] = accuracy_text) -> str:
    """List a value of each row by its name: "lp .589, mean_lp .584 and pen_lp .590"."""
    return joined([f"{of} {cell(number)}" for of, number in zip(rows[name], rows[value], strict=True)])


def ranges(rows: pd.DataFrame, name: str, value: str) -> str:
    """List the first and the last value of each name: "lp 1.000 to .006 and mean_lp .000 to .990"."""
    ends = rows.groupby(name, sort=False)[value].agg(["first", "last"])
    return joined([f"{of} {accuracy_text(first)} to {accuracy_text(last)}" for of, first, last in ends.itertuples()])


def from_to(row: pd.Series, first: str, last: str) -> str:
    """Say the values of two sizes: ".144 at 125k, .167 at 1M"."""
    return f"{accuracy_text(row[first])} at {first}, {accuracy_text(row[last])} at {last}"
