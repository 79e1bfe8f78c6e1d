"""Filtered corpora: which sentences of the train split match a pattern, found once for each corpus and pattern.

    store/<corpus>/filter-<digest>/
        matches.npy         one boolean for each sentence of the text; false outside the train split
        manifest.json       written last: pattern, digests, and how much matches

The text stays whole: a sample passes over what matches (corpora/samples.py), and so holds as many words as one without
a filter. That one is also what filtered-corpus studies compare with (Patil et al. 2024; Misra and Mahowald 2024): they
take as much text out at random, which sampling does anyway.

Patterns are those of the `regex` package, which takes all that Python's `re` does, and which can give up in time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import regex

from corpora.text import TextStore, read_manifest
from pairscale.errors import ConfigError, StoreError
from pairscale.files import sha256_file, write_array, write_json
from pairscale.progress import with_progress
from pairscale.schema import Count, Digest, Positive

FILTER_VERSION = 1
LINE_SECONDS = 1.0  # that a pattern may take for one sentence
BATCH = 1_000


class FilterManifest(TypedDict):
    """Schema of manifest.json."""

    pattern: str
    text: Digest
    digest: Digest
    sentences: Count
    words: Count
    of_sentences: Positive
    of_words: Positive


class Filter:
    """The sentences of a text that match a pattern. `sentences` and `words` of the train split, of `of_words`."""

    def __init__(self, folder: Path, text: TextStore, pattern: str):
        """Open what `write_filter` wrote. Raises StoreError in one line where it is damaged or of another text."""
        self.manifest = filter_manifest(folder)
        path = folder / "matches.npy"
        found = {"text": text.digest, "pattern": pattern, "digest": sha256_file(path) if path.exists() else None}
        for name, value in found.items():
            if value != self.manifest[name]:
                raise StoreError(f"{folder}: its {name} is not the one in its manifest; remove it to prepare it again")
        self.pattern = pattern
        self.matches: npt.NDArray[np.bool_] = np.load(path)

    def describe(self) -> dict[str, Any]:
        """What a run's manifest says of it."""
        return {name: self.manifest[name] for name in ("pattern", "sentences", "words", "digest")}


def filter_manifest(folder: Path) -> dict[str, Any]:
    """manifest.json of a filter. Raises StoreError in one line."""
    return read_manifest(folder, FILTER_VERSION, FilterManifest)


def write_filter(folder: Path, text: TextStore, pattern: str) -> None:
    """Look for a pattern in each sentence of the train split.

    Raises ConfigError where it takes longer than LINE_SECONDS for a sentence or matches none, and StoreError for a
    damaged text.
    """
    text.verify()
    search = regex.compile(pattern).search
    train = text.split_sentences("train")
    matches = np.zeros(len(text), np.bool_)
    parts = np.array_split(train, max(1, len(train) // BATCH))
    for part in with_progress(((len(part), part) for part in parts), "filtering", len(train), "sentences"):
        for index in part.tolist():
            sentence = text.sentence(index)
            try:
                matches[index] = search(sentence, timeout=LINE_SECONDS) is not None
            except TimeoutError:
                raise ConfigError(
                    f"corpus.filter={pattern}: takes more than {LINE_SECONDS:.0f} s for one sentence of "
                    f"{len(sentence):,} characters ({text.folder / 'text.txt'}:{index + 1}); avoid repetitions of "
                    "repetitions, such as (a+)+"
                ) from None
    if not matches.any():
        raise ConfigError(
            f"corpus.filter={pattern}: matches no sentence of the train split of {text.folder.parent.name}; it is "
            "taken as it stands here, as on the command line in 'corpus.filter=\"\\bever\\b\"'"
        )
    write_array(folder / "matches.npy", matches)
    manifest = {
        "version": FILTER_VERSION,
        "pattern": pattern,
        "text": text.digest,
        "digest": sha256_file(folder / "matches.npy"),
        "sentences": int(matches.sum()),
        "words": int(text.words[matches].sum()),
        "of_sentences": len(train),
        "of_words": text.manifest["splits"]["train"]["words"],
        "regex": regex.__version__,
    }
    write_json(folder / "manifest.json", manifest)
