"""The text store: the sentences of a corpus, UTF-8, with the sizes that sampling needs.

    store/<corpus>/text/
        text.txt            one sentence a line
        offsets.npy         byte offset of each sentence, and the end of the last
        words.npy           number of reference words of each sentence
        characters.npy      number of characters of each sentence, without white space
        documents.npy       index of each document's first sentence, and the end of the last
        splits.npy          split of each document, an index into SPLITS
        domains.npy         domain of each document, an index into "domains" of the manifest
        manifest.json       written last

All arrays are memory-mapped.
"""

import hashlib
import mmap
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from corpora.config import SplitConfig
from corpora.words import count_characters, count_words
from pairscale.errors import InputError, StoreError
from pairscale.files import atomic_path, only_process, sha256_file, write_array, write_json
from pairscale.schema import Count, Digest, Positive, read_json

SPLITS = ("train", "valid", "test")
MANIFEST = "manifest.json"  # of a store, written last
TEXT_VERSION = 1
OFFSETS_AT_A_TIME = 100_000  # copied out of their memory map: one by one takes longer than reading the text
ENOUGH_DOCUMENTS = 500  # a share of .02 of them is almost certainly not empty


@dataclass(slots=True)
class Document:
    """Sentences that belong together, each without line breaks. Splits are drawn within each `source` (its name).

    split: "train", "valid" or "test" if the source publishes its splits, else None.
    """

    source: str
    sentences: list[str]
    split: str | None = None


class _Split(TypedDict):
    documents: Count
    sentences: Count
    words: Count
    characters: Count


class _Splits(TypedDict):
    train: _Split
    valid: _Split
    test: _Split


class _Domain(_Splits):
    name: str


# Schema of manifest.json, as far as it is read back. "corpus.path": digests of local files by name
# (corpora/sources/read.py).
TextManifest = TypedDict(
    "TextManifest",
    {
        "reference": str,
        "sentences": Positive,
        "splits": _Splits,
        "digest": Digest,
        "text_digest": Digest,
        "corpus.path": NotRequired[dict[str, Any]],
        "domains": list[_Domain],
        "domains_digest": Digest,
    },
)


def split_of(document: Document, config: SplitConfig) -> str:
    """Return a document's split: published, else by a seeded hash of source and text, whatever others there are."""
    if document.split is not None:
        return document.split
    share = _drawn(document, f"{config.seed}\0")
    if share < config.valid:
        return "valid"
    return "test" if share < config.valid + config.test else "train"


def in_share(document: Document, config: SplitConfig, share: float) -> bool:
    """Return True for a document of the share of documents that is read, drawn as splits are, but apart from them."""
    return _drawn(document, f"share\0{config.seed}\0") < share


def _drawn(document: Document, purpose: str) -> float:
    """Return a number from 0 to 1, by a hash of a document's source and text."""
    key = f"{purpose}{document.source}\0" + "\n".join(document.sentences)
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") / 2**64


class TextStore:
    """A prepared text, read through memory maps."""

    def __init__(self, folder: Path):
        """Open a store. Raises StoreError if it is incomplete, damaged or of another version."""
        self.folder = folder
        self.manifest = text_manifest(folder)
        arrays = {
            name: _map(folder / f"{name}.npy") for name in ("offsets", "words", "characters", "documents", "splits")
        }
        self.offsets, self.words, self.characters = arrays["offsets"], arrays["words"], arrays["characters"]
        self.documents, self.splits = arrays["documents"], arrays["splits"]
        path = folder / "text.txt"
        if not path.exists() or path.stat().st_size != int(self.offsets[-1]) or len(self) != self.manifest["sentences"]:
            raise StoreError(f"{path}: not of the size in its manifest; remove {folder} to prepare it again")
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what another process opens the store with."""
        return TextStore, (self.folder,)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.offsets) - 1

    @property
    def digest(self) -> str:
        """SHA-256 of the text, of its sentences, documents and splits, and of their sizes in words and characters."""
        return str(self.manifest["digest"])

    def verify(self) -> None:
        """Raise StoreError if the text has changed since it was written."""
        path = self.folder / "text.txt"
        if sha256_file(path) != self.manifest["text_digest"]:
            raise StoreError(
                f"{path}: its digest is not the one in its manifest; remove {self.folder} to prepare it again"
            )

    def sentence(self, index: int) -> str:
        """Return one sentence."""
        start, end = int(self.offsets[index]), int(self.offsets[index + 1])
        return self._bytes[start : end - 1].decode()

    def sentences(self, indices: npt.ArrayLike) -> Iterator[str]:
        """Yield sentences in the order of `indices`."""
        chosen = np.asarray(indices, np.int64)
        for part in np.array_split(chosen, max(1, len(chosen) // OFFSETS_AT_A_TIME)):
            for start, end in zip(self.offsets[part].tolist(), self.offsets[part + 1].tolist(), strict=True):
                yield self._bytes[start : end - 1].decode()

    def split_documents(self, split: str) -> npt.NDArray[np.int64]:
        """Return the indices of a split's documents."""
        return np.flatnonzero(self.splits == SPLITS.index(split))

    def split_sentences(self, split: str) -> npt.NDArray[np.int64]:
        """Return the indices of a split's sentences, in the order of the text."""
        of_sentence = np.repeat(self.splits, np.diff(self.documents))
        return np.flatnonzero(of_sentence == SPLITS.index(split))

    @property
    def domains(self) -> list[str]:
        """Names of the domains."""
        return [domain["name"] for domain in self.manifest["domains"]]

    @cached_property
    def _domain_of_sentence(self) -> npt.NDArray[Any]:
        path = self.folder / "domains.npy"
        check_recorded(self.folder, self.manifest, {"domains_digest": file_digest(path)})
        return np.repeat(_map(path), np.diff(self.documents))

    def domains_of(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return the domain of each sentence of `indices`, an index into `domains`. Raises StoreError."""
        return self._domain_of_sentence[indices]

    def units(self, count: str) -> npt.NDArray[Any]:
        """Return the size of each sentence (sentences,) in words, characters or sentences."""
        match count:
            case "words":
                return self.words
            case "characters":
                return self.characters
            case _:
                return np.broadcast_to(np.ones(1, np.uint8), len(self))


def write_text_store(
    folder: Path, documents: Iterable[Document], reference: str, split: SplitConfig, description: dict[str, Any]
) -> None:
    """Write a text store; description: its source. Raises InputError if the train or valid split is empty."""
    offsets, words, characters = array("Q", [0]), array("L"), array("L")
    first, splits, domains = array("Q", [0]), array("B"), array("L")
    text_digest = hashlib.sha256()
    totals = _no_sizes()
    of_domains: dict[str, dict[str, dict[str, int]]] = {}
    codes: dict[str, int] = {}
    with atomic_path(folder / "text.txt") as temporary, temporary.open("wb") as file:
        position = 0
        for document in documents:
            sentences = [sentence for sentence in document.sentences if sentence]
            if not sentences:
                continue
            own = split_of(document, split)
            splits.append(SPLITS.index(own))
            before = len(words)
            for sentence in sentences:
                line = sentence.encode() + b"\n"
                file.write(line)
                text_digest.update(line)
                position += len(line)
                offsets.append(position)
                words.append(count_words(sentence, reference))
                characters.append(count_characters(sentence))
            first.append(len(offsets) - 1)
            domain = of_domains.setdefault(document.source, _no_sizes())
            domains.append(codes.setdefault(document.source, len(codes)))
            sizes = {"documents": 1, "sentences": len(sentences)}
            sizes |= {"words": sum(words[before:]), "characters": sum(characters[before:])}
            for total in (totals[own], domain[own]):
                for unit, size in sizes.items():
                    total[unit] += size
    for name, use in (("train", "training"), ("valid", "validation")):
        if not totals[name]["sentences"]:
            shorter = max(1, (len(offsets) - 1) // ENOUGH_DOCUMENTS)
            advice = "set corpus.split.valid=0.2" if name == "valid" else "lower corpus.split.valid and test"
            if len(offsets) - 1 > len(splits):
                advice = f"cut documents into shorter ones with corpus.document_sentences={shorter}, or {advice}"
            raise InputError(
                f"{description.get('source', folder)}: no document fell into the part for {use}; number of documents: "
                f"{len(splits)}, corpus.split.valid={split.valid:g}, test={split.test:g}. To get one, {advice}."
            )
    digest = text_digest.copy()
    arrays = {"offsets": offsets, "words": words, "characters": characters, "documents": first, "splits": splits}
    for name, values in arrays.items():
        packed = _packed(values)
        digest.update(packed.astype("<u8").tobytes())
        write_array(folder / f"{name}.npy", packed)
    write_array(folder / "domains.npy", _packed(domains))  # not in the digest
    manifest = {
        "version": TEXT_VERSION,
        **description,
        "reference": reference,
        "sentences": len(offsets) - 1,
        "splits": totals,
        "domains": [{"name": name, **sizes} for name, sizes in of_domains.items()],
        "domains_digest": file_digest(folder / "domains.npy"),
        "text_digest": text_digest.hexdigest(),
        "digest": digest.hexdigest(),
    }
    write_json(folder / MANIFEST, manifest)


def _no_sizes() -> dict[str, dict[str, int]]:
    return {name: {"documents": 0, "sentences": 0, "words": 0, "characters": 0} for name in SPLITS}


def _packed(values: "array[int]") -> npt.NDArray[Any]:
    """Return integers in the smallest unsigned type that fits."""
    unpacked = np.frombuffer(values, values.typecode)
    return unpacked.astype(np.min_scalar_type(int(unpacked.max())))


def text_manifest(folder: Path) -> dict[str, Any]:
    """Read manifest.json of a text store (TextManifest). Raises StoreError."""
    return read_manifest(folder, TEXT_VERSION, TextManifest)


def read_manifest(folder: Path, version: int, schema: type[Any]) -> dict[str, Any]:
    """Read manifest.json of a store, checked against a TypedDict. Raises StoreError."""
    remedy = f"remove {folder} to prepare it again"
    return dict(read_json(folder / MANIFEST, schema, StoreError, remedy, version))


@contextmanager
def written_once(folder: Path, last: str = MANIFEST) -> Iterator[bool]:
    """Yield True if the files of a folder must be written, and hold its lock: one process writes them.

    last: the file that is written last.
    """
    if (folder / last).exists():
        yield False
        return
    with only_process(folder.parent / f".{folder.name}.lock", folder, wait=None):
        yield not (folder / last).exists()


def check_recorded(folder: Path, recorded: Mapping[str, Any], actual: Mapping[str, Any]) -> None:
    """Raise StoreError if a value of a store is not the one that its manifest has recorded under the same name."""
    for name, value in actual.items():
        if value != recorded[name]:
            raise StoreError(f"{folder}: its {name} is not the one in its manifest; remove it to prepare it again")


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if it does not exist."""
    return sha256_file(path) if path.exists() else None


def _map(path: Path) -> npt.NDArray[Any]:
    try:
        return np.asarray(np.load(path, mmap_mode="r"))  # a plain view: indexing a memmap object is slow
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); remove {path.parent} to prepare it again") from None
