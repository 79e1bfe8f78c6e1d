"""Write tables to CSV files, and print tables that fit the width of the terminal without cutting a number."""

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

LEAST_NAME = 8  # characters of a row's name that are always printed
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets treat cells that begin with one of these as formulas


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table to a CSV file. Text that starts with = + - @ gets a ' so that no spreadsheet runs it."""
    guarded = table.copy()
    for column in guarded.select_dtypes(exclude="number"):
        guarded[column] = guarded[column].map(_guard)
    guarded.columns = guarded.columns.map(_guard)
    write_text(path, guarded.to_csv(index=False, lineterminator="\n"))


def _guard(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def plain_table(title: str, caption: Text | None = None) -> Table:
    """Return a table without lines, with its title and caption on the left."""
    from rich.table import Table
    from rich.text import Text

    return Table(
        title=Text(title), caption=caption, title_justify="left", caption_justify="left",
        box=None, padding=(0, 2, 0, 0), pad_edge=False,
    )  # fmt: skip


def filled_table(headings: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str]) -> Table:
    """Return a plain table without empty columns. Columns in `names` are left-aligned. Others are right-aligned."""
    from rich.text import Text

    table = plain_table("")
    columns = [column for column in zip(headings, *rows, strict=True) if any(column[1:])]
    for heading, *_ in columns:
        table.add_column(heading, justify="left" if heading in names else "right", no_wrap=True)
    for row in zip(*(column[1:] for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def print_table(console: Console, table: Table, expendable: Sequence[str] = ()) -> None:
    """Print a table so that it fits the width of the console.

    If the table is too wide, leave out `expendable` columns (their headings, in this order) and name them in a line
    below the table. If it is still too wide, shorten the first column, which contains names. The title and the caption
    use the whole width of the console.
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
    left_out = Text(f"Left out to fit {console.width} characters: {', '.join(removed)}") if removed else None
    for part in (table.title, fitting, table.caption, left_out):
        if part:
            console.print(part)


def _width(column: Column) -> int:
    """Return the width of a column in characters."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=10_000)
    return max(Measurement.get(console, console.options, cell).maximum for cell in (column.header, *column.cells))
