"""Write and read the text store, which contains a corpus's sentences in UTF-8 and the sizes that sampling needs.

    store/<corpus>/text/
        text.txt            one sentence per line
        offsets.npy         byte offset of each sentence, and of the end of the last
        words.npy           number of reference words of each sentence
        characters.npy      number of characters of each sentence, without white space
        documents.npy       index of each document's first sentence, and the number of sentences
        splits.npy          split of each document, an index into SPLITS
        domains.npy         domain of each document, an index into "domains" of the manifest
        manifest.json       written last

All arrays are memory-mapped.
"""

import hashlib
import mmap
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from corpora.config import SplitConfig
from corpora.kept import MANIFEST, check_recorded, file_digest, read_manifest
from corpora.words import count_characters, count_words
from pairscale.errors import InputError, StoreError
from pairscale.files import atomic_path, sha256_file, write_array, write_json
from pairscale.schema import Count, Digest, Positive

SPLITS = ("train", "valid", "test")
UNITS = ("documents", "sentences", "words", "characters")  # units of the sizes in the manifest
ARRAYS = ("offsets", "words", "characters", "documents", "splits")
TEXT_VERSION = 1
OFFSETS_AT_A_TIME = 100_000  # reading them one by one from their memory map takes longer than reading the text
ENOUGH_DOCUMENTS = 500  # with this many documents, a split with a share of .02 is almost certainly not empty


@dataclass(slots=True)
class Document:
    """Sentences from one source that belong together."""

    source: str  # name of the domain
    sentences: list[str]  # without line breaks
    split: str | None = None  # "train", "valid" or "test" if the source publishes its splits, otherwise None

    @property
    def size(self) -> int:
        """The size of the document's lines in UTF-8, in bytes."""
        return len("\n".join(self.sentences).encode()) + 1


class _Splits(TypedDict):
    train: dict[str, Count]
    valid: dict[str, Count]
    test: dict[str, Count]


class _Domain(_Splits):
    name: str


# The schema of the part of manifest.json that is read back. "corpus.path" maps names of local files to their digests
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
    """Return a document's published split or, if it has none, a split that depends only on its source and text."""
    if document.split is not None:
        return document.split
    share = _drawn(document, f"{config.seed}\0")
    if share < config.valid:
        return "valid"
    return "test" if share < config.valid + config.test else "train"


def in_share(document: Document, config: SplitConfig, share: float) -> bool:
    """Return True if a document belongs to the share that is read. The result is independent of its split."""
    return _drawn(document, f"share\0{config.seed}\0") < share


def _drawn(document: Document, purpose: str) -> float:
    """Hash a document's source and text to a number from 0 to 1."""
    key = f"{purpose}{document.source}\0" + "\n".join(document.sentences)
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") / 2**64


class TextStore:
    """A prepared text, read through memory maps."""

    def __init__(self, folder: Path):
        """Open a store. Raises StoreError if it is incomplete or damaged, or has another version."""
        self.folder = folder
        self.manifest = text_manifest(folder)
        self.offsets, self.words, self.characters, self.documents, self.splits = (
            _map(folder / f"{name}.npy") for name in ARRAYS
        )
        path = folder / "text.txt"
        if not path.exists() or path.stat().st_size != int(self.offsets[-1]) or len(self) != self.manifest["sentences"]:
            raise StoreError(
                f"{path}: this file is missing, or its size differs from its manifest. Remove {folder} to prepare it "
                "again."
            )
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class and the arguments with which another process opens the store."""
        return TextStore, (self.folder,)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.offsets) - 1

    @property
    def digest(self) -> str:
        """The SHA-256 of the text and of the arrays ARRAYS."""
        return str(self.manifest["digest"])

    def verify(self) -> None:
        """Raise StoreError if the text has changed since it was written."""
        path = self.folder / "text.txt"
        if sha256_file(path) != self.manifest["text_digest"]:
            raise StoreError(
                f"{path}: this file has changed since it was written (its digest differs from its manifest). Remove "
                f"{self.folder} to prepare it again."
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
        """The names of the domains."""
        return [domain["name"] for domain in self.manifest["domains"]]

    @cached_property
    def _domain_of_sentence(self) -> npt.NDArray[Any]:
        path = self.folder / "domains.npy"
        check_recorded(self.folder, self.manifest, {"domains_digest": file_digest(path)})
        return np.repeat(_map(path), np.diff(self.documents))

    def domains_of(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return each sentence's domain as an index into `domains`. Raises StoreError if domains.npy is damaged."""
        return self._domain_of_sentence[indices]

    def units(self, count: str) -> npt.NDArray[Any]:
        """Return the size of each sentence in words, characters or sentences, as an array of shape (sentences,)."""
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
    """Write a text store. Raises InputError if the train or valid split is empty.

    Args:
        folder: The folder to write.
        documents: The documents of the text, in order.
        reference: The reference tokenizer, which defines the words that are counted.
        split: How to assign documents without a published split.
        description: What the text was made from; recorded in the manifest.
    """
    offsets, words, characters = array("Q", [0]), array("L"), array("L")
    first, splits, domains = array("Q", [0]), array("B"), array("L")
    text_digest = hashlib.sha256()
    codes: dict[str, int] = {}  # number of each domain
    with atomic_path(folder / "text.txt") as temporary, temporary.open("wb") as file:
        for document in documents:
            sentences = [sentence for sentence in document.sentences if sentence]
            if not sentences:
                continue
            for sentence in sentences:
                line = sentence.encode() + b"\n"
                file.write(line)
                text_digest.update(line)
                offsets.append(offsets[-1] + len(line))
                words.append(count_words(sentence, reference))
                characters.append(count_characters(sentence))
            first.append(len(offsets) - 1)
            splits.append(SPLITS.index(split_of(document, split)))
            domains.append(codes.setdefault(document.source, len(codes)))
    for name in ("train", "valid"):
        if SPLITS.index(name) not in splits:
            raise _empty_split(name, str(description.get("source", folder)), split, len(splits), len(words))
    digest = text_digest.copy()
    arrays = dict(zip(ARRAYS, map(_packed, (offsets, words, characters, first, splits)), strict=True))
    for name, packed in arrays.items():
        digest.update(packed.astype("<u8").tobytes())
        write_array(folder / f"{name}.npy", packed)
    write_array(folder / "domains.npy", _packed(domains))  # not part of the digest
    sizes = _sizes(arrays, np.array(domains, np.int64), list(codes))
    manifest = {
        "version": TEXT_VERSION,
        **description,
        "reference": reference,
        "sentences": len(words),
        "splits": {name: {unit: sum(one[name][unit] for one in sizes) for unit in UNITS} for name in SPLITS},
        "domains": sizes,
        "domains_digest": file_digest(folder / "domains.npy"),
        "text_digest": text_digest.hexdigest(),
        "digest": digest.hexdigest(),
    }
    write_json(folder / MANIFEST, manifest)


def _sizes(arrays: Mapping[str, npt.NDArray[Any]], domains: npt.NDArray[Any], names: list[str]) -> list[dict[str, Any]]:
    """Return each domain's sizes by split and unit. `domains` (documents,) contains indices into `names`."""
    first = arrays["documents"].astype(np.int64)
    of_documents = [np.ones(len(domains)), np.diff(first)]
    of_documents += [np.add.reduceat(arrays[unit].astype(np.int64), first[:-1]) for unit in UNITS[2:]]
    parts = domains * len(SPLITS) + arrays["splits"]
    totals = [np.bincount(parts, sizes, len(names) * len(SPLITS)).astype(int).tolist() for sizes in of_documents]
    by_part = iter([dict(zip(UNITS, sizes, strict=True)) for sizes in zip(*totals, strict=True)])
    return [{"name": name} | {split: next(by_part) for split in SPLITS} for name in names]


def _empty_split(name: str, source: str, split: SplitConfig, documents: int, sentences: int) -> InputError:
    """Return the error for a text with no documents in the split `name`."""
    use = {"train": "training", "valid": "validation"}[name]
    advice = "set corpus.split.valid=0.2" if name == "valid" else "lower corpus.split.valid and corpus.split.test"
    if sentences > documents:
        shorter = max(1, sentences // ENOUGH_DOCUMENTS)
        joined = ", or" if sentences >= ENOUGH_DOCUMENTS else " and"
        advice = f"cut documents into shorter ones (corpus.document_sentences={shorter}){joined} {advice}"
    return InputError(
        f"{source}: this text has too few documents ({documents}), so none was assigned to {use} "
        f"(corpus.split.valid={split.valid:g}, corpus.split.test={split.test:g}). To solve this, {advice}."
    )


def _packed(values: "array[int]") -> npt.NDArray[Any]:
    """Return integers in the smallest unsigned type that fits."""
    unpacked = np.frombuffer(values, values.typecode)
    return unpacked.astype(np.min_scalar_type(int(unpacked.max())))


def text_manifest(folder: Path) -> dict[str, Any]:
    """Read manifest.json of a text store (a TextManifest). Raises StoreError if it is missing or damaged."""
    return read_manifest(folder, TEXT_VERSION, TextManifest)


def _map(path: Path) -> npt.NDArray[Any]:
    try:
        return np.asarray(np.load(path, mmap_mode="r"))  # a plain view, because indexing a memmap object is slow
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path}: this file can't be read ({error}). Remove {path.parent} to prepare it again."
        ) from None
