"""Cross-entropy of a softmax over the whole vocabulary, without ever holding all its logits.

The logits of a batch (tokens x vocabulary) are the largest array of training by far: 4,480 tokens of 50,000 words take
900 MB, and autograd keeps several such arrays. Here a chunk of tokens at a time gets its logits in one buffer that is
used again, and in training that buffer is turned into the loss's gradient at once, so the backward pass only scales
three small results. What is left besides the three matrix products are passes over the buffer, so there are few.

Under autocast the matrix products run in its lower precision; softmax, sums and gradients are float32 (float64 where
the hidden states are).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

# Of logits at a time: smaller chunks re-read the weights too often, larger ones gain nothing. With a gradient, a chunk
# reads and writes that of all weights, too.
CHUNK_BYTES = 64 * 2**20
GRADIENT_CHUNK_BYTES = 256 * 2**20


def cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Sum over tokens of -ln p(target), in nats: a scalar, float32 or better.

    hidden (N, D), weight (V, D), bias (V,), targets (N,) int64; logits are hidden @ weight.T + bias. The gradients of
    hidden, weight and bias are made in the forward pass; without gradients only the loss is computed.
    """
    if not torch.is_grad_enabled():
        return -token_logprobs(hidden, weight, bias, targets).sum()
    loss: Tensor = _CrossEntropy.apply(hidden, weight, bias, targets)  # type: ignore[no-untyped-call]
    return loss


@torch.no_grad()
def token_logprobs(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, rows: Tensor | None = None) -> Tensor:
    """ln p(target) of each token, in nats: (N,), float32 or better, without gradient. Shapes as in `cross_entropy`.

    With `rows` (N,) int64, increasing, target i follows hidden[rows[i]]: hidden is (M, D), and each of its softmaxes is
    computed once, however many targets follow it.
    """
    result = torch.empty(len(targets), dtype=_exact(hidden), device=hidden.device)
    low, low_weight = hidden.to(_fast(hidden)), weight.to(_fast(weight))
    if rows is None:
        rows = torch.arange(len(hidden), device=hidden.device)
    for part, logits, _ in _logit_chunks(low, low_weight, bias, result.dtype, CHUNK_BYTES):
        logprobs = torch.log_softmax(logits, dim=-1, out=logits)
        first, last = torch.searchsorted(rows, torch.tensor([part.start, part.stop], device=rows.device)).tolist()
        result[first:last] = logprobs[rows[first:last] - part.start, targets[first:last]]
    return result


@torch.no_grad()
def all_logprobs(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """ln p of every token, in nats: (N, V), float32 or better, without gradient. Shapes as in `cross_entropy`.

    The caller keeps N small: `CHUNK_BYTES` says what a chunk of such rows may take.
    """
    low, low_weight, exact = hidden.to(_fast(hidden)), weight.to(_fast(weight)), _exact(hidden)
    result = torch.empty(len(hidden), len(weight), dtype=exact, device=hidden.device)
    for part, logits, _ in _logit_chunks(low, low_weight, bias, exact, CHUNK_BYTES):
        torch.log_softmax(logits, dim=-1, out=result[part])
    return result


class _CrossEntropy(torch.autograd.Function):
    """The derivative of -ln softmax(z)[t] by z is softmax(z) - onehot(t): known as soon as the softmax is."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        exact = _exact(hidden)
        low, low_weight = hidden.to(_fast(hidden)), weight.to(_fast(weight))
        loss = torch.zeros((), dtype=exact, device=hidden.device)
        hidden_grad = torch.empty_like(low)
        weight_grad = torch.zeros_like(weight, dtype=exact)
        bias_grad = torch.zeros_like(bias, dtype=exact)
        with torch.autocast(hidden.device.type, enabled=False):
            for part, logits, products in _logit_chunks(low, low_weight, bias, exact, GRADIENT_CHUNK_BYTES):
                index = targets[part, None]
                # ln p(target) is its logit less the largest one, plus ln p of that: p itself may be too small a number.
                above = logits.gather(1, index) - logits.amax(1, keepdim=True)
                gradient = torch.softmax(logits, dim=-1, out=logits)  # (n, V)
                loss -= (above + gradient.amax(1, keepdim=True).log()).sum()
                gradient.scatter_add_(1, index, gradient.new_full(index.shape, -1.0))
                bias_grad += gradient.sum(0)
                if products is not gradient:
                    gradient = products.copy_(gradient)
                torch.mm(gradient, low_weight, out=hidden_grad[part])
                if low.dtype == exact:
                    weight_grad.addmm_(gradient.T, low[part])
                else:
                    weight_grad += gradient.T @ low[part]
        ctx.save_for_backward(hidden_grad.to(hidden.dtype), weight_grad.to(weight.dtype), bias_grad.to(bias.dtype))
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients = [
            (saved * upstream).to(saved.dtype) if needed else None
            for saved, needed in zip(ctx.saved_tensors, ctx.needs_input_grad, strict=False)
        ]
        return (*gradients, None)


def _exact(tensor: Tensor) -> torch.dtype:
    """Type of sums and softmax: float32, or float64 where the input is."""
    return torch.promote_types(tensor.dtype, torch.float32)


def _fast(tensor: Tensor) -> torch.dtype:
    """Type of matrix products: autocast's where it is on."""
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else tensor.dtype


def chunk_bytes(tokens: int, vocabulary: int, bf16: bool) -> int:
    """What training on so many tokens takes at a time for its logits, in float32 and, for bf16, in that too."""
    logits = min(4 * tokens * vocabulary, GRADIENT_CHUNK_BYTES)
    return logits + logits // 2 if bf16 else logits


def _logit_chunks(
    hidden: Tensor, weight: Tensor, bias: Tensor, exact: torch.dtype, most_bytes: int
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """For each chunk its place, its logits (n, V), of `most_bytes` at most, and a buffer (n, V) of the products' type.

    The caller may overwrite both, as the next chunk does; where the types are the same, so are the two.
    """
    count, vocabulary = len(hidden), len(weight)
    chunks = -(-count * vocabulary * exact.itemsize // most_bytes)
    size = -(-count // max(1, chunks))  # chunks of equal size, no small rest
    whole = torch.empty(size, vocabulary, dtype=exact, device=hidden.device)
    whole_products = whole if hidden.dtype == exact else torch.empty_like(whole, dtype=hidden.dtype)
    bias = bias.to(exact)
    for start in range(0, count, max(1, size)):
        part = slice(start, min(start + size, count))
        logits = whole[: part.stop - part.start]
        products = logits if whole_products is whole else whole_products[: len(logits)]
        with torch.autocast(hidden.device.type, enabled=False):
            if products is logits:
                torch.addmm(bias, hidden[part], weight.T, out=logits)
            else:  # a sum of two types would make further copies
                logits.copy_(torch.mm(hidden[part], weight.T, out=products)).add_(bias)
        yield part, logits, products
