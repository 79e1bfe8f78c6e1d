"""Write and read annotations (layers) of a text, which contain the sentences' dependency trees in Parquet files.

    store/<corpus>/annotation-<name>/
        made.json           written first; names what the parts are made from (text, parser, its versions and its model)
        part-00000.parquet  trees of the first sentences of the text, then part-00001.parquet, ...
        manifest.json       written last

Each part covers PART_SENTENCES consecutive sentences of the text, and the last part can be shorter. It is a table with
one row per word, which contains the sentence's number in the part and the word's values from Tree. Parts don't depend
on the number of processes that wrote them, so an interrupted command continues at the first missing part.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.annotate.tree import Tree
from corpora.kept import MANIFEST, read_manifest
from corpora.text import TextStore
from pairscale.errors import ConfigError, StoreError
from pairscale.files import sha256_file, sha256_json, write_bytes, write_json
from pairscale.schema import Count, Digest, Positive, read_json

LAYER_VERSION = 1
PART_SENTENCES = 4_000  # about ten seconds of parsing on one core, which is the most that an interruption can lose
PREFIX = "annotation-"
MADE = "made.json"
OPEN_PARTS = 2  # number of parts whose words are kept in memory
COLUMNS = ("starts", "ends", "lemmas", "upos", "xpos", "feats", "heads", "relations")  # as in Tree
_NUMBERS = ("sentence", "starts", "ends", "heads")
_SCHEMA = pa.schema([(name, pa.uint32() if name in _NUMBERS else pa.string()) for name in ("sentence", *COLUMNS)])


class LayerManifest(TypedDict):
    """The schema of manifest.json."""

    text: Digest
    sentences: Positive
    part_sentences: Positive
    words: Count
    digest: Digest


class Layer:
    """The trees of a text."""

    def __init__(self, folder: Path, text: TextStore):
        """Open an annotation. Raises StoreError if it is incomplete or damaged, or has another version or text."""
        self.folder = folder
        self.text = text
        self.manifest = read_manifest(folder, LAYER_VERSION, LayerManifest)
        if self.manifest["text"] != text.digest:
            raise StoreError(
                f"{folder}: this annotation was not made from the text in {text.folder}. Remove it, and run "
                "python -m corpora.annotate again."
            )
        self._part = lru_cache(OPEN_PARTS)(self._open)

    @property
    def name(self) -> str:
        """The annotation's name, as used in `ablate.layer`."""
        return self.folder.name.removeprefix(PREFIX)

    @property
    def digest(self) -> str:
        """The SHA-256 of the parts and of the text's digest."""
        return str(self.manifest["digest"])

    def __reduce__(self) -> tuple[type["Layer"], tuple[Path, TextStore]]:
        """Return the class and the arguments with which another process opens the annotation."""
        return Layer, (self.folder, self.text)

    def __len__(self) -> int:
        """Return the number of sentences in the text."""
        return int(self.manifest["sentences"])

    def _open(self, number: int) -> "_Part":
        size = int(self.manifest["part_sentences"])
        return _Part(part_path(self.folder, number), min(size, len(self) - number * size))

    def trees(self, indices: npt.ArrayLike) -> Iterator[Tree]:
        """Yield the trees of sentences in the order of `indices`. Ascending indices are fastest."""
        chosen = np.asarray(indices, np.int64)
        parts, rows = np.divmod(chosen, int(self.manifest["part_sentences"]))
        for sentence, part, row in zip(self.text.sentences(chosen), parts.tolist(), rows.tolist(), strict=True):
            yield self._part(part).tree(sentence, row)

    def lemmas(self) -> Iterator[list[str]]:
        """Yield the lemmas of each sentence of the text."""
        for number in range(-(-len(self) // int(self.manifest["part_sentences"]))):
            part = self._part(number)
            yield from (part.columns["lemmas"][start:end] for start, end in pairwise(part.offsets))


class _Part:
    """The words of a part by column, and the index of each sentence's first word."""

    def __init__(self, path: Path, sentences: int):
        try:
            table = pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise StoreError(
                f"{path}: this is not a readable Parquet file ({reason}). Remove {path.parent}, and run "
                "python -m corpora.annotate again."
            ) from None
        self.columns: dict[str, list[Any]] = {name: table[name].to_numpy().tolist() for name in COLUMNS}
        self.offsets = np.searchsorted(table["sentence"].to_numpy(), np.arange(sentences + 1)).tolist()

    def tree(self, sentence: str, row: int) -> Tree:
        words = slice(self.offsets[row], self.offsets[row + 1])
        return Tree(sentence, *(self.columns[name][words] for name in COLUMNS))


def layer_folder(corpus: Path, name: str) -> Path:
    """Return the folder of an annotation, store/<corpus>/annotation-<name>. `corpus` is store/<corpus>."""
    return corpus / f"{PREFIX}{name}"


def layer_names(corpus: Path) -> list[str]:
    """Return the names of a corpus's finished annotations."""
    return sorted(path.parent.name.removeprefix(PREFIX) for path in corpus.glob(f"{PREFIX}*/{MANIFEST}"))


def open_layer(corpus: Path, name: str | None, text: TextStore) -> Layer:
    """Open an annotation of a corpus.

    Args:
        corpus: The folder store/<corpus>.
        name: Name of the annotation; None for the corpus's only annotation.
        text: The text of the corpus.

    Raises ConfigError if there is no such annotation, or if there are several and `name` is None. Raises StoreError if
    the annotation is damaged.
    """
    names = layer_names(corpus)
    if not names:
        raise ConfigError(
            f"corpus {corpus.name}: there is no annotation in {corpus}. Make one with python -m corpora.annotate and "
            "the same corpus settings."
        )
    if name is None and len(names) > 1:
        raise ConfigError(
            f"corpus {corpus.name}: there are several annotations. Choose one with ablate.layer={'|'.join(names)}."
        )
    if name is not None and name not in names:
        raise ConfigError(f"ablate.layer={name}: {corpus.name} has no such annotation. Use {' or '.join(names)}.")
    return Layer(layer_folder(corpus, name or names[0]), text)


# Writing


def part_path(folder: Path, number: int) -> Path:
    """Return the file of a part."""
    return folder / f"part-{number:05}.parquet"


def check_made(folder: Path, made: Mapping[str, Any]) -> None:
    """Raise StoreError if the folder already contains parts of an annotation that were made from something else."""
    if not any(folder.glob("part-*")):
        return
    recorded = read_json(folder / MADE, dict[str, Any], StoreError, f"remove {folder} to annotate again")
    for key, value in made.items():
        if recorded.get(key) != value:
            raise StoreError(
                f"{folder}: this annotation was made with {key}={recorded.get(key)!s:.60}, but the current value is "
                f"{value!s:.60}. Choose another parser.name for the new annotation, or remove the folder."
            )


def write_part(path: Path, trees: Iterable[Tree]) -> None:
    """Write the trees of a part."""
    columns: dict[str, list[Any]] = {name: [] for name in ("sentence", *COLUMNS)}
    for number, tree in enumerate(trees):
        columns["sentence"] += [number] * len(tree)
        for name in COLUMNS:
            columns[name] += getattr(tree, name)
    buffer = pa.BufferOutputStream()  # pyarrow's errors for a full disk have no error number (see pairscale/files.py)
    pq.write_table(pa.table(columns, _SCHEMA), buffer, compression="zstd")
    write_bytes(path, memoryview(buffer.getvalue()))


def write_layer(folder: Path, text: TextStore, part_sentences: int) -> None:
    """Write the manifest of an annotation after its parts, which have `part_sentences` sentences, are written."""
    paths = [part_path(folder, number) for number in range(-(-len(text) // part_sentences))]
    manifest = {
        "version": LAYER_VERSION,
        "text": text.digest,
        "sentences": len(text),
        "part_sentences": part_sentences,
        "words": sum(pq.read_metadata(path).num_rows for path in paths),
        "digest": sha256_json([text.digest, *map(sha256_file, paths)]),
    }
    write_json(folder / MANIFEST, manifest)
