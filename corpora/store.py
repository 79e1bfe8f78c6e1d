"""Write and read token stores, which contain a corpus's token ids from one tokenizer in flat memory-mapped arrays.

store/<corpus>/<tokenizer>/
    tokens.bin       ids, each sentence followed by <eos>, in the smallest unsigned type that fits
    offsets.npy      index of each sentence's first id, and the number of ids
    tokenizer/       the fitted tokenizer
    manifest.json    written last: sizes, digests of text, tokenizer and tokens

As long as all samples are small parts of the text, only tokenizer/ exists, and each sample is encoded separately.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from corpora.kept import check_recorded, file_digest, read_manifest
from corpora.text import TextStore
from corpora.tokenizers import UNK, Tokenizer, tokenizer_digest
from pairscale.errors import StoreError
from pairscale.files import atomic_path, write_array, write_json
from pairscale.progress import with_progress
from pairscale.schema import Digest, NonNegative, Positive

STORE_VERSION = 1
BATCH = 20_000  # sentences to encode at a time
GATHERED = 100_000  # sentences to gather at a time
COUNTED = 2_000  # number of sentences used to estimate the tokens per word before the text is encoded


class StoreManifest(TypedDict):
    """The schema of the part of manifest.json that is read back."""

    digests: dict[str, Digest]  # digests of text, tokenizer, tokens and offsets
    dtype: Literal["uint8", "uint16", "uint32"]
    tokens: Positive
    vocabulary: Positive
    tokens_per_word: NonNegative


def store_manifest(folder: Path) -> dict[str, Any]:
    """Read manifest.json of a token store (a StoreManifest). Raises StoreError if it is missing or damaged."""
    return read_manifest(folder, STORE_VERSION, StoreManifest)


def dtype_of(tokenizer: Tokenizer) -> np.dtype[Any]:
    """Return the smallest unsigned type that fits a tokenizer's ids."""
    return np.min_scalar_type(len(tokenizer) - 1)


def estimated_tokens_per_word(text: TextStore, tokenizer: Tokenizer) -> float:
    """Estimate how many tokens per word a tokenizer produces, from about COUNTED sentences of the train split."""
    train = text.split_sentences("train")
    subset = train[:: max(1, len(train) // COUNTED)]
    ids, _ = tokenizer.encode_batch(list(text.sentences(subset)))
    return (len(ids) - len(subset)) / max(1, int(text.words[subset].sum()))


class TokenStore:
    """The ids of all sentences of a corpus."""

    def __init__(self, folder: Path, text: TextStore):
        """Open a store. Raises StoreError if it is damaged or belongs to another text or tokenizer."""
        self.folder = folder
        self.manifest = store_manifest(folder)
        check_recorded(folder, self.manifest["digests"], _digests(folder, text))
        self.tokens: npt.NDArray[Any] = np.memmap(folder / "tokens.bin", self.manifest["dtype"], "r")
        self.offsets: npt.NDArray[Any] = np.load(folder / "offsets.npy", mmap_mode="r")

    def gather(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return the concatenated ids of sentences, each followed by `<eos>`, in the order of `indices`."""
        starts, ends = self.offsets[indices].astype(np.int64), self.offsets[indices + 1].astype(np.int64)
        result = np.empty(int((ends - starts).sum()), self.tokens.dtype)
        position = 0
        for part in np.array_split(np.arange(len(indices)), max(1, len(indices) // GATHERED)):
            ids = self.tokens[ranges(starts[part], ends[part])]
            result[position : position + len(ids)] = ids
            position += len(ids)
        return result


def ranges(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the integers of each range [start, end), concatenated."""
    lengths = ends - starts
    steps = np.arange(int(lengths.sum()), dtype=np.int64)
    return steps + np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)


def _digests(folder: Path, text: TextStore) -> dict[str, str | None]:
    return {
        "text": text.digest,
        "tokenizer": tokenizer_digest(folder / "tokenizer"),
        "tokens": file_digest(folder / "tokens.bin"),
        "offsets": file_digest(folder / "offsets.npy"),
    }


def write_token_store(folder: Path, text: TextStore, tokenizer: Tokenizer, description: dict[str, Any]) -> None:
    """Encode a text with `tokenizer`, which is saved in `folder`, and write the ids there.

    The manifest also records `description`. Raises StoreError if the text has no words.
    """
    if not len(text) or not text.words.any():
        raise StoreError(f"{text.folder}: this text has no words. Remove the folder to prepare it again.")
    dtype = dtype_of(tokenizer)
    lengths, unknown = [], 0
    with atomic_path(folder / "tokens.bin") as temporary, temporary.open("wb") as file:
        for ids, sizes in with_progress(
            _encoded(text, tokenizer), f"encoding {folder.parent.name}", len(text), "sentences"
        ):
            file.write(ids.astype(dtype).data)
            lengths.append(sizes)
            unknown += int((ids == UNK).sum())
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    write_array(folder / "offsets.npy", offsets.astype(np.min_scalar_type(int(offsets[-1]))))
    manifest = {
        "version": STORE_VERSION,
        **description,
        "vocabulary": len(tokenizer),
        "dtype": dtype.name,
        "tokens": int(offsets[-1]),
        "tokens_per_word": (int(offsets[-1]) - len(text)) / int(text.words.sum()),
        "unknown": unknown,
        "digests": _digests(folder, text),
    }
    write_json(folder / "manifest.json", manifest)


def _encoded(text: TextStore, tokenizer: Tokenizer) -> Iterator[tuple[int, Any]]:
    for start in range(0, len(text), BATCH):
        end = min(len(text), start + BATCH)
        yield end - start, tokenizer.encode_batch(list(text.sentences(range(start, end))))
