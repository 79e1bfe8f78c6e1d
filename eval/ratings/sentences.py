"""Read tables of rated sentences."""

import math
from functools import partial
from typing import Any

import pandas as pd

from eval.benchmarks.cells import blanks_note, label_of, name_of, sentence_of, shown
from eval.benchmarks.config import RatingsConfig
from eval.benchmarks.files import Items, read_column, table_of, tables
from pairscale.errors import InputError
from pairscale.files import sha256_json
from pairscale.sizes import plural


def load_ratings(config: RatingsConfig) -> Items:
    """Read a table of ratings. Raises InputError, with the line, for invalid cells, and the same errors as `tables`.

    The rows of the result have the columns sentence, rating, label (True for good sentences) and pair (the same for
    both sentences of a pair). If the table has no ratings, labels or pairs, the values are NaN, None and None.
    """
    columns, of_tables = config.columns, []
    label = partial(_label, labels=config.labels)
    for table in tables(config):
        cells = table_of(table.rows)
        pairs: list[str] | None = [f"{table.name}-{n}" for n in range(1, len(cells) + 1)] if columns.good else None
        if columns.pair_id:
            pairs = read_column(cells, columns.pair_id, name_of)
        sides: list[tuple[str | None, str | None, bool | None]] = [(columns.sentence, columns.rating, None)]
        if columns.good:
            sides = [(columns.good, columns.good_rating, True), (columns.bad, columns.bad_rating, False)]
        read = [
            {
                "sentence": read_column(cells, str(sentence), sentence_of),
                "rating": read_column(cells, rating, _rating) if rating else math.nan,
                "label": read_column(cells, columns.label, label) if columns.label else is_good,
                "pair": pairs,
            }
            for sentence, rating, is_good in sides
        ]
        parts = [pd.DataFrame(side, range(len(cells)), dtype=object) for side in read]
        of_tables.append(pd.concat(parts).sort_index(kind="stable"))
    rows = pd.concat(of_tables, ignore_index=True).infer_objects()
    for name, labels in rows.groupby("pair", sort=False)["label"]:
        if sorted(labels) != [False, True]:
            raise InputError(
                f"benchmark={config.name}: the pair {name} must have one good and one bad sentence. Correct it."
            )
    note, number = blanks_note(list(rows["sentence"])), rows["pair"].nunique()
    contents = plural(len(rows), "sentence") + (f" in {plural(number, 'pair')}" if number else "")
    digest = sha256_json([rows.to_numpy().tolist()])
    return Items(rows, rows["sentence"].unique().tolist(), digest, contents, notes=(note,) if note else ())


def _rating(cell: Any, where: str, column: str) -> float:
    try:
        rating = float(cell)
    except (TypeError, ValueError):
        rating = math.nan
    if not math.isfinite(rating):
        raise InputError(f"{where}: {column} is {shown(cell)}, but must be a number. Correct this cell.")
    return rating


def _label(cell: Any, where: str, column: str, labels: list[str] | None) -> bool:
    good, bad = labels or ("1", "0")
    known = {good.casefold(): True, bad.casefold(): False} | ({} if labels else {"true": True, "false": False})
    if (label := label_of(cell, where, column)) not in known:
        raise InputError(
            f"{where}: {column} is {shown(cell)}, but must be {good} or {bad}. Correct this cell or benchmark.labels."
        )
    return known[label]
