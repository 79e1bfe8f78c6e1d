"""Batches as columns of one token stream, addressed by step, so that a run can go on from any step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpora.config import parse_size
from corpora.errors import ConfigError
from corpora.tokenizers import EOS
from train.config import RecipeConfig


@dataclass
class Batch:
    """One step: inputs (B, T), the tokens after them (B, T), and whether the state starts anew."""

    inputs: Tensor
    targets: Tensor
    first: bool


class Batches:
    """All steps of a run, in order: the sample's stream cut into `batch` columns, walked in steps of `bptt`.

    An epoch walks the same columns in the same order and starts from an initial state, as in the published code of
    both models; its last step may be shorter. The stream begins after an `<eos>`, so that its first token is predicted
    too; tokens that do not fill a row of all columns are left out (fewer than `batch`).
    As a data loader it is stateful: `load_state_dict` makes iteration go on at the step that was saved.
    """

    def __init__(self, tokens: npt.NDArray[Any], words: int, recipe: RecipeConfig):
        """`tokens`: the sample's stream of ids; `words`: the reference words in it.

        Raises ConfigError when the stream is too short for one step of all columns or the budget holds no step.
        """
        self.bptt = recipe.bptt
        self.words = words
        self.column = len(tokens) // recipe.batch
        if self.column < 1:
            raise ConfigError(f"recipe.batch={recipe.batch}: more columns than the sample has tokens ({len(tokens)})")
        used = self.column * recipe.batch
        stream = np.empty(used + 1, dtype=tokens.dtype)
        stream[0], stream[1:] = EOS, tokens[:used]
        self.inputs = stream[:-1].reshape(recipe.batch, self.column)
        self.targets = stream[1:].reshape(recipe.batch, self.column)
        self.steps_per_epoch = -(-self.column // self.bptt)
        if recipe.budget.epochs is not None:
            epochs = recipe.budget.epochs
        else:
            assert recipe.budget.words is not None
            epochs = parse_size(recipe.budget.words, "recipe.budget.words") / words
        self.steps = round(epochs * self.steps_per_epoch)
        if self.steps < 1:
            raise ConfigError(f"recipe.budget: {epochs:g} epochs of {self.steps_per_epoch} steps hold no whole step")
        self.step = 0

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        while self.step < self.steps:
            batch = self.at(self.step)
            self.step += 1  # before the batch is used: what is saved after it is used is the next one
            yield batch

    def at(self, step: int) -> Batch:
        """The batch of a step (from 0)."""
        within = step % self.steps_per_epoch
        part = slice(within * self.bptt, (within + 1) * self.bptt)
        inputs = torch.from_numpy(self.inputs[:, part].astype(np.int64))
        targets = torch.from_numpy(self.targets[:, part].astype(np.int64))
        return Batch(inputs, targets, first=within == 0)

    def words_seen(self, step: int) -> int:
        """Reference words read after `step` steps, repeats counted, to the nearest word."""
        epochs, within = divmod(step, self.steps_per_epoch)
        share = min(within * self.bptt, self.column) / self.column
        return round((epochs + share) * self.words)

    def state_dict(self) -> dict[str, int]:
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.step = state["step"]
