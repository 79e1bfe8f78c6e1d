"""A diagnostic in the terminal: measures beside published ones, inexpressible words, and the most probable ones."""

from collections.abc import Iterator

import pandas as pd
from rich.table import Table
from rich.text import Text

from eval.diagnostics.measures import inexpressible, measures
from eval.published import COLUMNS, read_published
from eval.scores.table import WIDTH, percent
from pairscale.tables import plain_table

BESIDE = ("BERT base", "BERT large")  # of Ettinger 2020, uncased; for terminals that have room
CHANGED = ("truncated", "generic_object", "generic_subject", "generic_both")  # conditions whose words stay unprinted
_GOOD = ("expected", "true")  # roles of the words that a model should predict


def cloze_tables(
    title: str, benchmark: str, cloze: pd.DataFrame, topk: pd.DataFrame, show: int, width: int = WIDTH
) -> Iterator[Table | Text]:
    """Yield what a terminal of `width` characters shows of one model, with most probable words of `show` items."""
    yield _measures_table(title, benchmark, cloze, width)
    unknown = inexpressible(cloze)
    if len(unknown):
        items = unknown.groupby("candidate", sort=False)["item"].unique()
        words = ", ".join(f"{word} ({', '.join(of)})" for word, of in items.items())
        yield Text(f"not expressible, {len(items)} words of {unknown['item'].nunique()} items: {words}")
    if show:
        yield _words_table(cloze, topk, show)


def _measures_table(title: str, benchmark: str, cloze: pd.DataFrame, width: int) -> Table:
    published = read_published(benchmark, (*COLUMNS, "sd")).to_dict("records")
    theirs = {(row["level"], row["name"], row["model"]): _share(row["accuracy"], row["sd"]) for row in published}
    beside = BESIDE if width >= WIDTH else ()
    caption = (
        "per cent; ±: deviation of trials; 95% intervals: for new items of this kind; a tie is wrong, and a word "
        "that the model cannot express; known: without such items"
    )
    table = plain_table(title, Text(caption))
    table.add_column("measure", no_wrap=True)
    table.add_column("contexts", no_wrap=True)
    for heading in ("items", "share", "95%", "ties", "known", "items", *beside):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in measures(benchmark, cloze).to_dict("records"):
        cells = [str(row["items"]), _share(row["accuracy"], row["sd"]), f"{_share(row['low'])}–{_share(row['high'])}"]
        cells.append(str(row["ties"] or ""))
        cells += [_share(row["known"]), str(row["known_items"])] if row["unknown"] else ["", ""]
        others = [theirs.get((row["level"], row["name"], model), "") for model in beside]
        table.add_row(Text(row["level"]), Text(row["name"].replace("_", " ")), *cells, *others)
    return table


def _words_table(cloze: pd.DataFrame, topk: pd.DataFrame, show: int) -> Table:
    """The most probable words after each context of the first items, as in tables 6, 10, 13 and 15 of the paper."""
    unchanged = topk[~topk["condition"].isin(CHANGED)]
    items = list(dict.fromkeys(unchanged["item"]))
    chosen = unchanged[unchanged["item"].isin(items[:show])].sort_values("place", kind="stable")
    good = cloze[cloze["role"].isin(_GOOD)].groupby(["item", "condition", "context"])["candidate"].unique().to_dict()
    caption = (
        f"most probable whole words, per cent, of {min(show, len(items))} of {len(items)} items; "
        "all are in topk.parquet, benchmark.show=N prints more"
    )
    table = Table(caption=Text(caption), caption_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("item", no_wrap=True)
    for heading, ratio in (("context", 5), ("fitting", 2), ("most probable", 5)):
        table.add_column(heading, ratio=ratio)
    for (item, condition, context), rows in chosen.groupby(["item", "condition", "context"], sort=False):
        words = [f"{word} {100 * prob:.1f}" for word, prob in zip(rows["word"], rows["prob"], strict=True)]
        fitting = good.get((item, condition, context), ())
        table.add_row(*map(Text, (str(item), f"{context} ____", ", ".join(fitting), ", ".join(words))))
    return table


def _share(share: float | None, deviation: float | None = None) -> str:
    spread = percent(deviation)
    return percent(share) + (f" ± {spread}" if spread else "")
