"""Tables of rated sentences, read row by row."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from eval.benchmarks.cells import name_of, sentence_of, shown
from eval.benchmarks.files import Row, tables
from eval.ratings.config import RatingColumnsConfig, RatingsConfig
from pairscale.errors import InputError
from pairscale.files import sha256_json

COLUMNS = ("sentence", "rating", "label", "pair")
_LABELS = ("1", "0")


@dataclass(frozen=True)
class Ratings:
    """Sentences with what people say of them.

    rows: COLUMNS: sentence, rating (NaN where the table has none), label (True: good; None where it has none), pair
    (of the good and the bad sentence of a pair; None where it has none).
    """

    name: str
    digest: str
    rows: pd.DataFrame

    @property
    def pairs(self) -> int:
        return int(self.rows["pair"].nunique())

    @property
    def constant(self) -> str | None:
        """A sentence on ratings that are all the same, None if they differ or there are none."""
        values = self.rows["rating"].unique()
        if len(values) != 1 or math.isnan(values[0]):
            return None
        return f"every rating is {values[0]:g}, so nothing can correlate with them"

    def check(self) -> None:
        """Raise InputError for sentences from which no measure of agreement can be computed."""
        if len(self.rows) < 3:
            raise InputError(f"benchmark={self.name}: {len(self.rows)} sentences; agreement needs three or more")
        if self.rows["label"].nunique() < 2 and (self.constant or self.rows["rating"].isna().any()):
            raise InputError(
                f"benchmark={self.name}: {self.constant or 'every sentence has the same label'}; give ratings that "
                "differ, or labels of good and bad sentences"
            )


def load_ratings(config: RatingsConfig) -> Ratings:
    """Read a table of ratings. Raises InputError, with line, for cells that do not fit, and as `tables`."""
    columns = config.columns
    read = _pair if columns.good else _sentence
    found: list[tuple[Any, ...]] = []
    wheres: list[str] = []
    for table in tables(config):
        for number, row in enumerate(table.rows, start=1):
            _check_columns(row, columns)
            for cells in read(row, config, f"{table.name}-{number}"):
                found.append(cells)
                wheres.append(row.where)
    rows = pd.DataFrame(found, columns=list(COLUMNS))
    _check_pair_ids(rows, wheres)
    return Ratings(config.name, sha256_json([list(map(list, found))]), rows)


def _check_columns(row: Row, columns: RatingColumnsConfig) -> None:
    for name, column in vars(columns).items():
        if column and column not in row.cells:
            raise InputError(
                f"{row.where}: no column '{column}' (benchmark.columns.{name}); there are: {', '.join(row.cells)}"
            )


def _sentence(row: Row, config: RatingsConfig, number: str) -> Iterator[tuple[Any, ...]]:
    columns, cells = config.columns, row.cells
    assert columns.sentence
    sentence = sentence_of(cells[columns.sentence], row.where, columns.sentence)
    rating = _rating(row, columns.rating)
    label = _label(row, columns.label, config.labels) if columns.label else None
    pair = name_of(cells[columns.pair_id], row.where, columns.pair_id) if columns.pair_id else None
    yield sentence, rating, label, pair


def _pair(row: Row, config: RatingsConfig, number: str) -> Iterator[tuple[Any, ...]]:
    columns = config.columns
    pair = name_of(row.cells[columns.pair_id], row.where, columns.pair_id) if columns.pair_id else number
    for column, rating, label in ((columns.good, columns.good_rating, True), (columns.bad, columns.bad_rating, False)):
        assert column
        yield sentence_of(row.cells[column], row.where, column), _rating(row, rating), label, pair


def _rating(row: Row, column: str | None) -> float:
    if column is None:
        return math.nan
    try:
        rating = float(row.cells[column])
    except (TypeError, ValueError):
        rating = math.nan
    if not math.isfinite(rating):
        raise InputError(f"{row.where}: {column} is {shown(row.cells[column])}, must be a number")
    return rating


def _label(row: Row, column: str, labels: list[str] | None) -> bool:
    cell, (good, bad) = row.cells[column], labels or _LABELS
    label = str(int(cell) if isinstance(cell, bool) and labels is None else cell).strip().casefold()
    if label not in (good.casefold(), bad.casefold()):
        raise InputError(
            f"{row.where}: {column} is {shown(cell)}, must be {good} (good) or {bad} (bad), as benchmark.labels says"
        )
    return label == good.casefold()


def _check_pair_ids(rows: pd.DataFrame, wheres: list[str]) -> None:
    """Raise InputError for a pair that is not one good and one bad sentence."""
    paired = rows[rows["pair"].notna()]
    for pair, of in paired.groupby("pair", sort=False):
        if sorted(of["label"]) != [False, True]:
            good = int(of["label"].sum())
            raise InputError(
                f"{wheres[of.index[-1]]}: pair {pair} has {good} good and {len(of) - good} bad sentences, must have "
                "one of each"
            )
