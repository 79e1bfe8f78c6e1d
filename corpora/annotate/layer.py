"""The layer of an annotated text: a dependency tree for each of its sentences, in the columns of Arrow files.

    store/<corpus>/annotation-<name>/
        part-00000.arrow    trees of the first sentences of the text, then part-00001.arrow, ...
        manifest.json       written last

A part has PART_SENTENCES sentences of the text in its order, the last one fewer: a row each, a list of its words'
values in each column. Texts are codes into a dictionary of the part. Parts are memory-mapped, and the same whatever the
number of processes that wrote them, so that a killed command goes on at the first missing one.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import numpy.typing as npt

from corpora.annotate.tree import Tree
from corpora.text import TextStore, file_digest, read_manifest
from pairscale.errors import ConfigError, StoreError
from pairscale.files import sha256_file, sha256_json, write_json
from pairscale.schema import Count, Digest, Positive

if TYPE_CHECKING:
    from corpora.annotate.parts import Columns

LAYER_VERSION = 1
PART_SENTENCES = 4_000  # some ten seconds of a parser on one core: what a kill can lose, and the step of progress
PREFIX = "annotation-"
MANIFEST = "manifest.json"
OPEN_PARTS = 64  # whose dictionaries are in memory


class _Part(TypedDict):
    words: Count
    bytes: Positive
    digest: Digest


class LayerManifest(TypedDict):
    """Schema of manifest.json. made: the text's digest, and the parser with its versions and its model's digest."""

    made: dict[str, Any]
    sentences: Positive
    part_sentences: Positive
    words: Count
    parts: list[_Part]
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
        self._part = lru_cache(OPEN_PARTS)(self._read_part)

    @property
    def name(self) -> str:
        """The name by which `ablate.layer` chooses it."""
        return self.folder.name.removeprefix(PREFIX)

    @property
    def digest(self) -> str:
        """SHA-256 of its parts and of the text's digest."""
        return str(self.manifest["digest"])

    def __len__(self) -> int:
        """Return the number of sentences, all of the text."""
        return int(self.manifest["sentences"])

    def verify(self) -> None:
        """Raise StoreError if a part has changed since it was written."""
        for number, part in enumerate(self.manifest["parts"]):
            path = part_path(self.folder, number)
            if file_digest(path) != part["digest"]:
                raise StoreError(f"{path}: its digest is not the one in {MANIFEST}; remove both to make it again")

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

    def _read_part(self, number: int) -> "Columns":
        from corpora.annotate.parts import Columns  # with pyarrow, which starts a thread: not where runs are forked

        return Columns(part_path(self.folder, number))


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


def write_layer(folder: Path, text: TextStore, made: Mapping[str, Any], part_sentences: int = PART_SENTENCES) -> None:
    """Write the manifest of a layer whose parts are all there. made: as given to `write_part`."""
    from corpora.annotate.parts import part_words

    parts: list[_Part] = []
    for number in range(-(-len(text) // part_sentences)):
        path = part_path(folder, number)
        parts.append({"words": part_words(path), "bytes": path.stat().st_size, "digest": sha256_file(path)})
    manifest = {
        "version": LAYER_VERSION,
        "made": dict(made),
        "sentences": len(text),
        "part_sentences": part_sentences,
        "words": sum(part["words"] for part in parts),
        "parts": parts,
        "digest": sha256_json([text.digest, *(part["digest"] for part in parts)]),
    }
    write_json(folder / MANIFEST, manifest)
