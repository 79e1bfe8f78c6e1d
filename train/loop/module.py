"""The Lightning module: a training step with carried state, then logging, validation and saving."""

import math
from typing import Any, NoReturn

import lightning as L
import torch
from torch import Tensor

from pairscale.errors import RunError
from pairscale.sizes import parse_size
from train.config import RunConfig
from train.loop.batches import Batch, Batches
from train.loop.data import TrainingData
from train.loop.preemption import Preemption
from train.loop.state import TrainState
from train.models.base import LanguageModel
from train.recipes import RecipeConfig
from train.runs.model_folder import save_model
from train.trackers.tracker import Tracker

LOG_POINTS = 200  # of the training loss over a run


class LanguageModelling(L.LightningModule):
    """Next-token training of one run; nothing depends on the clock, so a killed run repeats the same steps.

    The learning rate is set before a step; logging, validation, snapshots and checkpoints follow it, in this order.
    """

    def __init__(
        self,
        config: RunConfig,
        model: LanguageModel,
        data: TrainingData,
        state: TrainState,
        preemption: Preemption,
        tracker: Tracker | None,
    ):
        super().__init__()
        self.save_hyperparameters({"run": config.model.name, "seed": config.seed})
        self.config = config
        self.model = model
        self.data = data
        self.batches = data.batches
        self.state = state
        self.preemption = preemption
        self.tracker = tracker
        self.intervals = step_intervals(config.recipe, data.batches)
        self.checked = 0  # steps up to here were finite

    @property
    def total_steps(self) -> int:
        return len(self.batches)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.config.recipe.optimizer(self.model.parameters())

    def configure_gradient_clipping(self, *_: Any, **__: Any) -> None:
        """Clip here, as Lightning refuses to with a fused optimiser under autocast; bfloat16 needs no scaling."""
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.recipe.clip)
        self.recent[self._place(self.global_step), 1] = norm

    def on_train_start(self) -> None:
        self.state.resume_at(self.global_step, self.device)
        # Loss in nats per token and norm of the gradient since the last log point, on the device that computes them.
        self.recent = torch.zeros(self.intervals["log"], 2, device=self.device)
        self.checked = self.global_step
        if self.global_step == 0 and 0 in self.state.snapshots.moments and self.state.ranks.first:
            self.state.snapshots.write(self.model, 0)
        self.model.train()

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        rate = self.config.recipe.scheduled_rate(self.global_step, self.total_steps)
        if rate is not None:
            self._rate = rate

    def optimizer_zero_grad(self, *_: Any, **__: Any) -> None:
        """Leave gradients alone: Lightning calls this after `training_step`, when those of earlier parts are there."""

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the loss of a batch's last part, in nats per token of the batch; gradients of earlier parts are there.

        The sum over all parts is the mean loss of the batch.
        """
        self._optimizer.zero_grad()
        *earlier, last = batch.parts(self.config.recipe.accumulate)
        done = torch.zeros((), device=self.device)
        for part in earlier:
            loss = self._loss(part)
            self.trainer.strategy.backward(loss, None)
            done = done + loss.detach()
        loss = self._loss(last)
        self.recent[self._place(self.global_step), 0] = done + loss.detach()
        return loss

    def _loss(self, batch: Batch) -> Tensor:
        """Return the loss of a batch or a part of it, in nats per target of the whole batch.

        Of a hybrid objective: the mean of causal blocks and that of masked ones, weighted by their shares of blocks.
        """
        carried = self.state.carried
        if batch.first or carried is None:
            carried = self.model.initial_state(batch.inputs.shape[0])
        modes = () if batch.causal is None else (batch.causal,)
        hidden, self.state.carried = self.model(batch.inputs, carried, *modes)
        targets = batch.targets.reshape(-1)
        hidden = hidden.reshape(targets.numel(), -1)
        terms = []
        for places, divisor in batch.terms():
            of, tokens = (hidden, targets) if places is None else (hidden[places], targets[places])
            nats = self.model.loss(of, tokens)
            self.state.add_loss(nats, len(tokens))
            terms.append(nats / divisor)
        return sum(terms[1:], terms[0])

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        step = self.global_step
        final = step == self.total_steps
        if final or step % self.intervals["log"] == 0 or step % self.intervals["validate"] == 0:
            self.check_finite()
        if final or step % self.intervals["log"] == 0:
            self._log_training(step)
        if final or step % self.intervals["validate"] == 0:
            self._validate(step)
        if self.tracker is not None and (values := self.state.metrics.at(step)):
            self.tracker.log(values)
        if step in self.state.snapshots.moments:
            self.check_finite()
            if self.state.ranks.first:
                self.state.snapshots.write(self.model, step)
        if final and self.state.ranks.first:
            self.state.metrics.write()  # the run is exported next; a kill before that resumes an earlier checkpoint
        elif not final and (step % self.intervals["checkpoint"] == 0 or self.preemption.requested(self.trainer)):
            self.save()

    def save(self) -> None:
        """Write metrics.csv and a checkpoint, then handle a signal. Raises as `check_finite` does."""
        self.check_finite()
        folder, first = self.state.folder, self.state.ranks.first
        if first:
            self.state.metrics.write()
        self.trainer.save_checkpoint(folder.checkpoint_folder, weights_only=False)
        if first:
            folder.update_manifest(**self.state.spent)
        self.preemption.saved()

    def keep_best(self, step: int) -> bool:
        """Return True if the validation after `step` steps is the best so far; export=best then writes the model."""
        state = self.state
        assert state.last is not None
        loss = state.last.nats / state.last.words
        improved = state.best is None or loss < state.best
        if improved:
            state.best = loss
            if state.ranks.first and self.config.recipe.export == "best":
                self.export(step)
        return improved

    def export(self, step: int) -> None:
        """Write the model for scoring, with the validation after `step` steps."""
        validation = self.state.last
        assert validation is not None
        info = {**self.data.digests, "step": step, "words_seen": self.batches.words_seen(step), **validation.metrics()}
        if validation.stuck and step:
            info["stuck"] = validation.stuck
        save_model(self.state.folder.model, self.model, self.config.model, self.data.corpus.tokenizer, info)

    def _place(self, step: int) -> int:
        """Return the row of `recent` for the step after `step` steps."""
        return step % self.intervals["log"]

    def check_finite(self) -> None:
        """Raise RunError, naming the step, if a loss, gradient or weight since the last check is not finite.

        It makes a GPU wait: called at log points and before anything is exported or saved.
        """
        step, first = self.global_step, self._place(self.checked)
        if step == self.checked:
            return
        recent = self.recent[first : first + step - self.checked]
        bad = ~recent.isfinite().all(dim=1)
        weights = [*self.model.parameters(), *(self.state.carried or ())]
        bad_weights = ~torch.stack([weight.isfinite().all() for weight in weights]).all()
        if bool(self.state.ranks.summed((bad.any() | bad_weights).int())):
            at = int(bad.int().argmax()) if bool(bad.any()) else len(recent) - 1
            self._diverged(*min(self.state.ranks.gathered((self.checked + at + 1, *recent[at].tolist()))))
        self.checked = step

    def _diverged(self, step: int, loss: float, norm: float) -> NoReturn:
        if self.state.ranks.first:
            self.state.metrics.write()  # up to the last log point: the way there
        rate = self.config.recipe.scheduled_rate(step - 1, self.total_steps)
        if rate is None:
            rate = self._rate
        raise RunError(
            f"the run diverged at step {step:,} of {self.total_steps:,} ({self.batches.words_seen(step):,} words seen),"
            f" loss {loss:.4g} nats per token, norm of the gradient {norm:.4g}, learning rate {rate:.4g}; lower "
            "recipe.lr or recipe.clip, which makes another run: this one would come here again from its last checkpoint"
        )

    def _log_training(self, step: int) -> None:
        self.state.metrics.add(
            step,
            {
                "words_seen": self.batches.words_seen(step),
                "epoch": step / self.batches.steps_per_epoch,
                "lr": self._rate,
                "train_nats_per_token": self.state.take_loss(),
            },
        )

    def _validate(self, step: int) -> None:
        state = self.state
        state.last = state.ranks.from_first(lambda: self.data.validation(self.model, self.device))
        if not math.isfinite(loss := state.last.nats / state.last.words):
            raise RunError(
                f"the validation loss is {loss} after {step:,} steps, though all weights are finite: the run diverged; "
                "lower recipe.lr"
            )
        improved = self.keep_best(step)
        at = {"words_seen": self.batches.words_seen(step), "epoch": step / self.batches.steps_per_epoch}
        state.metrics.add(step, {**at, **state.last.metrics()})
        self._rate = self.config.recipe.rate_after_validation(self._rate, improved)

    @property
    def _optimizer(self) -> torch.optim.Optimizer:
        return self.trainer.optimizers[0]

    @property
    def _rate(self) -> float:
        """The learning rate, the same for all groups of weights."""
        rate: float = self._optimizer.param_groups[0]["lr"]
        return rate

    @_rate.setter
    def _rate(self, rate: float) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = rate

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["run"] = self.state.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.state.load_state_dict(checkpoint["run"])


def step_intervals(recipe: RecipeConfig, batches: Batches) -> dict[str, int]:
    """Return the optimiser steps between two log points ("log"), validations and checkpoints."""

    def steps(words: str | None, key: str, otherwise: int) -> int:
        if words is None:
            return otherwise
        return max(1, round(parse_size(words, key) / batches.words * batches.steps_per_epoch))

    validate = steps(recipe.validate_every, "recipe.validate_every", batches.steps_per_epoch)
    return {
        "log": max(1, len(batches) // LOG_POINTS),
        "validate": validate,
        "checkpoint": steps(recipe.checkpoint_every, "recipe.checkpoint_every", validate),
    }
