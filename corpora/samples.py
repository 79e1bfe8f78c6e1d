"""Samples: a random part of the train split, cut to exactly the asked size.

Reproducible from the text's digest, unit, count, size, seed and nesting alone: a seeded permutation of the units,
without replacement, kept in permuted order, its last unit cut.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.config import SampleConfig
from corpora.errors import ConfigError
from corpora.seeds import derived_seed
from corpora.text import TextStore
from corpora.words import word_spans


@dataclass(frozen=True)
class Sample:
    """Sentences of the train split, in the order of training."""

    indices: npt.NDArray[np.int64]  # sentences, the cut one left out
    cut: str | None  # what is kept of the last sentence, when the size falls within it
    words: int
    characters: int
    digest: str
    available: int  # size of the train split, in the unit of `count`
    share: float  # of the train split; the expected overlap of two independent samples of this size

    @property
    def sentences(self) -> int:
        return len(self.indices) + (self.cut is not None)


def draw_sample(text: TextStore, config: SampleConfig, seed: int) -> Sample:
    """Draw the sample that `config` describes, for the run's `seed`.

    Raises ConfigError when the train split is smaller than the size.
    """
    own = derived_seed(config.seed, seed, "sample")
    # Nested samples share one permutation over all sizes, independent ones have one each.
    generator = np.random.default_rng([own] if config.nested else [own, config.number])
    if config.unit == "document":
        order = _sentences_of(text, generator.permutation(text.split_documents("train")))
    else:
        order = generator.permutation(text.split_sentences("train"))
    sizes = np.asarray(text.units(config.count))[order].astype(np.int64)
    ends = np.cumsum(sizes)
    available = int(ends[-1])
    if config.number > available:
        raise ConfigError(
            f"sample.size={config.size}: more {config.count} than the train split of {text.folder.parent.name} holds "
            f"({available:,})"
        )
    whole = int(np.searchsorted(ends, config.number, side="right"))
    left = config.number - (int(ends[whole - 1]) if whole else 0)
    cut = None
    if left:
        cut = _beginning(text.sentence(int(order[whole])), left, config.count, text.manifest["reference"])
    indices = order[:whole]
    words, characters = int(text.words[indices].sum()), int(text.characters[indices].sum())
    if cut is not None:
        spans = word_spans(cut, text.manifest["reference"])
        words += left if config.count == "words" else len(spans)
        characters += len("".join(cut.split()))
    digest = hashlib.sha256(indices.astype("<i8").tobytes() + (cut or "").encode() + text.digest.encode())
    return Sample(indices, cut, words, characters, digest.hexdigest(), available, config.number / available)


def _sentences_of(text: TextStore, documents: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sentences of documents, each document's in its order."""
    first = np.asarray(text.documents)
    return ranges(first[documents].astype(np.int64), first[documents + 1].astype(np.int64))


def ranges(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The whole numbers of [start, end) for each pair, end to end."""
    lengths = ends - starts
    steps = np.arange(int(lengths.sum()), dtype=np.int64)
    return steps + np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)


def _beginning(sentence: str, size: int, count: str, reference: str) -> str:
    """The first `size` words or characters of a sentence."""
    if count == "words":
        return sentence[: word_spans(sentence, reference)[size - 1][1]]
    visible = [at for at, character in enumerate(sentence) if not character.isspace()]
    return sentence[: visible[size - 1] + 1]


def describe(sample: Sample) -> dict[str, Any]:
    """What the run's manifest says of its sample."""
    return {
        "sentences": sample.sentences,
        "words": sample.words,
        "characters": sample.characters,
        "digest": sample.digest,
        "available": sample.available,
        "overlap": sample.share,
    }
