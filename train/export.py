"""A model as files that scoring reads: safetensors, readable JSON and the tokenizer. No Lightning, no pickle."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from corpora.errors import RunError
from corpora.files import atomic_path, sha256_file, write_json
from corpora.tokenizers import Tokenizer, load_tokenizer
from train.config import LstmConfig, ModelConfig, TxlConfig
from train.models import LanguageModel, build_model
from train.runs import RunFolder

MODEL_VERSION = 1
_KINDS: dict[str, type[ModelConfig]] = {"lstm": LstmConfig, "txl": TxlConfig}


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to score: in evaluation mode, on the CPU, in float32."""

    model: LanguageModel
    tokenizer: Tokenizer
    config: ModelConfig
    info: dict[str, Any]  # sample_words, step, words_seen, validation losses
    digest: str  # SHA-256 of the weights' file


def save_model(
    folder: RunFolder, model: LanguageModel, config: ModelConfig, tokenizer: Tokenizer, info: dict[str, Any]
) -> None:
    """Write model.safetensors, tokenizer/ and, last, model.json with the digest of the weights."""
    kind = next(name for name, schema in _KINDS.items() if type(config) is schema)
    # state_dict names a tied tensor twice and safetensors stores no tensor twice: keep the first name of each.
    names: dict[int, str] = {}
    for name, tensor in model.state_dict().items():
        names.setdefault(tensor.data_ptr(), name)
    state = model.state_dict()
    weights = {name: state[name].detach().cpu().contiguous() for name in names.values()}
    with atomic_path(folder.weights) as temporary:
        save_file(weights, temporary)
        digest = sha256_file(temporary)
    tokenizer.save(folder.tokenizer)
    write_json(
        folder.model,
        {
            "version": MODEL_VERSION,
            "kind": kind,
            "config": dataclasses.asdict(config),
            "vocabulary": len(tokenizer),
            "info": info,
            "digest": digest,
        },
    )


def load_model(folder: RunFolder) -> LoadedModel:
    """Read what `save_model` wrote. Raises RunError in one line when a file is missing, cut short or from elsewhere."""
    try:
        saved = json.loads(folder.model.read_text(encoding="utf-8"))
        version, kind, digest = saved["version"], saved["kind"], saved["digest"]
    except FileNotFoundError:
        raise RunError(f"{folder.path}: no model.json; train the run first") from None
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{folder.model}: not a model description ({error!r})") from None
    if version != MODEL_VERSION or kind not in _KINDS:
        raise RunError(
            f"{folder.model}: version {version}, kind {kind}; this code reads {MODEL_VERSION}, {list(_KINDS)}"
        )
    config = _KINDS[kind](**saved["config"])
    generator = torch.random.get_rng_state()
    model = build_model(config, saved["vocabulary"])
    torch.random.set_rng_state(generator)  # reading a model leaves no trace in a running experiment
    try:
        weights = load_file(folder.weights)
        missing, unexpected = model.load_state_dict(weights, strict=False)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise RunError(f"{folder.weights}: cannot be read as the weights of {folder.model} ({error})") from None
    # A tied tensor is read under one of its names; the other is then no gap.
    if unexpected or not _all_filled(model, set(weights)):
        raise RunError(f"{folder.weights}: other weights than {folder.model} describes ({[*missing, *unexpected]})")
    if sha256_file(folder.weights) != digest:
        raise RunError(f"{folder.weights}: its digest is not the one in {folder.model}; export the run again")
    model.eval()
    return LoadedModel(model, load_tokenizer(folder.tokenizer), config, saved["info"], digest)


def _all_filled(model: LanguageModel, names: set[str]) -> bool:
    """Whether every tensor shares its memory with one of those that were read."""
    state = model.state_dict()
    read = {state[name].data_ptr() for name in names}
    return all(tensor.data_ptr() in read for tensor in state.values())
