"""Samples: random parts of the train split, cut to exactly the requested size.

A sample depends on the text's digest, unit, count, size, seed, nesting and filter alone. It is a seeded permutation of
the units, without replacement and in permuted order, with its last unit cut. A filter only skips the sentences that
match it, within documents too: with and without it, samples of one seed share the rest of their text in the same order.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.config import SampleConfig
from corpora.store import ranges
from corpora.text import TextStore
from corpora.tokenizers import Tokenizer
from corpora.words import count_characters, word_spans
from pairscale.errors import ConfigError
from pairscale.seeds import derived_seed, permutation


@dataclass(frozen=True)
class Sample:
    """Sentences of the train split, in the order of training."""

    indices: npt.NDArray[np.int64]  # whole sentences
    cut: tuple[int, int] | None  # index and number of characters of a last, shortened sentence
    words: int
    characters: int
    digest: str
    available: int  # size of the train split, in units of `count`
    share: float  # of the train split; the expected overlap of two independent samples of this size
    skipped_sentences: int = 0  # that match the filter and come before the sample's end
    skipped_words: int = 0

    @property
    def sentences(self) -> int:
        """Number of sentences, a shortened one included."""
        return len(self.indices) + (self.cut is not None)

    def describe(self) -> dict[str, Any]:
        """Return the sample's entry in a run's manifest."""
        return {
            "sentences": self.sentences,
            "words": self.words,
            "characters": self.characters,
            "digest": self.digest,
            "available": self.available,
            "overlap": self.share,
        }


def read_sentences(
    text: TextStore, indices: npt.NDArray[np.int64], cut: tuple[int, int] | None = None
) -> Iterator[str]:
    """Yield the sentences of `indices`, and after them the shortened one of `cut`."""
    yield from text.sentences(indices)
    if cut is not None:
        index, end = cut
        yield text.sentence(index)[:end]


def check_available(config: SampleConfig, corpus: str, available: int, filtered: bool = False) -> None:
    """Raise ConfigError if the train split, of `available` units, is smaller than the sample."""
    if config.number > available:
        unmatched = " without the sentences that match corpus.filter" if filtered else ""
        raise ConfigError(
            f"sample.size={config.size}: more {config.count} than the train split of {corpus} has{unmatched} "
            f"({available:,})"
        )


def draw_sample(
    text: TextStore, config: SampleConfig, seed: int, filtered: npt.NDArray[np.bool_] | None = None
) -> Sample:
    """Draw a run's sample, without sentences true in `filtered` (sentences,); ConfigError if the split is too small."""
    own = derived_seed(config.seed, seed, "sample")
    # Nested samples of all sizes share one permutation, independent ones have one each.
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
    remainder = config.number - (int(ends[whole - 1]) if whole else 0)
    indices = order[:whole]
    words, characters = int(text.words[indices].sum()), int(text.characters[indices].sum())
    cut = None
    if remainder:
        last = int(order[whole])
        sentence = text.sentence(last)
        spans = word_spans(sentence, text.manifest["reference"])
        end = spans[remainder - 1][1] if config.count == "words" else _end_of_character(sentence, remainder)
        cut = last, end
        words += sum(start < end for start, _ in spans)
        characters += count_characters(sentence[:end])
    digest = hashlib.sha256(indices.astype("<i8").tobytes() + f"{cut} {text.digest}".encode())
    sample = Sample(indices, cut, words, characters, digest.hexdigest(), available, config.number / available)
    if filtered is None:
        return sample
    end = np.flatnonzero(everything == order[whole + (cut is not None) - 1])[0]
    skipped = everything[:end][filtered[everything[:end]]]
    return replace(sample, skipped_sentences=len(skipped), skipped_words=int(text.words[skipped].sum()))


def _sentences_of(text: TextStore, documents: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the sentences of documents, in the order of `documents` and of the text within each."""
    first = np.asarray(text.documents)
    return ranges(first[documents].astype(np.int64), first[documents + 1].astype(np.int64))


def _end_of_character(sentence: str, number: int) -> int:
    """Return the end of the `number`th character that is not white space."""
    visible = [position for position, character in enumerate(sentence) if not character.isspace()]
    return visible[number - 1] + 1


def encode_beginning(tokenizer: Tokenizer, sentence: str, end: int) -> list[int]:
    """Return the ids of a sentence's first `end` characters: of its tokens if one ends there, else encoded alone."""
    ids, spans = tokenizer.encode_spans(sentence)
    ends = [stop for _, stop in spans]
    return ids[: ends.index(end) + 1] if end in ends else tokenizer.encode(sentence[:end])
