"""Loading of Hugging Face models, by name on the hub or from a local folder, and their revisions.

Weights are read from safetensors and code from the transformers package only, unless the configuration allows more.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import torch

from eval.config import PretrainedConfig
from eval.scorers.causal import CausalScorer
from eval.scorers.forward import error_line
from eval.scorers.hub import HubScorer
from eval.scorers.masked import MaskedScorer
from pairscale.errors import ConfigError, InputError, PairscaleError
from pairscale.hub import import_transformers

if TYPE_CHECKING:
    from transformers import PreTrainedModel

AUTO_CLASSES = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM"}
# What a tokenizer's own text is in: one of these is there, whatever the class.
TOKENIZER_FILES = ("tokenizer.json", "*vocab*", "*.model", "*.spm", "*.tiktoken", "*.codes", "dict.txt")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def load_pretrained(
    config: PretrainedConfig, batch_tokens: int, device: str = "cpu", progress: bool = False
) -> HubScorer:
    """The scorer of a Hugging Face model.

    Its tokenizer may lie in the folder above a local one, as beside the checkpoints that a Trainer leaves: the scorer's
    `tokenizer_path` then names that folder. Raises InputError for a model that is not there, cannot be had without a
    network, has its weights only as a pickle, or comes without its tokenizer, and for whatever goes wrong in reading it
    or in code that it brings; ConfigError for one of the other kind and for options that this machine cannot follow;
    RunError for weights that are no numbers.
    """
    if config.load_in_4bit and not torch.cuda.is_available():
        raise ConfigError("model.load_in_4bit=true: needs an NVIDIA GPU with CUDA, and there is none here")
    transformers = import_transformers()
    path, revision = _local(config.path), config.revision
    if path and revision:
        path, revision = _local(str(Path(path) / revision)), None
    path = path or config.path
    options: dict[str, Any] = {"revision": revision or "main", "trust_remote_code": config.trust_remote_code}
    with _one_line(config, path):
        described = transformers.AutoConfig.from_pretrained(path, **options)
        _check_kind(config, described)
        _check_index(config, Path(path))
        source = _tokenizer_source(config, path)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
        own_class = (getattr(described, "auto_map", None) or {}).get(AUTO_CLASSES[config.kind])
        if own_class and config.trust_remote_code and not config.load_in_4bit:
            model = _of_own_code(config, described, own_class, path, options["revision"])
        else:
            model = _of_library(config, transformers, path, options)
        name = Path(config.path).name
        scorer: HubScorer
        if config.kind == "masked":
            scorer = MaskedScorer(model, tokenizer, name, batch_tokens, device, progress)
        else:
            scorer = CausalScorer(model, tokenizer, name, batch_tokens, config.begin, device, progress)
    scorer.tokenizer_path = None if source == path else source
    return scorer


def _of_library(config: PretrainedConfig, transformers: Any, path: str, options: dict[str, Any]) -> PreTrainedModel:
    """The model by a class of the transformers package."""
    if config.load_in_4bit:
        options = options | {"quantization_config": transformers.BitsAndBytesConfig(load_in_4bit=True)}
    model: PreTrainedModel
    model, loading = getattr(transformers, AUTO_CLASSES[config.kind]).from_pretrained(
        path,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # to name them: the library's own error is a table
        dtype=DTYPES[config.dtype],
        use_safetensors=None if config.allow_pickle else True,
        **options,
    )
    mismatched = sorted((name, tuple(there), tuple(wanted)) for name, there, wanted in loading["mismatched_keys"])
    _check_loaded(config, mismatched, loading["missing_keys"])
    return model


def _of_own_code(config: PretrainedConfig, described: Any, reference: str, path: str, revision: str) -> PreTrainedModel:
    """The model by the class that comes with it, as that class itself makes it, then its weights.

    `from_pretrained` of transformers 5 is not for most such code, which was written for transformers 4: it makes the
    model without memory, which leaves buffers that `__init__` fills and no file holds as they happen to be, and it
    needs what `post_init` sets, which GPT-BERT and LTG-BERT do not call.
    """
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    made = get_class_from_dynamic_module(reference, path, revision=revision)
    model: PreTrainedModel = made(described)
    weights = _weights(config, path, revision)
    own = model.state_dict()
    shapes = ((name, tuple(weight.shape), tuple(own[name].shape)) for name, weight in weights.items() if name in own)
    mismatched = [(name, there, wanted) for name, there, wanted in shapes if there != wanted]
    shared = {own[name].data_ptr() for name in weights if name in own}  # a file holds tied weights once
    missing = [name for name, weight in own.items() if name not in weights and weight.data_ptr() not in shared]
    _check_loaded(config, mismatched, missing)
    model.load_state_dict(weights, strict=False)
    torch.nn.Module.to(model, dtype=DTYPES[config.dtype])
    return model


def _weights(config: PretrainedConfig, path: str, revision: str) -> dict[str, torch.Tensor]:
    """All weights of a model by name; from a pickle, without running what it holds, only where that is allowed."""
    from safetensors.torch import load_file

    folder = Path(path)
    if not folder.is_dir():
        import huggingface_hub

        patterns = ["*.safetensors", "*.safetensors.index.json", *(["*.bin"] if config.allow_pickle else [])]
        folder = Path(huggingface_hub.snapshot_download(path, revision=revision, allow_patterns=patterns))
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        _check_index(config, folder)
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    else:
        names = ["model.safetensors"]
    weights: dict[str, torch.Tensor] = {}
    if not (folder / names[0]).is_file() and config.allow_pickle:
        return dict(torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True))
    for name in names:
        weights |= load_file(folder / name)
    return weights


def _check_loaded(
    config: PretrainedConfig, mismatched: list[tuple[str, tuple[int, ...], tuple[int, ...]]], missing: Iterable[str]
) -> None:
    """Raise InputError for weights that would be drawn at random: scores would mean nothing."""
    where = f"model.path={config.path}"
    if mismatched:
        name, there, wanted = mismatched[0]
        more = f" and {len(mismatched) - 1} more" if len(mismatched) > 1 else ""
        raise InputError(
            f"{where}: its weights do not fit its config.json: {name} is {_shape(there)}, not {_shape(wanted)}{more}"
        )
    if lacking := sorted(missing):
        raise InputError(
            f"{where}: its weights lack {', '.join(lacking[:3])}"
            f"{f' and {len(lacking) - 3} more' if len(lacking) > 3 else ''}, which a {config.kind} model needs"
        )


def _shape(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))


def _check_index(config: PretrainedConfig, folder: Path) -> None:
    """Raise InputError for an index of weights that names files outside of the model's folder."""
    for index in folder.glob("*.index.json") if folder.is_dir() else ():
        files = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        if outside := sorted({str(file) for file in files if PurePath(str(file)).name != str(file)}):
            raise InputError(f"model.path={config.path}: {index.name} names a file outside of the folder: {outside[0]}")


def _tokenizer_source(config: PretrainedConfig, path: str) -> str:
    """Where the tokenizer lies: a name on the hub, the model's folder, or the one above it.

    Raises InputError where neither folder holds one: transformers 5 would make one up, of one or two symbols.
    """
    folder = Path(path)
    if not folder.is_dir():
        return path
    for source in (folder, folder.resolve().parent):
        if any(file.is_file() for pattern in TOKENIZER_FILES for file in source.glob(pattern)):
            return path if source is folder else str(source)
    raise InputError(
        f"model.path={config.path}: comes without its tokenizer (no tokenizer.json in it, or in the folder above); "
        "tokenizer.save_pretrained(FOLDER) puts it there"
    )


@contextmanager
def _one_line(config: PretrainedConfig, path: str) -> Iterator[None]:
    """Raise InputError for whatever goes wrong in reading a model, which may be anyone's."""
    try:
        yield
    except (PairscaleError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise InputError(_why_not(config, path, error)) from error


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
    """Raise ConfigError for a model of the other kind alone: loaded as this one, it says nonsense without a word."""
    kinds = _kinds(described)
    if kinds and config.kind not in kinds:
        other, name = next(iter(kinds.items()))
        raise ConfigError(f"model.path={config.path}: a {other} model ({name}); give model=hf_{other}")


def _kinds(described: Any) -> dict[str, str]:
    """The kinds that a config.json names, in `architectures` or `auto_map`, and the class of each."""
    from transformers.models.auto import modeling_auto

    of_library = {
        "masked": set(modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()),
        "causal": set(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()),
    }
    endings = {"masked": ("ForMaskedLM", "ForPreTraining"), "causal": ("ForCausalLM", "LMHeadModel")}
    architectures = getattr(described, "architectures", None)
    names = [str(name) for name in architectures] if isinstance(architectures, list) else []
    kinds: dict[str, str] = {}
    for name in names:
        exact = [kind for kind, known in of_library.items() if name in known]  # of XLM's one class both
        for kind in exact or [kind for kind in endings if any(ending in name for ending in endings[kind])]:
            kinds.setdefault(kind, name)
    auto_map = getattr(described, "auto_map", None) or {}
    for kind, auto in AUTO_CLASSES.items():
        if auto in auto_map:
            kinds.setdefault(kind, str(auto_map[auto]))
    if "masked" in kinds and getattr(described, "is_decoder", False):
        kinds.setdefault("causal", kinds["masked"])
    return kinds


def _why_not(config: PretrainedConfig, path: str, error: Exception) -> str:
    """One line on why a model could not be loaded."""
    where, folder = f"model.path={config.path}", Path(path)
    if "trust_remote_code" in str(error) and not config.trust_remote_code:
        return f"{where}: comes with code of its own, which model.trust_remote_code=true would run"
    if isinstance(error, RecursionError):
        return f"{where}: cannot be loaded (its files are nested too deeply)"
    if folder.is_dir():
        pickles = [file.name for pattern in ("*.bin", "*.pt", "*.pth") for file in folder.glob(pattern)]
        if pickles and not list(folder.glob("*.safetensors")) and not config.allow_pickle:
            return (
                f"{where}: its weights are only there as a pickle ({pickles[0]}), which can run code; "
                "model.allow_pickle=true reads it all the same"
            )
        return f"{where}: cannot be loaded ({error_line(error)})"
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        return (
            f"{where}: not in the cache of the Hugging Face hub, and there is no network; "
            "for a local copy give model.path=FOLDER"
        )
    return f"{where}: cannot be had from the Hugging Face hub ({error_line(error)})"
