"""Language models of Hugging Face's transformers: a network of the library behind the interface of our own."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpora.tokenizers import PAD, SPECIAL_TOKENS
from pairscale.errors import ConfigError
from pairscale.hub import import_transformers
from train.models.base import LanguageModel, State
from train.models.heads import has_plain_head, inputs_of_head, softmax_of
from train.models.huggingface_config import HuggingFaceConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PROBE = 160  # tokens; ModernBERT's windows are of 128


class HuggingFaceModel(LanguageModel):
    """A network with its own embeddings and softmax; it keeps no memory between steps.

    `network` is the transformers.PreTrainedModel. Hidden states are the inputs of its output layer, so that the softmax
    is computed in chunks, and where a target is (train/models/loss.py); of a network that changes its logits after that
    layer, or has none, they are the logits themselves. Its runs are scored by eval.scorers, not by `read_trees`.
    """

    carries_state = False

    def __init__(self, config: HuggingFaceConfig, vocabulary: int):
        """Draw the weights; `vocabulary` is that of the study's tokenizer.

        Raises ConfigError for values that the network refuses, and for an objective that does not fit how it reads.
        """
        nn.Module.__init__(self)  # without our tables: the network has its own
        self.vocabulary, self.adaptive = vocabulary, None
        self.pad = PAD if config.masked else None
        described = config.described(vocabulary)
        auto = getattr(import_transformers(), "AutoModelForMaskedLM" if config.masked else "AutoModelForCausalLM")
        with config.refusals():
            self.network: PreTrainedModel = auto.from_config(described)
        self.positions = most_positions(self.network)
        if not self._on_meta:
            self.eval()
            self._check(config)
            self.train()

    @torch.no_grad()
    def _check(self, config: HuggingFaceConfig) -> None:
        """Raise ConfigError for a causal objective if it sees what it predicts, or a hybrid one if not both ways."""
        with config.refusals():
            assert self.plain in (True, False)  # looked at before the first step, whose pass may be compiled
            sees_ahead = not config.masked and self._sees_ahead()
        if sees_ahead:
            raise ConfigError(
                f"model.architecture={config.architecture} with model.objective=causal: sees the tokens that it "
                "predicts; give a causal architecture, such as gpt2"
            )
        if config.objective == "hybrid" and not self._reads_both_ways():
            raise ConfigError(
                f"model.architecture={config.architecture} with model.objective=hybrid: an attention mask does not "
                "make it read some texts of a batch causally and the others as without one; give bert, roberta, "
                "electra or another architecture for which it does, or model.objective=mntp"
            )

    @property
    def _on_meta(self) -> bool:
        return any(weight.is_meta for weight in self.parameters())  # XLNet draws some on the CPU in any case

    @cached_property
    def plain(self) -> bool:
        """True if logits are the output layer's product as it is. Looked at in evaluation mode."""
        if self._on_meta:
            return type(self.network.get_output_embeddings()) is nn.Linear  # type: ignore[no-untyped-call]
        return has_plain_head(self.network, self._few_tokens())

    def _few_tokens(self) -> Tensor:
        return torch.arange(2, 6, device=next(self.parameters()).device)[None] % self.vocabulary

    def _sees_ahead(self) -> bool:
        """Return True if logits depend on tokens after their own."""
        tokens = self._few_tokens()
        others = torch.cat([tokens[:, :-1], (tokens[:, -1:] + 1) % self.vocabulary], dim=1)
        before, after = (self.network(input_ids=text).logits[:, :-1] for text in (tokens, others))
        # not to the last bit: kernels may sum in any order
        return not torch.allclose(before, after, rtol=1e-3, atol=1e-6)

    def _reads_both_ways(self) -> bool:
        """Return True if an attention mask keeps tokens of causal texts from those after them, and changes no others.

        Both are seen in two texts that differ in their second half. They are longer than common windows of attention,
        which a mask of all pairs of tokens would replace.
        """
        length = min(self.positions or PROBE, PROBE)
        half, places = length // 2, torch.arange(length, device=next(self.parameters()).device)
        one, other = (SPECIAL_TOKENS + (places + by) % self.vocabulary for by in (0, 1))
        texts = torch.stack([one, torch.where(places < half, one, other)])
        causal = torch.arange(4, device=texts.device) < 2
        try:
            own = self.network(input_ids=texts).logits
            twice = texts.repeat(2, 1)
            masked = self.network(input_ids=twice, attention_mask=self._attention(twice, causal)).logits
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError):
            return False
        # Of the second half on the first, without and with the mask; and of the mask on the others.
        influence, leak = ((pair[0] - pair[1]).abs().max() for pair in (own[:, :half], masked[:2, :half]))
        change = (masked[2:] - own).abs().max()
        return bool((influence > 0) & (leak <= 1e-3 * influence) & (change <= 1e-3 * influence))

    @property
    def softmax(self) -> tuple[Tensor, Tensor]:
        """Weights and bias of the output layer; zeros if it has no bias."""
        return softmax_of(self.network)

    def initial_state(self, batch: int) -> State:
        """Return no state: each text is read from its beginning."""
        return ()

    def forward(self, tokens: Tensor, state: State, causal: Tensor | None = None) -> tuple[Tensor, State]:
        """Read texts (B, T) int64; return (B, T, D), or logits (B, T, V) of a network that is not `plain`.

        `causal` (B,) bool, of a hybrid objective: texts of which each token is read without those after it.
        """
        attended: dict[str, Tensor] = {}
        if causal is not None:
            attended = {"attention_mask": self._attention(tokens, causal)}
        elif self.pad is not None and (tokens.device.type != "cpu" or bool((tokens == self.pad).any())):
            attended = {"attention_mask": (tokens != self.pad).long()}
        if self.plain:
            return inputs_of_head(self.network, input_ids=tokens, **attended), ()
        logits: Tensor = self.network(input_ids=tokens, **attended).logits
        return logits, ()

    def _attention(self, tokens: Tensor, causal: Tensor) -> Tensor:
        """Return what is added to attention scores (B, 1, T, T): -inf at padding and, in `causal` texts, above."""
        length = tokens.shape[1]
        before = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
        seen = (before | ~causal[:, None, None, None]) & tokens.ne(PAD)[:, None, None, :]
        return torch.zeros(seen.shape, dtype=self.network.dtype, device=tokens.device).masked_fill(~seen, -torch.inf)

    def save_description(self, folder: Path) -> None:
        """Write config.json, and generation_config.json of a network that writes text, as transformers does."""
        config = self.network.config
        config.architectures, config.dtype = [type(self.network).__name__], self.network.dtype
        config.save_pretrained(folder)
        if self.network.can_generate() and self.network.generation_config is not None:
            self.network.generation_config.update(do_sample=True, use_cache=True)  # type: ignore[no-untyped-call]
            self.network.generation_config.save_pretrained(folder)

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compile the network alone: it is traced while its output layer is replaced."""
        self.network.compile(*arguments, **options)

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        if self.plain:
            return super().loss(hidden, targets)
        return functional.cross_entropy(hidden.float(), targets, reduction="sum")

    def logprobs(self, hidden: Tensor, targets: Tensor, rows: Tensor | None = None) -> Tensor:
        if self.plain:
            return super().logprobs(hidden, targets, rows)
        of = torch.arange(len(targets), device=hidden.device) if rows is None else rows
        return self.all_logprobs(hidden)[of, targets]

    def all_logprobs(self, hidden: Tensor) -> Tensor:
        return super().all_logprobs(hidden) if self.plain else hidden.detach().float().log_softmax(-1)


def most_positions(network: PreTrainedModel) -> int | None:
    """Return the most tokens that a network of Hugging Face reads; None: no limit.

    RoBERTa's first position is the one after that of the padding.
    """
    limit: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    for name, module in network.named_modules():
        if limit is not None and name.endswith("position_embeddings"):
            padding = getattr(module, "padding_idx", None)
            return limit if padding is None else limit - padding - 1
    return limit
