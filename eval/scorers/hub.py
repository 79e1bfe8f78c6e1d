"""What the scorers of Hugging Face models share: loaded weights and tokenizer, checks of them, and next words."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import nn

from eval.scorers.base import tokens_at_once
from eval.scorers.hf_tokenizers import check_embedded, check_tokenizer, tokenizer_digest, vocabulary_size
from eval.scorers.next_words.answers import NextTokens, NextWordScorer, Read
from eval.scorers.next_words.readings import Readings
from eval.scorers.next_words.whole_words import hub_words
from eval.scorers.too_long import TextTooLong
from pairscale.errors import RunError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


class HubScorer(NextWordScorer):
    """A Hugging Face model and its tokenizer."""

    word_level = False
    positions: int | None  # most tokens that the model reads; None: no limit

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        name: str,
        batch_tokens: int,
        device: str = "cpu",
        progress: bool = False,
    ):
        """On a CPU a batch has 2,048 tokens at most, whatever `batch_tokens` is.

        Raises ConfigError for a tokenizer without character offsets, InputError for a tokenizer that is not the
        model's, RunError for weights that are not numbers.
        """
        check_tokenizer(tokenizer, name)
        check_finite(model, name)
        self.name = name
        self.digest = weights_digest(model)
        self.tokenizer_digest = tokenizer_digest(tokenizer)
        self.tokenizer_path: str | None = None  # the tokenizer's folder, if that is not the model's
        self.sample_words: int | None = None
        self.model = model.to(device).eval()  # type: ignore[arg-type]
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary_size(model)
        self.device = torch.device(device)
        self.batch_tokens = tokens_at_once(batch_tokens, self.device)
        self.progress = progress
        self.repeatable = 0  # tokens of the longest text on which two passes were compared

    @abstractmethod
    def check_repeatable(self, tokens: int) -> None:
        """Raise ConfigError if two passes over a text of so many tokens differ."""

    def _hub_tokens(self, read: Read, readings: Readings) -> tuple[NextTokens, Readings]:
        """Check that the model reads the texts. Raises TextTooLong and InputError for those that it cannot read."""
        texts = readings.all
        for index, reading in enumerate(texts):
            if self.positions is not None and len(reading.ids) > self.positions:
                text = str(self.tokenizer.decode(list(reading.ids)))
                raise TextTooLong(self.name, self.positions, text, len(reading.ids), index)
            check_embedded(self.tokenizer, "a context", reading.ids, self.vocabulary, self.name)
        self.check_repeatable(max((len(reading.ids) for reading in texts), default=0))
        vocabulary = int(self.model.config.get_text_config().vocab_size)
        return NextTokens(read, vocabulary, hub_words(self.tokenizer, vocabulary)), readings


def weights_digest(model: nn.Module) -> str:
    """Return the SHA-256 over names, types and values of all weights, whatever files they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def check_finite(model: nn.Module, name: str) -> None:
    """Raise RunError for weights that are infinite or not numbers: no score of theirs means anything."""
    for parameter, weight in model.named_parameters():
        if weight.is_floating_point() and not bool(weight.isfinite().all()):
            raise RunError(f"{name}: its weights hold infinity or NaN (in {parameter}); they are damaged")
