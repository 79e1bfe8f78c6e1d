"""Filters: the sentences of a train split that match a pattern, computed once for each corpus and pattern.

    store/<corpus>/filter-<digest>/
        matches.npy         one boolean per sentence of the text; false outside the train split
        manifest.json       written last: pattern, digests, numbers of matching sentences and words

The text stays whole: a sample skips matching sentences (corpora/samples.py) and has as many words as one without a
filter. The unfiltered sample is also the control of filtered-corpus studies (Patil et al. 2024; Misra and Mahowald
2024), which remove as much text at random: sampling does that anyway.

Patterns are those of the `regex` package, a superset of Python's `re` with a time limit.
"""

from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import regex

from corpora.text import TextStore, check_recorded, file_digest, read_manifest
from pairscale.errors import ConfigError
from pairscale.files import sha256_file, sha256_json, write_array, write_json
from pairscale.progress import with_progress
from pairscale.schema import Count, Digest, Positive

FILTER_VERSION = 1
LINE_SECONDS = 1.0  # time limit of a pattern for one sentence
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
    """The sentences of a text that match a pattern: `matches`, booleans (sentences,)."""

    def __init__(self, folder: Path, text: TextStore, pattern: str):
        """Open a filter. Raises StoreError if it is damaged or belongs to another text or pattern."""
        self.manifest = filter_manifest(folder)
        path = folder / "matches.npy"
        check_recorded(folder, self.manifest, {"text": text.digest, "pattern": pattern, "digest": file_digest(path)})
        self.matches: npt.NDArray[np.bool_] = np.load(path)

    def describe(self) -> dict[str, Any]:
        """Return the filter's entry in a run's manifest."""
        return {name: self.manifest[name] for name in ("pattern", "sentences", "words", "digest")}


def filter_folder(corpus: Path, pattern: str) -> Path:
    """Return store/<corpus>/filter-<digest of the pattern>; `corpus` is the folder store/<corpus>."""
    return corpus / f"filter-{sha256_json(pattern)[:16]}"


def filter_manifest(folder: Path) -> dict[str, Any]:
    """Read manifest.json of a filter (FilterManifest). Raises StoreError."""
    return read_manifest(folder, FILTER_VERSION, FilterManifest)


def write_filter(folder: Path, text: TextStore, pattern: str) -> None:
    """Search each sentence of the train split for a pattern and write the matches.

    Raises ConfigError if it takes over LINE_SECONDS for a sentence or matches none, StoreError for damaged text.
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
                    f"{len(sentence):,} characters ({text.folder / 'text.txt'}:{index + 1}); avoid nested "
                    "repetitions such as (a+)+"
                ) from None
    if not matches.any():
        raise ConfigError(
            f"corpus.filter={pattern}: matches no sentence of the train split of {text.folder.parent.name}; quote a "
            "pattern on the command line as in 'corpus.filter=\"\\bever\\b\"'"
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
