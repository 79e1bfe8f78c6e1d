"""Recipes: the types of the configuration group `recipe` (values: conf/recipe/), with optimisers and schedules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from pairscale.command.schemas import NOT_IN_DIGEST, AboveZero, Number, Seed, Share, Size, register_types
from pairscale.errors import ConfigError, check_between
from pairscale.sizes import parse_size

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer

COLUMNS = "columns"
# Far beyond any model; above them sizes overflow, or a run would take years to begin.
MAX_WIDTH = 100_000
Width = Annotated[int, Meta(ge=1, le=MAX_WIDTH)]


@dataclass(kw_only=True)
class BudgetConfig:
    """How long to train: either epochs or words, and with epochs the fewest words."""

    epochs: Annotated[float, Meta(ge=0, le=1_000_000)] | None = None  # passes over the sample
    words: Size | None = None  # words seen, "2M"; with repeats
    min_words: Size | None = None  # with epochs: more of them over small samples

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.words is None):
            remedy = "" if self.epochs is None else "; set the other to null, as in recipe.budget.words=null"
            raise ConfigError(
                f"recipe.budget: give exactly one of epochs (got {self.epochs}) and words (got {self.words}){remedy}"
            )
        if self.min_words is not None and self.epochs is None:
            raise ConfigError(f"recipe.budget.min_words={self.min_words}: goes with epochs, not with words")

    def words_seen(self, sample_words: float) -> int:
        """Return the words that a run on a sample of so many sees at least, with repeats."""
        if self.words is not None:
            return parse_size(self.words, "recipe.budget.words")
        assert self.epochs is not None
        words = round(self.epochs * sample_words)
        if self.min_words is None or not self.epochs:  # 0 epochs: an untrained model
            return words
        return max(parse_size(self.min_words, "recipe.budget.min_words"), words)


@dataclass(kw_only=True)
class RecipeConfig:
    """Optimiser, schedule and budget. `seed` draws dropout (null: derived from the run's seed).

    A recipe is a subclass with `optimizer` and, if it has a schedule, `scheduled_rate`, which depends on the step
    alone, so that nothing is stored, or `rate_after_validation`, which changes the rate of the optimiser.
    """

    name: str  # of the recipe, kept in the run
    seed: Seed | None = None  # orders the data; null: derived from the run's seed
    budget: BudgetConfig  # length of the training: epochs, or words seen
    batch: Width  # columns of the token stream, or blocks a step
    bptt: Width  # tokens a step per column, or of a block
    lr: AboveZero  # learning rate at its highest
    clip: AboveZero  # L2 norm of the whole gradient
    export: Literal["best", "last"]  # weights for scoring
    validate_every: Size | None = None  # words seen between validations; null: at the end of an epoch
    validation_words: Number  # words of the validation split, at most, that a validation reads
    checkpoint_every: Size | None = field(default=None, metadata=NOT_IN_DIGEST)  # words seen; null: with validation
    # columns: of one stream, read with carried state; or blocks, each read from its beginning (train/loop/batches.py).
    packing: Literal["columns", "stream", "sentences", "documents"] = "columns"
    accumulate: Annotated[int, Meta(ge=1)] = 1  # parts of a step's blocks that are read one after another

    moments: ClassVar[int] = 0  # state of the optimiser in numbers per weight
    trains: ClassVar[bool] = True  # False: of a model that comes trained

    def check_trains(self, model: str) -> None:
        """Raise ConfigError if the model of that name comes trained."""
        if not self.trains:
            raise ConfigError(f"model={model}: comes trained; python -m eval scores it")

    def __post_init__(self) -> None:
        check_between("recipe.accumulate", self.accumulate, 1, max(1, self.batch))
        if self.accumulate > 1 and self.packing == COLUMNS:
            raise ConfigError(
                f"recipe.accumulate={self.accumulate}: divides the blocks of a step; recipe.packing=columns has none"
            )

    def optimizer(self, parameters: Iterable[Parameter]) -> Optimizer:
        """Return a new optimiser of `parameters`. Raises TypeError for a recipe that trains nothing."""
        raise TypeError(f"no optimiser for {type(self).__name__}")

    def scheduled_rate(self, step: int, total_steps: int) -> float | None:
        """Return the learning rate of step `step` (from 0) of `total_steps`; None if validation sets it."""
        return None

    def rate_after_validation(self, rate: float, improved: bool) -> float:
        """Return the learning rate after a validation at `rate`; `improved`: its loss was the best so far."""
        return rate


@dataclass(kw_only=True)
class SgdPlateauConfig(RecipeConfig):
    """Plain SGD; its rate is divided after each validation that is not better (Gulordava et al. 2018)."""

    # Divisor of the learning rate after a validation that is no improvement.
    divide_by: Annotated[float, Meta(gt=1, le=1e300)]

    def optimizer(self, parameters: Iterable[Parameter]) -> Optimizer:
        from torch.optim import SGD

        return SGD(parameters, lr=self.lr)

    def rate_after_validation(self, rate: float, improved: bool) -> float:
        return rate if improved else rate / self.divide_by


@dataclass(kw_only=True)
class AdamCosineConfig(RecipeConfig):
    """Adam with linear warm-up and cosine decay over the run's own steps (Dai et al. 2019)."""

    moments: ClassVar[int] = 2

    warmup: Annotated[float, Meta(ge=0, lt=1)]  # share of the steps
    min_lr: float  # learning rate at the end

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("recipe.min_lr", self.min_lr, 0, self.lr)

    def optimizer(self, parameters: Iterable[Parameter]) -> Optimizer:
        from torch.optim import Adam

        return Adam(parameters, lr=self.lr, fused=True)  # one pass over the weights

    def scheduled_rate(self, step: int, total_steps: int) -> float | None:
        return warmed_cosine(self, step, total_steps)


@dataclass(kw_only=True)
class AdamWConfig(RecipeConfig):
    """AdamW (Loshchilov and Hutter 2019) with warm-up and a schedule over the run's own steps.

    Weight decay is of matrices alone, embeddings included: biases and gains of layer norms have none.
    """

    moments: ClassVar[int] = 2

    bptt: Annotated[int, Meta(ge=0)] = 0  # is `context`
    context: Width  # tokens of a block, or a step per column
    schedule: Literal["cosine", "wsd"]
    warmup: Share  # of the steps
    decay: Share  # schedule=wsd: share of the steps, the last ones, in which the rate falls
    min_lr: float  # learning rate at the end
    weight_decay: Share  # share of a weight that a step with learning rate 1 removes
    betas: list[Annotated[float, Meta(ge=0, lt=1)]]  # decay rates of the two moments of the gradient
    eps: AboveZero  # added to the root of the second moment

    def __post_init__(self) -> None:
        if self.bptt not in (0, self.context):
            raise ConfigError(
                f"recipe.bptt={self.bptt}: recipe={self.name} reads recipe.context={self.context} tokens; give "
                f"recipe.context={self.bptt}, and leave recipe.bptt out"
            )
        self.bptt = self.context
        super().__post_init__()
        if self.schedule == "wsd" and self.warmup + self.decay > 1:
            raise ConfigError(
                f"recipe.warmup={self.warmup} and recipe.decay={self.decay}: are shares of the same steps; their sum "
                "must be 1 or less"
            )
        check_between("recipe.min_lr", self.min_lr, 0, self.lr)
        if len(self.betas) != 2:
            raise ConfigError(f"recipe.betas={self.betas}: must be two numbers, such as [0.9,0.95]")

    def optimizer(self, parameters: Iterable[Parameter]) -> Optimizer:
        from torch.optim import AdamW

        weights = list(parameters)
        groups = [
            {"params": [weight for weight in weights if weight.dim() >= 2], "weight_decay": self.weight_decay},
            {"params": [weight for weight in weights if weight.dim() < 2], "weight_decay": 0.0},
        ]
        return AdamW(
            [group for group in groups if group["params"]],
            lr=self.lr, betas=(self.betas[0], self.betas[1]), eps=self.eps, fused=True,
        )  # fmt: skip

    def scheduled_rate(self, step: int, total_steps: int) -> float | None:
        """Return the rate of a linear warm-up, then of a cosine (Loshchilov and Hutter 2017) or of WSD.

        WSD (warm-up, stable, decay: Hu et al. 2024, section 4) keeps `lr` until it falls in a line over the last steps.
        """
        if self.schedule == "cosine" or step < self.warmup * total_steps:
            return warmed_cosine(self, step, total_steps)
        falling = self.decay * total_steps
        left = 1.0 if not falling else min(1.0, (total_steps - step) / falling)
        return self.min_lr + (self.lr - self.min_lr) * left


def warmed_cosine(recipe: AdamCosineConfig | AdamWConfig, step: int, total_steps: int) -> float:
    """Return the rate of a linear warm-up, then of a cosine down to `min_lr` (released code of Dai et al.)."""
    warmup = recipe.warmup * total_steps
    if step < warmup:
        return recipe.lr * (step + 1) / (warmup + 1)
    progress = (step - warmup) / max(1.0, total_steps - warmup)
    return recipe.min_lr + 0.5 * (recipe.lr - recipe.min_lr) * (1 + math.cos(math.pi * progress))


@dataclass(kw_only=True)
class UntrainedConfig(RecipeConfig):
    """The recipe of a model that comes trained: no training."""

    trains: ClassVar[bool] = False
    budget: BudgetConfig = field(default_factory=lambda: BudgetConfig(epochs=0))
    batch: int = 0
    bptt: int = 0
    lr: float = 0.0
    clip: float = 0.0
    export: Literal["best", "last"] = "last"
    validation_words: int = 0

    def __post_init__(self) -> None:
        """Skip all checks, as nothing is trained."""


@dataclass(kw_only=True)
class CountedConfig(UntrainedConfig):
    """The recipe of a model counted in one pass; budgets, batches and rates are reset, to be in no run's identity."""

    trains: ClassVar[bool] = True
    validation_words: Number

    def __post_init__(self) -> None:
        self.budget = BudgetConfig(epochs=1.0)
        self.batch = self.bptt = 0
        self.lr = self.clip = 0.0
        self.export = "last"
        self.validate_every = self.checkpoint_every = None


register_types(
    RecipeConfig,
    sgd_plateau=SgdPlateauConfig,
    adam_cosine=AdamCosineConfig,
    adamw=AdamWConfig,
    counted=CountedConfig,
    untrained=UntrainedConfig,
)
