"""The form `pairs`: anyone's tables, whose columns the configuration names."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eval.benchmarks.cells import flag_of, name_of, part_of, sentence_of
from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from eval.benchmarks.files import Row, Table, tables
from eval.benchmarks.forms.form import FLAGS, OWN, PREFIX_FIELDS, PREFIXES, Pair, PlacedPair, form
from eval.benchmarks.forms.labelled import LabelledSentence, by_id, by_turns
from pairscale.errors import InputError

FIELDS = (
    "path", "dataset", "revision", "subset", "split", "files", "delimiter", "header", "quotes", "columns", "labels",
)  # fmt: skip
# The names that columns go by in the family of BLiMP; the others are found under our own.
USUAL = {
    "good": ("good", "sentence_good", "good_sentence"),
    "bad": ("bad", "sentence_bad", "bad_sentence"),
    "paradigm": ("paradigm", "UID"),
    "phenomenon": ("phenomenon", "linguistics_term"),
    "pair_id": ("pair_id", "pairID", "pair_ID"),
}
_OF_ALL_ROWS = ("good", "bad", "sentence", "label", "paradigm", "phenomenon", "field", "pair_id")


@form("pairs", FIELDS)
def pairs(config: BenchmarkConfig) -> Iterator[PlacedPair]:
    """Yield pairs of tables with columns for a good and a bad sentence, or for a sentence and a label."""
    counts: Counter[str] = Counter()
    for table in tables(config):
        read = _labelled if config.columns.sentence else _side_by_side
        for where, pair in read(table, config):
            number = counts[pair["paradigm"]]
            counts[pair["paradigm"]] += 1
            yield where, {"pair_id": str(number), **pair}


def _side_by_side(table: Table, config: BenchmarkConfig) -> Iterator[PlacedPair]:
    for row, places in _placed(table, config.columns):
        sentences = {side: _only(row, places, side, sentence_of) for side in ("good", "bad")}
        yield row.where, {**_described(row, places, table.name), **sentences, OWN: _own(row, places)}


def _labelled(table: Table, config: BenchmarkConfig) -> Iterator[PlacedPair]:
    sentences = []
    for row, places in _placed(table, config.columns):
        text, label = _only(row, places, "sentence", sentence_of), _only(row, places, "label", _label_of)
        described = _described(row, places, table.name)
        sentences.append(LabelledSentence(row.where, label, text, described, _own(row, places)))
    labels = tuple(config.labels or ("1", "0"))
    join = by_id if "pair_id" in sentences[0].pair else by_turns
    return join(sentences, labels, table.source)


def _label_of(cell: Any, where: str, column: str) -> str:
    return str(cell).lower() if isinstance(cell, bool) else name_of(cell, where, column)


Places = Mapping[str, tuple[str, ...]]  # our name -> the columns of a table that hold it


def _placed(table: Table, columns: ColumnsConfig) -> Iterator[tuple[Row, Places]]:
    """Yield each row and the places of its columns. Rows of JSON may differ in the columns of methods, in no others."""
    known: dict[tuple[str, ...], Places] = {}
    first: dict[str, tuple[str, ...] | None] = {}
    for row in table.rows:
        keys = tuple(row.cells)
        if keys not in known:
            where = table.source if table.one_header else row.where
            known[keys] = places = _places(keys, columns, where)
            first = first or {name: places.get(name) for name in _OF_ALL_ROWS}
            for name, before in first.items():
                if places.get(name) != before:
                    here, there = (" and ".join(names) if names else "none" for names in (places.get(name), before))
                    raise InputError(f"{where}: the column for {name} is {here}, in the rows before it is {there}")
        yield row, known[keys]


def _places(there: tuple[str, ...], columns: ColumnsConfig, where: str) -> Places:
    """Return which of the columns `there` hold what.

    Raises InputError for a named column that is missing, two under usual names of one thing, and without sentences.
    """
    known = f"there are: {', '.join(there)}"
    if other := [mark for mark in ";\t|" if len(there) == 1 and mark in there[0]]:
        known += f"; benchmark.delimiter={other[0]!r} parts them there"
    elif not any(name in there for names in USUAL.values() for name in names):
        known += "; of a file without a header benchmark.header=false names the columns 0, 1, ..."
    explicit = ("sentence", "label", *(("good", "bad") if columns.sentence else ()))  # without usual names
    places: dict[str, tuple[str, ...]] = {}
    for name, value in vars(columns).items():
        if value:
            names = tuple(value) if isinstance(value, list) else (value,)
            if missing := [column for column in names if column not in there]:
                raise InputError(f"{where}: no column '{missing[0]}' (benchmark.columns.{name}); {known}")
            places[name] = names
        elif value is None and name not in explicit and (column := _usual_column(name, there, where, known)):
            places[name] = (column,)
    return places


def _usual_column(name: str, there: tuple[str, ...], where: str, known: str) -> str | None:
    usual = USUAL.get(name, (name,))
    columns = [column for column in usual if column in there]
    if len(columns) > 1:
        raise InputError(
            f"{where}: the columns {' and '.join(columns)} may both hold the {name}; "
            f"say which by benchmark.columns.{name}=NAME"
        )
    if not columns and name in ("good", "bad"):
        raise InputError(
            f"{where}: no column {' or '.join(usual)} for the {name} sentence; {known}; "
            f"give benchmark.columns.{name}=NAME (or .sentence and .label, for one sentence a row)"
        )
    return columns[0] if columns else None


def _only(row: Row, places: Places, name: str, read: Callable[[Any, str, str], Any]) -> Any:
    """Return what `read` makes of the one cell that holds `name`; None if no column does."""
    if name not in places:
        return None
    (column,) = places[name]
    return read(row.cells[column], row.where, column)


def _own(row: Row, places: Places) -> dict[str, str | None]:
    """Return the cells of all other columns as text that a file can hold."""
    taken = {*_OF_ALL_ROWS, *FLAGS, *PREFIX_FIELDS, ""} - {"sentence", "label"}
    taken |= {column for names in places.values() for column in names}
    cells = {str(name): cell for name, cell in row.cells.items() if name not in taken}
    return {
        name: None if cell is None else str(cell).encode("utf-8", "replace").decode() or None
        for name, cell in cells.items()
    }


def _described(row: Row, places: Places, table: str) -> Pair:
    """Return all columns of a pair but its sentences; `table` names the paradigm if no column does."""
    named = [name_of(row.cells[column], row.where, column) for column in places.get("paradigm", ())]
    paradigm = "/".join(named) or table
    pair = {
        "paradigm": paradigm,
        "phenomenon": _only(row, places, "phenomenon", name_of) or paradigm,
        "field": _only(row, places, "field", part_of),
        **{name: _only(row, places, name, part_of) for name in PREFIX_FIELDS},
        **{name: _only(row, places, name, flag_of) for name in FLAGS},
    }
    if "pair_id" in places:
        pair["pair_id"] = _only(row, places, "pair_id", name_of)
    for flag, fields in PREFIXES.items():
        empty = [name for name in fields if pair[name] is None]
        if flag not in places and all(name in places for name in fields):
            if empty and len(empty) < len(fields):
                raise InputError(f"{row.where}: {empty[0]} is empty: a pair has all of {', '.join(fields)}, or none")
            pair[flag] = not empty
    return pair
