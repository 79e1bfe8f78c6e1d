"""Tables of rated sentences, read row by row."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from eval.benchmarks.cells import blanks_note, name_of, sentence_of, shown
from eval.benchmarks.files import tables
from eval.ratings.config import RatingsConfig
from pairscale.errors import InputError
from pairscale.files import sha256_json
from pairscale.sizes import plural


@dataclass(frozen=True)
class Ratings:
    """Sentences with what people say of them.

    Attributes:
        rows: sentence, rating (NaN where the table has none), label (True: good; None where it has none), pair (of the
            good and the bad sentence of a pair; None where it has none).
        digest: SHA-256 over them.
        notes: sentences on what is odd about them.
    """

    rows: pd.DataFrame
    digest: str
    notes: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The different sentences."""
        return self.rows["sentence"].unique().tolist()

    @property
    def contents(self) -> str:
        pairs = self.rows["pair"].nunique()
        return plural(len(self.rows), "sentence") + (f" in {plural(pairs, 'pair')}" if pairs else "")


def load_ratings(config: RatingsConfig) -> Ratings:
    """Read a table of ratings. Raises InputError, with line, for cells that do not fit, and as `tables`."""
    columns, found = config.columns, []
    # The columns of a sentence, its rating and its label, or True or False where the column of the sentence says it.
    parts: list[tuple[Any, ...]] = [(columns.sentence, columns.rating, columns.label)]
    if columns.good:
        parts = [(columns.good, columns.good_rating, True), (columns.bad, columns.bad_rating, False)]
    for table in tables(config):
        for number, (where, cells) in enumerate(table.rows, start=1):
            try:
                pair = f"{table.name}-{number}" if columns.good else None
                if columns.pair_id:
                    pair = name_of(cells[columns.pair_id], where, columns.pair_id)
                for column, rating, label in parts:
                    sentence = sentence_of(cells[column], where, column)
                    rated = _rating(cells[rating], where, rating) if rating else math.nan
                    good = _label(cells[label], where, label, config.labels) if isinstance(label, str) else label
                    found.append([sentence, rated, good, pair])
            except KeyError as missing:
                has = ", ".join(cells)
                raise InputError(f"{where}: no column {missing} (benchmark.columns); there are: {has}") from None
    rows = pd.DataFrame(found, columns=["sentence", "rating", "label", "pair"])
    for name, labels in rows.groupby("pair", sort=False)["label"]:
        if sorted(labels) != [False, True]:
            raise InputError(f"benchmark={config.name}: pair {name}: must be one good and one bad sentence")
    note = blanks_note(list(rows["sentence"]))
    return Ratings(rows, sha256_json([found]), (note,) if note else ())


def _rating(cell: Any, where: str, column: str) -> float:
    try:
        rating = float(cell)
    except (TypeError, ValueError):
        rating = math.nan
    if not math.isfinite(rating):
        raise InputError(f"{where}: {column} is {shown(cell)}, must be a number")
    return rating


def _label(cell: Any, where: str, column: str, labels: list[str] | None) -> bool:
    good, bad = labels or ("1", "0")
    label = str(int(cell) if isinstance(cell, bool) and labels is None else cell).strip().casefold()
    if label not in (good.casefold(), bad.casefold()):
        raise InputError(f"{where}: {column} is {shown(cell)}, must be {good} or {bad} (benchmark.labels)")
    return label == good.casefold()
