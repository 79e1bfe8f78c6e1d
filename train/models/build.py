"""Build the model that a configuration describes, with dropout (Srivastava et al. 2014) that is fast on a CPU."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import Any

import numpy as np
import torch
from numpy.random import SFC64
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pairscale.errors import ConfigError
from train.models.base import LanguageModel
from train.models.config import ModelConfig, architectures, kind_of
from train.models.huggingface import HuggingFaceModel
from train.models.travel import file_of
from train.recipes import RecipeConfig


def build_model(config: ModelConfig, vocabulary: int) -> LanguageModel:
    """Build a model, drawing its weights from torch's global generator. Raises ConfigError if memory is too small."""
    if torch.get_default_device().type != "meta":
        check_memory(config, vocabulary)
    config.check_vocabulary(vocabulary)
    model: LanguageModel = _class_of(config)(config, vocabulary)
    if not isinstance(model, HuggingFaceModel):
        file_of(model)  # raises errors now that would otherwise stop the run when it saves its model
        for module in model.modules():
            if type(module) is nn.Dropout:
                module.__class__ = Dropout
    return model


def _class_of(config: ModelConfig) -> Callable[..., LanguageModel]:
    """Return the class of a configuration's architecture. Raises ConfigError if a plug-in's class can't be used."""
    place = architectures()[kind_of(config)].module
    try:
        found: Callable[..., LanguageModel] = resolve_name(place)
    except (ImportError, SyntaxError, AttributeError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"model={config.name}: {place} can't be imported ({reason}). Fix it.") from error
    if missing := getattr(found, "__abstractmethods__", None):
        raise ConfigError(
            f"model={config.name}: {place} must define {' and '.join(sorted(missing))}. Every architecture needs "
            "initial_state and forward (see docs/guides/extending.md)."
        )
    return found


def check_memory(config: ModelConfig, vocabulary: int) -> None:
    """Raise ConfigError if the float32 weights alone need more memory than this machine has."""
    count = parameter_count(config, vocabulary)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if 4 * count > memory:
        raise ConfigError(
            f"model={config.name}: with a vocabulary of {vocabulary:,}, its {count:,} weights need "
            f"{4 * count / 1e9:,.0f} GB, but this machine has {memory / 1e9:,.0f} GB. Use smaller or fewer layers, "
            "or a smaller vocabulary."
        )


class _Undrawn(TorchFunctionMode):
    """A mode that skips drawing initial weights, which would import torch._dynamo on the meta device."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        values = kwargs or {}
        if function in (torch.Tensor.normal_, torch.Tensor.uniform_):
            return args[0]
        if getattr(function, "__module__", "") == "torch.nn.init":
            return values["tensor"]
        return function(*args, **values)


@contextmanager
def without_weights() -> Iterator[None]:
    """Build models on the meta device within the block, so that their weights have shapes but no values."""
    with torch.device("meta"), _Undrawn():
        yield


def check_context(config: ModelConfig, recipe: RecipeConfig, vocabulary: int) -> None:
    """Raise ConfigError if the texts of a step are longer than the model can read."""
    with without_weights():
        positions = build_model(config, vocabulary).positions
    if positions is not None and recipe.bptt > positions:
        name = "context" if hasattr(recipe, "context") else "bptt"
        raise ConfigError(
            f"recipe.{name}={recipe.bptt}: model={config.name} can read at most {positions} tokens. Use recipe.{name}="
            f"{positions} or less, or give the network more positions with model.config."
        )


def parameter_count(config: ModelConfig, vocabulary: int) -> int:
    """Count a model's trainable weights without allocating them. Tied weights are counted once."""
    with without_weights():
        return sum(parameter.numel() for parameter in build_model(config, vocabulary).parameters())


INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # integer types by their size in bytes


class Dropout(nn.Dropout):
    """Dropout with fewer random bits than torch's, which draws doubles (a tenth of a Transformer-XL's time on a CPU).

    The probability is exact to 2^-33 in float32 and 2^-17 in bfloat16. Inputs are scaled by the actual probability.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return zeros with probability p, else input / (1 - p). Outside training, return the input unchanged."""
        on_cpu = input.device.type == "cpu" and not torch.compiler.is_compiling()  # compiled kernels draw by themselves
        if not (on_cpu and self.training and 0 < self.p < 1 and input.numel()):
            return super().forward(input)
        integer, bits = INTEGERS[input.itemsize], 8 * input.itemsize
        dropped = min(round(self.p * 2**bits), 2**bits - 1)  # out of 2^bits possible values
        # The bits come from numpy's SFC64, seeded by torch's generator, which would be slower.
        words = SFC64(int(torch.empty((), dtype=torch.int64).random_())).random_raw(-(-input.nbytes // 8))
        bits_drawn = torch.from_numpy(words.view(np.int64)).view(integer)[: input.numel()].view(input.shape)
        # torch converts booleans to floats slowly. Multiplying the bits of 1.0 by 0 or 1 gives the bits of 0.0 or 1.0.
        one = torch.ones((), dtype=input.dtype).view(integer)
        mask = bits_drawn.ge_(dropped - 2 ** (bits - 1)).mul_(one).view(input.dtype)
        return input.mul(mask).mul_(1 / (1 - dropped / 2**bits))
