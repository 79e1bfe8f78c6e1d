"""Give Hugging Face networks the interface of our own language models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpora.tokenizers import PAD
from pairscale.errors import ConfigError
from pairscale.hub import import_transformers
from train.models.base import LanguageModel, State
from train.models.config import HuggingFaceConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LARGE = 10_000  # larger than any model's logits, and below float16's maximum of 65,504


class HuggingFaceModel(LanguageModel):
    """A transformers network (`network`) with its own embeddings and softmax. It keeps no memory between steps.

    Hidden states are the inputs of the network's output layer, so that the softmax is computed in chunks and only where
    there is a target (train/models/loss.py). If the network changes its logits after that layer, or has no such layer,
    the hidden states are the logits themselves. Runs are scored by eval.scorers, not by `read_trees`.
    """

    carries_state = False

    def __init__(self, config: HuggingFaceConfig, vocabulary: int):
        """Draw the weights. `vocabulary` is the size of the study's tokenizer.

        Raises ConfigError for values that the network rejects, and if a causal network sees the tokens it predicts.
        """
        nn.Module.__init__(self)  # not LanguageModel's, because the network has its own tables
        self.vocabulary, self.adaptive = vocabulary, None
        self.pad = PAD if config.masked else None
        described = config.described(vocabulary)
        auto = getattr(import_transformers(), "AutoModelForMaskedLM" if config.masked else "AutoModelForCausalLM")
        with config.refusals():
            self.network: PreTrainedModel = auto.from_config(described)
        self.positions = most_positions(self.network)
        if not self._on_meta:
            self.eval()
            with config.refusals():
                assert self.plain in (True, False)  # computed before the first step, which may be compiled
                sees_ahead = not config.masked and self._sees_ahead()
            if sees_ahead:
                raise ConfigError(
                    f"model.architecture={config.architecture}: this architecture sees the tokens that it predicts, so "
                    "it can't be used with model.objective=causal. Choose a causal one, such as gpt2."
                )
            self.train()

    @classmethod
    def of(cls, network: PreTrainedModel, pad: int | None) -> HuggingFaceModel:
        """Wrap a network that was trained elsewhere. `pad` is the id of its padding, or None if it is causal."""
        model = cls.__new__(cls)
        nn.Module.__init__(model)
        model.network, model.pad, model.positions = network, pad, most_positions(network)
        return model

    @property
    def _on_meta(self) -> bool:
        return any(weight.is_meta for weight in self.parameters())  # XLNet always creates some on the CPU

    @cached_property
    def plain(self) -> bool:
        """True if the logits are exactly the output layer's product. Read it in evaluation mode."""
        if self._on_meta:
            return type(self.network.get_output_embeddings()) is nn.Linear  # type: ignore[no-untyped-call]
        return has_plain_head(self.network, self._few_tokens())

    def _few_tokens(self) -> Tensor:
        return torch.arange(2, 6, device=next(self.parameters()).device)[None] % self.vocabulary

    @torch.no_grad()
    def _sees_ahead(self) -> bool:
        """Return True if logits depend on later tokens."""
        tokens = self._few_tokens()
        others = torch.cat([tokens[:, :-1], (tokens[:, -1:] + 1) % self.vocabulary], dim=1)
        before, after = (self.network(input_ids=text).logits[:, :-1] for text in (tokens, others))
        # with a tolerance, because kernels may sum in any order
        return not torch.allclose(before, after, rtol=1e-3, atol=1e-6)

    @property
    def softmax(self) -> tuple[Tensor, Tensor]:
        """The weights (V, D) and bias (V,) of the output layer. The bias is zeros if the layer has none."""
        return softmax_of(self.network)

    def initial_state(self, batch: int) -> State:
        """Return an empty state, because each text is read from its beginning."""
        return ()

    def forward(self, tokens: Tensor, state: State, causal: Tensor | None = None) -> tuple[Tensor, State]:
        """Read texts (B, T) int64. Return hidden states (B, T, D), or logits (B, T, V) if the network is not `plain`.

        With a hybrid objective, `causal` (B,) bool marks the texts whose tokens don't see later tokens.
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
        """Return the attention mask (B, 1, T, T), -inf for padding and, in `causal` texts, for later tokens, else 0."""
        length = tokens.shape[1]
        before = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
        seen = (before | ~causal[:, None, None, None]) & tokens.ne(PAD)[:, None, None, :]
        return torch.zeros(seen.shape, dtype=self.network.dtype, device=tokens.device).masked_fill(~seen, -torch.inf)

    def save_description(self, folder: Path) -> None:
        """Write config.json and, if the network can generate text, generation_config.json, as transformers does."""
        config = self.network.config
        config.architectures, config.dtype = [type(self.network).__name__], self.network.dtype
        config.save_pretrained(folder)
        if self.network.can_generate() and self.network.generation_config is not None:
            self.network.generation_config.update(do_sample=True, use_cache=True)  # type: ignore[no-untyped-call]
            self.network.generation_config.save_pretrained(folder)

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compile only the network, because it is traced while its output layer is replaced."""
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
    """Return how many tokens a Hugging Face network can read, or None if there is no limit.

    RoBERTa numbers its positions from the one after the padding's position.
    """
    limit: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    for name, module in network.named_modules():
        if limit is not None and name.endswith("position_embeddings"):
            padding = getattr(module, "padding_idx", None)
            return limit if padding is None else limit - padding - 1
    return limit


def has_plain_head(network: PreTrainedModel, tokens: Tensor) -> bool:
    """Return True if the logits for tokens (B, T) are the output layer's product, unchanged.

    The product is replaced by numbers from -LARGE to LARGE, which must come out unchanged. This reveals a scale, a cap
    or an added bias whatever the weights are. The small logits of new weights or of a padding token would not. A weight
    used after the layer is detected by its gradient, because a new bias is 0 and a new scale is 1.
    """
    head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    if type(head) is not nn.Linear or "forward" in vars(head):
        return False

    def spread(product: Tensor) -> Tensor:
        return torch.linspace(-LARGE, LARGE, product.numel(), device=product.device).view_as(product).to(product)

    with torch.enable_grad():
        logits, given = _with_product(network, head, spread, input_ids=tokens)
    if not given or logits.requires_grad or not torch.equal(logits.float(), given[-1].float()):
        return False
    with torch.no_grad():  # the layer's input must also come out unchanged, although it can be wider than logits
        return inputs_of_head(network, input_ids=tokens).shape == (*tokens.shape, head.in_features)


@torch.no_grad()
def reads_places(network: PreTrainedModel, **arguments: Any) -> bool:
    """Return True if the output layer can read a few places alone, because later code treats each place separately.

    The layer's product is replaced by random numbers, first for all places and then for three of them. The logits of
    these three must be the same both times. So the result does not depend on the weights. With new weights, logits
    would be similar everywhere.
    """
    try:
        head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    except (AttributeError, NotImplementedError):  # raised by code that comes with some models
        return False
    if not isinstance(head, nn.Module):
        return False
    shape = arguments["input_ids"].shape
    rows, columns = torch.tensor([[0, 1, 1], [2, 0, 3]], device=arguments["input_ids"].device)

    def random(product: Tensor) -> Tensor:
        return torch.randn(product.shape, generator=torch.Generator().manual_seed(0)).to(product)

    logits, given = _with_product(network, head, random, **arguments)
    if len(given) != 1 or given[0].shape[:2] != shape or logits.shape[:2] != shape:
        return False
    with head.register_forward_hook(lambda _, __, product: given[0][rows, columns].view_as(product)):
        chosen = logits_at(network, rows, columns, **arguments)
    return chosen.shape == logits[rows, columns].shape and torch.allclose(chosen, logits[rows, columns], rtol=1e-5)


def _with_product(
    network: PreTrainedModel, head: nn.Module, numbers: Callable[[Tensor], Tensor], **arguments: Any
) -> tuple[Tensor, list[Tensor]]:
    """Run the network with the output layer's product replaced, and return the logits and the replacements."""
    given: list[Tensor] = []

    def replace(_: nn.Module, __: Any, product: Tensor) -> Tensor:
        given.append(numbers(product))
        return given[-1]

    with head.register_forward_hook(replace):
        return network(**arguments).logits, given


def inputs_of_head(network: PreTrainedModel, **arguments: Any) -> Tensor:
    """Return the inputs (B, T, D) of a plain output layer by running the network without that layer."""
    head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    head.forward = lambda hidden: hidden
    try:
        hidden: Tensor = network(**arguments).logits
    finally:
        del head.forward  # restores the method of the class
    return hidden


def logits_at(network: PreTrainedModel, rows: Tensor, columns: Tensor, **arguments: Any) -> Tensor:
    """Return the logits (R, V) at R places of texts. The output layer reads only these places (see `reads_places`)."""

    def chosen(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        hidden, *others = inputs
        return hidden[rows, columns][None], *others

    with network.get_output_embeddings().register_forward_pre_hook(chosen):  # type: ignore[no-untyped-call]
        logits: Tensor = network(**arguments).logits
    return logits[0]


def softmax_of(network: PreTrainedModel) -> tuple[Tensor, Tensor]:
    """Return the weights (V, D) and bias (V,) of the output layer. The bias is zeros if the layer has none."""
    head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    return head.weight, head.weight.new_zeros(len(head.weight)) if head.bias is None else head.bias
