"""Shuffled samples: the words of a run's sample in random order, whose models know words and no grammar.

`sample.shuffle=sentence` shuffles the words of each sentence, `sample.shuffle=sample` those of all sentences
together; each sentence keeps its length. As in Sinha et al. 2021 (sections 3.1 and 3.2: text shuffled within sentences,
and words drawn by their frequency alone), before tokens are cut. Words are those of the reference tokenizer, parted by
spaces unless the language writes none. A mark that ends its sentence stays where it is, so that a full stop is no less
likely there than in the text.
"""

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from corpora.config import SampleConfig
from corpora.samples import Sample, read_sentences
from corpora.text import TextStore
from corpora.words import words
from pairscale.seeds import derived_seed

_WITHOUT_SPACES = ("characters", "jieba")  # reference tokenizers of languages that write none between words


def sample_sentences(text: TextStore, sample: Sample, config: SampleConfig, seed: int) -> Iterator[str]:
    """Yield the sentences of a run's sample as its model reads them, shuffled if `config` says so; seed: the run's."""
    sentences = read_sentences(text, sample.indices, sample.cuts)
    if config.shuffle is None:
        yield from sentences
        return
    reference = text.manifest["reference"]
    own = derived_seed(config.seed, seed, "shuffle")
    yield from shuffled(sentences, reference, together=config.shuffle == "sample", seed=own)


def shuffled(sentences: Iterable[str], reference: str, *, together: bool, seed: int) -> Iterator[str]:
    """Yield sentences with their words in random order; `together`: those of all of them, which are held in memory."""
    bits = np.random.PCG64(np.random.SeedSequence(seed))  # whose raw output numpy promises to keep
    space = "" if reference in _WITHOUT_SPACES else " "
    cut = (_cut(sentence, reference) for sentence in sentences)
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
    """Return the digest of a sample as it is read, of its own digest: the same if it is not shuffled."""
    return digest if shuffle is None else hashlib.sha256(f"{digest} {shuffle}".encode()).hexdigest()


def _order(bits: np.random.PCG64, size: int) -> npt.NDArray[np.int64]:
    return np.argsort(bits.random_raw(size), kind="stable")


def _cut(sentence: str, reference: str) -> tuple[list[str], str]:
    """Return the words that change places, and the mark that ends the sentence with the space before it; else ""."""
    free = words(sentence, reference)
    if len(free) > 1 and not any(character.isalnum() for character in free[-1]):
        mark = free.pop()
        return free, (" " if sentence.rstrip()[: -len(mark)].endswith(" ") else "") + mark
    return free, ""
