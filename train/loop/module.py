"""The Lightning module: a training step with carried state, validation, and all that an exact resume needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import lightning as L
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from corpora.prepare import HeldOut
from pairscale.errors import RunError
from train.config import RunConfig
from train.loop.batches import Batch, Batches
from train.loop.perplexity import Perplexity, evaluate
from train.loop.ranks import Ranks
from train.loop.recipes import build_optimizer, rate_after_validation, scheduled_rate
from train.loop.snapshots import Snapshots
from train.models.base import LanguageModel, State
from train.runs.metrics import MetricsFile

ALONE = Ranks()


class LanguageModelling(L.LightningModule):
    """Next-token training of one run.

    Everything happens at optimiser steps: the learning rate is set before a step; logging, validation, snapshots and
    checkpoints follow it, in this order. Nothing depends on the clock, so a run that was killed repeats the same steps.
    """

    def __init__(
        self,
        config: RunConfig,
        model: LanguageModel,
        batches: Batches,
        held_out: HeldOut,
        metrics: MetricsFile,
        snapshots: Snapshots,
        intervals: dict[str, int],
        on_best: Callable[[Perplexity, int], None],
        on_checkpoint: Callable[[], None],
        checkpoint_asked: Callable[[], bool] = lambda: False,
        ranks: Ranks = ALONE,
    ):
        """`intervals`: steps between `log`, `validate` and `checkpoint`. `checkpoint_asked`: whether one is due now."""
        super().__init__()
        self.save_hyperparameters({"run": config.model.name, "seed": config.seed})
        self.config = config
        self.model = model
        self.batches = batches
        self.held_out = held_out
        self.metrics = metrics
        self.snapshots = snapshots
        self.intervals = intervals
        self.on_best = on_best
        self.on_checkpoint = on_checkpoint
        self.checkpoint_asked = checkpoint_asked
        self.ranks = ranks
        self.carried: State | None = None
        self.best: float | None = None  # validation nats per word of the best weights so far
        self.last: Perplexity | None = None
        self.interval_loss = torch.zeros((), dtype=torch.float64)  # nats since the last log point
        self.interval_tokens = 0
        self.checked = 0  # steps up to here were finite
        self._generators: dict[str, Any] | None = None

    @property
    def total_steps(self) -> int:
        return len(self.batches)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return build_optimizer(self.config.recipe, self.model.parameters())

    def configure_gradient_clipping(self, *_: Any, **__: Any) -> None:
        """Clip here, as Lightning clips no gradient of a fused optimiser under autocast: that one might unscale them.

        Ours are not scaled, since bfloat16 has the range of float32.
        """
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.recipe.clip)
        self.recent[self._place(self.global_step), 1] = norm

    def on_train_start(self) -> None:
        """Put the random generators back where the checkpoint left them: from here on only dropout draws from them."""
        self.metrics.forget_after(self.global_step)
        if self.ranks.first:
            self.snapshots.go_on_after(self.global_step)
        # Loss in nats per token and norm of the gradient since the last log point, kept where they are computed.
        self.recent = torch.zeros(self.intervals["log"], 2, device=self.device)
        self.checked = self.global_step
        self.model.train()
        if self.carried is not None:  # a checkpoint is read before the model is on its device
            self.carried = tuple(part.to(self.device) for part in self.carried)
        if self._generators is not None:
            torch.set_rng_state(self._generators["cpu"])
            if self._generators["cuda"] and self.device.type == "cuda":
                torch.cuda.set_rng_state(self._generators["cuda"][0], self.device)

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        rate = scheduled_rate(self.config.recipe, self.global_step, self.total_steps)
        if rate is not None:
            self._optimizer.param_groups[0]["lr"] = rate

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Mean loss of a batch, in nats per token."""
        if batch.first or self.carried is None:
            self.carried = self.model.initial_state(batch.inputs.shape[0])
        hidden, self.carried = self.model(batch.inputs, self.carried)
        targets = batch.targets.reshape(-1)
        total = self.model.loss(hidden.reshape(targets.numel(), -1), targets)
        # no .item() here: it would make a GPU wait for every step
        self.interval_loss = self.interval_loss.to(total.device) + total.detach().double()
        self.interval_tokens += targets.numel()
        loss = total / targets.numel()
        self.recent[self._place(self.global_step), 0] = loss.detach()
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        step = self.global_step
        final = step == self.total_steps
        if final or step % self.intervals["log"] == 0 or step % self.intervals["validate"] == 0:
            self.check_finite()
        if final or step % self.intervals["log"] == 0:
            self._log_training(step)
        if final or step % self.intervals["validate"] == 0:
            self._validate(step)
        self._publish(step)
        if step in self.snapshots.moments:
            self.check_finite()
            if self.ranks.first:
                self.snapshots.write(self.model, step)
        if final and self.ranks.first:
            self.metrics.write()  # the run is exported next; a kill before that goes on from an earlier checkpoint
        elif not final and (step % self.intervals["checkpoint"] == 0 or self.checkpoint_asked()):
            self.on_checkpoint()

    def _place(self, step: int) -> int:
        """Row of `recent` that holds the step after `step` steps."""
        return step % self.intervals["log"]

    def check_finite(self) -> None:
        """Raise RunError where a loss, a gradient or a weight since the last check is infinite or no number.

        Called at each log point at least, and before anything is exported or saved: it makes a GPU wait once. What it
        says of the first such step is exact, however much later it is called, and on whichever rank that was.
        """
        step, first = self.global_step, self._place(self.checked)
        if step == self.checked:
            return
        recent = self.recent[first : first + step - self.checked]
        bad = ~recent.isfinite().all(dim=1)
        weights = [*self.model.parameters(), *(self.carried or ())]
        bad_weights = ~torch.stack([weight.isfinite().all() for weight in weights]).all()
        if bool(self.ranks.summed((bad.any() | bad_weights).int())):
            at = int(bad.int().argmax()) if bool(bad.any()) else len(recent) - 1
            self._diverged(*min(self.ranks.gathered((self.checked + at + 1, *recent[at].tolist()))))
        self.checked = step

    def _diverged(self, step: int, loss: float, norm: float) -> NoReturn:
        if self.ranks.first:
            self.metrics.write()  # up to the last log point: how it came to this
        rate = scheduled_rate(self.config.recipe, step - 1, self.total_steps)
        if rate is None:
            rate = self._optimizer.param_groups[0]["lr"]
        raise RunError(
            f"the run diverged at step {step:,} of {self.total_steps:,} ({self.batches.words_seen(step):,} words seen),"
            f" loss {loss:.4g} nats per token, norm of the gradient {norm:.4g}, learning rate {rate:.4g}; lower "
            "recipe.lr or recipe.clip, which makes another run: this one would come here again from its last checkpoint"
        )

    def _log_training(self, step: int) -> None:
        nats = self.ranks.summed(self.interval_loss).item()
        self.metrics.add(
            step,
            {
                "words_seen": self.batches.words_seen(step),
                "epoch": step / self.batches.steps_per_epoch,
                "lr": self._optimizer.param_groups[0]["lr"],
                "train_nats_per_token": nats / max(1, self.interval_tokens * self.ranks.size),
            },
        )
        self.interval_loss = torch.zeros_like(self.interval_loss)
        self.interval_tokens = 0

    def _validate(self, step: int) -> None:
        self.last = self.ranks.from_first(lambda: evaluate(self.model, self.held_out, self.device))
        loss = self.last.nats / self.last.words
        if not math.isfinite(loss):
            raise RunError(
                f"the validation loss is {loss} after {step:,} steps, though all weights are finite: the run diverged; "
                "lower recipe.lr"
            )
        improved = self.best is None or loss < self.best
        if improved:
            self.best = loss
            if self.ranks.first:
                self.on_best(self.last, step)
        group = self._optimizer.param_groups[0]
        at = {"words_seen": self.batches.words_seen(step), "epoch": step / self.batches.steps_per_epoch}
        self.metrics.add(step, {**at, **self.last.metrics()})
        group["lr"] = rate_after_validation(self.config.recipe, group["lr"], improved)

    def _publish(self, step: int) -> None:
        """Give what a step recorded to the loggers, as one point."""
        if values := self.metrics.at(step):
            for logger in self.loggers:
                # words seen, not steps, are what runs of different batch sizes share
                logger.log_metrics(values, step=self.batches.words_seen(step))

    @property
    def _optimizer(self) -> torch.optim.Optimizer:
        return self.trainer.optimizers[0]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Called on all ranks, of which the first writes what all of them carry."""
        # That of its own GPU, whatever others there are: where it goes on there may be fewer.
        cuda = [torch.cuda.get_rng_state(self.device)] if self.device.type == "cuda" else []
        own = {
            "carried": self.carried,
            "best": self.best,
            "interval_loss": self.interval_loss,
            "interval_tokens": self.interval_tokens,
            "generators": {"cpu": torch.get_rng_state(), "cuda": cuda},
        }
        # Tensors go between ranks by way of the CPU.
        everyone = self.ranks.gathered(own if self.ranks.size == 1 else tree_map_only(Tensor, Tensor.cpu, own))
        checkpoint["run"] = everyone[0] if len(everyone) == 1 else {"ranks": everyone}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Raises RunError where another number of devices wrote it: each rank carries the states of its columns."""
        saved = checkpoint["run"]
        everyone = saved.get("ranks", [saved])
        if len(everyone) != self.ranks.size:
            raise RunError(
                f"the checkpoint is of trainer.devices={len(everyone)}, this is trainer.devices={self.ranks.size}: "
                f"go on with {len(everyone)}, or remove the run's folder to start again"
            )
        saved = everyone[self.ranks.rank]
        self.best = saved["best"]
        self.interval_loss = saved["interval_loss"]
        self.interval_tokens = saved["interval_tokens"]
        self._generators = saved["generators"]
        self.carried = saved["carried"]
