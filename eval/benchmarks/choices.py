"""Choices among two or more options, and pairs with a context: read their columns, and compare the options.

A context is read but not scored: every method that sums log-probabilities sums those of the option, given its context.
A choice is judged as pairs of its right option with each of the others. The other option with the highest score counts.
"""

import json
import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from eval.benchmarks.cells import is_empty, label_of, sentence_of, shown
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.files import read_column
from pairscale.errors import InputError

_KEY = ["paradigm", "pair_id", "template", "trial"]  # of the rows of one item in a score file


def read_choices(cells: pd.DataFrame, columns: Mapping[str, Sequence[str]], config: BenchmarkConfig) -> pd.DataFrame:
    """Return the columns good, bad, options, contexts and gold of eval.scores.schemas.ITEMS.

    For readers, good is the right option with its context, and bad consists of the other options (with their contexts,
    if these differ).

    Args:
        cells: The table (N rows), indexed by the places of its rows.
        columns: The names of the columns with the options (or good and bad), the context and the label.
        config: The benchmark, for its labels and separator.

    Raises InputError, with file and line, for an invalid cell, or if an item's label is none of its options.
    """
    separator = " " if config.separator is None else config.separator
    named = columns.get("options") or [columns["good"][0], columns["bad"][0]]
    each = [read_column(cells, column, _unchanged) for column in named]
    before = [read_column(cells, column, _context_of) for column in columns.get("context", ())]
    labels = read_column(cells, columns["label"][0], label_of) if "label" in columns else [None] * len(cells)
    rows = []
    for number, where in enumerate(cells.index.tolist()):
        options = _options_of([column[number] for column in each], where, named)
        contexts = [column[number] for column in before] or [""]
        if len(contexts) not in (1, len(options)):
            raise InputError(
                f"{where}: this item has {len(contexts)} contexts but {len(options)} options. Give one context, or one "
                "for each option."
            )
        joined = zip(contexts * (len(options) // len(contexts)), options, strict=True)
        read = [
            context if not context or context[-1].isspace() or option[0].isspace() else context + separator
            for context, option in joined
        ]
        gold = 0 if labels[number] is None else _gold(str(labels[number]), options, config.labels, where)
        texts = [context + option for context, option in zip(read, options, strict=True)]
        others = options if len(set(read)) == 1 else texts
        bad = " | ".join(text for place, text in enumerate(others) if place != gold)
        rows.append((texts[gold], bad, options, read, gold))
    return pd.DataFrame(rows, cells.index, ["good", "bad", "options", "contexts", "gold"])


def _unchanged(cell: Any, where: str, column: str) -> Any:
    return cell


def _context_of(cell: Any, where: str, column: str) -> str:
    """Return a context, which may be empty."""
    if is_empty(cell):
        return ""
    return sentence_of(cell, where, column)


def _options_of(cells: list[Any], where: str, columns: Sequence[str]) -> list[str]:
    """Return the options of an item: one per cell, or those of a single cell with a list (in CSV, a JSON list).

    Empty cells at the end don't count, because items may have different numbers of options.
    """
    if len(columns) == 1:
        (cell,) = cells
        try:
            cells = json.loads(cell) if isinstance(cell, str) else list(cell)
        except (TypeError, ValueError):
            cells = [cell]
    while isinstance(cells, list) and len(cells) > 1 and is_empty(cells[-1]):
        cells = cells[:-1]
    if not isinstance(cells, list) or len(cells) < 2:
        raise InputError(
            f"{where}: {', '.join(columns)} must be a list of two or more options, such as "
            f'["a cat", "a dog"], not {shown(cells[0] if isinstance(cells, list) and cells else cells)}.'
        )
    names = columns if len(columns) > 1 else columns[0]
    return [
        sentence_of(cell, where, names if isinstance(names, str) else names[place]) for place, cell in enumerate(cells)
    ]


def _gold(label: str, options: Sequence[str], labels: Sequence[str] | None, where: str) -> int:
    """Return the number of the right option: its place in `labels`, or else its number, its letter or its text.

    Raises InputError if the label is none of these, or if it is the number of one option and the text of another.
    """
    listed = [text.casefold() for text in labels or ()]
    if labels is not None:
        meant = {place for place, text in enumerate(listed) if text == label}
    else:
        meant = {place for place, option in enumerate(options) if option.strip().casefold() == label}
        letters = string.ascii_lowercase[: len(options)]
        meant |= {letters.index(label)} if label in [*letters] else {int(label)} if label.isdecimal() else set()
    if len(meant) != 1 or max(meant) >= len(options):
        known = ", ".join(labels) if labels else f"a number from 0 to {len(options) - 1}, a letter, or an option's text"
        raise InputError(
            f"{where}: the label {shown(label)} doesn't name one of the {len(options)} options ({known}). List the "
            "labels in the order of the options: benchmark.labels=[A,B,C]."
        )
    return meant.pop()


def compared(items: pd.DataFrame) -> pd.DataFrame:
    """Return one row per comparison of an item's right option (good) with another option (bad).

    Items without options, which are pairs, are returned as they are. Otherwise the columns are those of ITEMS, `rival`
    (the number of the other option), and `good_context` and `bad_context`. The index is 0, 1, ...
    """
    if items["options"].isna().all():
        return items
    rows = []
    for item, options, contexts, gold in zip(
        range(len(items)), items["options"], items["contexts"], items["gold"], strict=True
    ):
        for other in range(len(options)):
            if other != gold:
                rows.append((item, options[gold], options[other], contexts[gold], contexts[other], other))
    names = ["item", "good", "bad", "good_context", "bad_context", "rival"]
    table = pd.DataFrame(rows, columns=names)
    at = table.pop("item").to_numpy()
    return items.drop(columns=["good", "bad"]).iloc[at].reset_index(drop=True).join(table)


def hardest(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep one row per item (and template): that of the other option with the highest score, and set `rivals`.

    `rivals` is the number of other options that share this score. An option without a score (NaN) ranks highest, so
    that no item is right without a comparison.
    """
    rows = rows.assign(bad_rank=rows["bad"].fillna(np.inf))
    groups = rows.groupby(_KEY, sort=False, dropna=False)["bad_rank"]
    best = rows[rows["bad_rank"] == groups.transform("max")].drop(columns="bad_rank")
    sizes = best.groupby(_KEY, sort=False, dropna=False)["rival"].transform("size")
    return best.assign(rivals=sizes).drop_duplicates(_KEY)


def identical(items: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return which items (P,) have another option that is the same as the right one, after the same context."""
    if items["options"].isna().all():
        return (items["good"] == items["bad"]).to_numpy()
    same = np.zeros(len(items), dtype=np.bool_)
    of_items = zip(items["options"], items["contexts"], items["gold"], strict=True)
    for at, (options, contexts, gold) in enumerate(of_items):
        texts = [context + option for context, option in zip(contexts, options, strict=True)]
        same[at] = texts.count(texts[gold]) > 1
    return same
