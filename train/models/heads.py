"""The output layer of a network of Hugging Face: whether its product is the logits as they are, and what it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LARGE = 10_000  # a logit beyond those of any model; float16 ends at 65,504


def has_plain_head(network: PreTrainedModel, tokens: Tensor) -> bool:
    """Return True if the logits after tokens (B, T) are the output layer's product, unchanged.

    The product is replaced by numbers from -LARGE to LARGE, which must come out as they are. So a scale, a cap or an
    added bias is seen whatever the weights are; small logits, as of new weights or of a padding token, would not show
    it. A weight that is used after the layer is seen by its gradient, because a new bias is 0 and a new scale is 1.
    """
    head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    if type(head) is not nn.Linear or "forward" in vars(head):
        return False
    sent: list[Tensor] = []

    def numbers(hidden: Tensor) -> Tensor:
        spread = torch.linspace(-LARGE, LARGE, hidden[..., 0].numel() * head.out_features, device=hidden.device)
        sent.append(spread.view(*hidden.shape[:-1], -1).to(head.weight.dtype))
        return sent[-1]

    with torch.enable_grad(), _replaced(head, numbers):
        logits = network(input_ids=tokens).logits
    if not sent or logits.requires_grad or not torch.equal(logits.float(), sent[-1].float()):
        return False
    with torch.no_grad():  # what follows the layer must also leave its input as it is, which may be wider than logits
        return inputs_of_head(network, input_ids=tokens).shape == (*tokens.shape, head.in_features)


def inputs_of_head(network: PreTrainedModel, **arguments: Any) -> Tensor:
    """Return the inputs (B, T, D) of a plain output layer: the logits of a pass that leaves its product out."""
    with _replaced(network.get_output_embeddings(), _same):  # type: ignore[no-untyped-call]
        hidden: Tensor = network(**arguments).logits
    return hidden


def softmax_of(network: PreTrainedModel) -> tuple[Tensor, Tensor]:
    """Return the weight (V, D) and bias (V,) of the output layer; zeros if it has no bias."""
    head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    return head.weight, head.weight.new_zeros(len(head.weight)) if head.bias is None else head.bias


def _same(hidden: Tensor) -> Tensor:
    return hidden


def logits_at(network: PreTrainedModel, rows: Tensor, columns: Tensor, **arguments: Any) -> Tensor:
    """Return the logits (R, V) at R places of texts. Its output layer reads these alone: see `reads_places`."""

    def chosen(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        hidden, *others = inputs
        return hidden[rows, columns][None], *others

    with network.get_output_embeddings().register_forward_pre_hook(chosen):  # type: ignore[no-untyped-call]
        logits: Tensor = network(**arguments).logits
    return logits[0]


@torch.no_grad()
def reads_places(network: PreTrainedModel, **arguments: Any) -> bool:
    """Return True if the output layer can be given some places alone: what follows it changes each place by itself.

    The layer's product is replaced by random numbers, once for all places and once for three of them, whose logits must
    come out as they do among all. So it does not matter what the weights are: new ones give all places similar logits.
    """
    try:
        head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    except (AttributeError, NotImplementedError):  # of code that comes with a model
        return False
    tokens = arguments["input_ids"]
    rows, columns = torch.tensor([[0, 1, 1], [2, 0, 3]], device=tokens.device)
    if not isinstance(head, nn.Module):
        return False
    numbers: list[Tensor] = []  # (B, T, V)

    def all_numbers(_: nn.Module, __: Any, product: Tensor) -> Tensor:
        random = torch.randn(product.shape, generator=torch.Generator().manual_seed(0))
        numbers.append(random.to(product))
        return numbers[-1]

    def chosen_numbers(_: nn.Module, __: Any, product: Tensor) -> Tensor:
        return numbers[0][rows, columns].view_as(product)

    with head.register_forward_hook(all_numbers):
        logits = network(**arguments).logits
    if len(numbers) != 1 or numbers[0].shape[:2] != tokens.shape or logits.shape[:2] != tokens.shape:
        return False
    with head.register_forward_hook(chosen_numbers):
        chosen = logits_at(network, rows, columns, **arguments)
    return chosen.shape == logits[rows, columns].shape and torch.allclose(chosen, logits[rows, columns], rtol=1e-5)


@contextmanager
def _replaced(head: nn.Module, forward: Callable[[Tensor], Tensor]) -> Iterator[None]:
    head.forward = forward
    try:
        yield
    finally:
        del head.forward  # the class's own again
