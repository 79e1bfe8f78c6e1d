"""Batches as columns of one token stream, addressed by step, so that a run can resume at any step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpora.tokenizers import EOS
from pairscale.errors import ConfigError
from pairscale.sizes import parse_size
from train.recipes import BudgetConfig, RecipeConfig


@dataclass
class Batch:
    """One step: inputs (B, T), the tokens after them (B, T), and `first`, True if it reads from an initial state."""

    inputs: Tensor
    targets: Tensor
    first: bool


class Batches:
    """All steps of a run, in order: the sample's stream cut into `batch` columns, walked in steps of `bptt`.

    Each epoch walks the same columns in the same order from an initial state, as in the published code of both models;
    its last step may be shorter. The stream begins after an `<eos>`, so that its first token is predicted too, and the
    last column is filled up from the stream's start (fewer than `batch` tokens), so that every token is predicted in
    every epoch. The sample's own order is random, so no seed is needed here. `load_state_dict` continues at a step.
    """

    def __init__(self, tokens: npt.NDArray[Any], words: int, recipe: RecipeConfig, share: tuple[int, int] = (0, 1)):
        """Take the sample's ids and its number of reference words; of (rank, ranks) in `share` read the rank's columns.

        Steps and words are those of all. Raises ConfigError for fewer tokens than columns or 0 < budget < 1 word.
        """
        if len(tokens) < recipe.batch:
            raise ConfigError(f"recipe.batch={recipe.batch}: more columns than the sample has tokens ({len(tokens)})")
        self.bptt = recipe.bptt
        self.words = words
        self.column = -(-len(tokens) // recipe.batch)
        used = self.column * recipe.batch
        stream = np.empty(used + 1, dtype=tokens.dtype)
        stream[0], stream[1:] = EOS, np.resize(tokens, used)
        rank, ranks = share
        own = slice(rank * recipe.batch // ranks, (rank + 1) * recipe.batch // ranks)
        self.inputs = stream[:-1].reshape(recipe.batch, self.column)[own]
        self.targets = stream[1:].reshape(recipe.batch, self.column)[own]
        self.steps_per_epoch = -(-self.column // self.bptt)
        self.steps = self._steps(recipe.budget)
        self.step = 0

    def _steps(self, budget: BudgetConfig) -> int:
        """Return the fewest steps in which the words of the budget are seen."""
        if budget.words is not None:
            return self.steps_for(parse_size(budget.words, "recipe.budget.words"))
        assert budget.epochs is not None
        words = round(budget.epochs * self.words)
        if words < 1 and budget.epochs:
            raise ConfigError(
                f"recipe.budget.epochs={budget.epochs}: must hold at least one word, or be 0 for an untrained model"
            )
        return self.steps_for(words)

    def steps_for(self, words: int) -> int:
        """Return the fewest steps in which so many reference words are seen, with repeats."""
        epochs, rest = divmod(words, self.words)
        depth = -(-rest * self.column // self.words)  # of the columns that hold the rest, in tokens
        return epochs * self.steps_per_epoch + -(-depth // self.bptt)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches from the current step to the end of the run, where the next iteration starts again."""
        while self.step < self.steps:
            batch = self.at(self.step)
            self.step += 1  # before the batch is used, so that a checkpoint after it continues with the next one
            yield batch
        self.step = 0

    def at(self, step: int) -> Batch:
        """Return the batch of a step (from 0)."""
        within = step % self.steps_per_epoch
        part = slice(within * self.bptt, (within + 1) * self.bptt)
        inputs = torch.from_numpy(self.inputs[:, part].astype(np.int64))
        targets = torch.from_numpy(self.targets[:, part].astype(np.int64))
        return Batch(inputs, targets, first=within == 0)

    def words_seen(self, step: int) -> int:
        """Return the reference words read after `step` steps, with repeats, to the nearest word."""
        epochs, within = divmod(step, self.steps_per_epoch)
        share = min(within * self.bptt, self.column) / self.column
        return epochs * self.words + round(share * self.words)

    def state_dict(self) -> dict[str, int]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.step = state["step"]
