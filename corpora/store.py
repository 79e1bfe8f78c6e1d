"""Token stores: the ids of every sentence of a corpus under one tokenizer, in flat memory-mapped arrays.

store/<corpus>/<tokenizer>/
    tokens.bin       ids, each sentence followed by <eos>; the smallest unsigned type that fits
    offsets.npy      first id of each sentence, and the end of the last
    tokenizer/       the fitted tokenizer
    fitted.json      written after it: the text that it was fitted on, and how many tokens a word it makes
    manifest.json    written last: sizes, digests of text, tokenizer and tokens

Where all samples were small parts of the text there are only tokenizer/ and fitted.json: each was encoded by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from corpora.samples import ranges
from corpora.text import TextStore, read_manifest
from corpora.tokenizers import UNK, Tokenizer, load_tokenizer, tokenizer_digest
from pairscale.errors import StoreError
from pairscale.files import atomic_path, sha256_file, write_array, write_json
from pairscale.progress import with_progress
from pairscale.schema import Digest, NonNegative, Positive, read_json

STORE_VERSION = 1
BATCH = 20_000  # sentences that are encoded at a time
FITTED = "fitted.json"
FITTED_VERSION = 1
COUNTED = 2_000  # sentences from which tokens a word are known where the whole text is not encoded


class Fitted(TypedDict):
    """Schema of fitted.json."""

    version: int
    text: Digest
    tokenizer: Digest
    vocabulary: Positive
    tokens_per_word: NonNegative


def dtype_of(tokenizer: Tokenizer) -> np.dtype[Any]:
    """The smallest unsigned type that holds a tokenizer's ids."""
    return np.min_scalar_type(len(tokenizer) - 1)


def write_fitted(folder: Path, text: TextStore, tokenizer: Tokenizer) -> None:
    """Write fitted.json beside a tokenizer that is saved in `folder` and was fitted on the train split of `text`.

    Raises StoreError for a text without a word.
    """
    _check_words(text)
    train = text.split_sentences("train")
    some = train[:: max(1, len(train) // COUNTED)]
    ids, _ = tokenizer.encode_batch(list(text.sentences(some)))
    fitted = Fitted(
        version=FITTED_VERSION,
        text=text.digest,
        tokenizer=tokenizer_digest(folder / "tokenizer"),
        vocabulary=len(tokenizer),
        tokens_per_word=(len(ids) - len(some)) / int(text.words[some].sum()),
    )
    write_json(folder / FITTED, fitted)


def fitted_manifest(folder: Path) -> Fitted:
    """fitted.json of a folder. Raises StoreError in one line."""
    return read_json(folder / FITTED, Fitted, StoreError, f"remove {folder} to fit it again", FITTED_VERSION)


def check_fitted(folder: Path, text: TextStore) -> None:
    """Raise StoreError unless the tokenizer in `folder` is the one that was fitted on `text`."""
    fitted = fitted_manifest(folder)
    for name, digest in (("text", text.digest), ("tokenizer", tokenizer_digest(folder / "tokenizer"))):
        if fitted[name] != digest:  # type: ignore[literal-required]
            raise StoreError(f"{folder}: the digest of its {name} is not that of {FITTED}; remove it to fit it again")


class _Digests(TypedDict):
    text: Digest
    tokenizer: Digest
    tokens: Digest
    offsets: Digest


class StoreManifest(TypedDict):
    """Schema of manifest.json: what is read back of it."""

    digests: _Digests
    dtype: Literal["uint8", "uint16", "uint32"]
    tokens: Positive
    vocabulary: Positive
    tokens_per_word: NonNegative


def store_manifest(folder: Path) -> dict[str, Any]:
    """manifest.json of a token store. Raises StoreError in one line."""
    return read_manifest(folder, STORE_VERSION, StoreManifest)


class TokenStore:
    """The ids of a corpus."""

    def __init__(self, folder: Path, text: TextStore):
        """Open a store. Raises StoreError in one line when it is damaged or belongs to another text or tokenizer."""
        self.folder = folder
        self.manifest = store_manifest(folder)
        self.tokenizer = load_tokenizer(folder / "tokenizer")
        tokens = folder / "tokens.bin"
        found = {
            "text": text.digest,
            "tokenizer": tokenizer_digest(folder / "tokenizer"),
            "tokens": sha256_file(tokens) if tokens.exists() else None,
            "offsets": sha256_file(folder / "offsets.npy") if (folder / "offsets.npy").exists() else None,
        }
        for name, digest in found.items():
            if digest != self.manifest["digests"][name]:
                raise StoreError(
                    f"{folder}: the digest of its {name} is not the one in its manifest; remove it to prepare it again"
                )
        self.tokens: npt.NDArray[Any] = np.memmap(tokens, self.manifest["dtype"], "r")
        self.offsets: npt.NDArray[Any] = np.load(folder / "offsets.npy", mmap_mode="r")

    def gather(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Ids of sentences, each followed by `<eos>`, end to end, in the order of `indices`."""
        starts, ends = self.offsets[indices].astype(np.int64), self.offsets[indices + 1].astype(np.int64)
        result = np.empty(int((ends - starts).sum()), self.tokens.dtype)
        at = 0
        for part in np.array_split(np.arange(len(indices)), max(1, len(indices) // 100_000)):
            found = self.tokens[ranges(starts[part], ends[part])]
            result[at : at + len(found)] = found
            at += len(found)
        return result


def _check_words(text: TextStore) -> None:
    if not len(text) or not text.words.any():
        raise StoreError(f"{text.folder}: holds no word of text, so there is nothing to encode; prepare it again")


def write_token_store(folder: Path, text: TextStore, tokenizer: Tokenizer, description: dict[str, Any]) -> None:
    """Encode every sentence of a text by the tokenizer saved beside; `description` goes into the manifest.

    Raises StoreError for a text without a word.
    """
    _check_words(text)
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
        "digests": {
            "text": text.digest,
            "tokenizer": tokenizer_digest(folder / "tokenizer"),
            "tokens": sha256_file(folder / "tokens.bin"),
            "offsets": sha256_file(folder / "offsets.npy"),
        },
    }
    write_json(folder / "manifest.json", manifest)


def _encoded(text: TextStore, tokenizer: Tokenizer) -> Iterator[tuple[int, Any]]:
    for start in range(0, len(text), BATCH):
        end = min(len(text), start + BATCH)
        yield end - start, tokenizer.encode_batch(list(text.sentences(range(start, end))))
