"""Load a pretrained model to fine-tune, with the tokenizer in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch import nn

from pairscale.errors import ConfigError, InputError
from pairscale.sizes import written
from train.models.config import PretrainedConfig
from train.models.huggingface import most_positions
from train.models.pretrained import check_finite, source_of, weights_digest
from train.runs.folder import ModelFolder
from train.runs.model_folder import LoadedModel, load_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

_UNUSED = {"trust_remote_code": False, "load_in_4bit": False, "dtype": "fp32", "begin": None}


class PretrainedNetwork(nn.Module):
    """A network of transformers, the id of its padding (None for causal models), and its longest text in tokens."""

    def __init__(self, network: PreTrainedModel, pad: int | None):
        super().__init__()
        self.network, self.pad, self.positions = network, pad, most_positions(network)


@dataclass(frozen=True)
class PretrainedModel:
    """A pretrained model with its tokenizer, in evaluation mode on the CPU."""

    model: PretrainedNetwork
    tokenizer: PreTrainedTokenizerFast
    masked: bool
    digest: str  # SHA-256 of the weights

    def encode(self, texts: Sequence[Sequence[str]], longest: int) -> tuple[list[list[int]], int]:
        """Return the tokens of N texts, or of N pairs, and how many were cut because they had more than `longest`.

        They have the special tokens that the tokenizer adds, as in BabyLM's pipeline. GPT-2's tokenizer adds none.
        Raises InputError if a text has no tokens, or a token that the model doesn't know.
        """
        whole = self.tokenizer(*texts, verbose=False)["input_ids"]
        cut = sum(len(ids) > longest for ids in whole)
        ids: list[list[int]] = self.tokenizer(*texts, truncation="longest_first", max_length=longest)["input_ids"]
        if not all(ids):
            raise InputError(f"Row {ids.index([]) + 1} of a table has no tokens. Remove rows with empty texts.")
        known = len(self.model.network.get_input_embeddings().weight)  # type: ignore[arg-type]
        if (highest := max(map(max, ids))) >= known:
            raise InputError(
                f"The tokenizer has a token {highest}, but the model has only {known} tokens. Use the model's own "
                "tokenizer."
            )
        return ids, cut


def load_pretrained(config: PretrainedConfig) -> LoadedModel | PretrainedModel:
    """Load a model of Hugging Face, or one that pairscale exported, to fine-tune it.

    Raises:
        ConfigError: if the model is of the other kind, or if fine-tuning doesn't use a key.
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
            kind = "masked" if loaded.masked else "causal"
            raise ConfigError(f"model.path={config.path}: this is a {kind} model. Use model=hf_{kind}.")
        return loaded
    source = source_of(config)
    with source.one_line_errors():
        network, tokenizer, _ = source.load()
        check_finite(network, source.where)
        if network.base_model is network:
            raise ConfigError(f"{source.where}: fine-tuning doesn't support this architecture. Choose another model.")
        if config.masked and tokenizer.pad_token_id is None:
            raise InputError(
                f"{source.where}: the tokenizer has no token for padding. Add one to tokenizer_config.json."
            )
        model = PretrainedNetwork(network, tokenizer.pad_token_id if config.masked else None)
        return PretrainedModel(model, tokenizer, config.masked, weights_digest(network))
