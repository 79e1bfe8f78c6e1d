"""Forward passes of Hugging Face models: their arguments, their errors, and their precision."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from pairscale.errors import InputError, PairscaleError

# Nats between two computations of the same log-probabilities, by the precision of the weights; a wrong one is far off.
PROBE_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


def tolerance(dtype: torch.dtype) -> float:
    """Return the nats by which equal log-probabilities of a model with weights of `dtype` may differ."""
    return PROBE_TOLERANCE.get(dtype, 0.1)


def accepted(module: nn.Module, **arguments: Any) -> dict[str, Any]:
    """Return those of the arguments that the module's `forward` takes."""
    parameters = inspect.signature(module.forward).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return {name: value for name, value in arguments.items() if takes_any or name in parameters}


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
    """Return the type and the first line of an error's message."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line[:200]}" if line else type(error).__name__
