"""The form `blimp`: BLiMP's JSON Lines, and other benchmarks in the very same form."""

from collections.abc import Iterator, Mapping
from typing import Any

from eval.benchmarks.cells import flag_of, name_of, part_of, sentence_of, text_of
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.files import tables
from eval.benchmarks.forms.form import FLAGS, PREFIX_FIELDS, Pair, PlacedPair, form
from pairscale.errors import InputError

# BLiMP's files have 13 phenomena; its paper and its published summary count 12.
FOLDED_PHENOMENA = {"s-selection": "argument_structure"}
_TEXTS = ("sentence_good", "sentence_bad", "field", "linguistics_term", "UID")


@form("blimp", ("path", "dataset", "revision"))
def blimp(config: BenchmarkConfig) -> Iterator[PlacedPair]:
    """Yield the pairs of JSON Lines files, or of the data set of the hub."""
    for table in tables(config, "*.jsonl"):
        for row in table.rows:
            yield row.where, blimp_pair(row.cells, row.where)


def blimp_pair(cells: Mapping[str, Any], where: str) -> Pair:
    """Return one of BLiMP's JSON objects under our names. On the hub pairID is pair_id, a number."""
    pair_id = "pair_id" if "pair_id" in cells else "pairID"
    for name in (pair_id, *_TEXTS):
        if name not in cells:
            raise InputError(f"{where}: without the field {name}; there are {', '.join(cells)}")
    field = cells["field"]  # null where a benchmark has no fields, as generated pairs in Mandarin
    texts = {name: text_of(cells[name], where, name) for name in _TEXTS if name != "field"}
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
        **{name: part_of(cells.get(name), where, name) for name in PREFIX_FIELDS},
    }
