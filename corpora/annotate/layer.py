"""The layer of an annotated text: a dependency tree for each of its sentences, in the columns of Arrow files.

    store/<corpus>/annotation-<name>/
        part-00000.arrow    trees of the first sentences of the text, then part-00001.arrow, ...
        manifest.json       written last

A part has PART_SENTENCES sentences of the text in its order, the last one fewer: a row per sentence, and in each column
the list of its words' values. Texts are codes into a dictionary of the part. Parts are memory-mapped, and the same
whatever the number of processes that wrote them, so a killed command continues at the first missing one.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpora.annotate.tree import Tree
from corpora.text import TextStore, read_manifest
from pairscale.errors import ConfigError, StoreError
from pairscale.files import sha256_file, sha256_json, write_bytes, write_json
from pairscale.schema import Count, Digest, Positive

LAYER_VERSION = 1
PART_SENTENCES = 4_000  # some ten seconds of a parser on one core: what a kill can lose, and the step of progress
PREFIX = "annotation-"
MANIFEST = "manifest.json"
OPEN_PARTS = 64  # whose dictionaries are in memory
NUMBERS = ("starts", "ends", "heads")
TEXTS = {"lemmas": pa.int32(), "upos": pa.int16(), "xpos": pa.int16(), "feats": pa.int16(), "relations": pa.int16()}
_FIELDS = [pa.field(name, pa.list_(pa.uint32())) for name in NUMBERS]
_FIELDS += [pa.field(name, pa.list_(pa.dictionary(codes, pa.string()))) for name, codes in TEXTS.items()]
_MADE = b"pairscale"  # key of what a part was made of, in its file


class _PartEntry(TypedDict):
    bytes: Positive
    digest: Digest


class LayerManifest(TypedDict):
    """Schema of manifest.json. made: the text's digest, and the parser with its versions and its model's digest."""

    made: dict[str, Any]
    sentences: Positive
    part_sentences: Positive
    words: Count
    parts: list[_PartEntry]
    digest: Digest


class Layer:
    """The trees of a text."""

    def __init__(self, folder: Path, text: TextStore):
        """Open a layer. Raises StoreError if it is incomplete, damaged, of another version or of another text."""
        self.folder = folder
        self.text = text
        self.manifest = layer_manifest(folder)
        if self.manifest["made"]["text"] != text.digest:
            raise StoreError(f"{folder}: made of another text than {text.folder} is now; remove it and annotate again")
        for number, part in enumerate(self.manifest["parts"]):
            path = part_path(folder, number)
            if not path.exists() or path.stat().st_size != part["bytes"]:
                raise StoreError(f"{path}: not of the size in its manifest; remove it and {MANIFEST} to make it again")
        self._part = lru_cache(OPEN_PARTS)(lambda number: _Part(part_path(folder, number)))

    @property
    def name(self) -> str:
        """The name by which `ablate.layer` chooses it."""
        return self.folder.name.removeprefix(PREFIX)

    @property
    def digest(self) -> str:
        """SHA-256 of its parts and of the text's digest."""
        return str(self.manifest["digest"])

    def __reduce__(self) -> tuple[type["Layer"], tuple[Path, TextStore]]:
        """Return what another process opens the layer with."""
        return Layer, (self.folder, self.text)

    def __len__(self) -> int:
        """Return the number of sentences, all of the text."""
        return int(self.manifest["sentences"])

    def trees(self, indices: npt.ArrayLike) -> Iterator[Tree]:
        """Yield the trees of sentences of the text, in the order of `indices`; quickest in the order of the text."""
        chosen = np.asarray(indices, np.int64)
        parts, rows = np.divmod(chosen, int(self.manifest["part_sentences"]))
        for sentence, part, row in zip(self.text.sentences(chosen), parts.tolist(), rows.tolist(), strict=True):
            yield self._part(part).tree(sentence, row)

    def lemmas(self) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[Any], list[str]]]:
        """Yield the lemmas of each part: where its sentences begin (sentences + 1,), codes (words,), texts of codes."""
        for number in range(len(self.manifest["parts"])):
            part = self._part(number)
            yield np.array(part.offsets, np.int64), part.codes["lemmas"], part.dictionaries["lemmas"]


class _Part:
    """The columns of a part: where the words of each row begin, the words' numbers, and codes of their texts."""

    def __init__(self, path: Path):
        try:
            batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise StoreError(f"{path}: not a readable Arrow file ({reason}); remove it") from None
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


def layer_folder(corpus: Path, name: str) -> Path:
    """Return store/<corpus>/annotation-<name>; `corpus` is the folder store/<corpus>."""
    return corpus / f"{PREFIX}{name}"


def layer_names(corpus: Path) -> list[str]:
    """Return the names of a corpus's finished layers."""
    return sorted(path.parent.name.removeprefix(PREFIX) for path in corpus.glob(f"{PREFIX}*/{MANIFEST}"))


def layer_manifest(folder: Path) -> dict[str, Any]:
    """Read manifest.json of a layer (LayerManifest). Raises StoreError."""
    return read_manifest(folder, LAYER_VERSION, LayerManifest)


def open_layer(corpus: Path, name: str | None, text: TextStore) -> Layer:
    """Open a layer of the corpus in the folder store/<corpus>; name: None for its only one.

    Raises ConfigError if there is none, none of that name, or several and no name; StoreError as Layer does.
    """
    names = layer_names(corpus)
    if not names:
        raise ConfigError(f"corpus {corpus.name}: has no annotation in {corpus}; python -m corpora.annotate makes one")
    if name is None and len(names) > 1:
        raise ConfigError(f"corpus {corpus.name}: has several annotations; give ablate.layer={'|'.join(names)}")
    if name is not None and name not in names:
        raise ConfigError(f"ablate.layer={name}: no such annotation of {corpus.name}; available: {', '.join(names)}")
    return Layer(layer_folder(corpus, name or names[0]), text)


# Writing


def part_path(folder: Path, number: int) -> Path:
    """Return the file of a part."""
    return folder / f"part-{number:05}.arrow"


def part_made(path: Path) -> Mapping[str, Any]:
    """Return what a part was made of, as given to `write_part`. Raises StoreError."""
    with pa.memory_map(str(path)) as file:
        try:
            return dict(json.loads(pa.ipc.open_file(file).schema.metadata[_MADE]))
        except (pa.ArrowException, KeyError, TypeError, ValueError):
            raise StoreError(f"{path}: not a part of an annotation; remove it") from None


def write_part(path: Path, trees: Iterable[Tree], made: Mapping[str, Any]) -> None:
    """Write the trees of a part, and what they were made of."""
    offsets = [0]
    columns: dict[str, list[Any]] = {name: [] for name in (*NUMBERS, *TEXTS)}
    for tree in trees:
        offsets.append(offsets[-1] + len(tree))
        for name, values in columns.items():
            values += getattr(tree, name)
    rows = pa.array(offsets, pa.int32())
    arrays = [pa.ListArray.from_arrays(rows, pa.array(columns[name], pa.uint32())) for name in NUMBERS]
    for name, codes in TEXTS.items():
        encoded = pa.array(columns[name], pa.string()).dictionary_encode()  # codes in the order of their first use
        encoded = pa.DictionaryArray.from_arrays(encoded.indices.cast(codes), encoded.dictionary)
        arrays.append(pa.ListArray.from_arrays(rows, encoded))
    schema = pa.schema(_FIELDS, {_MADE: json.dumps(made, sort_keys=True, ensure_ascii=False)})
    buffer = pa.BufferOutputStream()  # pyarrow's own errors of a full disk have no number (pairscale/files.py)
    with pa.ipc.new_file(buffer, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    write_bytes(path, memoryview(buffer.getvalue()))


def write_layer(folder: Path, text: TextStore, made: Mapping[str, Any], part_sentences: int = PART_SENTENCES) -> None:
    """Write the manifest of a layer whose parts are all there. made: as given to `write_part`."""
    paths = [part_path(folder, number) for number in range(-(-len(text) // part_sentences))]
    parts = [_PartEntry(bytes=path.stat().st_size, digest=sha256_file(path)) for path in paths]
    manifest = {
        "version": LAYER_VERSION,
        "made": dict(made),
        "sentences": len(text),
        "part_sentences": part_sentences,
        "words": sum(_Part(path).offsets[-1] for path in paths),
        "parts": parts,
        "digest": sha256_json([text.digest, *(part["digest"] for part in parts)]),
    }
    write_json(folder / MANIFEST, manifest)
