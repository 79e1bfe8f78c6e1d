"""Loading of Hugging Face models, by name on the hub or from a local folder, and their revisions.

Weights are read from safetensors and code from the transformers package only, unless the configuration allows more.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import os
from pathlib import Path
from typing import Any

import torch

from corpora.errors import ConfigError, InputError
from corpora.hub import import_transformers
from eval.causal import CausalScorer
from eval.config import PretrainedConfig
from eval.masked import MaskedScorer
from eval.scorers import Scorer

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def load_pretrained(config: PretrainedConfig, batch_tokens: int, device: str = "cpu", progress: bool = False) -> Scorer:
    """The scorer of a Hugging Face model.

    Raises InputError for a model that is not there, cannot be had without a network, or has its weights only as a
    pickle; ConfigError for one of the other kind and for options that this machine cannot follow.
    """
    if config.load_in_4bit and not torch.cuda.is_available():
        raise ConfigError("model.load_in_4bit=true: needs an NVIDIA GPU with CUDA, and there is none here")
    transformers = import_transformers()
    path, revision = _local(config.path), config.revision
    if path and revision:
        path, revision = _local(str(Path(path) / revision)), None
    path = path or config.path
    options: dict[str, Any] = {"revision": revision or "main", "trust_remote_code": config.trust_remote_code}
    try:
        described = transformers.AutoConfig.from_pretrained(path, **options)
        _check_kind(config, described)
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, **options)
        if config.load_in_4bit:
            options["quantization_config"] = transformers.BitsAndBytesConfig(load_in_4bit=True)
        auto = transformers.AutoModelForCausalLM if config.kind == "causal" else transformers.AutoModelForMaskedLM
        model, loading = auto.from_pretrained(
            path,
            output_loading_info=True,
            dtype=DTYPES[config.dtype],
            use_safetensors=None if config.allow_pickle else True,
            **options,
        )
    except (OSError, ValueError, ImportError) as error:
        raise InputError(_why_not(config, path, error)) from None
    lacking = sorted(loading["missing_keys"])
    if lacking:  # they would be drawn at random, and the scores mean nothing
        raise InputError(
            f"model.path={config.path}: its weights lack {', '.join(lacking[:3])}"
            f"{f' and {len(lacking) - 3} more' if len(lacking) > 3 else ''}, which a {config.kind} model needs"
        )
    name = Path(config.path).name
    if config.kind == "masked":
        return MaskedScorer(model, tokenizer, name, batch_tokens, device, progress)
    return CausalScorer(model, tokenizer, name, batch_tokens, config.begin, device, progress)


def revisions(config: PretrainedConfig) -> list[PretrainedConfig]:
    """One configuration for each of `model.revisions`, by step, patterns filled in; the one given where there are none.

    Raises InputError where a pattern fits nothing or the hub cannot be asked.
    """
    if config.revisions is None:
        return [config]
    names: list[str] = []
    for asked in config.revisions:
        if not set(asked) & set("*?["):
            names.append(asked)
            continue
        there = _known_revisions(config)
        if not (fitting := fnmatch.filter(there, asked)):
            told = f"there are {', '.join(sorted(there)[:5])}" if there else "there are none"
            raise InputError(f"model.revisions={asked}: no such revision of {config.path}; {told}")
        names += fitting
    chosen = [dataclasses.replace(config, revision=name, revisions=None) for name in dict.fromkeys(names)]
    return sorted(chosen, key=lambda one: (one.step is None, one.step, one.revision))


def _known_revisions(config: PretrainedConfig) -> list[str]:
    """Names of the folders in a local model, or of the branches and tags of one on the hub."""
    if folder := _local(config.path):
        return [path.name for path in Path(folder).iterdir() if path.is_dir()]
    import_transformers()  # tells the hub's library whether there is a network
    import huggingface_hub

    try:
        found = huggingface_hub.list_repo_refs(config.path)
    except (OSError, ValueError) as error:
        raise InputError(_why_not(config, config.path, error)) from None
    return [reference.name for reference in [*found.branches, *found.tags]]


def _local(path: str) -> str | None:
    """The folder that `path` names, or None where it is a name on the hub. Raises InputError for a missing folder."""
    folder = Path(path).expanduser()
    if folder.is_dir():
        return str(folder)
    if folder.is_absolute() or path.startswith((".", "~")) or path.count("/") > 1:  # the hub has owner/name
        raise InputError(f"model.path={path}: no such folder")
    return None


def _check_kind(config: PretrainedConfig, described: Any) -> None:
    """A masked model can be loaded as a causal one, and then says nonsense without a word."""
    architectures = described.architectures or []
    masked = any("ForMaskedLM" in name or "ForPreTraining" in name for name in architectures)
    if config.kind == "causal" and masked and not getattr(described, "is_decoder", False):
        raise ConfigError(f"model.path={config.path}: a masked model ({architectures[0]}); give model=hf_masked")
    if config.kind == "masked" and any("ForCausalLM" in name or "LMHeadModel" in name for name in architectures):
        raise ConfigError(f"model.path={config.path}: a causal model ({architectures[0]}); give model=hf_causal")


def _why_not(config: PretrainedConfig, path: str, error: Exception) -> str:
    """One line on why a model could not be loaded."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    folder = Path(path)
    if folder.is_dir():
        pickles = [file.name for pattern in ("*.bin", "*.pt", "*.pth") for file in folder.glob(pattern)]
        if pickles and not list(folder.glob("*.safetensors")):
            return (
                f"model.path={config.path}: its weights are only there as a pickle ({pickles[0]}), which can run code; "
                "model.allow_pickle=true reads it all the same"
            )
        return f"model.path={config.path}: cannot be loaded ({said})"
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        return (
            f"model.path={config.path}: not in the cache of the Hugging Face hub, and there is no network; "
            "for a local copy give model.path=FOLDER"
        )
    return f"model.path={config.path}: cannot be had from the Hugging Face hub ({said})"
