"""The model for scoring: weights as safetensors, a readable description, and the tokenizer.

    model.safetensors   the weights, float32, tied ones once
    model.json          version, kind, configuration and vocabulary of the model, info of the run, digest of the weights
    tokenizer/          the files of corpora.tokenizers

Reading them executes nothing. Imports no Lightning.
"""

import dataclasses
import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from corpora.tokenizers import Tokenizer, load_tokenizer, tokenizer_digest
from pairscale.errors import RunError
from pairscale.files import sha256_file, write_bytes, write_json
from pairscale.schema import Count, Digest, Positive, checked, read_json
from train.models.base import LanguageModel
from train.models.build import build_model, without_weights
from train.models.config import ModelConfig, architectures, kind_of
from train.runs.folder import AGAIN, RunFolder

MODEL_VERSION = 1
NGRAM = "ngram"  # kind of model in model.json
ABOUT = "pairscale"  # key in a safetensors header


class _Info(TypedDict, total=False):
    sample_words: Positive
    step: Count
    words_seen: Count
    stuck: str  # train.loop.perplexity.Perplexity.stuck


class Description(TypedDict):
    """Schema of model.json."""

    kind: str
    config: dict[str, Any]  # of the class in train.models.config.architectures
    vocabulary: Positive
    info: _Info  # plain data about the run, with other keys too
    digest: Digest  # of the file of weights
    tokenizer: NotRequired[Digest]  # of its vocabulary; missing in older files
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


def save_model(
    folder: RunFolder, model: LanguageModel, config: ModelConfig, tokenizer: Tokenizer, info: dict[str, Any]
) -> None:
    """Write the model, model.json last, as it vouches for the rest. `info` is plain data about the run."""
    tokenizer.save(folder.tokenizer)
    data = weights_of(model)
    write_bytes(folder.weights, data)
    write_description(folder, config, len(tokenizer), info, hashlib.sha256(data).hexdigest())


def write_description(
    folder: RunFolder,
    config: ModelConfig,
    vocabulary: int,
    info: dict[str, Any],
    digest: str,
    ngrams: Sequence[int] | None = None,
) -> None:
    """Write model.json; `digest` of the file of weights, `ngrams` by order from 1 on of an n-gram model."""
    description = {
        "version": MODEL_VERSION,
        "kind": kind_of(config) if ngrams is None else NGRAM,
        "config": dataclasses.asdict(config),
        "vocabulary": vocabulary,
        "tokenizer": tokenizer_digest(folder.tokenizer),
        **({} if ngrams is None else {"ngrams": ngrams}),
        "info": info,
        "digest": digest,
    }
    write_json(folder.model, description)


def weights_of(model: LanguageModel, about: dict[str, Any] | None = None) -> bytes:
    """Return the weights as safetensors, with the plain data `about` in the header; equal weights give equal bytes."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    # One key, as safetensors writes several in any order.
    return save(weights, None if about is None else {ABOUT: json.dumps(about)})


def load_model(folder: RunFolder) -> LoadedModel:
    """Read what `save_model` wrote. Raises RunError in one line for anything missing, damaged or foreign."""
    description = read_description(folder, architectures())
    digest = check_weights(folder.weights, description)
    return described_model(folder, description, folder.weights, digest, cast(dict[str, Any], description["info"]))


def check_weights(weights: Path, description: Description) -> str:
    """Return the digest of a file of weights. Raises RunError if it is missing or not the one in model.json."""
    if not weights.is_file():
        raise RunError(f"{weights}: missing, though model.json is there; {AGAIN}")
    digest = sha256_file(weights)
    if digest != description["digest"]:
        raise RunError(
            f"{weights}: its SHA-256 begins with {digest[:8]}, model.json says {description['digest'][:8]}: cut short "
            f"or changed since; {AGAIN}"
        )
    return digest


def described_model(
    folder: RunFolder, description: Description, weights: Path, digest: str, info: dict[str, Any]
) -> LoadedModel:
    """Return the model of a description, with the weights in a file. Raises as `load_model`."""
    tokenizer = load_tokenizer(folder.tokenizer)
    check_tokenizer(folder, description, len(tokenizer))
    config = checked(
        description["config"],
        architectures()[description["kind"]].config,
        folder.model,
        RunError,
        AGAIN,
        root="$.config",
    )
    with without_weights():  # they are replaced at once
        model = build_model(config, description["vocabulary"])
    if any(buffer.is_meta for buffer in model.buffers()):  # which no file of weights has
        model = build_model(config, description["vocabulary"])
    try:
        loaded = load_file(weights)
        _check_weights(weights, loaded)
        model.load_state_dict(loaded, assign=True)
    except (SafetensorError, OSError) as error:
        raise RunError(f"{weights}: cannot be read as safetensors ({error}); {AGAIN}") from None
    except RuntimeError as error:  # a line for each weight
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{weights}: not the weights that {folder.model.name} describes ({reason}); {AGAIN}") from None
    return LoadedModel(model.eval(), tokenizer, config, info, digest, tokenizer_digest(folder.tokenizer))


def check_tokenizer(folder: RunFolder, description: Description, size: int) -> None:
    """Raise RunError unless a run's tokenizer, of `size` tokens, is the one that its model was trained with."""
    if size != (known := description["vocabulary"]):
        raise RunError(f"{folder.tokenizer}: {size} tokens, {folder.model} was trained with {known}; {AGAIN}")
    trained = description.get("tokenizer") or folder.read_manifest().get("corpus", {}).get("tokenizer")
    there = tokenizer_digest(folder.tokenizer)
    if trained is not None and trained != there:
        raise RunError(
            f"{folder.tokenizer}: its vocabulary (digest {there[:8]}) is not the one that the model was trained with "
            f"({trained[:8]}): changed since; {AGAIN}"
        )


def _check_weights(path: Path, weights: dict[str, torch.Tensor]) -> None:
    """Raise RunError for weights that are not float32, NaN or infinite."""
    for name, weight in weights.items():
        if weight.dtype != torch.float32:
            raise RunError(f"{path}: {name} is {str(weight.dtype).removeprefix('torch.')}, must be float32; {AGAIN}")
        if not torch.isfinite(weight).all():
            count = int((~torch.isfinite(weight)).sum())
            raise RunError(
                f"{path}: {name} has {count:,} of {weight.numel():,} weights that are NaN or infinite; {AGAIN}"
            )


def read_description(folder: RunFolder, kinds: Collection[str]) -> Description:
    """Return model.json. Raises RunError if it is missing, damaged or of none of these kinds."""
    if not folder.model.exists():
        raise RunError(f"{folder.model}: missing; the run has saved no model yet, train it first")
    description = read_json(folder.model, Description, RunError, AGAIN, MODEL_VERSION)
    if description["kind"] not in kinds:
        raise RunError(
            f"{folder.model}: no architecture {description['kind']!r:.40}; available: {', '.join(kinds)}; install the "
            "plug-in of this run"
        )
    return description
