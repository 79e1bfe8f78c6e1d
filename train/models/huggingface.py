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
    layer, or has none, they are the logits themselves.
    """

    carries_state = False

    def __init__(self, config: HuggingFaceConfig, vocabulary: int):
        """`vocabulary` is that of the study's tokenizer.

        Raises ConfigError for values that the network refuses, and for a causal objective if it sees what it predicts,
        for a hybrid one if it cannot read both ways.
        """
        nn.Module.__init__(self)  # without our tables: the network has its own
        self.vocabulary, self.adaptive = vocabulary, None
        self.pad = PAD if config.masked else None
        described = config.described(vocabulary)
        auto = getattr(import_transformers(), "AutoModelForMaskedLM" if config.masked else "AutoModelForCausalLM")
        with config.refusals():
            self.network: PreTrainedModel = auto.from_config(described)
        self.register_state_dict_post_hook(_without_tied)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_with_tied)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_post_hook(_tie)  # type: ignore[no-untyped-call]
        if not self._on_meta:
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
        return any(weight.is_meta for weight in self.parameters())

    @cached_property
    def plain(self) -> bool:
        """True if logits are the output layer's product as it is."""
        if self._on_meta:
            return type(self.network.get_output_embeddings()) is nn.Linear  # type: ignore[no-untyped-call]
        was_training = self.training
        self.eval()
        try:
            return has_plain_head(self.network, self._few_tokens())
        finally:
            self.train(was_training)

    def _sees_ahead(self) -> bool:
        """Return True if logits depend on tokens after their own."""
        tokens = self._few_tokens()
        others = tokens.clone()
        others[:, -1] = (others[:, -1] + 1) % self.vocabulary
        before, after = self._logits(tokens)[:, :-1], self._logits(others)[:, :-1]
        # not to the last bit: kernels may sum in any order
        return not torch.allclose(before, after, rtol=1e-3, atol=1e-6)

    def _reads_both_ways(self) -> bool:
        """Return True if an attention mask keeps tokens of causal texts from those after them, and changes no others.

        Both are seen in two texts that differ in their second half. They are longer than common windows of attention,
        which a mask of all pairs of tokens would replace.
        """
        length = min(self.positions or PROBE, PROBE)
        half, places = length // 2, torch.arange(length)
        one, other = (SPECIAL_TOKENS + (places + by) % self.vocabulary for by in (0, 1))
        texts = torch.stack([one, torch.where(places < half, one, other)]).to(next(self.parameters()).device)
        causal = torch.arange(4, device=texts.device) < 2
        try:
            own = self._logits(texts)
            masked = self._logits(texts.repeat(2, 1), attention_mask=self._attention(texts.repeat(2, 1), causal))
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError):
            return False
        influence = _difference(own[:, :half])  # of the second half on the first
        leak, change = _difference(masked[:2, :half]), (masked[2:] - own).abs().max()
        return bool((influence > 0) & (leak <= 1e-3 * influence) & (change <= 1e-3 * influence))

    def _few_tokens(self) -> Tensor:
        return torch.arange(2, 6, device=next(self.parameters()).device)[None] % self.vocabulary

    def _logits(self, tokens: Tensor, **attended: Tensor) -> Tensor:
        """Return the logits (B, T, V) after tokens (B, T), without dropout and gradient."""
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                logits: Tensor = self.network(input_ids=tokens, **attended).logits
        finally:
            self.train(was_training)
        return logits

    @property
    def positions(self) -> int | None:
        """Most tokens that the network reads; None: no limit."""
        return most_positions(self.network)

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
        attended = self._attended(tokens) if causal is None else {"attention_mask": self._attention(tokens, causal)}
        if self.plain:
            return inputs_of_head(self.network, input_ids=tokens, **attended), ()
        logits: Tensor = self.network(input_ids=tokens, **attended).logits
        return logits, ()

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

    def _attended(self, tokens: Tensor) -> dict[str, Tensor]:
        """Return the mask of tokens that are no padding, if a model that sees both sides reads any."""
        if self.pad is None or (tokens.device.type == "cpu" and not bool((tokens == self.pad).any())):
            return {}
        return {"attention_mask": (tokens != self.pad).long()}

    def _attention(self, tokens: Tensor, causal: Tensor) -> Tensor:
        """Return what is added to attention scores (B, 1, T, T): -inf at padding and, in `causal` texts, above."""
        length = tokens.shape[1]
        before = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
        seen = (before | ~causal[:, None, None, None]) & tokens.ne(PAD)[:, None, None, :]
        return torch.zeros(seen.shape, dtype=self.network.dtype, device=tokens.device).masked_fill(~seen, -torch.inf)

    def read_trees(self, tokens: Tensor, parents: Tensor, depths: Tensor, state: State) -> Tensor:
        """Raise TypeError: its runs are scored as other models of Hugging Face are (eval/scorers/load.py)."""
        raise TypeError("a network of Hugging Face is scored by eval.scorers.causal or eval.scorers.masked")

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
        if self.plain:
            return super().all_logprobs(hidden)
        with torch.no_grad():
            return hidden.float().log_softmax(-1)


def _difference(pair: Tensor) -> Tensor:
    return (pair[0] - pair[1]).abs().max()


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


def _tied(model: HuggingFaceModel) -> dict[str, str]:
    """Return the names of weights that are others of the network's, and those others: {"lm_head.weight": ...}."""
    names: dict[int, str] = {}
    tied = {}
    for name, weight in model.network.named_parameters(remove_duplicate=False):
        first = names.setdefault(id(weight), name)
        if first != name:
            tied[f"network.{name}"] = f"network.{first}"
    return tied


def _without_tied(model: HuggingFaceModel, state: dict[str, Tensor], prefix: str, metadata: Any) -> None:
    for name in _tied(model):
        state.pop(prefix + name, None)


def _with_tied(model: HuggingFaceModel, state: dict[str, Tensor], prefix: str, *others: Any) -> None:
    for name, first in _tied(model).items():
        if prefix + first in state:
            state.setdefault(prefix + name, state[prefix + first])


def _tie(model: HuggingFaceModel, keys: Any) -> None:
    model.network.tie_weights()
