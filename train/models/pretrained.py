"""Read Hugging Face models, their revisions and their tokenizers, by name from the hub or from a local folder.

By default, weights are only read from safetensors, and only the transformers package's own code is run. The
configuration can allow more.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from pairscale.errors import ConfigError, InputError, PairscaleError, RunError, error_line, first_few
from pairscale.hub import import_transformers, offline_without_network
from pairscale.sizes import plural
from train.models.config import PretrainedConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

AUTO_CLASSES = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM"}
# A tokenizer of any class has at least one of these files.
TOKENIZER_FILES = ("tokenizer.json", "*vocab*", "*.model", "*.spm", "*.tiktoken", "*.codes", "dict.txt")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class OtherKind(ConfigError):
    """A model is masked instead of causal, or the other way round."""


def source_of(config: PretrainedConfig) -> Source:
    """Return the files of a model. Raises InputError if they are missing, and ConfigError for an unusable option."""
    if config.revisions is not None:
        raise ConfigError("model.revisions: only python -m eval can score several revisions. Set model.revision=NAME.")
    if config.load_in_4bit and not torch.cuda.is_available():
        raise ConfigError(
            "model.load_in_4bit=true needs an NVIDIA GPU with CUDA, but there is none. Leave this setting out."
        )
    offline_without_network()
    path, revision = _local(config.path), config.revision
    if path and revision:
        path, revision = _local(str(Path(path) / revision)), None
    inside = sorted(one.parent for one in Path(path).glob("*/config.json")) if path else []
    if path and inside and not (Path(path) / "config.json").exists():
        raise InputError(
            f"model.path={config.path}: this folder isn't a model, but contains {plural(len(inside), 'model')}. Choose "
            f"one, such as model.path={inside[0]}."
        )
    return Source(config, path or config.path, revision or "main")


@dataclass(frozen=True)
class Source:
    """The files of a model, in a local folder or in a repository on the hub."""

    config: PretrainedConfig
    path: str
    revision: str

    @property
    def where(self) -> str:
        """The configuration keys that name the model, for error messages."""
        revision = f" model.revision={self.config.revision}" if self.config.revision else ""
        return f"model.path={self.config.path}{revision}"

    def load(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast, str | None]:
        """Return the model, its tokenizer, and the tokenizer's folder if it isn't the model's folder.

        Call this inside `one_line_errors`. Raises the same errors as the methods that it calls.
        """
        transformers = import_transformers()
        options: dict[str, Any] = {"revision": self.revision, "trust_remote_code": self.config.trust_remote_code}
        described = transformers.AutoConfig.from_pretrained(self.path, **options)
        self.check_kind(described)
        self.check_index(Path(self.path))
        tokenizer_path = self.tokenizer_path()
        tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_path, **options)
        own_class = (getattr(described, "auto_map", None) or {}).get(AUTO_CLASSES[self.config.kind])
        if own_class and self.config.trust_remote_code and not self.config.load_in_4bit:
            model = self.model_of_own_code(described, own_class)
        else:
            model = self.model_of_library(transformers, options)
        return model, tokenizer, None if tokenizer_path == self.path else tokenizer_path

    def model_of_library(self, transformers: Any, options: dict[str, Any]) -> PreTrainedModel:
        """Load the model with a class of the transformers package."""
        if self.config.load_in_4bit:
            options = options | {"quantization_config": transformers.BitsAndBytesConfig(load_in_4bit=True)}
        model: PreTrainedModel
        model, loading = getattr(transformers, AUTO_CLASSES[self.config.kind]).from_pretrained(
            self.path,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # for our own message, because the library's is a long table
            dtype=DTYPES[self.config.dtype],
            use_safetensors=None if self.config.allow_pickle else True,
            **options,
        )
        if mismatched := sorted(loading["mismatched_keys"]):
            name, shape, needed = mismatched[0]
            more = f", and {len(mismatched) - 1} more shapes differ" if len(mismatched) > 1 else ""
            raise InputError(
                f"{self.where}: the weights don't fit config.json. The shape of {name} is "
                f"{' x '.join(map(str, shape))} instead of {' x '.join(map(str, needed))}{more}. Get both files from "
                "the same model."
            )
        self.check_complete(loading["missing_keys"])
        return model

    def model_of_own_code(self, described: Any, reference: str) -> PreTrainedModel:
        """Build the model with the class that comes with it, then load its weights.

        Most such code was written for transformers 4 and doesn't work with `from_pretrained` of transformers 5. This
        method builds the model without memory. Buffers that `__init__` fills, but that no file contains, therefore
        keep arbitrary values. It also needs attributes that `post_init` sets, but GPT-BERT and LTG-BERT don't call it.
        """
        import huggingface_hub
        from transformers.dynamic_module_utils import get_class_from_dynamic_module

        model: PreTrainedModel = get_class_from_dynamic_module(reference, self.path, revision=self.revision)(described)
        folder = Path(self.path)
        if not folder.is_dir():
            patterns = ["*.safetensors", "*.safetensors.index.json", *(["*.bin"] if self.config.allow_pickle else [])]
            folder = Path(huggingface_hub.snapshot_download(self.path, revision=self.revision, allow_patterns=patterns))
            self.check_index(folder)
        missing, _ = huggingface_hub.load_torch_model(model, folder, safe=not self.config.allow_pickle)
        own = model.state_dict()
        loaded = {weight.data_ptr() for name, weight in own.items() if name not in missing}
        # Tied weights are in the file only once.
        self.check_complete([name for name in missing if own[name].data_ptr() not in loaded])
        nn.Module.to(model, dtype=DTYPES[self.config.dtype])
        return model

    def check_complete(self, missing: Collection[str]) -> None:
        """Raise InputError if weights are missing, because they would be random and the scores meaningless."""
        if missing:
            raise InputError(
                f"{self.where}: the weights {first_few(sorted(missing))} are missing. Get the complete model."
            )

    def check_index(self, folder: Path) -> None:
        """Raise InputError if the index of the weights names a file outside the model's folder."""
        for index in folder.glob("*.index.json") if folder.is_dir() else ():
            files = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
            if outside := sorted({str(file) for file in files if PurePath(str(file)).name != str(file)}):
                raise InputError(
                    f"{self.where}: {index.name} refers to {outside[0]}, which is outside the model's folder. Such "
                    "files are never read. Move the file into the folder, and correct the index."
                )

    def tokenizer_path(self) -> str:
        """Return the tokenizer's location, which is a name on the hub, the model's folder or its parent folder.

        Raises InputError if there is no tokenizer, because transformers 5 would create one with one or two symbols.
        """
        folder = Path(self.path)
        if not folder.is_dir():
            return self.path
        for place in (folder, folder.resolve().parent):
            if any(file.is_file() for pattern in TOKENIZER_FILES for file in place.glob(pattern)):
                return self.path if place is folder else str(place)
        raise InputError(
            f"{self.where}: the model's folder and its parent folder contain no tokenizer (tokenizer.json). Save the "
            "tokenizer there with tokenizer.save_pretrained(FOLDER)."
        )

    def check_kind(self, described: Any) -> None:
        """Raise ConfigError if the model can't be used as this kind, because its scores would be meaningless."""
        kinds = _kinds(described)
        if kinds and self.config.kind not in kinds:
            other, name = next(iter(kinds.items()))
            raise OtherKind(f"{self.where}: this is a {other} model ({name}). Use model=hf_{other}.")

    @contextmanager
    def one_line_errors(self) -> Iterator[None]:
        """Turn any error in reading a model into an InputError, because others wrote its files and maybe its code."""
        try:
            yield
        except (PairscaleError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise InputError(self.reason(error)) from error

    def reason(self, error: Exception) -> str:
        """Return a one-line message that says why the model could not be loaded, and what to do."""
        folder = Path(self.path)
        if "trust_remote_code" in str(error) and not self.config.trust_remote_code:
            return (
                f"{self.where}: the model can't be loaded without running its own code. If you trust this code, set "
                "model.trust_remote_code=true."
            )
        if "Missing [UNK]" in str(error) and not self.config.trust_remote_code:
            return (
                f"{self.where}: tokenizer.json has no token for unknown words. If the model comes with its own code "
                "for splitting texts into words, and you trust this code, set model.trust_remote_code=true."
            )
        if isinstance(error, RecursionError):
            return f"{self.where}: the model can't be loaded, because its files are nested too deeply. Get new ones."
        if folder.is_dir():
            pickles = [file.name for pattern in ("*.bin", "*.pt", "*.pth") for file in folder.glob(pattern)]
            if pickles and not list(folder.glob("*.safetensors")) and not self.config.allow_pickle:
                return (
                    f"{self.where}: the weights are only available as a pickle ({pickles[0]}), which can run code. If "
                    "you trust this file, set model.allow_pickle=true."
                )
            return (
                f"{self.where}: the model can't be loaded ({error_line(error)}). Check that its files are complete and "
                "that your version of transformers supports it."
            )
        if os.environ.get("HF_HUB_OFFLINE") == "1":
            return (
                f"{self.where}: the model isn't in the Hugging Face cache, and there is no network. If you have a "
                "local copy, use model.path=FOLDER."
            )
        return (
            f"{self.where}: the model can't be downloaded from the Hugging Face hub ({error_line(error)}). Check its "
            "name, or use model.path=FOLDER."
        )


def _local(path: str) -> str | None:
    """Return the folder `path`, or None if `path` is a name on the hub. Raises InputError if the folder is missing."""
    folder = Path(path).expanduser()
    if folder.is_dir():
        return str(folder)
    if folder.is_absolute() or path.startswith((".", "~")) or path.count("/") > 1:  # the hub has owner/name
        raise InputError(
            f"model.path={path}: this folder doesn't exist. Use a model's folder, or its name on the Hugging Face hub."
        )
    return None


def _kinds(described: Any) -> dict[str, str]:
    """Return the kinds of models that config.json names in `architectures` or `auto_map`, with their classes."""
    from transformers.models.auto import modeling_auto

    of_library = {
        "masked": set(modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()),
        "causal": set(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()),
    }
    endings = {"masked": ("ForMaskedLM", "ForPreTraining"), "causal": ("ForCausalLM", "LMHeadModel")}
    architectures = getattr(described, "architectures", None)
    kinds: dict[str, str] = {}
    for name in map(str, architectures if isinstance(architectures, list) else ()):
        exact = [kind for kind, known in of_library.items() if name in known]  # XLM has one class for both
        for kind in exact or [kind for kind in endings if any(ending in name for ending in endings[kind])]:
            kinds.setdefault(kind, name)
    auto_map = getattr(described, "auto_map", None) or {}
    for kind, auto in AUTO_CLASSES.items():
        if auto in auto_map:
            kinds.setdefault(kind, str(auto_map[auto]))
    if "masked" in kinds and getattr(described, "is_decoder", False):
        kinds.setdefault("causal", kinds["masked"])
    return kinds


def revisions(config: PretrainedConfig) -> list[PretrainedConfig]:
    """Return one configuration per revision that `model.revisions` names or matches, sorted by training step.

    If there are no `model.revisions`, return `config` alone. Raises InputError if a pattern matches nothing, or if the
    hub can't be reached.
    """
    if config.revisions is None:
        return [config]
    names: list[str] = []
    for pattern in config.revisions:
        if not set(pattern) & set("*?["):
            names.append(pattern)
            continue
        known = _known_revisions(config)
        fitting = fnmatch.filter(known, pattern)
        if not fitting:
            available = f"Choose from {first_few(sorted(known), 5)}." if known else "Leave this setting out."
            raise InputError(f"model.revisions={pattern}: no revision of {config.path} matches. {available}")
        names += fitting
    chosen = [dataclasses.replace(config, revision=name, revisions=None) for name in dict.fromkeys(names)]
    return sorted(chosen, key=lambda one: (one.step is None, one.step, one.revision))


def _known_revisions(config: PretrainedConfig) -> list[str]:
    """Return the names of a local model's subfolders, or the branches and tags of a model on the hub."""
    if folder := _local(config.path):
        return [path.name for path in Path(folder).iterdir() if path.is_dir()]
    offline_without_network()
    import huggingface_hub

    try:
        references = huggingface_hub.list_repo_refs(config.path)
    except (OSError, ValueError) as error:
        raise InputError(Source(config, config.path, "main").reason(error)) from None
    return [reference.name for reference in [*references.branches, *references.tags]]


def weights_digest(model: nn.Module) -> str:
    """Return a SHA-256 digest of the names, types and values of all weights. It doesn't depend on the model's files."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def check_finite(model: nn.Module, name: str) -> None:
    """Raise RunError if weights are NaN or infinite, because the scores would be meaningless."""
    for parameter, weight in model.named_parameters():
        if weight.is_floating_point() and not bool(weight.isfinite().all()):
            raise RunError(
                f"{name}: the weights {parameter} contain NaN or infinite values. Train or download the model again."
            )
