"""All that scoring needs of a trained model: weights as safetensors, a readable description, and the tokenizer.

    model.safetensors   the weights, float32, tied ones once
    model.json          version, kind, configuration and vocabulary of the model, info of the run, digest of the weights
    tokenizer/          what corpora.tokenizers saves

Reading them executes nothing. Imports no Lightning.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from corpora.errors import ConfigError, RunError
from corpora.files import sha256_file, write_bytes, write_json
from corpora.tokenizers import Tokenizer, load_tokenizer, tokenizer_digest
from train.config import LstmConfig, ModelConfig, TxlConfig
from train.models import LanguageModel, build_model
from train.runs import RunFolder

MODEL_VERSION = 1
ABOUT = "pairscale"  # key of a safetensors header
KINDS: dict[str, type[ModelConfig]] = {"lstm": LstmConfig, "txl": TxlConfig}


@dataclass(frozen=True)
class LoadedModel:
    """A model for scoring, in evaluation mode on the CPU. `digest` is the SHA-256 of its weights' file."""

    model: LanguageModel
    tokenizer: Tokenizer
    config: ModelConfig
    info: dict[str, Any]  # what `save_model` was given: sample_words, step, words_seen, validation losses
    digest: str
    tokenizer_digest: str


def save_model(
    folder: RunFolder, model: LanguageModel, config: ModelConfig, tokenizer: Tokenizer, info: dict[str, Any]
) -> None:
    """Write the model; model.json comes last and vouches for the rest. `info` is plain data about the run."""
    tokenizer.save(folder.tokenizer)
    data = weights_of(model)
    write_bytes(folder.weights, data)
    description = {
        "version": MODEL_VERSION,
        "kind": next(kind for kind, schema in KINDS.items() if isinstance(config, schema)),
        "config": dataclasses.asdict(config),
        "vocabulary": len(tokenizer),
        "info": info,
        "digest": hashlib.sha256(data).hexdigest(),
    }
    write_json(folder.model, description)


def weights_of(model: LanguageModel, about: dict[str, Any] | None = None) -> bytes:
    """The weights as safetensors; `about`: plain data for its header. The same weights give the same bytes."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    # One key, as safetensors writes several in any order.
    return save(weights, None if about is None else {ABOUT: json.dumps(about)})


def load_model(folder: RunFolder) -> LoadedModel:
    """Read what `save_model` wrote. Raises RunError in one line for anything missing, damaged or foreign."""
    description = read_description(folder, KINDS)
    if not folder.weights.is_file():
        raise RunError(
            f"{folder.weights}: missing, though {folder.model.name} is there; remove the run's folder to train it again"
        )
    digest = sha256_file(folder.weights)
    if digest != description["digest"]:
        raise RunError(
            f"{folder.weights}: its SHA-256 begins with {digest[:8]}, {folder.model.name} says "
            f"{description['digest'][:8]}: cut short or changed since; remove the run's folder to train it again"
        )
    return described_model(folder, description, folder.weights, digest, description["info"])


def described_model(
    folder: RunFolder, description: dict[str, Any], weights: Path, digest: str, info: dict[str, Any]
) -> LoadedModel:
    """The model that `description` (of model.json) tells of, with the weights in a file; errors as of `load_model`."""
    tokenizer = load_tokenizer(folder.tokenizer)
    vocabulary = description["vocabulary"]
    if len(tokenizer) != vocabulary:
        raise RunError(f"{folder.tokenizer}: {len(tokenizer)} tokens, {folder.model} was trained with {vocabulary}")
    try:
        config = KINDS[description["kind"]](**description["config"])
    except (TypeError, ConfigError) as error:
        raise RunError(f"{folder.model}: not the configuration of a {description['kind']} ({error})") from None
    with torch.device("meta"):  # the weights are replaced at once: draw none
        model = build_model(config, vocabulary)
    try:
        model.load_state_dict(load_file(weights), assign=True)
    except SafetensorError as error:
        raise RunError(f"{weights}: cannot be read as safetensors ({error})") from None
    except RuntimeError as error:  # of several lines, one for each weight
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{weights}: not the weights that {folder.model.name} describes ({reason})") from None
    return LoadedModel(model.eval(), tokenizer, config, info, digest, tokenizer_digest(folder.tokenizer))


def read_description(folder: RunFolder, kinds: Collection[str]) -> dict[str, Any]:
    """Contents of model.json, checked for version and keys, and for its kind to be one of `kinds`."""
    try:
        description = json.loads(folder.model.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{folder.model}: missing; the run has saved no model yet, train it first") from None
    except ValueError as error:
        raise RunError(
            f"{folder.model}: not readable as JSON ({error}); remove the run's folder to train it again"
        ) from None
    version = description.get("version") if isinstance(description, dict) else None
    if version != MODEL_VERSION:
        raise RunError(f"{folder.model}: version {version}, this code reads {MODEL_VERSION}")
    types = {"kind": str, "config": dict, "vocabulary": int, "info": dict, "digest": str}
    for key, expected in types.items():
        if not isinstance(description.get(key), expected):
            raise RunError(f"{folder.model}: {key} is {description.get(key)!r}, must be a {expected.__name__}")
    if description["kind"] not in kinds:
        raise RunError(f"{folder.model}: kind {description['kind']}, must be one of {', '.join(kinds)}")
    checked: dict[str, Any] = description
    return checked
