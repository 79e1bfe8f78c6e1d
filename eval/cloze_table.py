"""A diagnostic in the terminal: its measures beside the published ones, what the model cannot express, and what it
expects most."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from rich.table import Table
from rich.text import Text

from eval.cloze_measures import inexpressible, measures
from eval.published import COLUMNS, read_published
from eval.table import WIDTH

BESIDE = ("BERT base", "BERT large")  # of Ettinger 2020, uncased; for terminals that have room
_GOOD = ("expected", "true")  # roles of the words that a model should predict


def cloze_tables(
    title: str, benchmark: str, cloze: pd.DataFrame, topk: pd.DataFrame, show: int, width: int = WIDTH
) -> Iterator[Table | Text]:
    """What to print of one model; `cloze` and `topk` as eval.cloze_scores reads them.

    `show`: items whose most probable words are printed; `width`: the terminal's, in characters.
    """
    yield _measures_table(title, benchmark, cloze, width)
    lacking = inexpressible(cloze)
    if len(lacking):
        words = ", ".join(f"{row.candidate} ({row.role}, item {row.item})" for row in lacking.itertuples())
        yield Text(f"not expressible, {len(lacking)} words of {lacking['item'].nunique()} items: {words}\n")
    if show:
        yield _words_table(cloze, topk, show)


def _measures_table(title: str, benchmark: str, cloze: pd.DataFrame, width: int) -> Table:
    rows = measures(benchmark, cloze)
    published = read_published(benchmark, (*COLUMNS, "sd")).to_dict("records")
    theirs = {(row["level"], row["name"], row["model"]): _share(row["accuracy"], row["sd"]) for row in published}
    beside = BESIDE if width >= WIDTH else ()
    caption = (
        "per cent; ± is the deviation of trials; 95% intervals: for new items of this kind; a word that the model "
    )
    caption += "cannot express is wrong, `known`: without such items"
    table = Table(
        title=Text(title), caption=Text(caption), title_justify="left", caption_justify="left",
        box=None, padding=(0, 2, 0, 0),
    )  # fmt: skip
    table.add_column("measure", no_wrap=True)
    table.add_column("contexts", no_wrap=True)
    for heading in ("items", "share", "95%", "known", "items", *beside):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows.to_dict("records"):
        cells = [str(row["items"]), _share(row["accuracy"], row["sd"]), f"{_share(row['low'])}–{_share(row['high'])}"]
        cells += [_share(row["known"]), str(row["known_items"])] if row["unknown"] else ["", ""]
        others = [theirs.get((row["level"], row["name"], model), "") for model in beside]
        table.add_row(row["level"], row["name"].replace("_", " "), *cells, *others)
    return table


def _words_table(cloze: pd.DataFrame, topk: pd.DataFrame, show: int) -> Table:
    """The most probable words after each context of the first items."""
    items = list(dict.fromkeys(topk["item"]))
    chosen = topk[topk["item"].isin(items[:show])]
    good = cloze[cloze["role"].isin(_GOOD)].groupby(["item", "condition", "context"])["candidate"].unique()
    told = f"of the first {show} of {len(items)} items" if show < len(items) else f"of {len(items)} items"
    caption = f"most probable whole words, per cent, {told}; all are in topk.parquet, benchmark.show=N prints more"
    table = Table(
        caption=Text(caption), caption_justify="left", box=None, padding=(0, 2, 0, 0), show_edge=False
    )  # fmt: skip
    for heading in ("item", "condition", "context", "fitting", "most probable"):
        table.add_column(heading)
    for (item, condition, context), rows in chosen.groupby(["item", "condition", "context"], sort=False):
        words = ", ".join(f"{row.word} {100 * row.prob:.1f}" for row in rows.sort_values("place").itertuples())
        fitting = ", ".join(good.get((item, condition, context), ()))
        table.add_row(*map(Text, (item, condition.replace("_", " "), f"{context} ____", fitting, words)))
    return table


def _share(share: float | None, deviation: float | None = None) -> str:
    if share is None or pd.isna(share):
        return ""
    return f"{100 * share:.1f}" + ("" if deviation is None or pd.isna(deviation) else f" ± {100 * deviation:.1f}")
