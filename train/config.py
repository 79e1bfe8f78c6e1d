"""Define the configuration of a run and of its group `trainer` (values in conf/), and the identity of a run.

A run's identity is the part of its configuration that can change its results. The run's digest and name depend on it.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from corpora.config import CorporaConfig, RootConfig
from pairscale.command.pool import PoolConfig
from pairscale.command.schemas import NOT_IN_DIGEST, AboveZero, Probability, Share
from pairscale.errors import ConfigError, check_name
from pairscale.files import sha256_json
from pairscale.sizes import parse_size, written
from train.models.config import ModelConfig, check_recipe
from train.recipes import CountedConfig, RecipeConfig, Width
from train.trackers.tracker import LoggerConfig

Precision = Literal["fp32", "bf16"]
Moments = Annotated[list[int | str], Meta(description="a list of words seen, such as [10k,100k,1M]")]
Speed = Annotated[float, Meta(gt=0, le=1e12)]  # words per second
_EACH = "one for each model, such as {lstm_blimp:40000,txl:12000}"
Rate = Speed | Annotated[dict[str, Speed], Meta(description=_EACH)] | None  # speed of training
# The parts of a configuration that define a run. The others concern only this machine or a single command.
DESCRIBED = ("study", "seed", "precision", "corpus", "sample", "filter", "ablate", "tokenizer", "model", "recipe")


@dataclass(kw_only=True)
class TrainerConfig:
    """The settings for how training uses this machine."""

    accelerator: Literal["auto", "cpu", "gpu"]  # auto: a GPU if there is one, else the CPU
    # null: chosen by the model's size and the idle cores (train/loop/device.py)
    threads: Annotated[int, Meta(ge=1, le=4096)] | None = None
    compile: bool  # compile the model with torch.compile
    progress: bool  # show progress
    # Number of GPUs (or of processes, with accelerator=cpu) that share each step (train/loop/device.py).
    devices: Annotated[int, Meta(ge=1, le=1024)] = 1
    # A number, log2, babylm, or a list of numbers of words (train/loop/snapshots.py); null: no snapshots.
    snapshots: Annotated[int, Meta(ge=1, le=1000)] | Literal["log2", "babylm"] | Moments | None = None

    def __post_init__(self) -> None:
        if self.snapshots == []:
            raise ConfigError(
                "trainer.snapshots=[]: this list is empty. List numbers of words, such as [10k,100k,1M], or use null."
            )
        for words in self.snapshots if isinstance(self.snapshots, list) else ():
            parse_size(str(words), "trainer.snapshots")


@dataclass(kw_only=True)
class RunConfig(CorporaConfig):
    """The configuration of `python -m train`, for one run (model, corpus, sample, recipe, seed)."""

    precision: Precision
    model: ModelConfig
    recipe: RecipeConfig
    logger: LoggerConfig = field(metadata=NOT_IN_DIGEST)
    trainer: TrainerConfig = field(metadata=NOT_IN_DIGEST)
    # Speed for estimating time: one number, or one per model; null: measured on this machine.
    dry_run_words_per_s: Rate = field(default=None, metadata=NOT_IN_DIGEST)
    pool: PoolConfig = field(default_factory=PoolConfig, metadata=NOT_IN_DIGEST)
    verbose: bool = field(default=False, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.study is not None:
            check_name("study", self.study)  # a single name, while the analysis accepts several
        if self.recipe.batch % self.trainer.devices:
            raise ConfigError(
                f"trainer.devices={self.trainer.devices}: this must divide recipe.batch={self.recipe.batch} evenly. "
                "Change one of them."
            )
        if self.recipe.accumulate > 1 and self.trainer.devices > 1:
            raise ConfigError(
                f"recipe.accumulate={self.recipe.accumulate}, trainer.devices={self.trainer.devices}: only one of them "
                "can divide a step. Set recipe.accumulate=1, or use a smaller recipe.batch."
            )
        if self.model.comes_trained == self.recipe.trains:
            reason = "is trained already" if self.model.comes_trained else "has to be trained first"
            raise ConfigError(
                f"recipe={self.recipe.name}: it does not fit model={self.model.name}, which {reason}. Leave it out."
            )
        check_recipe(self.model, self.recipe)
        self.model.reads(self.tokenizer)
        counted = self.model.counted
        if counted != isinstance(self.recipe, CountedConfig):
            reason = "n-gram models are counted, not trained" if counted else "it is for n-gram models"
            raise ConfigError(
                f"recipe={self.recipe.name}: this recipe does not fit model={self.model.name}, because {reason}. "
                "Leave recipe= out."
            )


@dataclass(kw_only=True)
class TaskConfig:
    """A table of texts with labels, and how a model is fine-tuned on it (values: conf/task/)."""

    name: str  # name of the folder for the results, RUN/finetuned/NAME, or NAME_LANGUAGE if there is a language
    language: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # as in the names of the tables: en, nl, zh
    train: str = field(metadata=NOT_IN_DIGEST)  # JSON lines to train on: a label, and the parts of one or two texts
    valid: str = field(metadata=NOT_IN_DIGEST)  # JSON lines to predict
    label: str  # column of the label: whole numbers or names
    first: str  # text to read; {NAME} stands for a column
    second: str | None = None  # text to read after the first one; null: none
    metric: Literal["accuracy", "f1", "mcc"]  # decides which epoch is the best
    epochs: Annotated[int, Meta(ge=1, le=100_000)]  # passes over the table
    batch: Width  # rows per step; the rest of an epoch's rows is left out
    valid_batch: Width  # rows that are predicted at a time
    tokens: Annotated[int, Meta(ge=4, le=1_000_000)]  # longest input; the longer of two texts is cut first
    lr: AboveZero  # the highest learning rate
    warmup: Probability  # share of the steps during which the rate rises
    min_lr: Share  # learning rate at the end, as a share of `lr`
    weight_decay: Share  # of AdamW, for all weights
    dropout: Probability  # in the classifier; the model keeps its own

    def __post_init__(self) -> None:
        if self.language is not None:
            self.name = f"{self.name}_{self.language}"
        check_name("task.name", self.name)
        for key, text in (("first", self.first), ("second", self.second)):
            if text is not None and not re.search(r"\{[^{}]+\}", text):
                raise ConfigError(f"task.{key}={text}: this names no column. Write a column in braces: {{{text}}}.")


@dataclass(kw_only=True)
class FinetuneConfig(RootConfig):
    """The configuration of `python -m train.finetune`. `seed` is the seed of fine-tuning, not of the runs."""

    precision: Precision
    task: TaskConfig
    # A pretrained model; if it is another kind, the models of the study's runs are fine-tuned.
    model: ModelConfig = field(metadata=NOT_IN_DIGEST)
    logger: LoggerConfig = field(metadata=NOT_IN_DIGEST)
    trainer: TrainerConfig = field(metadata=NOT_IN_DIGEST)
    run: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # one run of the study; null: all of them
    dry_run: bool = field(metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, unused in (("devices", 1), ("compile", False), ("snapshots", None)):
            if (value := getattr(self.trainer, name)) != unused:
                raise ConfigError(f"trainer.{name}={written(value)}: fine-tuning doesn't use this key. Leave it out.")

    @property
    def settings(self) -> dict[str, Any]:
        """The values that can change the results."""
        settings: dict[str, Any] = _numbers(self)
        return settings


def described(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a run's resolved configuration that defines the run (see DESCRIBED)."""
    return {key: config[key] for key in DESCRIBED if key in config}


def config_digest(config: RunConfig) -> str:
    """Return the hexadecimal SHA-256 of the part of a configuration that can change the run's results."""
    return sha256_json(_numbers(config.model.identity(config)[1]))


def run_id(config: RunConfig) -> str:
    """Return a run's readable name, which ends with 8 hex digits of its configuration's digest."""
    return "-".join([*config.model.identity(config)[0], config_digest(config)[:8]])


def _numbers(value: Any) -> Any:
    """Return a configuration as plain data, without fields that can't change the results."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (field for field in dataclasses.fields(value) if field.metadata.get("digest", True))
        return {field.name: _numbers(getattr(value, field.name)) for field in fields}
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers(item) for item in value]
    return value
