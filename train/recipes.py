"""Define the types of the configuration group `recipe`, whose values are in conf/recipe/."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from pairscale.command.schemas import NOT_IN_DIGEST, AboveZero, Number, Seed, Share, Size, register_types
from pairscale.errors import ConfigError, check_between
from pairscale.sizes import parse_size, written

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer

COLUMNS = "columns"
# Far larger than any model. Beyond this, sizes overflow or a run would take years to begin.
MAX_WIDTH = 100_000
Width = Annotated[int, Meta(ge=1, le=MAX_WIDTH)]


@dataclass(kw_only=True)
class BudgetConfig:
    """The length of training, in either epochs or words. With epochs, a minimum number of words can be set."""

    epochs: Annotated[float, Meta(ge=0, le=1_000_000)] | None = None  # passes over the sample
    words: Size | None = None  # words to read, counting repeats, such as "2M"
    min_words: Size | None = None  # with epochs: read at least this many words, so small samples get more epochs

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.words is None):
            remedy = "" if self.epochs is None else " To unset one, write recipe.budget.epochs=null or .words=null."
            raise ConfigError(
                f"recipe.budget.epochs={written(self.epochs)}, recipe.budget.words={written(self.words)}: set exactly "
                f"one of the two.{remedy}"
            )
        if self.min_words is not None and self.epochs is None:
            raise ConfigError(
                f"recipe.budget.min_words={self.min_words}: this works only with recipe.budget.epochs. Leave it out."
            )

    def words_seen(self, sample_words: float) -> int:
        """Return the smallest number of words that a run reads, counting repeats, from `sample_words` words."""
        if self.words is not None:
            return parse_size(self.words, "recipe.budget.words")
        assert self.epochs is not None
        words = round(self.epochs * sample_words)
        if self.min_words is None or not self.epochs:  # 0 epochs: an untrained model
            return words
        return max(parse_size(self.min_words, "recipe.budget.min_words"), words)


@dataclass(kw_only=True)
class RecipeConfig:
    """The optimiser, schedule and budget of a run.

    A recipe is a subclass that defines `optimizer`. A subclass with a schedule also defines `scheduled_rate`, which
    depends only on the step, so nothing is stored, or `rate_after_validation`, which changes the optimiser's rate.
    """

    name: str  # name of the recipe, recorded in the run
    seed: Seed | None = None  # orders the data and draws dropout; null: derived from the run's seed
    budget: BudgetConfig  # length of the training, in epochs or words seen
    batch: Width  # columns of the token stream, or blocks per step
    bptt: Width  # tokens per step in each column, or tokens per block
    lr: AboveZero  # the highest learning rate
    clip: AboveZero  # largest L2 norm of the whole gradient; larger gradients are scaled down
    export: Literal["best", "last"]  # which weights to score: those with the best validation, or the last
    validate_every: Size | None = None  # words seen between validations; null: validate after each epoch
    validation_words: Number  # largest number of words that a validation reads from the validation split
    # Words seen between checkpoints; null: at each validation.
    checkpoint_every: Size | None = field(default=None, metadata=NOT_IN_DIGEST)
    # columns reads one stream with carried state; the others read blocks, each from its beginning (loop/batches.py).
    packing: Literal["columns", "stream", "sentences", "documents"] = "columns"
    accumulate: Annotated[int, Meta(ge=1)] = 1  # number of parts into which a step's blocks are split, to save memory

    moments: ClassVar[int] = 0  # numbers per weight that the optimiser stores
    trains: ClassVar[bool] = True  # False for models that are trained already

    def check_trains(self, model: str) -> None:
        """Raise ConfigError if the recipe belongs to a model that is trained already."""
        if not self.trains:
            raise ConfigError(f"model={model}: this model is trained already. Score it with python -m eval.")

    def __post_init__(self) -> None:
        check_between("recipe.accumulate", self.accumulate, 1, max(1, self.batch))
        if self.accumulate > 1 and self.packing == COLUMNS:
            raise ConfigError(
                f"recipe.accumulate={self.accumulate}: only blocks can be read in parts, and recipe.packing=columns "
                "has none. Use recipe.accumulate=1."
            )

    def optimizer(self, parameters: Iterable[Parameter]) -> Optimizer:
        """Return a new optimiser for `parameters`. Raises TypeError if the recipe doesn't train."""
        raise TypeError(f"{type(self).__name__} has no optimiser")

    def scheduled_rate(self, step: int, total_steps: int) -> float | None:
        """Return the learning rate of a step (counted from 0), or None if validations set the rate."""
        return None

    def rate_after_validation(self, rate: float, improved: bool) -> float:
        """Return the learning rate after a validation. `improved` is True if its loss was the best so far."""
        return rate


@dataclass(kw_only=True)
class SgdPlateauConfig(RecipeConfig):
    """Plain SGD, whose learning rate is divided after each validation without improvement (Gulordava et al. 2018)."""

    # Divide the learning rate by this after a validation without improvement.
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

    warmup: Annotated[float, Meta(ge=0, lt=1)]  # share of the steps during which the rate rises
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

    Weight decay applies only to matrices, including embeddings, and not to biases or gains of layer norms.
    """

    moments: ClassVar[int] = 2

    bptt: Annotated[int, Meta(ge=0)] = 0  # set by `context`
    context: Width  # tokens per block, or per step in each column
    schedule: Literal["cosine", "wsd"]
    warmup: Share  # share of the steps during which the rate rises
    decay: Share  # schedule=wsd: share of the steps, at the end, during which the rate falls
    min_lr: float  # learning rate at the end
    weight_decay: Share  # share of a weight that is removed per step at a learning rate of 1
    betas: list[Annotated[float, Meta(ge=0, lt=1)]]  # decay rates of the gradient's two moments
    eps: AboveZero  # added to the square root of the second moment

    def __post_init__(self) -> None:
        if self.bptt not in (0, self.context):
            raise ConfigError(
                f"recipe.bptt={self.bptt}: recipe={self.name} uses recipe.context (now {self.context}). Write "
                f"recipe.context={self.bptt} instead."
            )
        self.bptt = self.context
        super().__post_init__()
        if self.schedule == "wsd" and self.warmup + self.decay > 1:
            raise ConfigError(
                f"recipe.warmup={self.warmup}, recipe.decay={self.decay}: both are shares of the same steps, so their "
                "sum must be at most 1. Lower one of them."
            )
        check_between("recipe.min_lr", self.min_lr, 0, self.lr)
        if len(self.betas) != 2:
            raise ConfigError(f"recipe.betas={self.betas}: these must be two numbers, such as [0.9,0.95].")

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
        """Return the learning rate, from a linear warm-up and then a cosine (Loshchilov and Hutter 2017) or WSD.

        WSD (warm-up, stable, decay; Hu et al. 2024, section 4) keeps the rate at `lr` and lowers it linearly over the
        last steps.
        """
        if self.schedule == "cosine" or step < self.warmup * total_steps:
            return warmed_cosine(self, step, total_steps)
        falling = self.decay * total_steps
        left = 1.0 if not falling else min(1.0, (total_steps - step) / falling)
        return self.min_lr + (self.lr - self.min_lr) * left


def warmed_cosine(recipe: AdamCosineConfig | AdamWConfig, step: int, total_steps: int) -> float:
    """Return the rate of a linear warm-up followed by a cosine down to `min_lr`, as in the code of Dai et al."""
    warmup = recipe.warmup * total_steps
    if step < warmup:
        return recipe.lr * (step + 1) / (warmup + 1)
    progress = (step - warmup) / max(1.0, total_steps - warmup)
    return recipe.min_lr + 0.5 * (recipe.lr - recipe.min_lr) * (1 + math.cos(math.pi * progress))


@dataclass(kw_only=True)
class UntrainedConfig(RecipeConfig):
    """The recipe of a model that is trained already. It trains nothing."""

    trains: ClassVar[bool] = False
    budget: BudgetConfig = field(default_factory=lambda: BudgetConfig(epochs=0))
    batch: int = 0
    bptt: int = 0
    lr: float = 0.0
    clip: float = 0.0
    export: Literal["best", "last"] = "last"
    validation_words: int = 0

    def __post_init__(self) -> None:
        """Skip all checks, because nothing is trained."""


@dataclass(kw_only=True)
class CountedConfig(UntrainedConfig):
    """The recipe of a model that is counted in one pass.

    Budgets, batches and rates are reset, so that they do not change a run's identity.
    """

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
