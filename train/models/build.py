"""Building the model that a configuration describes, with dropout (Srivastava et al. 2014) that is fast on a CPU."""

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
    """Return a new model, its weights drawn from torch's global generator. Raises ConfigError if they are too many."""
    if torch.get_default_device().type != "meta":
        check_memory(config, vocabulary)
    config.check_vocabulary(vocabulary)
    model: LanguageModel = _class_of(config)(config, vocabulary)
    if not isinstance(model, HuggingFaceModel):
        file_of(model)  # raises now what would end the run when its model is saved
        for module in model.modules():
            if type(module) is nn.Dropout:
                module.__class__ = Dropout
    return model


def _class_of(config: ModelConfig) -> Callable[..., LanguageModel]:
    """Return the class of a configuration's architecture; ConfigError for one of a plug-in that cannot be a model."""
    place = architectures()[kind_of(config)].module
    try:
        found: Callable[..., LanguageModel] = resolve_name(place)
    except (ImportError, SyntaxError, AttributeError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"model={config.name}: {place} cannot be imported ({reason})") from error
    if missing := getattr(found, "__abstractmethods__", None):
        raise ConfigError(
            f"model={config.name}: {place} lacks {' and '.join(sorted(missing))}; every architecture defines "
            "initial_state and forward (docs/guides/extending.md)"
        )
    return found


def check_memory(config: ModelConfig, vocabulary: int) -> None:
    """Raise ConfigError if the weights alone, in float32, take more memory than this machine has."""
    count = parameter_count(config, vocabulary)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if 4 * count > memory:
        raise ConfigError(
            f"model={config.name}: {count:,} weights over {vocabulary:,} tokens take {4 * count / 1e9:,.0f} GB, this "
            f"machine has {memory / 1e9:,.0f} GB; give smaller layers, fewer of them or a smaller vocabulary"
        )


class _Undrawn(TorchFunctionMode):
    """Leaves tensors as they are where weights would be drawn: on the meta device, that imports torch._dynamo."""

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
    """Models that are built within are on the meta device: their weights have shapes and no values."""
    with torch.device("meta"), _Undrawn():
        yield


def check_context(config: ModelConfig, recipe: RecipeConfig, vocabulary: int) -> None:
    """Raise ConfigError if a step has more tokens of a text than the model reads."""
    with without_weights():
        positions = build_model(config, vocabulary).positions
    if positions is not None and recipe.bptt > positions:
        name = "context" if hasattr(recipe, "context") else "bptt"
        raise ConfigError(
            f"recipe.{name}={recipe.bptt}: model={config.name} reads {positions} tokens at most; give recipe.{name}="
            f"{positions} or less, or the network more positions (model.config)"
        )


def parameter_count(config: ModelConfig, vocabulary: int) -> int:
    """Return the number of trainable weights, tied ones counted once, without allocating them."""
    with without_weights():
        return sum(parameter.numel() for parameter in build_model(config, vocabulary).parameters())


INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of an element


class Dropout(nn.Dropout):
    """torch's dropout, which draws doubles (a tenth of training a Transformer-XL on a CPU), with fewer random bits.

    The probability is exact to 2^-33 in float32 and 2^-17 in bfloat16; the scale fits the actual probability.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return zeros with probability p, else input / (1 - p); outside training the input. Any shape."""
        on_cpu = input.device.type == "cpu" and not torch.compiler.is_compiling()  # compiled kernels draw their own
        if not (on_cpu and self.training and 0 < self.p < 1 and input.numel()):
            return super().forward(input)
        integer, bits = INTEGERS[input.itemsize], 8 * input.itemsize
        dropped = min(round(self.p * 2**bits), 2**bits - 1)  # of 2^bits draws
        # Random bits of numpy's SFC64, seeded by torch's generator, which is slower.
        words = SFC64(int(torch.empty((), dtype=torch.int64).random_())).random_raw(-(-input.nbytes // 8))
        bits_drawn = torch.from_numpy(words.view(np.int64)).view(integer)[: input.numel()].view(input.shape)
        # Bits of the number 1 times 0 or 1 are those of 0 or 1: torch is slow to convert truth values to floats.
        one = torch.ones((), dtype=input.dtype).view(integer)
        mask = bits_drawn.ge_(dropped - 2 ** (bits - 1)).mul_(one).view(input.dtype)
        return input.mul(mask).mul_(1 / (1 - dropped / 2**bits))
