"""Samples: random parts of the train split, cut to exactly the requested size.

A sample depends on the text's digest, unit, count, size, seed, nesting, strata, domains and ablation alone. It is a
seeded permutation of the units, without replacement and in permuted order, with its last unit cut. An ablation only
skips sentences, within documents too, and a choice of domains those of the others: with and without them, samples of
one seed share the rest of their text in the same order.

With strata, the first units of each domain in the permutation are taken, up to its share of the train split, and each
domain's last unit is cut; the order is that of the permutation over all domains, with the shortened units at the end.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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

MOST_DOMAINS = 100  # of a text whose samples count their words by domain


@dataclass(frozen=True)
class Sample:
    """Sentences of the train split, in the order of training."""

    indices: npt.NDArray[np.int64]  # whole sentences
    cuts: tuple[tuple[int, int], ...]  # index and number of characters of the last, shortened sentence of each stratum
    words: int
    characters: int
    digest: str
    available: int  # size of the train split, in units of `count`
    share: float  # of the train split; the expected overlap of two independent samples of this size
    skipped_sentences: int = 0  # that are left out and come before the sample's end
    skipped_words: int = 0
    domains: dict[str, int] = field(default_factory=dict)  # words by domain, of a text with at least two

    @property
    def sentences(self) -> int:
        """Number of sentences, shortened ones included."""
        return len(self.indices) + len(self.cuts)

    def describe(self) -> dict[str, Any]:
        """Return the sample's entry in a run's manifest."""
        return {
            "sentences": self.sentences,
            "words": self.words,
            "characters": self.characters,
            "digest": self.digest,
            "available": self.available,
            "overlap": self.share,
            **({"domains": self.domains} if self.domains else {}),
        }


def read_sentences(
    text: TextStore, indices: npt.NDArray[np.int64], cuts: Iterable[tuple[int, int]] = ()
) -> Iterator[str]:
    """Yield the sentences of `indices`, and after them the shortened ones of `cuts`."""
    yield from text.sentences(indices)
    for index, end in cuts:
        yield text.sentence(index)[:end]


def check_available(
    config: SampleConfig, corpus: str, available: int, domains: Sequence[str] | None = None, without: str = ""
) -> None:
    """Raise ConfigError if the train split, of `available` units in the chosen domains, is smaller than the sample.

    without: what samples leave out of it, for the message.
    """
    if config.number > available:
        within = f" in {', '.join(domains)}" if domains else ""
        rest = f" without {without}" if without else ""
        raise ConfigError(
            f"sample.size={config.size}: more {config.count} than the train split of {corpus} has{within}{rest} "
            f"({available:,})"
        )


def draw_sample(
    text: TextStore,
    config: SampleConfig,
    seed: int,
    left_out: npt.NDArray[np.bool_] | None = None,
    domains: Sequence[str] | None = None,
    without: str = "",
) -> Sample:
    """Draw a run's sample, without sentences true in `left_out` (sentences,), of `domains` (None: all).

    without: what `left_out` is, for messages. Raises ConfigError if the train split is too small.
    """
    order = _permuted(text, config, seed)
    if domains is not None:
        order = order[np.isin(text.domains_of(order), [text.domains.index(name) for name in domains])]
    skipped = np.zeros(len(order), np.bool_) if left_out is None else left_out[order]
    strata = np.zeros(len(order), np.uint8) if config.strata is None else text.domains_of(order)
    sizes = np.where(skipped, 0, np.asarray(text.units(config.count))[order]).astype(np.int64)
    available = int(sizes.sum())
    check_available(config, text.folder.parent.name, available, domains, without)
    taken, cuts, ends = [], [], np.zeros(int(strata.max(initial=0)) + 1, np.int64)
    for stratum, quota in enumerate(_quotas(np.bincount(strata, weights=sizes).astype(np.int64), config.number)):
        if not quota:
            continue
        places = np.flatnonzero((strata == stratum) & ~skipped)  # in `order`
        seen = np.cumsum(sizes[places])
        whole = int(np.searchsorted(seen, quota, side="right"))
        taken.append(places[:whole])
        if remainder := quota - (int(seen[whole - 1]) if whole else 0):
            cuts.append(_cut(text, int(order[places[whole]]), remainder, config.count))
        ends[stratum] = places[whole - (remainder == 0)]
    indices = order[np.sort(np.concatenate(taken))]
    before = np.flatnonzero(skipped)
    before = order[before[before < ends[strata[before]]]]
    words = {index: _words_before(text, index, end) for index, end in cuts}
    digest = hashlib.sha256(indices.astype("<i8").tobytes() + f"{_as_digested(cuts)} {text.digest}".encode())
    return Sample(
        indices,
        tuple(cuts),
        int(text.words[indices].sum()) + sum(words.values()),
        int(text.characters[indices].sum()) + sum(count_characters(text.sentence(index)[:end]) for index, end in cuts),
        digest.hexdigest(),
        available,
        config.number / available,
        skipped_sentences=len(before),
        skipped_words=int(text.words[before].sum()),
        domains=_words_by_domain(text, indices, words),
    )


def _permuted(text: TextStore, config: SampleConfig, seed: int) -> npt.NDArray[np.int64]:
    """Return the sentences of the train split in the order in which a sample takes them."""
    own = derived_seed(config.seed, seed, "sample")
    # Nested samples of all sizes share one permutation, independent ones have one each.
    seeds = [own] if config.nested else [own, config.number]
    if config.unit == "document":
        documents = text.split_documents("train")
        return _sentences_of(text, documents[permutation(len(documents), *seeds)])
    sentences = text.split_sentences("train")
    return sentences[permutation(len(sentences), *seeds)]


def _quotas(sizes: npt.NDArray[np.int64], number: int) -> list[int]:
    """Return whole parts of `number` in proportion to the strata's sizes, by their largest remainders."""
    total = max(1, int(sizes.sum()))
    parts = [divmod(number * int(size), total) for size in sizes]
    order = sorted(range(len(parts)), key=lambda stratum: -parts[stratum][1])
    more = set(order[: number - sum(whole for whole, _ in parts)])
    return [whole + (stratum in more) for stratum, (whole, _) in enumerate(parts)]


def _cut(text: TextStore, index: int, remainder: int, count: str) -> tuple[int, int]:
    """Return a sentence and the number of its characters in which it has `remainder` units."""
    sentence = text.sentence(index)
    if count == "words":
        return index, word_spans(sentence, text.manifest["reference"])[remainder - 1][1]
    return index, _end_of_character(sentence, remainder)


def _words_before(text: TextStore, index: int, end: int) -> int:
    """Return the number of words that begin in a sentence's first `end` characters."""
    return sum(start < end for start, _ in word_spans(text.sentence(index), text.manifest["reference"]))


def _as_digested(cuts: list[tuple[int, int]]) -> Any:
    """Return what a digest has of the shortened sentences: as in the first versions of one, and of none."""
    return tuple(cuts) if len(cuts) > 1 else cuts[0] if cuts else None


def _words_by_domain(text: TextStore, indices: npt.NDArray[np.int64], words_of_cuts: dict[int, int]) -> dict[str, int]:
    """Return the words of a sample by domain; {} of a text with one domain, or over MOST_DOMAINS."""
    if not 1 < len(text.domains) <= MOST_DOMAINS:
        return {}
    words = np.bincount(text.domains_of(indices), weights=text.words[indices], minlength=len(text.domains))
    for index, more in words_of_cuts.items():
        words[text.domains_of(np.array([index]))] += more
    return {name: int(number) for name, number in zip(text.domains, words, strict=True)}


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
