"""Find the sentences of a text that contain a construction, once per filter.

    store/<corpus>/matches-<digest>/
        sentences.npy       indices of the matching sentences, ascending
        occurrences.npy     (occurrences, 2): sentence and pattern; only if the filter has patterns over trees
        words.npy           (occurrences, nodes): the word of each node of the pattern, -1 after its last node
        manifest.json       written last; contains patterns or expression, and digests of text and annotation

Patterns search all trees of an annotation. Regular expressions search the sentences of the train split. They use the
package `regex`, a superset of Python's `re` that supports a time limit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.annotate.layer import Layer
from corpora.annotate.processes import in_processes
from corpora.config import FilterConfig, RegexFilter
from corpora.constructions.matcher import Matcher, Occurrence
from corpora.kept import Arrays, kept_arrays
from corpora.text import TextStore
from pairscale.errors import ConfigError
from pairscale.files import sha256_json
from pairscale.machine import available_cores
from pairscale.progress import with_progress

BATCH = 4_000  # sentences to search at a time: one part of an annotation
ALONE = 200_000  # for up to this many sentences, one process is faster than several
LINE_SECONDS = 1.0  # time limit for searching one sentence with a regular expression


@dataclass(frozen=True)
class Matches:
    """The sentences that contain a construction, and its occurrences, which are empty for a regular expression."""

    sentences: npt.NDArray[np.int64]  # indices, ascending
    digest: str
    places: npt.NDArray[np.int64]  # (occurrences, 2): sentence and pattern
    words: npt.NDArray[np.int32]  # (occurrences, nodes): word of each node of the pattern, -1 after its last node
    nodes: list[list[str]]  # names of the nodes of each pattern

    def occurrences(self) -> Iterator[tuple[int, int, dict[str, int]]]:
        """Yield the sentence, the pattern and the words by node of each occurrence, in the order of the text."""
        for (sentence, pattern), words in zip(self.places.tolist(), self.words.tolist(), strict=True):
            yield sentence, pattern, dict(zip(self.nodes[pattern], words, strict=False))


def find_matches(text: TextStore, config: FilterConfig | RegexFilter, layer: Layer | None) -> Matches:
    """Return the matches of a filter in a text. If they are not stored, search for them and store them.

    Args:
        text: The text.
        config: The filter.
        layer: The annotation to search; None for a regular expression.

    Raises ConfigError if a regular expression takes too long. Raises StoreError if the text, the annotation or the
    matches are damaged.
    """
    folder = matches_folder(text.folder.parent, config, layer)
    made: dict[str, Any] = {"text": text.digest}
    none = np.empty((0, 2), np.int64)
    if isinstance(config, RegexFilter):
        made["regex"] = config.regex
        arrays, manifest = kept_arrays(folder, made, lambda: (_matching_sentences(text, config), {}))
        return Matches(arrays["sentences"], manifest["digest"], none, none.astype(np.int32), [])
    assert layer is not None, "patterns need an annotation"
    made |= {"layer": layer.digest, "patterns": config.patterns, "without": config.without}
    arrays, manifest = kept_arrays(folder, made, lambda: (_occurrences(text, layer, config), {}))
    names = [[node["RIGHT_ID"] for node in pattern] for pattern in config.patterns]
    return Matches(arrays["sentences"], manifest["digest"], arrays["occurrences"], arrays["words"], names)


def matches_folder(corpus: Path, config: FilterConfig | RegexFilter, layer: Layer | None) -> Path:
    """Return the folder of a filter's matches, store/<corpus>/matches-<digest>. `corpus` is store/<corpus>."""
    what = [config.regex] if isinstance(config, RegexFilter) else [config.patterns, config.without]
    return corpus / f"matches-{sha256_json([*what, layer and layer.digest])[:16]}"


def _matching_sentences(text: TextStore, config: RegexFilter) -> Arrays:
    import regex  # slow to import, and most corpora have no such filter

    text.verify()
    search = regex.compile(config.regex).search
    train = text.split_sentences("train")
    matches = []
    counted = ((1, pair) for pair in zip(train.tolist(), text.sentences(train), strict=True))
    for index, sentence in with_progress(counted, f"searching {config.name}", len(train), "sentences"):
        try:
            if search(sentence, timeout=LINE_SECONDS) is not None:
                matches.append(index)
        except TimeoutError:
            raise ConfigError(
                f"filter.regex={config.regex}: this expression takes more than {LINE_SECONDS:.0f} s for one sentence "
                f"of {len(sentence):,} characters ({text.folder / 'text.txt'}:{index + 1}). Avoid nested repetitions "
                "such as (a+)+."
            ) from None
    return {"sentences": np.array(matches, np.int64)}


def _occurrences(text: TextStore, layer: Layer, config: FilterConfig) -> Arrays:
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
    return {
        "sentences": np.unique(np.array([sentence for sentence, _ in places], np.int64)),
        "occurrences": np.array(places, np.int64).reshape(-1, 2),
        "words": np.array(words, np.int32).reshape(-1, width),
    }


def _search(layer: Layer, config: FilterConfig) -> Callable[[range], list[tuple[int, Occurrence]]]:
    """Return a function that finds the occurrences in a range of sentences, and returns each with its sentence."""
    matcher = Matcher(config)

    def search(batch: range) -> list[tuple[int, Occurrence]]:
        found = zip(batch, map(matcher.occurrences, layer.trees(batch)), strict=True)
        return [(sentence, occurrence) for sentence, occurrences in found for occurrence in occurrences]

    return search
