"""How the rows of published and of own files say their pairs: each form is a reader in FORM_READERS.

A form gives pairs under our names (eval.scores.files.ITEMS), each with the place that it comes from. `pairs` is the
form that anyone's tables have: columns, named in the configuration, for a good and a bad sentence, or for a sentence
and a label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eval.benchmarks.cells import flag_of, name_of, part_of, sentence_of, shown, text_of
from eval.benchmarks.files import Row, Table, csv_records, local_files, tables
from eval.config import BenchmarkConfig, ColumnsConfig
from pairscale.errors import ConfigError, InputError

if TYPE_CHECKING:
    from eval.benchmarks.generated.making import Made

Pair = dict[str, Any]
Found = tuple[str, Pair]  # where a pair stands, and the pair

FLAGS = ("lexically_identical", "one_prefix_method", "two_prefix_method")
PREFIXES = {
    "one_prefix_method": ("one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad"),
    "two_prefix_method": ("two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word"),
}
_PREFIX_FIELDS = tuple(name for names in PREFIXES.values() for name in names)

# The names that columns go by in the family of BLiMP; the others are found under our own.
USUAL = {
    "good": ("good", "sentence_good", "good_sentence"),
    "bad": ("bad", "sentence_bad", "bad_sentence"),
    "paradigm": ("paradigm", "UID"),
    "phenomenon": ("phenomenon", "linguistics_term"),
    "pair_id": ("pair_id", "pairID", "pair_ID"),
}
_OF_ALL_ROWS = ("good", "bad", "sentence", "label", "paradigm", "phenomenon", "field", "pair_id")

# BLiMP's files tell 13 phenomena; its paper and its published summary count 12.
FOLDED_PHENOMENA = {"s-selection": "argument_structure"}
_BLIMP_TEXTS = ("sentence_good", "sentence_bad", "field", "linguistics_term", "UID")

# The one file of CLiMP that has no header: its paradigm is its name, as for the others.
_CLIMP_BARE = {"ba_construction": "ba"}
_CLIMP_COLUMNS = ["", "0", "1", "2", "3"]  # index, phenomenon, paradigm, sentence, label


# Own tables, and published ones whose columns can be named


def pairs(config: BenchmarkConfig) -> Iterator[Found]:
    """Pairs of tables with columns for a good and a bad sentence, or for a sentence and a label."""
    counts: Counter[str] = Counter()
    for table in tables(config):
        found = _labelled(table, config) if config.columns.sentence else _side_by_side(table, config)
        for where, pair in found:
            number = counts[pair["paradigm"]]
            counts[pair["paradigm"]] += 1
            yield where, {"pair_id": str(number), **pair}


def _side_by_side(table: Table, config: BenchmarkConfig) -> Iterator[Found]:
    for row, places in _placed(table, config.columns):
        sentences = {side: _only(row, places, side, sentence_of) for side in ("good", "bad")}
        yield row.where, {**_described(row, places, table.name), **sentences}


class _Sentence(NamedTuple):
    """A sentence that waits for the other one of its pair; `pair`: what both rows say of the pair."""

    where: str
    label: str
    text: str
    pair: Pair


def _labelled(table: Table, config: BenchmarkConfig) -> Iterator[Found]:
    sentences = []
    for row, places in _placed(table, config.columns):
        text, label = _only(row, places, "sentence", sentence_of), _only(row, places, "label", _label_of)
        sentences.append(_Sentence(row.where, label, text, _described(row, places, table.name)))
    labels = tuple(config.labels or ("1", "0"))
    join = _by_id if "pair_id" in sentences[0].pair else _by_turns
    return join(sentences, labels, table.source)


def _label_of(cell: Any, where: str, column: str) -> str:
    return str(cell).lower() if isinstance(cell, bool) else name_of(cell, where, column)


def _by_turns(sentences: list[_Sentence], labels: tuple[str, ...], source: str) -> Iterator[Found]:
    """Pairs of rows that are good and bad by turns."""
    for index, sentence in enumerate(sentences):
        wanted = labels[index % 2]
        if sentence.label.casefold() != wanted.casefold():
            raise InputError(
                f"{sentence.where}: label {sentence.label}, must be {wanted} "
                f"(good {labels[0]} and bad {labels[1]} by turns)"
            )
    if not sentences or len(sentences) % 2:
        raise InputError(f"{source}: {len(sentences)} sentences, must be pairs")
    for good, bad in zip(sentences[::2], sentences[1::2], strict=True):
        yield _joined(good, bad)


def _by_id(sentences: list[_Sentence], labels: tuple[str, ...], source: str) -> Iterator[Found]:
    """Pairs of the rows of one paradigm and pair_id, in the order in which they begin."""
    sides = {label.casefold(): side for side, label in zip(("good", "bad"), labels, strict=True)}
    waiting: dict[tuple[str, str], dict[str, _Sentence]] = {}
    for sentence in sentences:
        paradigm, pair_id = sentence.pair["paradigm"], sentence.pair["pair_id"]
        side = sides.get(sentence.label.casefold())
        if side is None:
            raise InputError(f"{sentence.where}: label {sentence.label}, must be {' or '.join(labels)}")
        there = waiting.setdefault((paradigm, pair_id), {})
        if side in there:
            first = there[side].where
            raise InputError(
                f"{sentence.where}: paradigm {paradigm} has two {side} sentences of pair {pair_id}, the other: {first}"
            )
        there[side] = sentence
    for (paradigm, pair_id), there in waiting.items():
        if len(there) == 1:
            ((side, sentence),) = there.items()
            other = "bad" if side == "good" else "good"
            raise InputError(f"{sentence.where}: paradigm {paradigm} has no {other} sentence of pair {pair_id}")
        yield _joined(there["good"], there["bad"])


def _joined(good: _Sentence, bad: _Sentence) -> Found:
    for name in good.pair:
        if good.pair[name] != bad.pair[name]:
            raise InputError(
                f"{bad.where}: {name} {shown(bad.pair[name])}, "
                f"but its good sentence ({good.where}) has {shown(good.pair[name])}"
            )
    return good.where, {**good.pair, "good": good.text, "bad": bad.text}


Places = Mapping[str, tuple[str, ...]]  # our name -> the columns of a table that hold it


def _placed(table: Table, columns: ColumnsConfig) -> Iterator[tuple[Row, Places]]:
    """Each row, and where its columns are. Rows of JSON may differ in what they tell of methods, in nothing else."""
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
                    told = [" and ".join(names) if names else "none" for names in (places.get(name), before)]
                    raise InputError(f"{where}: the column for {name} is {told[0]}, in the rows before it is {told[1]}")
        yield row, known[keys]


def _places(there: tuple[str, ...], columns: ColumnsConfig, where: str) -> Places:
    """Which of the columns `there` hold what.

    Raises InputError for a column that was named and is not there, for two that go by usual names of one thing, and
    where none is there for the sentences.
    """
    told = f"there are: {', '.join(there)}"
    if other := [mark for mark in ";\t|" if len(there) == 1 and mark in there[0]]:
        told += f"; benchmark.delimiter={other[0]!r} parts them there"
    elif not any(name in there for names in USUAL.values() for name in names):
        told += "; of a file without a header benchmark.header=false names the columns 0, 1, ..."
    places: dict[str, tuple[str, ...]] = {}
    for name in vars(columns):
        asked = getattr(columns, name)
        if asked:
            names = tuple(asked) if isinstance(asked, list) else (asked,)
            missing = [column for column in names if column not in there]
            if missing:
                raise InputError(f"{where}: no column '{missing[0]}' (benchmark.columns.{name}); {told}")
            places[name] = names
        elif asked is None and name not in ("sentence", "label") and not (columns.sentence and name in ("good", "bad")):
            usual = USUAL.get(name, (name,))
            found = [column for column in usual if column in there]
            if len(found) > 1:
                raise InputError(
                    f"{where}: the columns {' and '.join(found)} may both hold the {name}; "
                    f"say which by benchmark.columns.{name}=NAME"
                )
            if not found and name in ("good", "bad"):
                raise InputError(
                    f"{where}: no column {' or '.join(usual)} for the {name} sentence; {told}; "
                    f"give benchmark.columns.{name}=NAME (or .sentence and .label, for one sentence a row)"
                )
            if found:
                places[name] = tuple(found)
    return places


def _only(row: Row, places: Places, name: str, read: Callable[[Any, str, str], Any]) -> Any:
    """What `read` makes of the one cell that holds `name`; None where no column does."""
    if name not in places:
        return None
    (column,) = places[name]
    return read(row.cells[column], row.where, column)


def _described(row: Row, places: Places, table: str) -> Pair:
    """What a row says of its pair but the sentences; `table` names the paradigm where no column does."""
    named = [name_of(row.cells[column], row.where, column) for column in places.get("paradigm", ())]
    paradigm = "/".join(named) or table
    pair = {
        "paradigm": paradigm,
        "phenomenon": _only(row, places, "phenomenon", name_of) or paradigm,
        "field": _only(row, places, "field", part_of),
        **{name: _only(row, places, name, part_of) for name in _PREFIX_FIELDS},
        **{name: _only(row, places, name, flag_of) for name in FLAGS},
    }
    if "pair_id" in places:
        pair["pair_id"] = _only(row, places, "pair_id", name_of)
    for flag, fields in PREFIXES.items():
        lacking = [name for name in fields if pair[name] is None]
        if flag not in places and all(name in places for name in fields):
            if lacking and len(lacking) < len(fields):
                raise InputError(f"{row.where}: {lacking[0]} is empty: a pair has all of {', '.join(fields)}, or none")
            pair[flag] = not lacking
    return pair


# Published benchmarks whose files have a form of their own


def blimp(config: BenchmarkConfig) -> Iterator[Found]:
    """BLiMP, and what is in its very form: JSON Lines, or the data set of the hub."""
    for table in tables(config, "*.jsonl"):
        for row in table.rows:
            yield row.where, _blimp_pair(row.cells, row.where)


def _blimp_pair(cells: Mapping[str, Any], where: str) -> Pair:
    """One of BLiMP's JSON objects under our names. The hub spells pairID pair_id, and a number."""
    pair_id = "pair_id" if "pair_id" in cells else "pairID"
    for name in (pair_id, *_BLIMP_TEXTS):
        if name not in cells:
            raise InputError(f"{where}: without the field {name}; there are {', '.join(cells)}")
    field = cells["field"]  # null where a benchmark has no fields, as generated pairs in Mandarin
    texts = {name: text_of(cells[name], where, name) for name in _BLIMP_TEXTS if name != "field"}
    phenomenon = texts["linguistics_term"]
    return {
        "pair_id": name_of(cells[pair_id], where, pair_id),
        "paradigm": texts["UID"],
        "phenomenon": FOLDED_PHENOMENA.get(phenomenon, phenomenon),
        # the files have both syntax/semantics and syntax_semantics
        "field": None if field is None else text_of(field, where, "field").replace("/", "_"),
        "good": sentence_of(texts["sentence_good"], where, "sentence_good"),
        "bad": sentence_of(texts["sentence_bad"], where, "sentence_bad"),
        **{name: flag_of(cells.get(name), where, name) for name in FLAGS},
        **{name: part_of(cells.get(name), where, name) for name in _PREFIX_FIELDS},
    }


def climp(config: BenchmarkConfig) -> Iterator[Found]:
    """CLiMP: rows by turns good and bad, in 15 files with a header and one without."""
    for file in local_files(config, "*.csv"):
        found = _by_turns(list(_climp_sentences(file)), ("1", "0"), str(file))
        for index, (where, pair) in enumerate(found):
            yield where, {"pair_id": str(index), **pair}


def _climp_sentences(file: Path) -> Iterator[_Sentence]:
    paradigm = file.stem.removesuffix("_1000")
    bare = paradigm in _CLIMP_BARE
    for index, (number, row) in enumerate(csv_records(file)):
        where = f"{file}: line {number}"
        if not bare and index == 0:
            if row != _CLIMP_COLUMNS:
                raise InputError(f"{where}: must be the header {','.join(_CLIMP_COLUMNS)}")
            continue
        if bare:
            row = ["", _CLIMP_BARE[paradigm], paradigm, *row, "10"[index % 2]]
        if len(row) != len(_CLIMP_COLUMNS) or not row[3].strip():
            raise InputError(f"{where}: must hold {1 if bare else 5} columns with a sentence, got {row}")
        yield _Sentence(
            where, row[4], sentence_of(row[3], where, "the sentence"), {"paradigm": row[2], "phenomenon": row[1]}
        )


def toy(config: BenchmarkConfig) -> Iterable[Found]:
    """Pairs from the grammar of the built-in language."""
    from eval.benchmarks.toy import pairs as toy_pairs

    if config.seed is None or config.per_paradigm is None:
        raise ConfigError(
            f"benchmark=toy: seed={config.seed} and per_paradigm={config.per_paradigm}: both must be numbers"
        )
    made = enumerate(toy_pairs(config.seed, config.per_paradigm), start=1)
    return ((f"toy: pair {number}", _blimp_pair(row, f"toy: pair {number}")) for number, row in made)


def generated(config: BenchmarkConfig) -> tuple[list[Found], Made]:
    """Pairs from templates, and what they are made of."""
    from eval.benchmarks.generated.making import make

    made = make(config)
    rows = [row for pairs in made.pairs.values() for row in pairs]
    return [(where := f"generated: {row['UID']} {row['pairID']}", _blimp_pair(row, where)) for row in rows], made


FORM_READERS: dict[str, Callable[[BenchmarkConfig], Iterable[Found]]] = {
    "pairs": pairs,
    "blimp": blimp,
    "climp": climp,
    "toy": toy,
}
