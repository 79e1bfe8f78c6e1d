"""Lower limit of the time of a training step: its matrix products, recurrent layers and softmaxes alone.

A step runs once under a dispatch mode that records every call of OPERATIONS with its arguments, forward and backward;
the limit is the time of these calls, one after another, on the same tensors. No dropout, no casts, no sums, no
optimiser. Another implementation of the step can call other operations and so have another limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

OPERATIONS = {
    "mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_", "_softmax", "_log_softmax", "_log_softmax_backward_data",
    "_softmax_backward_data", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "_cudnn_rnn", "_cudnn_rnn_backward",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_cudnn_attention_backward",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward",
}  # fmt: skip


class Recorded(TorchDispatchMode):
    """Records the calls of OPERATIONS while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.overloadpacket.__name__ in OPERATIONS:
            self.calls.append((func, args, kwargs))
        return func(*args, **kwargs)


def products_alone(step: Callable[[], float]) -> Callable[[], float]:
    """Return a step that repeats the calls of OPERATIONS of `step`, in its order, for as many units."""
    with Recorded() as recorded:
        units = step()
    assert recorded.calls
    calls = [(func, _detached(args), {key: _detached(value) for key, value in kwargs.items()})
             for func, args, kwargs in recorded.calls]  # fmt: skip

    def alone() -> float:
        for func, args, kwargs in calls:
            func(*args, **kwargs)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return units

    return alone


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, (list, tuple)):
        return type(value)(_detached(part) for part in value)
    return value
