"""Samples: a random part of the train split, cut to exactly the asked size.

Reproducible from the text's digest, unit, count, size, seed, nesting and filter alone: a seeded permutation of the
units, without replacement, kept in permuted order, its last unit cut. A filter changes nothing but that the sentences
which match it are passed over, within documents too: with it and without, samples of a seed share the rest of their
text, in the same order.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.config import SampleConfig
from corpora.text import TextStore
from corpora.tokenizers import Tokenizer
from corpora.words import count_characters, word_spans
from pairscale.errors import ConfigError
from pairscale.seeds import derived_seed, permutation


@dataclass(frozen=True)
class Sample:
    """Sentences of the train split, in the order of training."""

    indices: npt.NDArray[np.int64]  # sentences, the cut one left out
    cut: tuple[int, int] | None  # the last sentence and how many of its characters are kept, if the size ends in it
    words: int
    characters: int
    digest: str
    available: int  # size of the train split, in the unit of `count`
    share: float  # of the train split; the expected overlap of two independent samples of this size
    passed_sentences: int = 0  # that match the filter, and would have come before the sample's end
    passed_words: int = 0

    @property
    def sentences(self) -> int:
        return len(self.indices) + (self.cut is not None)


def check_available(config: SampleConfig, corpus: str, available: int, filtered: bool = False) -> None:
    """Raise ConfigError where a train split that holds `available` units is smaller than the sample."""
    if config.number > available:
        beside = " beside the sentences that match corpus.filter" if filtered else ""
        raise ConfigError(
            f"sample.size={config.size}: more {config.count} than the train split of {corpus} holds{beside} "
            f"({available:,})"
        )


def draw_sample(
    text: TextStore, config: SampleConfig, seed: int, filtered: npt.NDArray[np.bool_] | None = None
) -> Sample:
    """Draw the sample that `config` describes, for the run's `seed`; `filtered` (sentences,) are passed over.

    Raises ConfigError when the train split is smaller than the size.
    """
    own = derived_seed(config.seed, seed, "sample")
    # Nested samples share one permutation over all sizes, independent ones have one each.
    seeds = [own] if config.nested else [own, config.number]
    if config.unit == "document":
        documents = text.split_documents("train")
        order = _sentences_of(text, documents[permutation(len(documents), *seeds)])
    else:
        sentences = text.split_sentences("train")
        order = sentences[permutation(len(sentences), *seeds)]
    everything = order
    if filtered is not None:
        order = order[~filtered[order]]
    sizes = np.asarray(text.units(config.count))[order].astype(np.int64)
    ends = np.cumsum(sizes)
    available = int(ends[-1]) if len(ends) else 0
    check_available(config, text.folder.parent.name, available, filtered is not None)
    whole = int(np.searchsorted(ends, config.number, side="right"))
    left = config.number - (int(ends[whole - 1]) if whole else 0)
    indices = order[:whole]
    words, characters = int(text.words[indices].sum()), int(text.characters[indices].sum())
    cut = None
    if left:
        last = int(order[whole])
        sentence = text.sentence(last)
        spans = word_spans(sentence, text.manifest["reference"])
        end = spans[left - 1][1] if config.count == "words" else _end_of_character(sentence, left)
        cut = last, end
        words += sum(start < end for start, _ in spans)
        characters += count_characters(sentence[:end])
    digest = hashlib.sha256(indices.astype("<i8").tobytes() + f"{cut} {text.digest}".encode())
    sample = Sample(indices, cut, words, characters, digest.hexdigest(), available, config.number / available)
    if filtered is None:
        return sample
    end = np.flatnonzero(everything == order[whole + (cut is not None) - 1])[0]
    passed = everything[:end][filtered[everything[:end]]]
    return replace(sample, passed_sentences=len(passed), passed_words=int(text.words[passed].sum()))


def _sentences_of(text: TextStore, documents: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sentences of documents, each document's in its order."""
    first = np.asarray(text.documents)
    return ranges(first[documents].astype(np.int64), first[documents + 1].astype(np.int64))


def ranges(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The whole numbers of [start, end) for each pair, end to end."""
    lengths = ends - starts
    steps = np.arange(int(lengths.sum()), dtype=np.int64)
    return steps + np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)


def _end_of_character(sentence: str, number: int) -> int:
    """Where the `number`th character that is not white space ends."""
    visible = [at for at, character in enumerate(sentence) if not character.isspace()]
    return visible[number - 1] + 1


def beginning(tokenizer: Tokenizer, sentence: str, end: int) -> list[int]:
    """Ids of the first `end` characters of a sentence.

    Where a token ends there they are those of the whole sentence, so that "Mr." stays one word where the cut makes it
    the last; else the beginning is encoded for itself.
    """
    ids, spans = tokenizer.encode_spans(sentence)
    ends = [stop for _, stop in spans]
    return ids[: ends.index(end) + 1] if end in ends else tokenizer.encode(sentence[:end])


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
