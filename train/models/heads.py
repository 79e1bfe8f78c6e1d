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


@contextmanager
def _replaced(head: nn.Module, forward: Callable[[Tensor], Tensor]) -> Iterator[None]:
    head.forward = forward
    try:
        yield
    finally:
        del head.forward  # the class's own again
