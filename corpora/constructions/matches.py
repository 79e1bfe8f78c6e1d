"""Matches: the sentences of a text that have a construction, searched once for each filter and layer.

    store/<corpus>/matches-<digest>/
        sentences.npy       sentences of the text that match, ascending
        occurrences.npy     (occurrences, 2): sentence and pattern
        words.npy           (occurrences, nodes): the word of each node of the pattern, -1 beyond its last
        manifest.json       written last: patterns, digests of text and layer

The digest of the folder's name is of the patterns, `without`, and the layer.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from corpora.annotate.layer import Layer
from corpora.annotate.processes import in_processes
from corpora.constructions.config import FilterConfig
from corpora.constructions.matcher import Matcher, Occurrence
from corpora.text import TextStore, check_recorded, file_digest, read_manifest, written_once
from pairscale.files import sha256_json, write_array, write_json
from pairscale.machine import available_cores
from pairscale.progress import with_progress
from pairscale.schema import Digest

MATCHES_VERSION = 1
ARRAYS = ("sentences", "occurrences", "words")
BATCH = 4_000  # sentences, those of a part of a layer
ALONE = 200_000  # sentences that one process searches sooner than others start


class MatchesManifest(TypedDict):
    """Schema of manifest.json."""

    patterns: list[Any]
    without: list[Any]
    text: Digest
    layer: Digest
    digest: Digest


class Matches:
    """The occurrences of a construction in a text. sentences: those of the text that have one, ascending."""

    def __init__(self, folder: Path, text: TextStore, layer: Layer):
        """Open matches. Raises StoreError if they are damaged or of another text or layer."""
        self.folder = folder
        self.manifest: dict[str, Any] = read_manifest(folder, MATCHES_VERSION, MatchesManifest)
        recorded = {"text": text.digest, "layer": layer.digest, "digest": _digest(folder)}
        check_recorded(folder, self.manifest, recorded)
        self.sentences: npt.NDArray[np.int64] = np.load(folder / "sentences.npy")

    @property
    def digest(self) -> str:
        """SHA-256 of the arrays."""
        return str(self.manifest["digest"])

    @property
    def anchored(self) -> npt.NDArray[np.int64]:
        """The sentence of each occurrence (occurrences,)."""
        return np.asarray(np.load(self.folder / "occurrences.npy")[:, 0])

    def occurrences(self) -> Iterator[tuple[int, int, dict[str, int]]]:
        """Yield sentence, index of the pattern, and the words of its nodes by their names, in the order of the text."""
        names = [[node["RIGHT_ID"] for node in pattern] for pattern in self.manifest["patterns"]]
        places = np.load(self.folder / "occurrences.npy").tolist()
        words = np.load(self.folder / "words.npy").tolist()
        for (sentence, pattern), of_nodes in zip(places, words, strict=True):
            yield sentence, pattern, dict(zip(names[pattern], of_nodes, strict=False))


def find_matches(corpus: Path, text: TextStore, layer: Layer, config: FilterConfig) -> Matches:
    """Return the matches of a filter in a layer of the text in `corpus` (store/<corpus>), searched if they are missing.

    Raises ConfigError for a regular expression that takes too long, StoreError for damaged matches or a damaged layer.
    """
    folder = corpus / f"matches-{sha256_json([config.patterns, config.without, layer.digest])[:16]}"
    with written_once(folder) as missing:
        if missing:
            _write_matches(folder, text, layer, config)
    return Matches(folder, text, layer)


def _write_matches(folder: Path, text: TextStore, layer: Layer, config: FilterConfig) -> None:
    places: list[tuple[int, int]] = []
    words: list[list[int]] = []
    width = max(map(len, config.patterns))
    batches = [range(start, min(start + BATCH, len(text))) for start in range(0, len(text), BATCH)]
    found = in_processes(_search, (layer, config), batches, available_cores() if len(text) > ALONE else 1)
    steps = zip(map(len, batches), found, strict=True)
    for occurrences in with_progress(steps, f"searching {config.name}", len(text), "sentences"):
        for sentence, occurrence in occurrences:
            places.append((sentence, occurrence.pattern))
            words.append([*occurrence.words.values(), *[-1] * (width - len(occurrence.words))])
    sentences = np.unique(np.array([sentence for sentence, _ in places], np.int64))
    write_array(folder / "sentences.npy", sentences)
    write_array(folder / "occurrences.npy", np.array(places, np.int64).reshape(-1, 2))
    write_array(folder / "words.npy", np.array(words, np.int32).reshape(-1, width))
    manifest = {
        "version": MATCHES_VERSION,
        "patterns": config.patterns,
        "without": config.without,
        "text": text.digest,
        "layer": layer.digest,
        "digest": _digest(folder),
    }
    write_json(folder / "manifest.json", manifest)


def _search(layer: Layer, config: FilterConfig) -> Callable[[range], list[tuple[int, Occurrence]]]:
    """Return a function from sentences to their occurrences, each with its sentence."""
    matcher = Matcher(config)

    def search(batch: range) -> list[tuple[int, Occurrence]]:
        found = zip(batch, map(matcher.occurrences, layer.trees(batch)), strict=True)
        return [(sentence, occurrence) for sentence, occurrences in found for occurrence in occurrences]

    return search


def _digest(folder: Path) -> str:
    return sha256_json([file_digest(folder / f"{name}.npy") for name in ARRAYS])
