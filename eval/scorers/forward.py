"""Forward passes of Hugging Face models: their arguments, their errors, and whether two passes agree."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from pairscale.errors import ConfigError, InputError, PairscaleError

# Nats between two ways to the same log-probabilities, by the precision of the weights; a wrong way is far off.
PROBE_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


def tolerance(dtype: torch.dtype) -> float:
    """Nats by which equal log-probabilities of a model with weights of `dtype` may differ."""
    return PROBE_TOLERANCE.get(dtype, 0.1)


def without_cache(module: nn.Module) -> dict[str, bool]:
    """The argument that keeps a model from storing keys and values, where its `forward` takes it."""
    parameters = inspect.signature(module.forward).parameters
    takes = "use_cache" in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return {"use_cache": False} if takes else {}


@contextmanager
def forward_errors(name: str, tokens: int) -> Iterator[None]:
    """Raise InputError, in one line, for whatever the code of a model raises on texts of `tokens` tokens.

    Some architectures read no text that is shorter than their pooling, or only texts of one length.
    """
    try:
        yield
    except (PairscaleError, torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{name}: its code fails on a text of {tokens} tokens ({error_line(error)})") from error


def error_line(error: BaseException) -> str:
    """The type and the first line of an error's message."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line[:200]}" if line else type(error).__name__


def check_repeatable(read: Callable[[], Tensor], dtype: torch.dtype, name: str, tokens: int) -> None:
    """Raise ConfigError where two passes over one text give different log-probabilities; `read` makes one pass."""
    one, other = read(), read()
    if not torch.allclose(one, other, rtol=0, atol=tolerance(dtype), equal_nan=True):
        far = float((one - other).nan_to_num().abs().max())
        raise ConfigError(
            f"{name}: two passes over one text of {tokens} tokens differ by up to {far:.2g} nats, so its scores "
            "would be random (a Reformer's hashing is, unless its config.json sets hash_seed)"
        )
