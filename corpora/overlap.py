"""The sentences of a list, such as those of a benchmark, that occur in a text.

A sentence of the text is one of the list if both are the same once case, white space, spaces before punctuation (and
before n't, which tokenised text cuts off) and the shape of the apostrophe are disregarded. Sentences are compared
whole: one within a longer sentence does not count.
"""

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from corpora.text import TextStore
from corpora.words import count_characters
from pairscale.progress import with_progress

BATCH = 50_000  # sentences between two updates of progress
_SPACE_BEFORE_PUNCTUATION = re.compile(r" (?=[^\w\s]|n't\b)")


def normalised(sentence: str) -> str:
    """Return what two sentences that count as the same share.

    >>> normalised("The  dogs DO n’t bark ( loudly ) .") == normalised("The dogs don't bark( loudly).")
    True
    """
    return _SPACE_BEFORE_PUNCTUATION.sub("", " ".join(sentence.lower().replace("’", "'").split()))


def occurrences(text: TextStore, sentences: Iterable[str]) -> dict[str, npt.NDArray[np.int64]]:
    """Return where sentences occur: their `normalised` form -> the indices of those of the text, ascending.

    Sentences that do not occur are left out. The text is streamed once, whatever its size.
    """
    places: dict[str, list[int]] = {}
    lengths = set()
    for sentence in sentences:
        places[normalised(sentence)] = []
        lengths.add(count_characters(sentence))
    # Sentences of another length than all of the list need not be read.
    candidates = np.flatnonzero(np.isin(text.characters, sorted(lengths)))
    batches = np.array_split(candidates, max(1, len(candidates) // BATCH))
    for batch in with_progress(((len(batch), batch) for batch in batches), "searching", len(candidates), "sentences"):
        for index, sentence in zip(batch.tolist(), text.sentences(batch), strict=True):
            if (known := places.get(normalised(sentence))) is not None:
                known.append(index)
    return {sentence: np.array(indices, np.int64) for sentence, indices in places.items() if indices}
