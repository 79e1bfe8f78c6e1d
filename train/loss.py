"""Cross-entropy from hidden vectors, without ever holding the logits of a whole batch.

The logits of a step (batch x bptt x vocabulary) are by far its largest tensor. Here they exist for one chunk of tokens
at a time: the chunk's loss and its gradient are made together in the forward pass, and the buffer is used again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK_BYTES = 64 * 2**20  # of float32 logits


def _compute_dtype(hidden: Tensor) -> torch.dtype:
    """dtype of the matrix products: autocast's where it is on."""
    kind = hidden.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype


def _rows(vocabulary: int) -> int:
    return max(1, CHUNK_BYTES // (4 * vocabulary))


def _float(tensor: Tensor) -> Tensor:
    """At least float32; float64 stays."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        dtype = _compute_dtype(hidden)
        needs_gradient = any(ctx.needs_input_grad[:3])
        with torch.autocast(hidden.device.type, enabled=False):
            products = weight.to(dtype)
            total = _float(bias).new_zeros(())
            if needs_gradient:
                grad_hidden = torch.empty_like(hidden)
                grad_weight = torch.zeros_like(weight)
                grad_bias = torch.zeros_like(bias)
            for start in range(0, len(targets), _rows(len(weight))):
                part = slice(start, start + _rows(len(weight)))
                inputs, target = hidden[part].to(dtype), targets[part, None]
                logits = _float(inputs @ products.T)
                logits += bias
                normaliser = logits.logsumexp(dim=1, keepdim=True)
                total += (normaliser - logits.gather(1, target)).sum()
                if needs_gradient:
                    slope = logits.sub_(normaliser).exp_()  # softmax, in the logits' own memory
                    slope.scatter_add_(1, target, slope.new_full((1, 1), -1.0).expand_as(target))
                    grad_bias += slope.sum(dim=0)
                    slope = slope.to(dtype)
                    grad_hidden[part] = slope @ products
                    if dtype == grad_weight.dtype:
                        grad_weight.addmm_(slope.T, inputs)
                    else:
                        grad_weight += slope.T @ inputs
        if needs_gradient:
            ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        return grad_hidden * outer[0], grad_weight * outer[0], grad_bias * outer[0], None


def cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Summed loss in nats (float32 or better) of `targets` (N,) given `hidden` (N, D), `weight` (V, D), `bias` (V,).

    Under autocast the matrix products run in its dtype; the softmax and all sums are float32. Differentiable once.
    """
    total: Tensor = _CrossEntropy.apply(hidden, weight, bias, targets)
    return total


@torch.no_grad()
def token_logprobs(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Natural-log probabilities (N,), float32 or better, of `targets` (N,) given `hidden` (N, D)."""
    dtype = _compute_dtype(hidden)
    result = []
    with torch.autocast(hidden.device.type, enabled=False):
        products = weight.to(dtype)
        for start in range(0, len(targets), _rows(len(weight))):
            part = slice(start, start + _rows(len(weight)))
            logits = _float(hidden[part].to(dtype) @ products.T)
            logits += bias
            result.append(logits.gather(1, targets[part, None])[:, 0] - logits.logsumexp(dim=1))
    return torch.cat(result) if result else _float(bias).new_zeros(0)
