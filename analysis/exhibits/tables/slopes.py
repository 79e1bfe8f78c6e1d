"""Tables of slopes for the terminal, CSV and LaTeX. Text from data is escaped where it is written."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.table import Table
from rich.text import Text

from analysis.curves.fit import ALL_PAIRS, Curves
from analysis.exhibits.tables.latex import fits_upright, latex_escape, latex_number, latex_table
from analysis.exhibits.tables.text import (
    DASH,
    accuracy_text,
    direction,
    interval_text,
    rank_text,
    row_digits,
    slope_text,
    title,
)
from analysis.published import published_file
from pairscale.files import write_text

_ARCHITECTURES = {"lstm": "LSTM", "txl": "Transformer-XL"}  # published models, by the first part of a model's name
MIN_WIDTH = 24  # characters of the column that names phenomena and groups
LEAST_SIZES = 3  # of a curve with a band: those of two sizes are hourglasses far wider than what was measured
TWO_SIZES = "two sizes: a difference, not a curve"


def architecture(model: str) -> str | None:
    """Return the published model of the same architecture: "lstm_tiny" -> "LSTM"; or None."""
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


def banded_lines(curves: Curves) -> pd.DataFrame:
    """Return Curves.lines, with bands (low, high) of curves of LEAST_SIZES or more alone."""
    sizes = curves.lines["group"].map(curves.accuracies.groupby("group")["words"].nunique())
    limits = ["low", "high"]
    return curves.lines.assign(**curves.lines[limits].where(sizes >= LEAST_SIZES))


def slope_table(curves: Curves, pairs: str = ALL_PAIRS, level: str = "phenomenon") -> pd.DataFrame:
    """Return one row per group and unit of `level`, overall first: name, group, accuracy at each size, slope, ...

    The columns are "accuracy 125k" and so on by size, and those of Curves.slopes and `with_published`. Rows are sorted
    by group, then from the steepest to the shallowest. Two sizes are a difference, not a curve: r2 and rank are NaN.
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
    last = [name for name in [*last, "runs", "sizes", "note", "caution"] if name in chosen]
    table = chosen[first + last].merge(wide, on=["group", "level", "name"], how="left")
    order = pd.DataFrame(
        {"group": pd.factorize(table["group"])[0], "level": table["level"] != "overall", "slope": -table["slope"]}
    ).sort_values(["group", "level", "slope"], kind="stable")
    return table.loc[order.index, [*first, *wide.columns[3:], *last]].reset_index(drop=True)


def two_sizes_noted(slopes: pd.DataFrame) -> pd.DataFrame:
    """Blank r2 and ranks of two sizes in Curves.slopes, and note it."""
    two = slopes["sizes"] == 2
    blank = {name: slopes[name].mask(two) for name in ("r2", "rank", "rank_low", "rank_high") if name in slopes}
    notes = slopes["note"].where(slopes["note"] == "", slopes["note"] + "; ")
    return slopes.assign(**blank, note=slopes["note"].mask(two, notes + TWO_SIZES))


def slope_name(table: pd.DataFrame) -> str:
    """Return the name of the column of slopes; two sizes have a difference."""
    return "difference per doubling" if (table["sizes"] == 2).all() else "slope"


def _cells(table: pd.DataFrame, sizes: Sequence[str], confidence: float) -> dict[str, list[str]]:
    """Return columns of text of a `slope_table`, with the accuracies at `sizes` alone."""
    digits = row_digits(table["low"], table["high"])
    limits = zip(table["low"], table["high"], digits, strict=True)
    cells = {
        **{size.removeprefix("accuracy "): [*map(accuracy_text, table[size])] for size in sizes},
        slope_name(table): [
            slope_text(slope, digits=places) for slope, places in zip(table["slope"], digits, strict=True)
        ],
        f"{confidence:.0%} interval": [interval_text(low, high, digits=places) for low, high, places in limits],
        "R2": [*map(accuracy_text, table["r2"])],
        "rank": [rank_text(row) for _, row in table.iterrows()],
    }
    if "published_slope" in table and table["published_slope"].notna().any():
        cells["published"] = [slope_text(slope, dash="") for slope in table["published_slope"]]
    return cells


def _sizes(table: pd.DataFrame) -> list[str]:
    return [str(column) for column in table if str(column).startswith("accuracy ")]


def write_latex(
    path: Path, table: pd.DataFrame, caption: str, label: str, confidence: float, narrow: bool = False
) -> None:
    """Write a `slope_table` for a paper (booktabs): accuracies, slope, interval, R2, rank and the published slope.

    A page too narrow for all accuracies has those at the smallest and the largest size. `narrow`: for a column of two,
    which has slope, interval and the published slope.
    """
    sizes = _sizes(table)
    head, rows = _latex_columns(table, sizes, confidence)
    if narrow:
        head, rows = _latex_columns(table.assign(r2=float("nan"), rank=float("nan")), [], confidence)
    elif not fits_upright(head, rows):
        head, rows = _latex_columns(table, [*dict.fromkeys([sizes[0], sizes[-1]])], confidence)
    blocks: dict[str, list[list[str]]] = {}
    for group, row in zip(table["group"], rows, strict=True):
        blocks.setdefault(str(group), []).append(row)
    write_text(path, latex_table(head, [*blocks.items()], caption, label, narrow=narrow))


def _latex_columns(table: pd.DataFrame, sizes: Sequence[str], confidence: float) -> tuple[list[str], list[list[str]]]:
    """Return the heading and the rows of a `slope_table` in LaTeX, without columns of dashes."""
    cells = {name: texts for name, texts in _cells(table, sizes, confidence).items() if {*texts} - {"", DASH}}
    head = ["$R^2$" if name == "R2" else latex_escape(name[:1].upper() + name[1:]) for name in cells]
    named = zip(table["name"], *cells.values(), strict=True)
    return ["Phenomenon", *head], [[latex_escape(title(name)), *map(latex_number, texts)] for name, *texts in named]


_STYLES = {"rises": "green", "falls": "red", "": "dim"}


def terminal_table(table: pd.DataFrame, heading: str, confidence: float) -> Table:
    """Return a `slope_table` for a terminal of 80 columns or more: green is above 0, red below, dim neither."""
    sizes, slope = _sizes(table), slope_name(table)
    cells = _cells(table, list(dict.fromkeys([*sizes[:1], *sizes[-1:]])), confidence)
    if table["r2"].isna().all():
        del cells["R2"], cells["rank"]
    meaning = "accuracy per doubling of the text" if slope == "slope" else "two sizes only, no curve"
    caption = f"{slope}: {meaning}" + ("; paper: Warstadt et al. 2020" if "published" in cells else "")
    output = Table(title=Text(heading), title_justify="left", caption=Text(caption), caption_justify="left")
    output.box, output.pad_edge, output.padding, output.header_style = None, False, (0, 1, 0, 0), "bold"
    # As wide as the names of phenomena; a group's longer name goes on in further lines.
    width = 1 + max(MIN_WIDTH, *(len(title(name)) for name in table["name"]))
    output.add_column("phenomenon", width=width, overflow="fold")
    for name in cells:
        head = name if "interval" in name else name.replace("published", "paper").replace(" ", "\n")
        output.add_column(head, justify="right", no_wrap=True)
    columns = [table[name] for name in ("group", "name", "low", "high")]
    shown = None
    for group, name, low, high, *texts in zip(*columns, *cells.values(), strict=True):
        if group != shown:
            shown = group
            output.add_row()
            output.add_row(Text(str(group), style="bold"))
        styles = [_STYLES[direction(low, high)] if column == slope else "" for column in cells]
        output.add_row(Text(f" {title(name)}"), *map(Text, texts, styles))
    return output
