"""Write and read a model's folder, RUN/model, which transformers can load as well.

    config.json, generation_config.json, *.py   configuration and code, for transformers
    tokenizer.json, tokenizer_config.json       the fast tokenizer (corpora/fast_tokenizers.py)
    model.safetensors                           the float32 weights by transformers' names, tied weights once
    tokenizer/                                  the tokenizer as it was fitted (corpora/tokenizers.py)
    pairscale.json                              kind, configuration and vocabulary, facts about the run, digests

pairscale reads only the last three, so reading a folder executes no code in it. An n-gram model has model.kenlm
instead of the files above them (train/ngram.py). This module imports transformers only for its networks.
"""

import dataclasses
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict, TypeVar, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from corpora.fast_tokenizers import save_fast_tokenizer
from corpora.tokenizers import Tokenizer, load_tokenizer, tokenizer_digest
from pairscale.errors import RunError
from pairscale.files import sha256_file, write_bytes, write_json, writing
from pairscale.schema import Count, Digest, Positive, checked, read_json
from train.models.base import LanguageModel
from train.models.build import build_model, without_weights
from train.models.config import ModelConfig, architectures, kind_of
from train.models.huggingface import HuggingFaceModel
from train.models.travel import write_description_and_code
from train.runs.folder import AGAIN, ModelFolder

MODEL_VERSION = 2
NGRAM = "ngram"  # kind of model in pairscale.json
ABOUT = "pairscale"  # key in the safetensors header of a snapshot


class _Info(TypedDict, total=False):
    sample_words: Positive
    step: Count
    words_seen: Count
    stuck: str  # train.loop.perplexity.Perplexity.stuck


Config = TypeVar("Config", bound=ModelConfig)


class Description(TypedDict):
    """The schema of pairscale.json."""

    kind: str
    config: dict[str, Any]  # fields of the configuration class in train.models.config.architectures
    vocabulary: Positive
    info: _Info  # plain data about the run, which may have further keys
    digest: Digest  # digest of the weights file
    tokenizer: Digest  # digest of the tokenizer's vocabulary
    ngrams: NotRequired[list[Count]]


@dataclass(frozen=True)
class LoadedModel:
    """A model for scoring, in evaluation mode on the CPU."""

    model: LanguageModel
    tokenizer: Tokenizer
    config: ModelConfig
    info: dict[str, Any]  # sample_words, step, words_seen, validation losses
    digest: str  # SHA-256 of the weights file
    tokenizer_digest: str

    @property
    def masked(self) -> bool:
        """True if the model predicts masked tokens from the tokens on both sides."""
        return self.config.masked


def save_model(
    folder: ModelFolder, model: LanguageModel, config: ModelConfig, tokenizer: Tokenizer, info: dict[str, Any]
) -> None:
    """Write a model's folder. pairscale.json is written last, because its existence means that the rest is complete.

    `info` is plain data about the run. Raises WriteError if a file can't be written.
    """
    with writing(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)
        if isinstance(model, HuggingFaceModel):
            model.save_description(folder.path)
        else:
            write_description_and_code(folder.path, model, config)
    save_fast_tokenizer(folder.path, tokenizer, config.masked, model.positions)
    tokenizer.save(folder.tokenizer)
    save_weights(folder, model, config, info)


def save_weights(folder: ModelFolder, model: LanguageModel, config: ModelConfig, info: dict[str, Any]) -> None:
    """Write the weights and pairscale.json to a folder with all other files. Raises WriteError if it can't."""
    data = save(_weights_of(model), {"format": "pt"})  # transformers' mark for PyTorch weights
    write_bytes(folder.weights, data)
    write_description(folder, config, model.vocabulary, info, hashlib.sha256(data).hexdigest())


def write_description(
    folder: ModelFolder, config: ModelConfig, vocabulary: int, info: dict[str, Any], digest: str, **more: Any
) -> None:
    """Write pairscale.json. `digest` is the weights file's SHA-256. N-gram models add `kind` and `ngrams`."""
    description = {
        "version": MODEL_VERSION,
        "kind": more.get("kind") or kind_of(config),
        "config": dataclasses.asdict(config),
        "vocabulary": vocabulary,
        "tokenizer": tokenizer_digest(folder.tokenizer),
        **more,
        "info": info,
        "digest": digest,
    }
    write_json(folder.description, description)


def _stored_names(model: LanguageModel) -> dict[str, str]:
    """Return transformers' name, used in weights files, for each weight of the model. Tied weights appear once."""
    stored = model.state_dict()
    names = [name for name, _ in (*model.named_parameters(), *model.named_buffers()) if name in stored]
    if isinstance(model, HuggingFaceModel):
        return {name: name.removeprefix("network.") for name in names}
    return {name: f"model.{name}" for name in names}


def _weights_of(model: LanguageModel) -> dict[str, Tensor]:
    weights = model.state_dict()
    return {stored: weights[name].detach().cpu().contiguous() for name, stored in _stored_names(model).items()}


def snapshot_bytes(model: LanguageModel, about: dict[str, Any]) -> bytes:
    """Return the weights as safetensors, with `about` as JSON in the header. Equal weights produce equal bytes."""
    return save(_weights_of(model), {ABOUT: json.dumps(about)})  # a single key, because the order of keys may vary


def load_model(folder: ModelFolder) -> LoadedModel:
    """Load a model that `save_model` wrote. Raises a one-line RunError if anything is missing, damaged or foreign."""
    description = read_description(folder, architectures())
    digest = check_weights(folder.weights, description)
    return described_model(folder, description, folder.weights, digest, cast(dict[str, Any], description["info"]))


def check_weights(weights: Path, description: Description) -> str:
    """Return the digest of a weights file. Raises RunError if the file is missing or differs from pairscale.json."""
    if not weights.is_file():
        raise RunError(f"{weights}: this file does not exist, although pairscale.json does. {AGAIN}.")
    digest = sha256_file(weights)
    if digest != description["digest"]:
        raise RunError(
            f"{weights}: this file was cut short or changed (its SHA-256 begins with {digest[:8]}, but pairscale.json "
            f"says {description['digest'][:8]}). {AGAIN}."
        )
    return digest


def described_config(folder: ModelFolder, description: Description, schema: type[Config]) -> Config:
    """Return the model's configuration. Raises RunError if it does not fit `schema`."""
    return checked(description["config"], schema, folder.description, RunError, AGAIN, root="$.config")


def described_tokenizer(folder: ModelFolder, description: Description) -> tuple[Tokenizer, str]:
    """Return the tokenizer and its digest. Raises RunError unless the model was trained with it."""
    tokenizer, digest = load_tokenizer(folder.tokenizer), tokenizer_digest(folder.tokenizer)
    if (size := len(tokenizer)) != (known := description["vocabulary"]):
        raise RunError(
            f"{folder.tokenizer}: the tokenizer has {size:,} tokens, but its model was trained on {known:,}. {AGAIN}."
        )
    if digest != (trained := description["tokenizer"]):
        raise RunError(
            f"{folder.tokenizer}: this vocabulary has changed since the model was trained with it (its digest was "
            f"{trained[:8]} and is now {digest[:8]}). {AGAIN}."
        )
    return tokenizer, digest


def described_model(
    folder: ModelFolder, description: Description, weights: Path, digest: str, info: dict[str, Any]
) -> LoadedModel:
    """Build the model of a description and load its weights from a file. Raises the same errors as `load_model`."""
    tokenizer, own_digest = described_tokenizer(folder, description)
    config = described_config(folder, description, architectures()[description["kind"]].config)
    with without_weights():  # they are loaded below
        model = build_model(config, description["vocabulary"])
    if any(buffer.is_meta for buffer in model.buffers()):  # weights files contain no buffers
        model = build_model(config, description["vocabulary"])
    try:
        loaded = load_file(weights)
        _check_numbers(weights, loaded)
        names = _stored_names(model)
        if unknown := sorted(set(names.values()) ^ set(loaded)):
            raise RuntimeError(f"only one of them has {unknown[0]}")
        model.load_state_dict({name: loaded[stored] for name, stored in names.items()}, strict=False, assign=True)
        if isinstance(model, HuggingFaceModel):
            model.network.tie_weights()
    except (SafetensorError, OSError) as error:
        raise RunError(f"{weights}: this file can't be read as safetensors ({error}). {AGAIN}.") from None
    except RuntimeError as error:  # its message has a line for each weight
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{weights}: these weights don't fit the model in pairscale.json ({reason}). {AGAIN}.") from None
    return LoadedModel(model.eval(), tokenizer, config, info, digest, own_digest)


def _check_numbers(path: Path, weights: dict[str, Tensor]) -> None:
    """Raise RunError unless all weights are float32 and finite."""
    for name, weight in weights.items():
        if weight.dtype != torch.float32:
            kind = str(weight.dtype).removeprefix("torch.")
            raise RunError(f"{path}: {name} is {kind} instead of float32. {AGAIN}.")
        if not torch.isfinite(weight).all():
            count = int((~torch.isfinite(weight)).sum())
            raise RunError(
                f"{path}: {count:,} of the {weight.numel():,} weights in {name} are NaN or infinite. {AGAIN}."
            )


def read_description(folder: ModelFolder, kinds: Collection[str]) -> Description:
    """Return pairscale.json. Raises RunError if it is missing or damaged, or if its kind is not one of `kinds`."""
    if not folder.description.exists():
        raise RunError(
            f"{folder.description}: this file does not exist, because no model was saved yet. Train it first."
        )
    description = read_json(folder.description, Description, RunError, AGAIN, MODEL_VERSION)
    if description["kind"] not in kinds:
        raise RunError(
            f"{folder.description}: there is no architecture {description['kind']!r:.40}. Install the plug-in that the "
            f"run was trained with (available: {', '.join(kinds)})."
        )
    return description
