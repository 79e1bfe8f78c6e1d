"""Tables: plain ones for the terminal, which fit its width without cutting a number, and CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairscale.files import write_text

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

LEAST_NAME = 8  # characters of a row's name
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet takes for a formula


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table so that no spreadsheet takes a cell for a formula: text that starts with = + - @ gets a '."""
    guarded = table.copy()
    for column in guarded.select_dtypes(exclude="number"):
        guarded[column] = guarded[column].map(_guard)
    guarded.columns = guarded.columns.map(_guard)
    write_text(path, guarded.to_csv(index=False, lineterminator="\n"))


def _guard(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def plain_table(title: str, caption: Text | None = None) -> Table:
    """Return a table without lines, its title and caption to the left."""
    from rich.table import Table
    from rich.text import Text

    return Table(
        title=Text(title), caption=caption, title_justify="left", caption_justify="left",
        box=None, padding=(0, 2, 0, 0), pad_edge=False,
    )  # fmt: skip


def filled_table(headings: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str]) -> Table:
    """Return a plain table without columns that all `rows` leave empty; those of `names` stand left, numbers right."""
    from rich.text import Text

    table = plain_table("")
    columns = [column for column in zip(headings, *rows, strict=True) if any(column[1:])]
    for heading, *_ in columns:
        table.add_column(heading, justify="left" if heading in names else "right", no_wrap=True)
    for row in zip(*(column[1:] for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def print_table(console: Console, table: Table, expendable: Sequence[str] = ()) -> None:
    """Print `table` without as many `expendable` columns (headings, first to go first) as the console lacks room for.

    A line below it names them. If that is not enough, the first column, of names, is shortened. Title and caption take
    the width of the console, however narrow the table is.
    """
    from rich.table import Table
    from rich.text import Text

    def excess() -> int:
        return sum(_width(column) + table.padding[1] for column in columns) - console.width

    columns = list(table.columns)
    removed = []
    for heading in expendable:
        named = [column for column in columns if column.header == heading]
        if named and excess() > 0:
            columns.remove(named[0])
            removed.append(" ".join(heading.split()))
    if (too_wide := excess()) > 0:
        name = columns[0]
        name.no_wrap, name.overflow = True, "ellipsis"
        name.max_width = max(LEAST_NAME, _width(name) - too_wide)
    fitting = Table(
        *columns, box=table.box, padding=table.padding, pad_edge=table.pad_edge, header_style=table.header_style
    )
    fitting.rows = table.rows
    left_out = Text(f"not shown at {console.width} characters: {', '.join(removed)}") if removed else None
    for part in (table.title, fitting, table.caption, left_out):
        if part:
            console.print(part)


def _width(column: Column) -> int:
    """Return the characters that a column's heading and cells need."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=10_000)
    return max(Measurement.get(console, console.options, cell).maximum for cell in (column.header, *column.cells))
