"""Draw samples, which are random parts of the train split, cut to exactly the requested size.

A sample depends only on the digest of the text and on its unit, count, size, seed, nesting, strata, domains and
ablation. It is the beginning of a seeded permutation of the units (sentences or documents), and its last unit is cut.
An ablation skips sentences, even within documents. If domains are chosen, all others are skipped. Samples with the same
seed therefore share the rest of their text, in the same order, with and without an ablation.

With strata, each domain contributes its first units in the permutation, up to its share of the train split, and the
last unit of each domain is cut. The sample follows the permutation over all domains, with the cut units at the end.

The words of a sample can be shuffled, so that a model can learn words but no grammar (Sinha et al. 2021, sections 3.1
and 3.2). `sample.shuffle=sentence` shuffles words within each sentence. `sample.shuffle=sample` shuffles words over the
whole sample. Sentences keep their lengths. Shuffling precedes tokenization: the reference tokenizer splits the words,
and they are joined by spaces unless the language doesn't use spaces. A final punctuation mark keeps its place, so that
a full stop is as likely at the end as in the original text.
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
from corpora.words import count_characters, word_spans, words
from pairscale.errors import ConfigError
from pairscale.seeds import derived_seed, permutation

MOST_DOMAINS = 100  # if there are more domains than this, samples don't count their words by domain
_WITHOUT_SPACES = ("characters", "jieba")  # reference tokenizers for languages without spaces between words


@dataclass(frozen=True)
class Sample:
    """Sentences of the train split, in the order of training."""

    indices: npt.NDArray[np.int64]  # whole sentences
    cuts: tuple[tuple[int, int], ...]  # index of each stratum's last sentence, which is cut, and its new length
    words: int
    characters: int
    digest: str
    available: int  # size of the train split, in units of `count`
    share: float  # share of the train split, which is the expected overlap of two independent samples of this size
    skipped_sentences: int = 0  # number of sentences that an ablation leaves out before the sample's end
    skipped_words: int = 0
    domains: dict[str, int] = field(default_factory=dict)  # words by domain, if the text has at least two domains

    @property
    def sentences(self) -> int:
        """The number of sentences, including cut ones."""
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


def check_available(
    config: SampleConfig, corpus: str, available: int, domains: Sequence[str] | None = None, without: str = ""
) -> None:
    """Raise ConfigError if a sample is larger than the train split.

    Args:
        config: The sample's configuration.
        corpus: Name of the corpus, for the message.
        available: Size of the train split in the chosen domains, in units of `config.count`.
        domains: The chosen domains, for the message; None for all.
        without: What an ablation leaves out, for the message.
    """
    if config.number > available:
        within = f" in {', '.join(domains)}" if domains else ""
        rest = f" without {without}" if without else ""
        raise ConfigError(
            f"sample.size={config.size}: the train split of {corpus} has only {available:,} {config.count}"
            f"{within}{rest}. Use a smaller size."
        )


def draw_sample(
    text: TextStore,
    config: SampleConfig,
    seed: int,
    left_out: npt.NDArray[np.bool_] | None = None,
    domains: Sequence[str] | None = None,
    without: str = "",
) -> Sample:
    """Draw a run's sample. Raises ConfigError if the train split is too small.

    Args:
        text: The text to draw from.
        config: The sample's configuration.
        seed: The run's seed, which `config.seed` overrides.
        left_out: (sentences,) True for each sentence to leave out; None for none.
        domains: Names of the domains to draw from; None for all.
        without: Description of `left_out`, for the error.
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
        places = np.flatnonzero((strata == stratum) & ~skipped)  # indices into `order`
        seen = np.cumsum(sizes[places])
        whole = int(np.searchsorted(seen, quota, side="right"))
        taken.append(places[:whole])
        if remainder := quota - (int(seen[whole - 1]) if whole else 0):
            cuts.append(_cut(text, int(order[places[whole]]), remainder, config.count))
        ends[stratum] = places[whole - (remainder == 0)]
    indices = order[np.sort(np.concatenate(taken))]
    before = np.flatnonzero(skipped)
    before = order[before[before < ends[strata[before]]]]
    words_of_cuts = {index: _words_before(text, index, end) for index, end in cuts}
    digest = hashlib.sha256(indices.astype("<i8").tobytes() + f"{_as_digested(cuts)} {text.digest}".encode())
    return Sample(
        indices,
        tuple(cuts),
        int(text.words[indices].sum()) + sum(words_of_cuts.values()),
        int(text.characters[indices].sum()) + sum(count_characters(text.sentence(index)[:end]) for index, end in cuts),
        digest.hexdigest(),
        available,
        config.number / available,
        skipped_sentences=len(before),
        skipped_words=int(text.words[before].sum()),
        domains=_words_by_domain(text, indices, words_of_cuts),
    )


def _permuted(text: TextStore, config: SampleConfig, seed: int) -> npt.NDArray[np.int64]:
    """Return the indices of the train split's sentences, in the order in which a sample uses them."""
    own = derived_seed(config.seed, seed, "sample")
    # Nested samples of all sizes share one permutation; independent samples have one permutation per size.
    seeds = [own] if config.nested else [own, config.number]
    if config.unit == "document":
        documents = text.split_documents("train")
        chosen, first = documents[permutation(len(documents), *seeds)], text.documents.astype(np.int64)
        return ranges(first[chosen], first[chosen + 1])
    sentences = text.split_sentences("train")
    return sentences[permutation(len(sentences), *seeds)]


def _quotas(sizes: npt.NDArray[np.int64], number: int) -> list[int]:
    """Divide `number` into whole parts in proportion to the strata's sizes, by the largest remainder method."""
    total = max(1, int(sizes.sum()))
    parts = [divmod(number * int(size), total) for size in sizes]
    order = sorted(range(len(parts)), key=lambda stratum: -parts[stratum][1])
    more = set(order[: number - sum(whole for whole, _ in parts)])
    return [whole + (stratum in more) for stratum, (whole, _) in enumerate(parts)]


def _cut(text: TextStore, index: int, remainder: int, count: str) -> tuple[int, int]:
    """Return `index`, and how many of the sentence's first characters contain `remainder` units."""
    sentence = text.sentence(index)
    if count == "words":
        return index, word_spans(sentence, text.manifest["reference"])[remainder - 1][1]
    visible = [place for place, character in enumerate(sentence) if not character.isspace()]
    return index, visible[remainder - 1] + 1


def _words_before(text: TextStore, index: int, end: int) -> int:
    """Return the number of words that begin in a sentence's first `end` characters."""
    return sum(start < end for start, _ in word_spans(text.sentence(index), text.manifest["reference"]))


def _as_digested(cuts: list[tuple[int, int]]) -> Any:
    """Return cut sentences in the form used for digests, which agrees with early versions that cut at most one."""
    return tuple(cuts) if len(cuts) > 1 else cuts[0] if cuts else None


def _words_by_domain(text: TextStore, indices: npt.NDArray[np.int64], words_of_cuts: dict[int, int]) -> dict[str, int]:
    """Return a sample's number of words by domain, or {} if the text has one domain or more than MOST_DOMAINS."""
    if not 1 < len(text.domains) <= MOST_DOMAINS:
        return {}
    totals = np.bincount(text.domains_of(indices), weights=text.words[indices], minlength=len(text.domains))
    for index, more in words_of_cuts.items():
        totals[text.domains_of(np.array([index]))] += more
    return {name: int(number) for name, number in zip(text.domains, totals, strict=True)}


def encode_beginning(tokenizer: Tokenizer, sentence: str, end: int) -> list[int]:
    """Encode the first `end` characters of a sentence, as part of the sentence if a token ends there, else alone."""
    ids, spans = tokenizer.encode_spans(sentence)
    ends = [stop for _, stop in spans]
    return ids[: ends.index(end) + 1] if end in ends else tokenizer.encode(sentence[:end])


def read_sentences(text: TextStore, sample: Sample) -> Iterator[str]:
    """Yield the sentences of a sample in order, with the cut ones last."""
    yield from text.sentences(sample.indices)
    for index, end in sample.cuts:
        yield text.sentence(index)[:end]


def sample_sentences(text: TextStore, sample: Sample, config: SampleConfig, seed: int) -> Iterator[str]:
    """Yield the sentences of a sample as the model reads them, shuffled if configured. `seed` is the run's seed."""
    sentences = read_sentences(text, sample)
    if config.shuffle is None:
        return sentences
    own = derived_seed(config.seed, seed, "shuffle")
    return shuffled(sentences, text.manifest["reference"], together=config.shuffle == "sample", seed=own)


def shuffled(sentences: Iterable[str], reference: str, *, together: bool, seed: int) -> Iterator[str]:
    """Yield sentences with their words in random order.

    If `together` is true, the words of all sentences are shuffled together, which loads all of them into memory.
    Otherwise, words are shuffled within each sentence.
    """
    bits = np.random.PCG64(np.random.SeedSequence(seed))  # numpy promises that its raw output stays the same
    space = "" if reference in _WITHOUT_SPACES else " "
    cut = (_parted(sentence, reference) for sentence in sentences)
    if not together:
        for free, end in cut:
            yield space.join(free[place] for place in _order(bits, len(free))) + end
        return
    parts = list(cut)
    pool = [word for free, _ in parts for word in free]
    order, first = _order(bits, len(pool)), 0
    for free, end in parts:
        yield space.join(pool[place] for place in order[first : first + len(free)]) + end
        first += len(free)


def shuffled_digest(digest: str, shuffle: str | None) -> str:
    """Return the digest of a sample as the model reads it. It is `digest` unless the sample is shuffled."""
    return digest if shuffle is None else hashlib.sha256(f"{digest} {shuffle}".encode()).hexdigest()


def _order(bits: np.random.PCG64, size: int) -> npt.NDArray[np.int64]:
    return np.argsort(bits.random_raw(size), kind="stable")


def _parted(sentence: str, reference: str) -> tuple[list[str], str]:
    """Return the words to shuffle, and the final mark with any space before it ("" if there is no final mark)."""
    free = words(sentence, reference)
    if len(free) > 1 and not any(character.isalnum() for character in free[-1]):
        mark = free.pop()
        return free, (" " if sentence.rstrip()[: -len(mark)].endswith(" ") else "") + mark
    return free, ""
