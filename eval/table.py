"""Accuracies in the terminal: ours with intervals, and the published ones beside them."""

from __future__ import annotations

import pandas as pd
from rich.table import Table
from rich.text import Text

from eval.accuracy import accuracies, unk_free
from eval.published import read_published

WIDTH = 120  # characters: what output has that is no terminal; a narrower terminal gets only our numbers

# Of the models that were published for a benchmark, those that a terminal has room for, and what heads them.
BESIDE = {
    "blimp": {"people": "people", "LSTM": "LSTM", "TXL": "TXL", "5-gram": "5-gram", "GPT-2": "GPT-2"},
    "climp": {
        "people": "people",
        "LSTM-21.5M-word": "LSTM\nword",
        "LSTM-21.5M-char": "LSTM\nchar",
        "5-gram-2M-char": "5-gram\nchar",
        "Chinese BERT": "BERT",
    },
}


def accuracy_table(
    title: str, benchmark: str, scores: pd.DataFrame, items: pd.DataFrame, ties: str, width: int = WIDTH
) -> Table:
    """One row per phenomenon and the overall accuracy (the mean over paradigms), in per cent.

    `scores` and `items` have the columns of eval.scores.SCORES and ITEMS; `ties` says what a tie counts; `width` is the
    terminal's, in characters.
    """
    phenomena = items[["paradigm", "pair_id", "phenomenon"]]
    scores = scores.merge(phenomena, on=["paradigm", "pair_id"], validate="many_to_one")
    ours = accuracies(scores, ties).to_dict("records")
    without = accuracies(scores[unk_free(scores)], ties).to_dict("records")
    known = {(row["level"], row["name"]): row for row in without}
    published = read_published(benchmark).to_dict("records")
    theirs = {(row["level"], row["name"], row["model"]): float(row["accuracy"]) for row in published}
    beside = BESIDE.get(benchmark, {}) if width >= WIDTH else {}
    paradigms = sum(row["level"] == "paradigm" for row in ours)
    caption = _caption(scores, paradigms, ties)
    table = Table(
        title=title, caption=caption, title_justify="left", caption_justify="left", box=None, padding=(0, 2, 0, 0)
    )
    table.add_column("phenomenon", no_wrap=True)
    for heading in ("pairs", "accuracy", "95%", "no <unk>", "pairs", "ties", *beside.values()):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in ours[paradigms:]:
        level, name = row["level"], row["name"]
        cells = [f"{row['pairs']:,}", _percent(row["accuracy"]), f"{_percent(row['low'])}–{_percent(row['high'])}"]
        free = known.get((level, name))
        cells += [_percent(free["accuracy"]), f"{free['pairs']:,}"] if free else ["", "0"]
        cells += [f"{row['ties']:,}", *(_percent(theirs.get((level, name, model))) for model in beside)]
        table.add_row(str(name), *cells, style="bold" if level == "overall" else None)
    return table


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def _caption(scores: pd.DataFrame, paradigms: int, ties: str) -> Text:
    told = f"per cent; overall: mean over {paradigms} paradigms; intervals: for new pairs of these; a tie is {ties}"
    critical = int((scores["crit_unk"] > 0).sum())
    return Text(f"{told}; <unk> among the tokens that differ: {critical:,} pairs" if critical else told)
