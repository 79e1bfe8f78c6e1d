"""Frequencies of a text's lemmas, and of the sentences that they form."""

from collections import Counter

import numpy as np
import numpy.typing as npt

from corpora.annotate.layer import Layer
from pairscale.errors import ConfigError

NO_LEMMAS = {"", "_"}


def mean_log_frequencies(layer: Layer, counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return (sentences,) the mean natural logarithm of the frequencies of each sentence's lemmas, 0 of one without.

    A lemma's frequency is its number of words in the sentences true in `counted` (sentences,), at least 1; upper and
    lower case are one lemma. Raises ConfigError for a layer without lemmas.
    """
    counts: Counter[str] = Counter()
    first = 0
    for begins, codes, lemmas in layer.lemmas():
        of_words = np.repeat(counted[first : first + len(begins) - 1], np.diff(begins))
        numbers = np.bincount(codes[of_words], minlength=len(lemmas))
        for lemma, number in zip(lemmas, numbers.tolist(), strict=True):
            counts[lemma.lower()] += number
        first += len(begins) - 1
    if not counts.keys() - NO_LEMMAS:
        raise ConfigError(
            f"{layer.folder}: has no lemmas, by whose frequencies a control is matched; annotate the text with a "
            "parser that gives lemmas"
        )
    means = []
    for begins, codes, lemmas in layer.lemmas():
        of_lemma = np.log([max(1, counts[lemma.lower()]) for lemma in lemmas])
        sums = np.concatenate([[0.0], np.cumsum(of_lemma[codes])]) if len(codes) else np.zeros(1)
        means.append(np.diff(sums[begins]) / np.maximum(1, np.diff(begins)))
    return np.concatenate(means)
