"""The types of the configuration of a run and of its group `trainer` (values: conf/)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from corpora.config import CorporaConfig
from pairscale.command.schemas import NOT_IN_DIGEST
from pairscale.errors import ConfigError, check_between, check_choice, check_name
from pairscale.sizes import parse_size
from train.models.config import ModelConfig
from train.models.huggingface_config import check_recipe
from train.recipes import CountedConfig, RecipeConfig
from train.trackers.tracker import LoggerConfig

ACCELERATORS = ("auto", "cpu", "gpu")
PRECISIONS = ("fp32", "bf16")
MAX_SNAPSHOTS = 1_000
# The parts of a configuration that say what a run is; the rest is about this machine or one command.
DESCRIBED = ("study", "seed", "precision", "corpus", "sample", "filter", "ablate", "tokenizer", "model", "recipe")


@dataclass
class TrainerConfig:
    """The machine's side of training."""

    accelerator: str = MISSING  # auto: a GPU where there is one
    threads: int | None = None  # null: by the model's size and the idle cores (train/loop/device.py)
    compile: bool = MISSING
    progress: bool = MISSING
    devices: int = 1  # GPUs, or with accelerator=cpu processes, that share each step (train/loop/device.py)
    snapshots: Any = None  # a number, log2, babylm, or a list of words seen (train/loop/snapshots.py); null: none

    def __post_init__(self) -> None:
        check_choice("trainer.accelerator", self.accelerator, ACCELERATORS)
        check_between("trainer.threads", self.threads, 1, 4096)
        check_between("trainer.devices", self.devices, 1, 1024)
        match self.snapshots:
            case list() if self.snapshots:
                for words in self.snapshots:
                    parse_size(str(words), "trainer.snapshots")
            case None | "log2" | "babylm":
                pass
            case int() if self.snapshots is not True:
                check_between("trainer.snapshots", self.snapshots, 1, MAX_SNAPSHOTS)
            case _:
                raise ConfigError(
                    f"trainer.snapshots={self.snapshots}: must be a number, such as 8, log2, babylm, a list of words "
                    "seen, such as [10k,100k,1M], or null"
                )


@dataclass
class RunConfig(CorporaConfig):
    """The configuration of `python -m train`: one run (model, corpus, sample, recipe, seed)."""

    study: str | None = field(default=None, metadata=NOT_IN_DIGEST)
    precision: str = MISSING
    model: ModelConfig = MISSING
    recipe: RecipeConfig = MISSING
    logger: LoggerConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    trainer: TrainerConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    # For estimates of time: a number, or one for each model; null: measured on this machine.
    dry_run_words_per_s: Any = field(default=None, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        rates = self.dry_run_words_per_s
        for rate in rates.values() if isinstance(rates, dict) else [] if rates is None else [rates]:
            if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate <= 1e12:
                raise ConfigError(
                    f"dry_run_words_per_s={rates}: must be a number above 0, or one for each model, such as "
                    "{lstm_blimp:40000,txl:12000}"
                )
        check_choice("precision", self.precision, PRECISIONS)
        if self.study is not None:
            for name in self.study.split("+"):  # the analysis takes several; a run has one (RunFolder.of)
                check_name("study", name)
        if self.recipe.batch % self.trainer.devices:
            raise ConfigError(
                f"trainer.devices={self.trainer.devices}: the {self.recipe.batch} columns of recipe.batch cannot be "
                "divided evenly; give a divisor of it"
            )
        if self.recipe.accumulate > 1 and self.trainer.devices > 1:
            raise ConfigError(
                f"recipe.accumulate={self.recipe.accumulate} with trainer.devices={self.trainer.devices}: both divide "
                "a step; give recipe.accumulate=1, or a smaller recipe.batch"
            )
        check_recipe(self.model, self.recipe)
        counted = self.model.counted
        if counted != isinstance(self.recipe, CountedConfig):
            reason = "an n-gram model is counted, not trained" if counted else "is for n-gram models, which are counted"
            raise ConfigError(f"recipe={self.recipe.name} with model={self.model.name}: {reason}; leave the recipe out")


def described(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a run's resolved configuration that says what the run is."""
    return {key: config[key] for key in DESCRIBED if key in config}
