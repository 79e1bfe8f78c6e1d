"""The common part of the scorers of Hugging Face models: checks of weights, tokenizer and passes, and next words."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from eval.benchmarks.cells import shown
from eval.scorers.base import Execution, TextTooLong
from eval.scorers.forward import accepted, forward_errors, tolerance
from eval.scorers.hf_tokenizers import check_tokenizer, tokenizer_digest, vocabulary_size
from eval.scorers.next_words.answers import NextTokens, NextWordScorer, Read
from eval.scorers.next_words.readings import Readings
from eval.scorers.next_words.whole_words import hub_words
from eval.scorers.trees import Ids
from pairscale.errors import ConfigError, InputError, RunError
from train.loop.device import without_gradients
from train.models.heads import has_plain_head, inputs_of_head, logits_at, reads_places, softmax_of
from train.models.huggingface import most_positions
from train.models.loss import all_logprobs

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

LOGIT_BYTES = 1 << 30  # of the logits that are held at a time where the model makes them itself
CPU_TOKENS = 2048  # more leave a CPU's cache between one layer's passes and the next, for a model as large as GPT-2


@dataclass(frozen=True)
class HubModel:
    """A loaded Hugging Face model."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    name: str
    tokenizer_path: str | None = None  # the tokenizer's folder, if that is not the model's
    trained_here: bool = False  # its tokenizer is known to be its own, whatever language it reads


class HubScorer(NextWordScorer):
    """A Hugging Face model and its tokenizer."""

    word_level: bool = False
    sample_words: int | None = None

    def __init__(self, loaded: HubModel, execution: Execution):
        """On a CPU a batch has 2,048 tokens at most, whatever `execution` says, and fewer where all logits are held.

        Raises ConfigError for a tokenizer without character offsets, InputError for a tokenizer that is not the
        model's, RunError for weights that are not numbers.
        """
        self.name = loaded.name
        self.tokenizer = loaded.tokenizer
        self.tokenizer_path = loaded.tokenizer_path
        if not loaded.trained_here:
            check_tokenizer(self.tokenizer, self.name)
        check_finite(loaded.model, self.name)
        self.digest = weights_digest(loaded.model)
        self.tokenizer_digest = tokenizer_digest(self.tokenizer)
        self.device = torch.device(execution.device)
        self.model = loaded.model.to(self.device).eval()  # type: ignore[arg-type]
        self.vocabulary = vocabulary_size(self.model)
        self.positions = most_positions(self.model)
        self.head = self._plain_head()  # weight and bias of the softmax; None: the model changes its logits afterwards
        self.batch_tokens = execution.batch_tokens
        if self.device.type == "cpu":
            self.batch_tokens = min(self.batch_tokens, CPU_TOKENS)
        if self.head is None:  # then all logits of a batch are held
            self.batch_tokens = min(self.batch_tokens, max(1, LOGIT_BYTES // (4 * self.vocabulary)))
        self.progress = execution.progress
        self.repeatable = 0  # tokens of the longest text on which two passes were compared

    def _arguments(self, tokens: Tensor, order: dict[str, Tensor]) -> dict[str, Any]:
        """Return the arguments of a pass over texts (B, T) of equal length, all of whose tokens are seen.

        Without a mask some models take the begin symbol for padding, where the two are one.
        """
        mask = torch.ones_like(tokens)
        return {"input_ids": tokens, **accepted(self.model, attention_mask=mask, use_cache=False), **order}

    @abstractmethod
    def _pass(self, tokens: int) -> Tensor:
        """Return log-probabilities after reading a text of so many tokens, always the same one."""

    def _plain_head(self) -> tuple[Tensor, Tensor] | None:
        probe = torch.arange(2, 6, device=self.device)[None] % self.vocabulary
        try:
            with forward_errors(self.name, 4):
                return softmax_of(self.model) if has_plain_head(self.model, probe) else None
        except InputError:  # some read no text that is so short; their own logits are right in any case
            return None

    @cached_property
    def _reads_places(self) -> bool:
        """Whether a head that is not plain can be given the places alone whose logits are needed."""
        probe = torch.arange(2, 10, device=self.device).view(2, 4) % self.vocabulary
        try:
            with forward_errors(self.name, 4):
                return reads_places(self.model, **self._arguments(probe, {}))
        except InputError:  # of a short text, or of a model that needs the logits of all places
            return False

    def _logits(self, tokens: Tensor, **order: Tensor) -> Tensor:
        """Return logits (B, T, V), float32."""
        logits: Tensor = self.model(**self._arguments(tokens, order)).logits
        return logits.float()

    def _hidden(self, tokens: Tensor, **order: Tensor) -> Tensor:
        """Return the input (B, T, D) of a plain head, in its type: some models turn logits into float32 themselves."""
        assert self.head is not None
        return inputs_of_head(self.model, **self._arguments(tokens, order)).to(self.head[0].dtype)

    def logprobs_at(self, tokens: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return ln p (R, V) in nats, float32, of every token at R places in texts (B, T) of equal length."""
        with forward_errors(self.name, tokens.shape[1]):
            if self.head is None and self._reads_places:
                return logits_at(self.model, rows, columns, **self._arguments(tokens, {})).float().log_softmax(-1)
            if self.head is None:
                return self._logits(tokens)[rows, columns].log_softmax(-1)
            return all_logprobs(self._hidden(tokens)[rows, columns], *self.head)

    def check_repeatable(self, tokens: int) -> None:
        """Raise ConfigError if two passes over a text of so many tokens differ."""
        if tokens <= self.repeatable:
            return
        with without_gradients(self.device, False), forward_errors(self.name, tokens):
            one, other = self._pass(tokens), self._pass(tokens)
        if not torch.allclose(one, other, rtol=0, atol=tolerance(self.model.dtype), equal_nan=True):
            far = float((one - other).nan_to_num().abs().max())
            raise ConfigError(
                f"{self.name}: two passes over one text of {tokens} tokens differ by up to {far:.2g} nats, so its "
                "scores would be random (a Reformer's hashing is, unless its config.json sets hash_seed)"
            )
        self.repeatable = tokens

    def check_embedded(self, text: str, ids: Sequence[int] | Ids) -> None:
        """Raise InputError for a token of a text that is not one of the model's, which are 0 to `vocabulary` - 1."""
        if len(ids) and (highest := int(max(ids))) >= self.vocabulary:
            token = self.tokenizer.convert_ids_to_tokens(highest)
            raise InputError(
                f"{self.name}: knows {self.vocabulary:,} tokens, and {token!r} in {shown(text)} is number {highest:,} "
                "of its tokenizer, so that is another model's"
            )

    def _hub_tokens(self, read: Read, readings: Readings) -> tuple[NextTokens, Readings]:
        """Check that the model reads the texts. Raises TextTooLong and InputError for those that it cannot read."""
        texts = readings.all
        for index, reading in enumerate(texts):
            if self.positions is not None and len(reading.ids) > self.positions:
                text = str(self.tokenizer.decode(list(reading.ids)))
                raise TextTooLong(self.name, self.positions, text, len(reading.ids), index)
            self.check_embedded("a context", reading.ids)
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
