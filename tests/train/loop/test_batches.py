"""Batches: every token once an epoch, exact positions, and resuming from one with Lightning."""

import logging

import lightning as L
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.tokenizers import EOS
from pairscale.errors import ConfigError
from train.loop.batches import Columns
from train.recipes import BudgetConfig, RecipeConfig


def recipe(batch=3, bptt=4, **budget):
    return RecipeConfig(
        name="r", batch=batch, bptt=bptt, lr=1.0, clip=1.0, export="last", validation_words=1,
        budget=BudgetConfig(**(budget or {"epochs": 1})),
    )  # fmt: skip


def stream(count):
    return np.arange(1, count + 1, dtype=np.uint16)


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 200), batch=st.integers(1, 9), bptt=st.integers(1, 12))
def test_an_epoch_predicts_every_token_from_the_one_before_it(count, batch, bptt):
    if count < batch:
        with pytest.raises(ConfigError, match=f"recipe.batch={batch}: more columns than the sample has tokens"):
            Columns(stream(count), 10, recipe(batch, bptt))
        return
    batches = Columns(stream(count), 10, recipe(batch, bptt))
    steps = list(batches)
    assert len(steps) == len(batches) == batches.steps_per_epoch
    inputs = torch.cat([step.inputs for step in steps], 1).flatten().tolist()  # columns one after the other
    targets = torch.cat([step.targets for step in steps], 1).flatten().tolist()
    assert targets[:count] == stream(count).tolist()
    assert len(targets) - count < batch
    assert inputs == [EOS, *targets[:-1]]
    assert [step.first for step in steps] == [True] + [False] * (len(steps) - 1)
    assert all(step.inputs.shape == step.targets.shape == (batch, bptt) for step in steps[:-1])
    assert steps[0].inputs.dtype == torch.int64


def test_every_epoch_has_the_same_order_and_a_new_state():
    batches = Columns(stream(50), 10, recipe(epochs=2))
    steps = list(batches)
    half = len(steps) // 2
    assert [step.first for step in steps].count(True) == 2
    assert steps[half].first
    assert all(torch.equal(a.targets, b.targets) for a, b in zip(steps[:half], steps[half:], strict=True))
    assert len(list(batches)) == len(steps), "a loader starts anew after its end"


@pytest.mark.parametrize("at", range(11))
def test_a_saved_position_resumes_at_the_next_batch(at):
    whole = [step.targets.tolist() for step in Columns(stream(50), 10, recipe(epochs=2))]
    stopped = Columns(stream(50), 10, recipe(epochs=2))
    iterator = iter(stopped)
    before = [next(iterator).targets.tolist() for _ in range(at)]
    continued = Columns(stream(50), 10, recipe(epochs=2))
    continued.load_state_dict(stopped.state_dict())
    assert before + [step.targets.tolist() for step in continued] == whole


@pytest.mark.parametrize(
    ("budget", "steps"),
    [
        ({"epochs": 1}, 5),
        ({"epochs": 3}, 15),
        ({"epochs": 0.5}, 3),
        ({"words": "1k"}, 5),
        ({"words": "1001"}, 6),
        ({"epochs": 1, "min_words": "2k"}, 10),
        ({"epochs": 3, "min_words": "2k"}, 15),
        ({"epochs": 0, "min_words": "2k"}, 0),
    ],
)
def test_the_budget_is_converted_to_steps(budget, steps):
    """50 tokens in 3 columns are 17 tokens a column: 4 steps of 4 and one of 1."""
    assert len(Columns(stream(50), 1000, recipe(**budget))) == steps


def test_words_seen_are_exact_at_the_end_of_an_epoch():
    batches = Columns(stream(50), 1000, recipe(epochs=2))
    assert [batches.words_seen(step) for step in (0, 5, 10)] == [0, 1000, 2000]
    assert batches.words_seen(4) == round(1000 * 16 / 17)
    assert batches.words_seen(6) == 1000 + round(1000 * 4 / 17)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"batch": 0}, "recipe.batch=0"),
        ({"bptt": 0}, "recipe.bptt=0"),
        ({"epochs": 1e-9}, "recipe.budget.epochs=1e-09"),
        ({"words": "0"}, "recipe.budget.words=0"),
    ],
)
def test_values_out_of_range_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        Columns(stream(50), 1000, recipe(**values))


class Recorder(L.LightningModule):
    """Records its batches and saves a checkpoint after each of the `saves` steps."""

    def __init__(self, saves=(), folder=None):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.saves, self.folder, self.seen = saves, folder, []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch, batch_idx):
        self.seen.append((batch.first, batch.targets.tolist()))
        return self.weight * 1.0

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if self.global_step in self.saves:
            self.trainer.save_checkpoint(self.folder / f"{self.global_step}.ckpt")


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
def test_lightning_resumes_exactly_where_a_checkpoint_was_saved(tmp_path):
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    def fit(module, **values):
        trainer = L.Trainer(
            accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=tmp_path,
        )  # fmt: skip
        trainer.fit(module, Columns(stream(50), 1000, recipe(epochs=2)), **values)
        return module.seen

    saves = (1, 4, 5, 7, 9)  # after the first step, around the end of the first epoch, before the last step
    whole = fit(Recorder(saves, tmp_path))
    assert len(whole) == 10
    for step in saves:
        assert fit(Recorder(), ckpt_path=tmp_path / f"{step}.ckpt", weights_only=True) == whole[step:]
