"""A part of a layer: an Arrow file with the trees of some sentences of a text, and what it was made of."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpora.annotate.tree import Tree
from pairscale.errors import StoreError
from pairscale.files import write_bytes

NUMBERS = ("starts", "ends", "heads")
TEXTS = {"lemmas": pa.int32(), "upos": pa.int16(), "xpos": pa.int16(), "feats": pa.int16(), "relations": pa.int16()}
_FIELDS = [pa.field(name, pa.list_(pa.uint32())) for name in NUMBERS]
_FIELDS += [pa.field(name, pa.list_(pa.dictionary(codes, pa.string()))) for name, codes in TEXTS.items()]
_MADE = b"pairscale"  # key of what a part was made of, in its file


class Columns:
    """The columns of a part: where the words of each row begin, the words' numbers, and codes of their texts."""

    def __init__(self, path: Path):
        batch = _opened(path).get_batch(0)
        self.offsets = batch.column(0).offsets.to_numpy().tolist()
        self.numbers = [batch.column(name).values.to_numpy() for name in NUMBERS]
        texts = {name: batch.column(name).values for name in TEXTS}
        self.codes = {name: column.indices.to_numpy() for name, column in texts.items()}
        self.dictionaries = {name: column.dictionary.to_pylist() for name, column in texts.items()}

    def tree(self, sentence: str, row: int) -> Tree:
        words = slice(self.offsets[row], self.offsets[row + 1])
        starts, ends, heads = (column[words].tolist() for column in self.numbers)
        lemmas, upos, xpos, feats, relations = (
            [self.dictionaries[name][code] for code in codes[words].tolist()] for name, codes in self.codes.items()
        )
        return Tree(sentence, starts, ends, lemmas, upos, xpos, feats, heads, relations)


def _opened(path: Path) -> Any:
    """Return the reader of a part. Raises StoreError."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(path)))
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{path}: not a readable Arrow file ({str(error).splitlines()[0]}); remove it") from None


def part_made(path: Path) -> Mapping[str, Any]:
    """Return what a part was made of, as given to `write_part`. Raises StoreError."""
    with pa.memory_map(str(path)) as file:
        try:
            return dict(json.loads(pa.ipc.open_file(file).schema.metadata[_MADE]))
        except (pa.ArrowException, KeyError, TypeError, ValueError):
            raise StoreError(f"{path}: not a part of an annotation; remove it") from None


def write_part(path: Path, trees: Iterable[Tree], made: Mapping[str, Any]) -> int:
    """Write the trees of a part, and what they were made of; return the number of words."""
    offsets = [0]
    columns: dict[str, list[Any]] = {name: [] for name in (*NUMBERS, *TEXTS)}
    for tree in trees:
        offsets.append(offsets[-1] + len(tree))
        for name, values in columns.items():
            values += getattr(tree, name)
    rows = pa.array(offsets, pa.int32())
    arrays = [pa.ListArray.from_arrays(rows, pa.array(columns[name], pa.uint32())) for name in NUMBERS]
    arrays += [pa.ListArray.from_arrays(rows, _encoded(columns[name], codes)) for name, codes in TEXTS.items()]
    schema = pa.schema(_FIELDS, {_MADE: json.dumps(made, sort_keys=True, ensure_ascii=False)})
    buffer = pa.BufferOutputStream()  # pyarrow's own errors of a full disk have no number (pairscale/files.py)
    with pa.ipc.new_file(buffer, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    write_bytes(path, memoryview(buffer.getvalue()))
    return offsets[-1]


def _encoded(texts: Sequence[str], codes: Any) -> Any:
    """Return texts as codes into a dictionary, in the order of their first use."""
    encoded = pa.array(texts, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(codes), encoded.dictionary)


def part_words(path: Path) -> int:
    """Return the number of words in a part. Raises StoreError."""
    return len(_opened(path).get_batch(0).column(0).values)
