"""Building the model that a configuration describes."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pairscale.errors import ConfigError
from train.models.base import LanguageModel
from train.models.config import ModelConfig, architectures, kind_of
from train.models.dropout import make_fast
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
        make_fast(model)
    return model


def _class_of(config: ModelConfig) -> Callable[..., LanguageModel]:
    """Return the class of a configuration's architecture; ConfigError for one of a plug-in that cannot be a model."""
    place = architectures()[kind_of(config)].module
    module, _, name = place.partition(":")
    try:
        found: Callable[..., LanguageModel] | None = getattr(import_module(module), name, None)
    except (ImportError, SyntaxError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"model={config.name}: {place} cannot be imported ({reason})") from error
    if found is None:
        raise ConfigError(f"model={config.name}: {sys.modules[module].__file__} has no class {name}")
    if missing := getattr(found, "__abstractmethods__", None):
        raise ConfigError(
            f"model={config.name}: {name} in {sys.modules[module].__file__} lacks {' and '.join(sorted(missing))}; "
            "every architecture defines initial_state and forward (docs/guides/extending.md)"
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
