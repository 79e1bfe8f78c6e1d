"""Folders that the transformers library loads: weights, configuration, code, tokenizer and generation settings."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from corpora.fast_tokenizers import fast_tokenizer, is_serialisable
from corpora.tokenizers import Tokenizer
from eval.export.code.modeling_pairscale import LAYERS, PairscaleConfig, PairscaleForCausalLM
from eval.export.code.tokenization_pairscale import PairscaleTokenizer
from pairscale.errors import ConfigError
from pairscale.files import write_json, writing
from train.models.config import kind_of
from train.models.huggingface import HuggingFaceModel
from train.models.huggingface_config import HuggingFaceConfig
from train.runs.export import LoadedModel

OWN_KINDS = (*LAYERS, "txl")  # that modeling_pairscale.py has
NEEDS_CODE = "trust_remote_code=True"  # in place of the unknown word in the file of a tokenizer with code
_NO_SIZE = {"name", "seed", "initial_sd"}  # of a configuration: what a trained model does not need


def write_model(folder: Path, loaded: LoadedModel) -> None:
    """Write a model and its tokenizer. Raises ConfigError for an architecture without an export, WriteError."""
    model = network_of(loaded)
    tokenizer = exported_tokenizer(loaded.tokenizer, is_masked(loaded))
    if isinstance(loaded.model, HuggingFaceModel) and loaded.model.positions:
        tokenizer.model_max_length = loaded.model.positions
    if model.can_generate():
        model.generation_config.update(do_sample=True, use_cache=isinstance(loaded.model, HuggingFaceModel))
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _save_tokenizer(tokenizer, folder)
        model.save_pretrained(folder)


def is_masked(loaded: LoadedModel) -> bool:
    """Return True for a masked model."""
    return isinstance(loaded.config, HuggingFaceConfig) and loaded.config.masked


def needs_code(loaded: LoadedModel) -> bool:
    """Return True if the model or its tokenizer comes with code, which trust_remote_code=True runs."""
    return kind_of(loaded.config) in OWN_KINDS or not is_serialisable(loaded.tokenizer)


def needed_packages(tokenizer: Tokenizer) -> list[str]:
    """Return the packages that the code of an exported tokenizer needs besides transformers."""
    return [] if is_serialisable(tokenizer) else ["rjieba" if tokenizer.config.kind == "jieba" else "nltk"]


def network_of(loaded: LoadedModel) -> Any:
    """Return the model as one of transformers."""
    if isinstance(loaded.model, HuggingFaceModel):
        return loaded.model.network
    kind = kind_of(loaded.config)
    if kind not in OWN_KINDS:
        kinds = ", ".join([*OWN_KINDS, "architectures of Hugging Face"])
        raise ConfigError(f"model={loaded.config.name}: no export of {kind}; there is one of {kinds}")
    sizes = {key: value for key, value in dataclasses.asdict(loaded.config).items() if key not in _NO_SIZE}
    own: Any = PairscaleForCausalLM  # without types, as all of transformers
    described: Any = PairscaleConfig
    described.register_for_auto_class()
    own.register_for_auto_class("AutoModelForCausalLM")
    network = own(described(kind, sizes, len(loaded.tokenizer)))
    network.load_state_dict({f"model.{name}": weight for name, weight in loaded.model.state_dict().items()})
    return network.eval()


def exported_tokenizer(tokenizer: Tokenizer, masked: bool = False) -> Any:
    """Return the tokenizer that is saved: a file alone where that is enough, else with code.

    Unlike `fast_tokenizer` it reads the spelling of a special token in a text as that token: tools write "<eos>" there.
    """
    fast = fast_tokenizer(tokenizer, masked)
    backend = fast.backend_tokenizer
    # Without token_type_ids, which transformers 4 returns by default: GPT-2 would add the embeddings of these tokens.
    names = ["input_ids", "attention_mask"]
    options = {"tokenizer_object": backend, "padding_side": "right", "model_input_names": names}
    options |= fast.special_tokens_map
    kind: Any = PreTrainedTokenizerFast  # without types
    if not is_serialisable(tokenizer):
        # The file alone cuts no words and has no unknown one: read without the code, it fails on a text of several.
        backend.pre_tokenizer, backend.model.unk_token = None, NEEDS_CODE
        kind = PairscaleTokenizer
        kind.register_for_auto_class()
        kind = partial(kind, words="jieba" if tokenizer.config.kind == "jieba" else "treebank")
    return kind(**options)


def _save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write a tokenizer whose class has a name that transformers 4 knows, too; BabyLM's evaluation asks for 4.51."""
    tokenizer.save_pretrained(folder)
    file = folder / "tokenizer_config.json"
    described = json.loads(file.read_text(encoding="utf-8"))
    if described["tokenizer_class"] == "TokenizersBackend":
        write_json(file, described | {"tokenizer_class": "PreTrainedTokenizerFast"})
