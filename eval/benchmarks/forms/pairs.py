"""The form `pairs`: tables whose columns the configuration names, with a pair or a labelled sentence per row."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from eval.benchmarks.cells import flag_of, name_of, part_of, sentence_of, shown
from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from eval.benchmarks.files import Row, Table, tables
from eval.benchmarks.forms.form import OWN, Pair, PlacedPair, form
from eval.scores.schemas import ITEMS
from pairscale.errors import InputError

FIELDS = (
    *("path", "dataset", "revision", "subset", "split", "files", "delimiter", "header", "quotes"),
    *("columns", "labels", "rename"),
)
# The names that columns go by in the family of BLiMP; the others are found under our own.
USUAL = {
    "good": ("good", "sentence_good", "good_sentence"),
    "bad": ("bad", "sentence_bad", "bad_sentence"),
    "paradigm": ("paradigm", "UID"),
    "phenomenon": ("phenomenon", "linguistics_term"),
    "pair_id": ("pair_id", "pairID", "pair_ID"),
    "sentence": (),
    "label": (),
}
FLAGS = ("lexically_identical", "one_prefix_method", "two_prefix_method")
METHODS = {
    "one_prefix_method": ("one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad"),
    "two_prefix_method": ("two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word"),
}
# Columns under our names are never the user's own; simple_LM_method is true of all of BLiMP's pairs.
_NEVER_OWN = {*ITEMS.names, "", "simple_LM_method"}

Places = Mapping[str, Sequence[str]]  # our name -> the columns of a table that contain it


@form("pairs", FIELDS)
def pairs(config: BenchmarkConfig) -> Iterator[PlacedPair]:
    """Yield the pairs of the tables that `config` names."""
    return read_pairs(tables(config), config.columns, config.labels, config.rename)


def read_pairs(
    found: Iterable[Table],
    columns: ColumnsConfig,
    labels: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
) -> Iterator[PlacedPair]:
    """Yield the pairs of tables, numbered from 0 in their paradigm if no column says otherwise.

    labels, rename: as in BenchmarkConfig. Raises InputError for missing columns, cells that do not fit, and labelled
    sentences that do not form pairs.
    """
    counts: Counter[str] = Counter()
    for table in found:
        rows = list(table.rows)
        places = _places(list(dict.fromkeys(name for row in rows for name in row.cells)), columns, table.source)
        read = ((row.where, _read_row(row, places, table.name, rename or {})) for row in rows)
        for where, pair in _joined(read, labels or ("1", "0")) if "sentence" in places else read:
            yield where, {"pair_id": str(counts[pair["paradigm"]]), **pair}
            counts[pair["paradigm"]] += 1


def _places(there: Sequence[str], columns: ColumnsConfig, source: str) -> Places:
    """Return which of the columns `there` contain what.

    Raises InputError for a named column that is missing, two under usual names of one thing, and without sentences.
    """
    error = partial(_column_error, there, source)
    places: dict[str, Sequence[str]] = {}
    for name, value in vars(columns).items():
        if value:
            places[name] = value if isinstance(value, list) else [value]
            if missing := [column for column in places[name] if column not in there]:
                raise error(f"no column '{missing[0]}' (benchmark.columns.{name})")
        elif value is None and not (columns.sentence and name in ("good", "bad")):
            usual = USUAL.get(name, (name,))
            found = [column for column in usual if column in there]
            if len(found) > 1 or (not found and name in ("good", "bad")):
                problem = f"both {' and '.join(found)} may be" if found else f"no column {' or '.join(usual)} for"
                otherwise = "" if found else ", or .sentence and .label for one sentence per row"
                raise error(f"{problem} the {name}; give benchmark.columns.{name}=NAME{otherwise}")
            if found:
                places[name] = found
    return places


def _column_error(there: Sequence[str], source: str, problem: str) -> InputError:
    hint = ""
    if marks := [mark for mark in ";\t|" if len(there) == 1 and mark in there[0]]:
        hint = f"; benchmark.delimiter={marks[0]!r} separates them"
    elif not any(name in there for names in USUAL.values() for name in names):
        hint = "; if the file has no header, benchmark.header=false names the columns 0, 1, ..."
    return InputError(f"{source}: {problem}; there are: {', '.join(there)}{hint}")


def _read_row(row: Row, places: Places, table: str, rename: Mapping[str, str]) -> Pair:
    """Return the columns of a pair, or of a labelled sentence; `table` names the paradigm if no column does."""

    def cell(name: str, read: Callable[[Any, str, str], Any]) -> Any:
        return read(row.cells.get(places[name][0]), row.where, places[name][0]) if name in places else None

    names = [name_of(row.cells.get(column), row.where, column) for column in places.get("paradigm", ())]
    paradigm = "/".join(names) or table
    phenomenon, field = cell("phenomenon", name_of) or paradigm, cell("field", part_of)
    pair = {"paradigm": paradigm, "phenomenon": rename.get(phenomenon, phenomenon), "field": rename.get(field, field)}
    if "sentence" in places:
        pair |= {"sentence": cell("sentence", sentence_of), "label": cell("label", _label_of)}
    else:
        pair |= {"good": cell("good", sentence_of), "bad": cell("bad", sentence_of)}
    if "pair_id" in places:
        pair["pair_id"] = cell("pair_id", name_of)
    pair |= {flag: cell(flag, flag_of) for flag in FLAGS}
    for flag, fields in METHODS.items():
        pair |= {name: cell(name, part_of) for name in fields}
        empty = [name for name in fields if pair[name] is None]
        if flag not in places and all(name in places for name in fields):
            if empty and len(empty) < len(fields):
                raise InputError(f"{row.where}: {empty[0]} is empty: a pair has all of {', '.join(fields)}, or none")
            pair[flag] = not empty
    taken = _NEVER_OWN.union(*places.values())
    pair[OWN] = {str(name): _own_text(value) for name, value in row.cells.items() if name not in taken}
    return pair


def _label_of(cell: Any, where: str, column: str) -> str:
    return str(cell).lower() if isinstance(cell, bool) else name_of(cell, where, column)


def _own_text(cell: Any) -> str | None:
    """Return a cell of the user's own as text that a file can contain."""
    return None if cell is None else str(cell).encode("utf-8", "replace").decode() or None


def _joined(sentences: Iterable[PlacedPair], labels: Sequence[str]) -> Iterator[PlacedPair]:
    """Yield pairs of a good and a bad row: those of one paradigm and pair_id, or else by turns."""
    sides = dict(zip([label.casefold() for label in labels], ("good", "bad"), strict=True))
    waiting: dict[str, dict[str, PlacedPair]] = {}
    for number, (where, row) in enumerate(sentences):
        by_turns = "pair_id" not in row
        allowed = labels[number % 2 : number % 2 + 1] if by_turns else labels
        if row["label"].casefold() not in [label.casefold() for label in allowed]:
            turns = f" ({' and '.join(labels)} by turns, without benchmark.columns.pair_id)" if by_turns else ""
            raise InputError(f"{where}: label {row['label']}, must be {' or '.join(allowed)}{turns}")
        side = sides[row.pop("label").casefold()]
        name = f"pair {number // 2}" if by_turns else f"paradigm {row['paradigm']}, pair {row['pair_id']}"
        there = waiting.setdefault(name, {})
        if side in there:
            raise InputError(f"{where}: {name} has two {side} sentences, the other: {there[side][0]}")
        there[side] = where, row
    for name, there in waiting.items():
        if len(there) == 1:
            ((side, (where, _)),) = there.items()
            raise InputError(f"{where}: {name} has no {'bad' if side == 'good' else 'good'} sentence")
        yield _joined_pair(*there["good"], *there["bad"])


def _joined_pair(where: str, good: Pair, bad_where: str, bad: Pair) -> PlacedPair:
    """Return one pair; of the user's own cells, those that both rows share."""
    for name in good:
        if name not in ("sentence", OWN) and good[name] != bad[name]:
            raise InputError(
                f"{bad_where}: {name} {shown(bad[name])}, but its good sentence ({where}) has {shown(good[name])}"
            )
    own = {name: cell for name, cell in good[OWN].items() if bad[OWN].get(name) == cell}
    return where, {**good, "good": good["sentence"], "bad": bad["sentence"], OWN: own}
