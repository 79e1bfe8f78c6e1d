"""Loading of Hugging Face models, by name on the hub or from a local folder, and their revisions.

Weights are read from safetensors and code from the transformers package only, unless the configuration allows more.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import torch

from eval.scorers.base import Execution
from eval.scorers.causal import CausalScorer
from eval.scorers.masked import MaskedScorer
from eval.scorers.network import CausalNetwork, Network, vocabulary_size
from eval.scorers.tokens import HubTokens, score_settings
from pairscale.errors import ConfigError, InputError, PairscaleError, error_line, first_few
from pairscale.hub import import_transformers, offline_without_network
from train.models.config import PretrainedConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

AUTO_CLASSES = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM"}
# Files of a tokenizer: one of these is there, whatever the class.
TOKENIZER_FILES = ("tokenizer.json", "*vocab*", "*.model", "*.spm", "*.tiktoken", "*.codes", "dict.txt")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def load_pretrained(config: PretrainedConfig, execution: Execution) -> CausalScorer | MaskedScorer:
    """Return the scorer of a Hugging Face model.

    Its tokenizer may lie in the folder above a local one, as beside the checkpoints that a Trainer leaves: the scorer's
    `tokenizer_path` then names that folder. Raises InputError for a model that is not there, cannot be had without a
    network, has its weights only as a pickle, or comes without its tokenizer, and for whatever goes wrong in reading it
    or in code that it brings; ConfigError for one of the other kind and for options that this machine cannot follow;
    RunError for weights that are no numbers.
    """
    if config.revisions is not None:
        raise ConfigError("model.revisions: only python -m eval reads several; give model.revision=NAME")
    if config.load_in_4bit and not torch.cuda.is_available():
        raise ConfigError("model.load_in_4bit=true: needs an NVIDIA GPU with CUDA, and there is none here")
    offline_without_network()
    transformers = import_transformers()
    path, revision = _local(config.path), config.revision
    if path and revision:
        path, revision = _local(str(Path(path) / revision)), None
    source = _Source(config, path or config.path, revision or "main")
    with source.one_line_errors():
        model, tokenizer, tokenizer_path = source.load(transformers)
        masked, name = config.kind == "masked", Path(config.path).name
        scorer = scorer_of(model, tokenizer, name, execution, masked, config.begin)
        scorer.tokenizer_path = tokenizer_path
        return scorer


def scorer_of(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    name: str,
    execution: Execution,
    masked: bool = False,
    begin: str | None = None,
) -> CausalScorer | MaskedScorer:
    """Return the scorer of a model of transformers; raises what HubTokens, Network, and the scorers do.

    `begin` is the token that stands before a sentence where the tokenizer names none.
    """
    tokens = HubTokens(tokenizer, name, vocabulary_size(model), None if masked else begin)
    scorer: CausalScorer | MaskedScorer
    if masked:
        scorer = MaskedScorer(Network(model, name, execution), tokens, execution.progress)
    else:
        network = CausalNetwork(model, name, execution, begin=tokens.checked_begin(name))
        scorer = CausalScorer(network, tokens, name, execution.progress)
    scorer.settings = score_settings(model, tokens, masked)
    return scorer


def load_of_any_kind(path: str, execution: Execution) -> CausalScorer | MaskedScorer:
    """Return the scorer of a model in float32: a masked one if its config.json names no other class, else a causal one.

    Raises what `load_pretrained` does.
    """
    config = PretrainedConfig(name="hf_causal", kind="causal", path=path, dtype="fp32")
    try:
        return load_pretrained(config, execution)
    except OtherKind:
        return load_pretrained(dataclasses.replace(config, name="hf_masked", kind="masked"), execution)


class OtherKind(ConfigError):
    """A model is masked, not causal, or the other way round."""


@dataclass(frozen=True)
class _Source:
    """The files of a model: a local folder, or a repository of the hub."""

    config: PretrainedConfig
    path: str
    revision: str

    @property
    def where(self) -> str:
        """For messages."""
        revision = f" model.revision={self.config.revision}" if self.config.revision else ""
        return f"model.path={self.config.path}{revision}"

    def load(self, transformers: Any) -> tuple[PreTrainedModel, PreTrainedTokenizerFast, str | None]:
        """Return the model, its tokenizer, and the folder of this if it is not the model's."""
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
        """Return the model by a class of the transformers package."""
        if self.config.load_in_4bit:
            options = options | {"quantization_config": transformers.BitsAndBytesConfig(load_in_4bit=True)}
        model: PreTrainedModel
        model, loading = getattr(transformers, AUTO_CLASSES[self.config.kind]).from_pretrained(
            self.path,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # to name them: the library's own error is a table
            dtype=DTYPES[self.config.dtype],
            use_safetensors=None if self.config.allow_pickle else True,
            **options,
        )
        if mismatched := sorted(loading["mismatched_keys"]):
            name, shape, needed = mismatched[0]
            more = f" and {len(mismatched) - 1} more" if len(mismatched) > 1 else ""
            raise InputError(
                f"{self.where}: its weights do not fit its config.json: {name} is {' x '.join(map(str, shape))}, not "
                f"{' x '.join(map(str, needed))}{more}"
            )
        self.check_complete(loading["missing_keys"])
        return model

    def model_of_own_code(self, described: Any, reference: str) -> PreTrainedModel:
        """Return the model by the class that comes with it, as that class itself builds it, then its weights.

        `from_pretrained` of transformers 5 is not for most such code, which was written for transformers 4: it builds
        the model without memory, which leaves buffers that `__init__` fills and no file holds as they happen to be, and
        it needs what `post_init` sets, which GPT-BERT and LTG-BERT do not call.
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
        self.check_complete(
            [name for name in missing if own[name].data_ptr() not in loaded]
        )  # a file holds tied weights once
        torch.nn.Module.to(model, dtype=DTYPES[self.config.dtype])
        return model

    def check_complete(self, missing: Collection[str]) -> None:
        """Raise InputError for missing weights, which would be drawn at random: scores would mean nothing."""
        if missing:
            raise InputError(
                f"{self.where}: its weights lack {first_few(sorted(missing))}, which a {self.config.kind} model needs"
            )

    def check_index(self, folder: Path) -> None:
        """Raise InputError for an index of weights that names files outside of the model's folder."""
        for index in folder.glob("*.index.json") if folder.is_dir() else ():
            files = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
            if outside := sorted({str(file) for file in files if PurePath(str(file)).name != str(file)}):
                raise InputError(f"{self.where}: {index.name} names a file outside of the folder: {outside[0]}")

    def tokenizer_path(self) -> str:
        """Return where the tokenizer lies: a name on the hub, the model's folder, or the one above it.

        Raises InputError where neither folder holds one: transformers 5 would invent one, of one or two symbols.
        """
        folder = Path(self.path)
        if not folder.is_dir():
            return self.path
        for place in (folder, folder.resolve().parent):
            if any(file.is_file() for pattern in TOKENIZER_FILES for file in place.glob(pattern)):
                return self.path if place is folder else str(place)
        raise InputError(
            f"{self.where}: comes without its tokenizer (no tokenizer.json in it, or in the folder above); "
            "tokenizer.save_pretrained(FOLDER) puts it there"
        )

    def check_kind(self, described: Any) -> None:
        """Raise ConfigError for a model of the other kind alone: loaded as this one, it would score nonsense."""
        kinds = _kinds(described)
        if kinds and self.config.kind not in kinds:
            other, name = next(iter(kinds.items()))
            raise OtherKind(f"{self.where}: a {other} model ({name}); give model=hf_{other}")

    @contextmanager
    def one_line_errors(self) -> Iterator[None]:
        """Raise InputError for whatever goes wrong in reading a model, which may be anyone's."""
        try:
            yield
        except (PairscaleError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise InputError(self.reason(error)) from error

    def reason(self, error: Exception) -> str:
        """Return one line on why the model could not be loaded."""
        folder = Path(self.path)
        if "trust_remote_code" in str(error) and not self.config.trust_remote_code:
            return f"{self.where}: comes with code of its own, which model.trust_remote_code=true would run"
        if "Missing [UNK]" in str(error) and not self.config.trust_remote_code:
            return (
                f"{self.where}: its tokenizer.json has no token for unknown words; if it comes with code that cuts a "
                "text into words, model.trust_remote_code=true runs that"
            )
        if isinstance(error, RecursionError):
            return f"{self.where}: cannot be loaded (its files are nested too deeply)"
        if folder.is_dir():
            pickles = [file.name for pattern in ("*.bin", "*.pt", "*.pth") for file in folder.glob(pattern)]
            if pickles and not list(folder.glob("*.safetensors")) and not self.config.allow_pickle:
                return (
                    f"{self.where}: its weights are only there as a pickle ({pickles[0]}), which can run code; "
                    "model.allow_pickle=true reads it all the same"
                )
            return f"{self.where}: cannot be loaded ({error_line(error)})"
        if os.environ.get("HF_HUB_OFFLINE") == "1":
            return (
                f"{self.where}: not in the cache of the Hugging Face hub, and there is no network; "
                "for a local copy give model.path=FOLDER"
            )
        return f"{self.where}: cannot be had from the Hugging Face hub ({error_line(error)})"


def _local(path: str) -> str | None:
    """Return the folder that `path` names, or None for a name on the hub. Raises InputError for a missing folder."""
    folder = Path(path).expanduser()
    if folder.is_dir():
        return str(folder)
    if folder.is_absolute() or path.startswith((".", "~")) or path.count("/") > 1:  # the hub has owner/name
        raise InputError(f"model.path={path}: no such folder")
    return None


def _kinds(described: Any) -> dict[str, str]:
    """Return the kinds that a config.json names, in `architectures` or `auto_map`, and the class of each."""
    from transformers.models.auto import modeling_auto

    of_library = {
        "masked": set(modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()),
        "causal": set(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()),
    }
    endings = {"masked": ("ForMaskedLM", "ForPreTraining"), "causal": ("ForCausalLM", "LMHeadModel")}
    architectures = getattr(described, "architectures", None)
    kinds: dict[str, str] = {}
    for name in map(str, architectures if isinstance(architectures, list) else ()):
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


def revisions(config: PretrainedConfig) -> list[PretrainedConfig]:
    """Return one configuration for each of `model.revisions`, by step, patterns filled in; `config` if it has none.

    Raises InputError where a pattern fits nothing or the hub cannot be reached.
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
            available = f"there are {', '.join(sorted(known)[:5])}" if known else "it has none"
            raise InputError(f"model.revisions={pattern}: no such revision of {config.path}; {available}")
        names += fitting
    chosen = [dataclasses.replace(config, revision=name, revisions=None) for name in dict.fromkeys(names)]
    return sorted(chosen, key=lambda one: (one.step is None, one.step, one.revision))


def _known_revisions(config: PretrainedConfig) -> list[str]:
    """Return the names of the folders in a local model, or of the branches and tags of one on the hub."""
    if folder := _local(config.path):
        return [path.name for path in Path(folder).iterdir() if path.is_dir()]
    offline_without_network()
    import huggingface_hub

    try:
        references = huggingface_hub.list_repo_refs(config.path)
    except (OSError, ValueError) as error:
        raise InputError(_Source(config, config.path, "main").reason(error)) from None
    return [reference.name for reference in [*references.branches, *references.tags]]
