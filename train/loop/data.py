"""The text of a run: the batches of its sample, and held-out text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from corpora.prepare import Corpus, HeldOut, SampleTokens, prepare
from train.config import RunConfig
from train.loop.batches import Batches
from train.loop.ranks import Ranks
from train.runs.identity import config_digest


@dataclass(frozen=True)
class TrainingData:
    """The prepared corpus of a run, its sample, and the text that one rank trains and validates on."""

    config: RunConfig
    corpus: Corpus
    sample: SampleTokens
    held_out: HeldOut
    batches: Batches

    @classmethod
    def prepare(cls, config: RunConfig, ranks: Ranks) -> TrainingData:
        """Prepare the corpus if needed, draw its sample; InputError for bad text, ConfigError if it is too small."""
        corpus = prepare(config)
        sample = corpus.sample()
        held_out = corpus.held_out("valid", config.recipe.validation_words)
        batches = Batches(sample.tokens, sample.words, config.recipe, (ranks.rank, ranks.size))
        return cls(config, corpus, sample, held_out, batches)

    @property
    def vocabulary(self) -> int:
        return len(self.corpus.tokenizer)

    @property
    def digests(self) -> dict[str, Any]:
        """The record of the training text in the manifest and the exported model."""
        return {
            "sample_words": self.sample.words,
            "sample_digest": self.sample.digest,
            "config_digest": config_digest(self.config),
        }
