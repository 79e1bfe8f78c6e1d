"""Folders that the transformers library loads: weights, configuration, code, tokenizer and generation settings."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from corpora.fast_tokenizers import fast_tokenizer, is_serialisable
from corpora.tokenizers import Tokenizer
from eval.export.code.tokenization_pairscale import PairscaleTokenizer
from pairscale.files import write_json, writing
from train.models.huggingface import HuggingFaceModel
from train.models.huggingface_config import HuggingFaceConfig
from train.models.travel import of_transformers, write_code
from train.runs.export import LoadedModel

NEEDS_CODE = "trust_remote_code=True"  # in place of the unknown word in the file of a tokenizer with code


def write_model(folder: Path, loaded: LoadedModel) -> None:
    """Write a model and its tokenizer. Raises WriteError."""
    model = network_of(loaded)
    tokenizer = exported_tokenizer(loaded.tokenizer, is_masked(loaded))
    if isinstance(loaded.model, HuggingFaceModel) and loaded.model.positions:
        tokenizer.model_max_length = loaded.model.positions
    if model.can_generate():
        model.generation_config.update(do_sample=True, use_cache=isinstance(loaded.model, HuggingFaceModel))
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _save_tokenizer(tokenizer, folder)
        if not isinstance(loaded.model, HuggingFaceModel):
            write_code(folder, model)
        model.save_pretrained(folder)


def is_masked(loaded: LoadedModel) -> bool:
    """Return True for a masked model."""
    return isinstance(loaded.config, HuggingFaceConfig) and loaded.config.masked


def needs_code(loaded: LoadedModel) -> bool:
    """Return True if the model or its tokenizer comes with code, which trust_remote_code=True runs."""
    return not isinstance(loaded.model, HuggingFaceModel) or not is_serialisable(loaded.tokenizer)


def needed_packages(tokenizer: Tokenizer) -> list[str]:
    """Return the packages that the code of an exported tokenizer needs besides transformers."""
    return [] if is_serialisable(tokenizer) else ["rjieba" if tokenizer.config.kind == "jieba" else "nltk"]


def network_of(loaded: LoadedModel) -> Any:
    """Return the model as one of transformers."""
    if isinstance(loaded.model, HuggingFaceModel):
        return loaded.model.network
    return of_transformers(loaded.model, loaded.config).train(False)


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
