"""Load a pretrained model to fine-tune, with the tokenizer in its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pairscale.errors import ConfigError, InputError
from pairscale.sizes import written
from train.models.config import PretrainedConfig
from train.models.huggingface import HuggingFaceModel
from train.models.pretrained import check_finite, source_of, weights_digest
from train.runs.folder import ModelFolder
from train.runs.model_folder import LoadedModel, load_model

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_UNUSED = {"trust_remote_code": False, "load_in_4bit": False, "dtype": "fp32", "begin": None}


@dataclass(frozen=True)
class PretrainedModel:
    """A model of Hugging Face with its tokenizer, in evaluation mode on the CPU."""

    model: HuggingFaceModel
    tokenizer: PreTrainedTokenizerFast
    masked: bool
    digest: str  # SHA-256 of the weights


def load_pretrained(config: PretrainedConfig) -> LoadedModel | PretrainedModel:
    """Load a model of Hugging Face, or one that pairscale exported.

    Raises:
        ConfigError: if the model is of the other kind, or if fine-tuning doesn't use a key or an architecture.
        InputError: if the model or its tokenizer is missing, damaged, or needs code of its own.
        RunError: if its weights are NaN or infinite, or if an exported folder is damaged.
    """
    for name, unused in _UNUSED.items():
        if (value := getattr(config, name)) != unused:
            raise ConfigError(f"model.{name}={written(value)}: fine-tuning doesn't use this key. Leave it out.")
    folder = ModelFolder(Path(config.path).expanduser() / (config.revision or ""))
    if folder.description.is_file() and not config.revisions:
        loaded = load_model(folder)
        if loaded.masked != config.masked:
            other = "masked" if loaded.masked else "causal"
            raise ConfigError(f"model.path={config.path}: this is a {other} model. Use model=hf_{other}.")
        return loaded
    source = source_of(config)
    with source.one_line_errors():
        network, tokenizer, _ = source.load()
        check_finite(network, source.where)
        if network.base_model is network:
            raise ConfigError(f"{source.where}: fine-tuning doesn't support this architecture. Choose another model.")
        if config.masked and tokenizer.pad_token_id is None:
            raise InputError(f"{source.where}: the tokenizer has no token for padding. Add pad_token to it.")
        model = HuggingFaceModel.of(network, tokenizer.pad_token_id if config.masked else None)
        return PretrainedModel(model, tokenizer, config.masked, weights_digest(network))
