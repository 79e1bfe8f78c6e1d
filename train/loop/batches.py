"""Batches of a sample, addressed by step, so that a run can resume at any step; here as columns of one token stream."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpora.tokenizers import EOS
from pairscale.errors import ConfigError
from train.recipes import BudgetConfig, RecipeConfig

NO_TARGET = -100  # in place of a target that is none: padding, and tokens that are not hidden


@dataclass
class Batch:
    """One step, or a rank's part of it: inputs (B, T) and targets (B, T) int64.

    Targets are the tokens after the inputs, or hidden tokens; NO_TARGET where there is none.
    """

    inputs: Tensor
    targets: Tensor
    first: bool  # True if it reads from an initial state
    count: float | None = None  # targets of the step, for each rank; None: every place has one
    # Of a hybrid objective. Each kind of rows then weighs as its share of the step's rows: `count` and `causal_count`
    # are those of its own targets, divided by that share.
    causal_count: float | None = None
    causal: Tensor | None = None  # (B,) bool: rows that are read causally

    def terms(self) -> list[tuple[Tensor | None, float]]:
        """Return the terms of the loss: places (N,) of their targets, None for all, and the divisor of their sum."""
        if self.count is None:
            return [(None, self.targets.numel())]
        there = self.targets != NO_TARGET
        if self.causal is None or self.causal_count is None:
            return [(_places(there), self.count)]
        causal = self.causal[:, None]
        return [(_places(there & ~causal), self.count), (_places(there & causal), self.causal_count)]

    def parts(self, count: int) -> list["Batch"]:
        """Return the batch in at most `count` parts of about as many rows."""
        if count == 1:
            return [self]
        causal = [None] * count if self.causal is None else self.causal.tensor_split(count)
        split = zip(self.inputs.tensor_split(count), self.targets.tensor_split(count), causal, strict=True)
        return [replace(self, inputs=rows, targets=of, causal=kind) for rows, of, kind in split if len(rows)]


def _places(chosen: Tensor) -> Tensor:
    return torch.nonzero(chosen.flatten()).squeeze(1)


class Batches(ABC):
    """All steps of a run, in order; epochs have equally many. `load_state_dict` continues at a step."""

    def __init__(self, words: int, steps_per_epoch: int, recipe: RecipeConfig):
        """Take a sample's number of reference words. Raises ConfigError for 0 < budget < 1 word."""
        self.words = words
        self.steps_per_epoch = steps_per_epoch
        self.steps = self._steps(recipe.budget)
        self.step = 0

    @abstractmethod
    def at(self, step: int) -> Batch:
        """Return the batch of a step (from 0), or this rank's part of it."""

    @abstractmethod
    def steps_within(self, words: int) -> int:
        """Return the fewest steps of an epoch in which so many reference words are seen."""

    @abstractmethod
    def share_read(self, within: int) -> float:
        """Return the share of an epoch's tokens that `within` of its steps read."""

    def _steps(self, budget: BudgetConfig) -> int:
        """Return the fewest steps in which the words of the budget are seen."""
        words = budget.words_seen(self.words)
        if words < 1 and budget.epochs:
            raise ConfigError(
                f"recipe.budget.epochs={budget.epochs}: must hold at least one word, or be 0 for an untrained model"
            )
        return self.steps_for(words)

    def steps_for(self, words: int) -> int:
        """Return the fewest steps in which so many reference words are seen, with repeats."""
        epochs, rest = divmod(words, self.words)
        return epochs * self.steps_per_epoch + self.steps_within(rest)

    def words_seen(self, step: int) -> int:
        """Return the reference words read after `step` steps, with repeats, to the nearest word."""
        epochs, within = divmod(step, self.steps_per_epoch)
        return epochs * self.words + round(self.share_read(within) * self.words)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches from the current step to the end of the run, where the next iteration starts again."""
        while self.step < self.steps:
            batch = self.at(self.step)
            self.step += 1  # before the batch is used, so that a checkpoint after it continues with the next one
            yield batch
        self.step = 0

    def state_dict(self) -> dict[str, int]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.step = state["step"]


class Columns(Batches):
    """The sample's stream cut into `batch` columns, walked in steps of `bptt`.

    Each epoch walks the same columns in the same order from an initial state, as in the published code of both models;
    its last step may be shorter. The stream begins after an `<eos>`, so that its first token is predicted too, and the
    last column is filled up from the stream's start (fewer than `batch` tokens), so that every token is predicted in
    every epoch. The sample's own order is random, so no seed is needed here.
    """

    def __init__(self, tokens: npt.NDArray[Any], words: int, recipe: RecipeConfig, share: tuple[int, int] = (0, 1)):
        """Take the sample's ids and its number of reference words; of (rank, ranks) in `share` read the rank's columns.

        Steps and words are those of all. Raises ConfigError for fewer tokens than columns or 0 < budget < 1 word.
        """
        if len(tokens) < recipe.batch:
            raise ConfigError(f"recipe.batch={recipe.batch}: more columns than the sample has tokens ({len(tokens)})")
        self.bptt = recipe.bptt
        self.column = -(-len(tokens) // recipe.batch)
        used = self.column * recipe.batch
        stream = np.empty(used + 1, dtype=tokens.dtype)
        stream[0], stream[1:] = EOS, np.resize(tokens, used)
        rank, ranks = share
        own = slice(rank * recipe.batch // ranks, (rank + 1) * recipe.batch // ranks)
        self.inputs = stream[:-1].reshape(recipe.batch, self.column)[own]
        self.targets = stream[1:].reshape(recipe.batch, self.column)[own]
        super().__init__(words, -(-self.column // self.bptt), recipe)

    def steps_within(self, words: int) -> int:
        depth = -(-words * self.column // self.words)  # of the columns that hold them, in tokens
        return -(-depth // self.bptt)

    def share_read(self, within: int) -> float:
        return min(within * self.bptt, self.column) / self.column

    def at(self, step: int) -> Batch:
        """Return the batch of a step (from 0)."""
        within = step % self.steps_per_epoch
        part = slice(within * self.bptt, (within + 1) * self.bptt)
        inputs = torch.from_numpy(self.inputs[:, part].astype(np.int64))
        targets = torch.from_numpy(self.targets[:, part].astype(np.int64))
        return Batch(inputs, targets, first=within == 0)
