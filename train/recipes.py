"""Recipes: the types of the configuration group `recipe` (values: conf/recipe/), with optimisers and schedules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from omegaconf import MISSING

from corpora.config import NOT_IN_DIGEST
from pairscale.command.schemas import store_schemas
from pairscale.errors import ConfigError, check_above, check_between, check_choice, check_seed
from pairscale.sizes import parse_size
from train.models.config import MAX_WIDTH

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer

EXPORTS = ("best", "last")
MAX_EPOCHS = 1_000_000


@dataclass
class BudgetConfig:
    """How long to train: exactly one of the two."""

    epochs: float | None = None  # passes over the sample
    words: str | None = None  # words seen, "2M"; with repeats

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.words is None):
            raise ConfigError(
                f"recipe.budget: give exactly one of epochs (got {self.epochs}) and words (got {self.words})"
            )
        check_between("recipe.budget.epochs", self.epochs, 0, MAX_EPOCHS)
        if self.words is not None:
            parse_size(self.words, "recipe.budget.words")


@dataclass
class RecipeConfig:
    """Optimiser, schedule and budget. `seed` draws dropout (null: derived from the run's seed).

    A recipe is a subclass with `optimizer` and, if it has a schedule, `scheduled_rate`, which depends on the step
    alone, so that nothing is stored, or `rate_after_validation`, which changes the rate of the optimiser.
    """

    name: str = MISSING  # of the recipe, kept in the run
    seed: int | None = None  # orders the data; null: derived from the run's seed
    budget: BudgetConfig = MISSING  # length of the training: epochs, or words seen
    batch: int = MISSING  # columns of the token stream
    bptt: int = MISSING  # tokens a step per column
    lr: float = MISSING  # learning rate at its highest
    clip: float = MISSING  # L2 norm of the whole gradient
    export: str = MISSING  # weights for scoring: "best" or "last"
    validate_every: str | None = None  # words seen between validations; null: at the end of an epoch
    validation_words: int = MISSING  # words of the validation split, at most, that a validation reads
    checkpoint_every: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # words seen; null: with validation

    moments: ClassVar[int] = 0  # state of the optimiser in numbers per weight
    trains: ClassVar[bool] = True  # False: of a model that comes trained

    def check_trains(self, model: str) -> None:
        """Raise ConfigError if the model of that name comes trained."""
        if not self.trains:
            raise ConfigError(f"model={model}: comes trained; python -m eval scores it")

    def __post_init__(self) -> None:
        check_choice("recipe.export", self.export, EXPORTS)
        check_seed("recipe.seed", self.seed)
        for name in ("batch", "bptt"):
            check_between(f"recipe.{name}", getattr(self, name), 1, MAX_WIDTH)
        check_between("recipe.validation_words", self.validation_words, 1, 10**12)
        for name in ("lr", "clip"):
            check_above(f"recipe.{name}", getattr(self, name), 0)
        for name in ("validate_every", "checkpoint_every"):
            if (size := getattr(self, name)) is not None:
                parse_size(size, f"recipe.{name}")

    def optimizer(self, parameters: Iterable[Parameter]) -> Optimizer:
        """Return a new optimiser of `parameters`. Raises TypeError for a recipe that trains nothing."""
        raise TypeError(f"no optimiser for {type(self).__name__}")

    def scheduled_rate(self, step: int, total_steps: int) -> float | None:
        """Return the learning rate of step `step` (from 0) of `total_steps`; None if validation sets it."""
        return None

    def rate_after_validation(self, rate: float, improved: bool) -> float:
        """Return the learning rate after a validation at `rate`; `improved`: its loss was the best so far."""
        return rate


@dataclass
class SgdPlateauConfig(RecipeConfig):
    """Plain SGD; its rate is divided after each validation that is not better (Gulordava et al. 2018)."""

    divide_by: float = MISSING  # divisor of the learning rate after a validation that is no improvement

    def __post_init__(self) -> None:
        super().__post_init__()
        check_above("recipe.divide_by", self.divide_by, 1)

    def optimizer(self, parameters: Iterable[Parameter]) -> Optimizer:
        from torch.optim import SGD

        return SGD(parameters, lr=self.lr)

    def rate_after_validation(self, rate: float, improved: bool) -> float:
        return rate if improved else rate / self.divide_by


@dataclass
class AdamCosineConfig(RecipeConfig):
    """Adam with linear warm-up and cosine decay over the run's own steps (Dai et al. 2019)."""

    moments: ClassVar[int] = 2

    warmup: float = MISSING  # share of the steps
    min_lr: float = MISSING  # learning rate at the end

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.warmup < 1:
            raise ConfigError(f"recipe.warmup={self.warmup}: must be a share of the steps, 0 or more and below 1")
        check_between("recipe.min_lr", self.min_lr, 0, self.lr)

    def optimizer(self, parameters: Iterable[Parameter]) -> Optimizer:
        from torch.optim import Adam

        return Adam(parameters, lr=self.lr, fused=True)  # one pass over the weights

    def scheduled_rate(self, step: int, total_steps: int) -> float | None:
        """Return the rate of a linear warm-up, then of a cosine down to `min_lr` (released code of Dai et al.)."""
        warmup = self.warmup * total_steps
        if step < warmup:
            return self.lr * (step + 1) / (warmup + 1)
        progress = (step - warmup) / max(1.0, total_steps - warmup)
        return self.min_lr + 0.5 * (self.lr - self.min_lr) * (1 + math.cos(math.pi * progress))


@dataclass
class UntrainedConfig(RecipeConfig):
    """The recipe of a model that comes trained: no training."""

    trains: ClassVar[bool] = False
    budget: BudgetConfig = field(default_factory=lambda: BudgetConfig(epochs=0))
    batch: int = 0
    bptt: int = 0
    lr: float = 0.0
    clip: float = 0.0
    export: str = "last"
    validation_words: int = 0

    def __post_init__(self) -> None:
        """Skip all checks, as nothing is trained."""


@dataclass
class CountedConfig(RecipeConfig):
    """The recipe of a model counted in one pass; budgets, batches and rates are reset, to be in no run's identity."""

    def __post_init__(self) -> None:
        self.budget = BudgetConfig(epochs=1.0)
        self.batch = self.bptt = 0
        self.lr = self.clip = 0.0
        self.export = "last"
        self.validate_every = self.checkpoint_every = None
        check_above("recipe.validation_words", self.validation_words, 0)


store_schemas(
    "recipe",
    sgd_plateau_schema=SgdPlateauConfig,
    adam_cosine_schema=AdamCosineConfig,
    counted_schema=CountedConfig,
    untrained_schema=UntrainedConfig,
)
