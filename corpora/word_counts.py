"""How often words occur in the sample that a run was trained on, drawn again from the text store as training drew it.

Words are reference words (corpora/words.py), whatever tokens a model reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from corpora.config import SampleConfig
from corpora.filters import Filter
from corpora.samples import draw_sample
from corpora.text import TextStore
from corpora.words import words
from pairscale.errors import StoreError
from pairscale.files import sha256_json


@dataclass(frozen=True)
class Counts:
    """How often each word occurs in the `sentences` (of `words`) of a sample that were counted, of `of_sentences`."""

    of: Counter[str]
    words: int
    sentences: int
    of_sentences: int

    def per_million(self, word: str) -> float:
        """Occurrences per million words, half of one added, so that a word that does not occur has a logarithm."""
        return (self.of[word] + 0.5) / self.words * 1e6

    @property
    def ranks(self) -> dict[str, int]:
        """Rank of each word that occurs, 1 the most frequent; equally frequent ones share the mean of theirs, as a
        share of a tie would be an accident of the order."""
        table = pd.Series(self.of, dtype="int64").rank(ascending=False, method="average")
        return {str(word): int(np.ceil(rank)) for word, rank in table.items()}


def sample_counts(
    config: Mapping[str, Any],
    manifest: Mapping[str, Any] | None,
    store: Path,
    reference: str,
    most: int | None = None,
) -> Counts:
    """Count the reference words of a run's own sample, or of its first `most` sentences.

    `config`: of the run folder, or of a run that is yet to be; `manifest`: of the run folder, where there is one;
    `store`: paths.store. Raises StoreError where the text is not in the store, or is another one, so that the sample
    drawn from it is not the run's.
    """
    corpus = store / str(config["corpus"]["name"])
    text = TextStore(corpus / "text")
    pattern = config["corpus"].get("filter")
    folder = corpus / f"filter-{sha256_json(pattern)[:16]}"
    filtered = Filter(folder, text, pattern).matches if pattern is not None else None
    drawn = draw_sample(text, SampleConfig(**config["sample"]), int(config["seed"]), filtered)
    if manifest is not None and drawn.digest != manifest["corpus"]["sample"]["digest"]:
        raise StoreError(f"{corpus}: not the text that the run was trained on (its sample has another digest)")
    counted: Counter[str] = Counter()
    for sentence in text.sentences(drawn.indices[:most].tolist()):
        counted.update(words(sentence, reference))
    if drawn.cut is not None and (most is None or len(drawn.indices) < most):
        last, end = drawn.cut
        counted.update(words(text.sentence(last)[:end], reference))
    looked_at = drawn.sentences if most is None else min(most, drawn.sentences)
    return Counts(counted, counted.total(), looked_at, drawn.sentences)
