"""The text of a run: the batches of its sample, and held-out text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from corpora.fast_tokenizers import check_masked
from corpora.prepare import Corpus, HeldOut, SampleTokens, prepare
from pairscale.seeds import derived_seed
from train.config import RunConfig
from train.loop.batches import Batches, Columns
from train.loop.blocks import Blocks, Masked
from train.loop.perplexity import Perplexity, evaluate, evaluate_masked, evaluate_windows
from train.loop.ranks import Ranks
from train.models.base import LanguageModel
from train.models.huggingface_config import HuggingFaceConfig
from train.recipes import COLUMNS
from train.runs.identity import config_digest


@dataclass(frozen=True)
class TrainingData:
    """The prepared corpus of a run, its sample, and the text that one rank trains and validates on."""

    config: RunConfig
    corpus: Corpus
    sample: SampleTokens
    held_out: HeldOut
    batches: Batches
    masked: Masked | None  # the objective; None: the next token

    @classmethod
    def prepare(cls, config: RunConfig, ranks: Ranks) -> TrainingData:
        """Prepare the corpus if needed, draw its sample; InputError for bad text, ConfigError if it is too small."""
        corpus = prepare(config)
        sample = corpus.sample()
        masked = _masked(config, corpus)
        words = config.recipe.validation_words
        held_out = corpus.held_out("valid", min(words, masked.masking.validation_words) if masked else words)
        if config.recipe.packing == COLUMNS:
            columns = Columns(sample.tokens, sample.words, config.recipe, (ranks.rank, ranks.size))
            return cls(config, corpus, sample, held_out, columns, masked)
        seed = derived_seed(config.recipe.seed, config.seed, "blocks")
        blocks = Blocks(sample, config.recipe, seed, masked, (ranks.rank, ranks.size))
        return cls(config, corpus, sample, held_out, blocks, masked)

    def validation(self, model: LanguageModel, device: torch.device) -> Perplexity:
        """Return the perplexity of the run's model on the held-out text, or its pseudo-perplexity if it is masked."""
        if model.carries_state:
            return evaluate(model, self.held_out, device)
        context = self.config.recipe.bptt
        if self.masked is None:
            return evaluate_windows(model, self.held_out, device, context)
        return evaluate_masked(model, self.held_out, device, context, self.masked.shift)

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


def _masked(config: RunConfig, corpus: Corpus) -> Masked | None:
    model = config.model
    if not isinstance(model, HuggingFaceConfig) or model.masking is None:
        return None
    check_masked(corpus.tokenizer)  # now, as its files are written when the run ends
    return Masked.of(model.masking, model.shift, corpus.tokenizer)
