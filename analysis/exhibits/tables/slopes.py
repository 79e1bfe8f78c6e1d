"""Tables of slopes for the terminal, CSV and LaTeX. Text from data is escaped where it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from rich.table import Table
from rich.text import Text

from analysis.curves.fit import ALL_PAIRS, Curves
from analysis.exhibits.tables.latex import latex_escape, latex_number, latex_table
from analysis.exhibits.tables.text import (
    accuracy_text,
    direction,
    interval_text,
    rank_text,
    slope_text,
    table_digits,
    title,
)
from analysis.published import published_file
from pairscale.files import write_text

# The published model whose architecture a model has, by the first part of its name.
_ARCHITECTURES = {"lstm": "LSTM", "txl": "Transformer-XL"}
MIN_WIDTH = 24  # characters of the column that names phenomena and groups
TWO_SIZES = "two sizes: a difference, not a curve"


def architecture(model: str) -> str | None:
    """Return the published model with the architecture of ours: "lstm_tiny" -> "LSTM"; or None."""
    return _ARCHITECTURES.get(model.partition("_")[0])


def with_published(slopes: pd.DataFrame, runs: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """Add the columns published_model and published_slope, of the same architecture (BLiMP only)."""
    models = runs.drop_duplicates("group").set_index("group")["model"]
    published = published_file("slopes").rename(columns={"model": "published_model", "slope": "published_slope"})
    if benchmark != "blimp":
        published = published.iloc[:0]
    named = slopes.assign(published_model=slopes["group"].map(models).map(architecture), level_name=slopes["name"])
    named["level_name"] = named["level_name"].where(named["level"] == "phenomenon")
    columns = ["published_model", "phenomenon", "published_slope"]
    published = published[columns].rename(columns={"phenomenon": "level_name"})
    return named.merge(published, on=["published_model", "level_name"], how="left").drop(columns="level_name")


def slope_table(curves: Curves, pairs: str = ALL_PAIRS, level: str = "phenomenon") -> pd.DataFrame:
    """Return one row per group and unit of `level`, overall first: name, group, accuracy at each size, slope, ...

    Columns "accuracy 125k" and so on go by size; the rest are those of Curves.slopes, and of `with_published` where it
    has them. Rows go by group, then from the steepest to the shallowest. Two sizes are a difference, not a curve: their
    r2 and rank are NaN, and the note says so.
    """
    chosen = two_sizes_noted(curves.slopes)
    chosen = chosen[(chosen["pairs"] == pairs) & chosen["level"].isin(["overall", level])]
    sizes = curves.accuracies.groupby("size")["words"].mean().sort_values().index
    at = curves.accuracies[curves.accuracies["pairs"] == pairs]
    wide = at.pivot_table(index=["group", "level", "name"], columns="size", values="accuracy", observed=True)
    wide = wide.reindex(columns=sizes).add_prefix("accuracy ").reset_index()
    first = ["group", "level", "name", "paradigms", "n_pairs"]
    last = ["slope", "low", "high", "low_new_pairs", "high_new_pairs", "r2", "lack_of_fit", "rank", "rank_low"]
    last += ["rank_high", "onset", "onset_baseline", "intercept", "method", "published_model", "published_slope"]
    last = [name for name in last if name in chosen] + ["runs", "sizes", "note"]
    table = chosen[first + last].merge(wide, on=["group", "level", "name"], how="left")
    order = pd.DataFrame(
        {"group": pd.factorize(table["group"])[0], "level": table["level"] != "overall", "slope": -table["slope"]}
    ).sort_values(["group", "level", "slope"], kind="stable")
    return table.loc[order.index, [*first, *wide.columns[3:], *last]].reset_index(drop=True)


def two_sizes_noted(slopes: pd.DataFrame) -> pd.DataFrame:
    """Blank what two sizes cannot have (r2, ranks) in Curves.slopes, and note it."""
    two = slopes["sizes"] == 2
    blank = {name: slopes[name].mask(two) for name in ("r2", "rank", "rank_low", "rank_high") if name in slopes}
    notes = slopes["note"].where(slopes["note"] == "", slopes["note"] + "; ")
    return slopes.assign(**blank, note=slopes["note"].mask(two, notes + TWO_SIZES))


def slope_name(table: pd.DataFrame) -> str:
    """Return the name of the column of slopes: two sizes are a difference."""
    return "difference per doubling" if (table["sizes"] == 2).all() else "slope"


def write_latex(path: Path, table: pd.DataFrame, caption: str, label: str, confidence: float) -> None:
    """Write a `slope_table` for a paper (booktabs): accuracies, slope, interval, R2, rank and the published slope."""
    digits = table_digits(table["low"], table["high"])
    sizes = [str(column) for column in table if str(column).startswith("accuracy ")]
    published = "published_slope" in table and bool(table["published_slope"].notna().any())
    columns: list[tuple[str, Callable[[pd.Series], str]]] = [
        ("Phenomenon", lambda row: latex_escape(title(row["name"])))
    ]
    for size in sizes:
        columns.append((latex_escape(size.removeprefix("accuracy ")), partial(_accuracy_of, column=size)))
    slope = slope_name(table).capitalize()
    columns.append((slope, lambda row: latex_number(slope_text(row["slope"], digits=digits))))
    interval = f"{confidence:.0%} interval".replace("%", "\\%")
    columns.append((interval, lambda row: latex_number(interval_text(row["low"], row["high"], digits=digits))))
    columns.append(("$R^2$", lambda row: accuracy_text(row["r2"])))
    columns.append(("Rank", rank_text))
    if published:
        columns.append(("Published", lambda row: latex_number(slope_text(row["published_slope"], dash=""))))
    blocks = [
        (str(group), [[cell(row) for _, cell in columns] for _, row in rows.iterrows()])
        for group, rows in table.groupby("group", sort=False)
    ]
    write_text(path, latex_table([header for header, _ in columns], blocks, caption, label))


def _accuracy_of(row: pd.Series, column: str) -> str:
    return accuracy_text(row[column])


_STYLES = {"rises": "green", "falls": "red", "": "dim"}


def terminal_table(table: pd.DataFrame, heading: str, confidence: float) -> Table:
    """Return a `slope_table` for the terminal: green is above 0, red below, dim neither."""
    sizes: Sequence[str] = [str(column) for column in table if str(column).startswith("accuracy ")]
    ends = list(dict.fromkeys([*sizes[:1], *sizes[-1:]]))
    published = "published_slope" in table and bool(table["published_slope"].notna().any())
    digits = table_digits(table["low"], table["high"])
    slope = slope_name(table)
    meaning = "accuracy per doubling of the text" if slope == "slope" else "two sizes only, no curve"
    caption = f"{slope}: {meaning}" + ("; paper: Warstadt et al. 2020" if published else "")
    # Narrow enough for a terminal of 80 columns.
    output = Table(
        title=Text(heading),
        title_justify="left",
        caption=Text(caption),
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    output.padding, output.header_style = (0, 1, 0, 0), "bold"
    # As wide as the names of phenomena: a group's name may be long, and goes on in further lines.
    output.add_column(
        "phenomenon", width=1 + max(MIN_WIDTH, *(len(title(name)) for name in table["name"])), overflow="fold"
    )
    for size in ends:
        output.add_column(size.removeprefix("accuracy ").replace(" ", "\n"), justify="right", no_wrap=True)
    numbers = [slope.replace(" ", "\n"), f"{confidence:.0%} interval"]
    numbers += ["R2", "rank"] if table["r2"].notna().any() else []
    for name in (*numbers, *(["paper"] if published else [])):
        output.add_column(name, justify="right", no_wrap=True)
    for group, rows in table.groupby("group", sort=False):
        output.add_row()
        output.add_row(Text(str(group), style="bold"))
        for _, row in rows.iterrows():
            look = _STYLES[direction(row["low"], row["high"])]
            cells = [f" {title(row['name'])}", *(accuracy_text(row[size]) for size in ends)]
            slope_cell = Text(slope_text(row["slope"], digits=digits), look)
            others = [interval_text(row["low"], row["high"], digits=digits)]
            others += [accuracy_text(row["r2"]), rank_text(row)] if "R2" in numbers else []
            others += [slope_text(row["published_slope"], dash="")] if published else []
            output.add_row(*map(Text, cells), slope_cell, *map(Text, others))
    return output
