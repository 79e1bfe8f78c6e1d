"""A diagnostic in the terminal: measures beside published ones, inexpressible words, and the most probable ones."""

from collections.abc import Iterator

import pandas as pd
from rich.table import Table
from rich.text import Text

from eval.diagnostics.measures import inexpressible, measures
from eval.published import COLUMNS, read_published
from eval.scores.table import WIDTH, measures_table

BESIDE = ("BERT base", "BERT large")  # of Ettinger 2020, uncased; for terminals that have room
CAPTION = (
    "per cent; ±: deviation of trials; 95% intervals: for new items of this kind; a tie is wrong, and a word "
    "that the model cannot express; known: without such items"
)
CHANGED = ("truncated", "generic_object", "generic_subject", "generic_both")  # conditions whose words stay unprinted
_GOOD = ("expected", "true")  # roles of the words that a model should predict


def cloze_tables(
    title: str, benchmark: str, cloze: pd.DataFrame, topk: pd.DataFrame, show: int, width: int = WIDTH
) -> Iterator[Table | Text]:
    """Yield what a terminal of `width` characters shows of one model, with most probable words of `show` items."""
    ours, theirs = (
        table.assign(name=table["name"].str.replace("_", " "))
        for table in (measures(benchmark, cloze), read_published(benchmark, (*COLUMNS, "sd")))
    )
    beside = {model: model for model in BESIDE} if width >= WIDTH else {}
    yield measures_table(title, CAPTION, ours, theirs, {"level": "measure", "name": "contexts"}, beside)
    unknown = inexpressible(cloze)
    if len(unknown):
        items = unknown.groupby("candidate", sort=False)["item"].unique()
        words = ", ".join(f"{word} ({', '.join(of)})" for word, of in items.items())
        yield Text(f"not expressible, {len(items)} words of {unknown['item'].nunique()} items: {words}")
    if show:
        yield _words_table(cloze, topk, show)


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
