"""The folder of a model, RUN/model: what transformers loads, and what pairscale checks before it does.

    config.json, generation_config.json, *.py   configuration and code, for transformers
    tokenizer.json, tokenizer_config.json       the fast tokenizer (corpora/fast_tokenizers.py)
    model.safetensors                           the weights, float32, tied ones once, by the names of transformers
    tokenizer/                                  the tokenizer as it was fitted (corpora/tokenizers.py)
    pairscale.json                              kind, configuration and vocabulary, info of the run, digests

pairscale reads the last three, so that reading a folder executes nothing of it; an n-gram model has model.kenlm in
place of the others (train/ngram.py). Imports no Lightning, and transformers for its networks alone.
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
    """Schema of pairscale.json."""

    kind: str
    config: dict[str, Any]  # of the class in train.models.config.architectures
    vocabulary: Positive
    info: _Info  # plain data about the run, with other keys too
    digest: Digest  # of the file of weights
    tokenizer: Digest  # of its vocabulary
    ngrams: NotRequired[list[Count]]


@dataclass(frozen=True)
class LoadedModel:
    """A model for scoring, in evaluation mode on the CPU. `digest` is the SHA-256 of the file of weights."""

    model: LanguageModel
    tokenizer: Tokenizer
    config: ModelConfig
    info: dict[str, Any]  # sample_words, step, words_seen, validation losses
    digest: str
    tokenizer_digest: str

    @property
    def masked(self) -> bool:
        """True if it predicts hidden tokens from both sides."""
        return self.config.masked


def save_model(
    folder: ModelFolder, model: LanguageModel, config: ModelConfig, tokenizer: Tokenizer, info: dict[str, Any]
) -> None:
    """Write the model, pairscale.json last, as it vouches for the rest. `info` is plain data about the run.

    Raises WriteError.
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
    """Write the weights and pairscale.json of a folder with all other files of the model. Raises WriteError."""
    data = save(_weights_of(model), {"format": "pt"})  # as transformers marks weights of PyTorch
    write_bytes(folder.weights, data)
    write_description(folder, config, model.vocabulary, info, hashlib.sha256(data).hexdigest())


def write_description(
    folder: ModelFolder, config: ModelConfig, vocabulary: int, info: dict[str, Any], digest: str, **more: Any
) -> None:
    """Write pairscale.json; `digest` of the file of weights. An n-gram model gives `kind` and `ngrams`, too."""
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
    """Return the names in a file, which are those of transformers, by the names in the model; of tied weights one."""
    stored = model.state_dict()
    names = [name for name, _ in (*model.named_parameters(), *model.named_buffers()) if name in stored]
    if isinstance(model, HuggingFaceModel):
        return {name: name.removeprefix("network.") for name in names}
    return {name: f"model.{name}" for name in names}


def _weights_of(model: LanguageModel) -> dict[str, Tensor]:
    weights = model.state_dict()
    return {stored: weights[name].detach().cpu().contiguous() for name, stored in _stored_names(model).items()}


def snapshot_bytes(model: LanguageModel, about: dict[str, Any]) -> bytes:
    """Return weights as safetensors with the plain data `about` in the header; equal weights give equal bytes."""
    return save(_weights_of(model), {ABOUT: json.dumps(about)})  # one key, as safetensors writes several in any order


def load_model(folder: ModelFolder) -> LoadedModel:
    """Read what `save_model` wrote. Raises RunError in one line for anything missing, damaged or foreign."""
    description = read_description(folder, architectures())
    digest = check_weights(folder.weights, description)
    return described_model(folder, description, folder.weights, digest, cast(dict[str, Any], description["info"]))


def check_weights(weights: Path, description: Description) -> str:
    """Return the digest of a file of weights. Raises RunError if it is missing or not the one in pairscale.json."""
    if not weights.is_file():
        raise RunError(f"{weights}: missing, though pairscale.json is there; {AGAIN}")
    digest = sha256_file(weights)
    if digest != description["digest"]:
        raise RunError(
            f"{weights}: its SHA-256 begins with {digest[:8]}, pairscale.json says {description['digest'][:8]}: cut "
            f"short or changed since; {AGAIN}"
        )
    return digest


def described_config(folder: ModelFolder, description: Description, schema: type[Config]) -> Config:
    """Return the model's configuration. Raises RunError if it is none of this type."""
    return checked(description["config"], schema, folder.description, RunError, AGAIN, root="$.config")


def described_tokenizer(folder: ModelFolder, description: Description) -> tuple[Tokenizer, str]:
    """Return the tokenizer and its digest. Raises RunError unless it is the one that the model was trained with."""
    tokenizer, digest = load_tokenizer(folder.tokenizer), tokenizer_digest(folder.tokenizer)
    if (size := len(tokenizer)) != (known := description["vocabulary"]):
        raise RunError(f"{folder.tokenizer}: {size} tokens, {folder.description} was trained with {known}; {AGAIN}")
    if digest != (trained := description["tokenizer"]):
        raise RunError(
            f"{folder.tokenizer}: its vocabulary (digest {digest[:8]}) is not the one that the model was trained with "
            f"({trained[:8]}): changed since; {AGAIN}"
        )
    return tokenizer, digest


def described_model(
    folder: ModelFolder, description: Description, weights: Path, digest: str, info: dict[str, Any]
) -> LoadedModel:
    """Return the model of a description, with the weights in a file. Raises as `load_model`."""
    tokenizer, own_digest = described_tokenizer(folder, description)
    config = described_config(folder, description, architectures()[description["kind"]].config)
    with without_weights():  # they are replaced at once
        model = build_model(config, description["vocabulary"])
    if any(buffer.is_meta for buffer in model.buffers()):  # which no file of weights has
        model = build_model(config, description["vocabulary"])
    try:
        loaded = load_file(weights)
        _check_numbers(weights, loaded)
        names = _stored_names(model)
        if unknown := sorted(set(names.values()) ^ set(loaded)):
            raise RuntimeError(f"{unknown[0]} is in one of them alone")
        model.load_state_dict({name: loaded[stored] for name, stored in names.items()}, strict=False, assign=True)
        if isinstance(model, HuggingFaceModel):
            model.network.tie_weights()
    except (SafetensorError, OSError) as error:
        raise RunError(f"{weights}: cannot be read as safetensors ({error}); {AGAIN}") from None
    except RuntimeError as error:  # a line for each weight
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{weights}: not the weights that pairscale.json describes ({reason}); {AGAIN}") from None
    return LoadedModel(model.eval(), tokenizer, config, info, digest, own_digest)


def _check_numbers(path: Path, weights: dict[str, Tensor]) -> None:
    """Raise RunError for weights that are not float32, NaN or infinite."""
    for name, weight in weights.items():
        if weight.dtype != torch.float32:
            raise RunError(f"{path}: {name} is {str(weight.dtype).removeprefix('torch.')}, must be float32; {AGAIN}")
        if not torch.isfinite(weight).all():
            count = int((~torch.isfinite(weight)).sum())
            raise RunError(
                f"{path}: {name} has {count:,} of {weight.numel():,} weights that are NaN or infinite; {AGAIN}"
            )


def read_description(folder: ModelFolder, kinds: Collection[str]) -> Description:
    """Return pairscale.json. Raises RunError if it is missing, damaged or of none of these kinds."""
    if not folder.description.exists():
        raise RunError(f"{folder.description}: missing; the run has saved no model yet, train it first")
    description = read_json(folder.description, Description, RunError, AGAIN, MODEL_VERSION)
    if description["kind"] not in kinds:
        raise RunError(
            f"{folder.description}: no architecture {description['kind']!r:.40}; available: {', '.join(kinds)}; "
            "install the plug-in of this run"
        )
    return description
