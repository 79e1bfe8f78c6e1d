"""Train a classifier, predict the validation table after each epoch, and keep the predictions of the best epoch.

The recipe is that of BabyLM's pipeline of 2026 (evaluation_pipeline/finetune): AdamW over all weights, a linear warm-up
and a cosine, and whole batches only. The order of an epoch depends on the seed and the epoch alone, and a checkpoint
contains the rest, so a killed process repeats the same steps (train/loop/state.py).
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import lightning as L
import numpy as np
import pandas as pd
import torch
from safetensors.torch import save
from torch import Tensor
from torch.nn import functional

from pairscale.console import say
from pairscale.errors import ConfigError, RunError
from pairscale.progress import Activity
from pairscale.seeds import derived_seed, permutation
from pairscale.tables import write_csv
from train.config import FinetuneConfig, TaskConfig
from train.finetune.classifier import Classifier
from train.finetune.table import Batch, Integers, Items, Label, Table, encode
from train.loop.device import Ranks, without_gradients
from train.loop.preemption import Preemption
from train.loop.state import TrainState, write_checkpoint
from train.models.base import LanguageModel
from train.runs.folder import DONE, MetricsFile, RunFolder
from train.runs.model_folder import LoadedModel
from train.runs.provenance import cost

PREDICTIONS = "predictions.csv"
COLUMNS = ("step", "epoch", "lr", "train_nats_per_row", "accuracy", "mcc", "f1")  # of metrics.csv


@dataclass(frozen=True)
class TaskData:
    """The two tables of a task as a model reads them."""

    train: Items
    valid: Items
    labels: Sequence[Label]  # the label of each class
    batch: int  # rows per step
    order_seed: int

    @classmethod
    def of(cls, config: FinetuneConfig, train: Table, valid: Table, loaded: LoadedModel) -> TaskData:
        """Encode the tables for a model. Raises InputError and ConfigError if they can't be used."""
        task, longest = config.task, config.task.tokens
        if loaded.model.positions is not None and loaded.model.positions < longest:
            longest = loaded.model.positions
            say(f"task.tokens={task.tokens}: the model reads at most {longest} tokens, so longer texts are cut there.")
        labels: list[Label] = sorted(set(train.labels))  # all are numbers, or all are names
        if len(labels) < 2 or (len(labels) > 2 and task.metric == "f1"):
            raise ConfigError(
                f"{train.path} has {len(labels)} different labels. "
                + ("At least two are needed." if len(labels) < 2 else "task.metric=f1 needs two; use accuracy or mcc.")
            )
        if len(train.texts) < task.batch:
            raise ConfigError(
                f"task.batch={task.batch}: {train.path} has only {len(train.texts)} rows. Use a smaller task.batch."
            )
        items = [
            encode(table, table.classes_of(labels), loaded.tokenizer, loaded.masked, longest)
            for table in (train, valid)
        ]
        return cls(items[0], items[1], labels, task.batch, derived_seed(None, config.seed, "order"))

    @property
    def steps_per_epoch(self) -> int:
        return len(self.train) // self.batch

    def rows(self, step: int) -> Integers:
        """Return the rows of a step, counted from 0."""
        epoch, place = divmod(step, self.steps_per_epoch)
        order = permutation(len(self.train), self.order_seed, epoch)
        return order[place * self.batch : (place + 1) * self.batch]

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """Yield the batches of the steps from `first` up to, and without, `last`."""
        return (self.train.batch(self.rows(step)) for step in range(first, last))


def learning_rate(task: TaskConfig, step: int, steps: int) -> float:
    """Return the rate of a step (counted from 0): a linear warm-up from 0, then a cosine down to `min_lr` * `lr`."""
    warmup = int(task.warmup * steps)
    if step < warmup:
        return task.lr * step / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return task.lr * (task.min_lr + (1 - task.min_lr) * 0.5 * (1 + math.cos(math.pi * progress)))


def classification_metrics(classes: Integers, predicted: Integers, count: int) -> dict[str, float]:
    """Return the accuracy, Matthews' correlation and, for two classes, the F1 of the second one.

    The correlation of several classes is R_K of Gorodkin (2004, equation 8). A measure that is not defined, because all
    rows or all predictions are of one class, is 0, as in scikit-learn.

    Args:
        classes: the true classes (N,), from 0.
        predicted: the predicted classes (N,).
        count: the number of classes.
    """
    confusion = np.zeros((count, count))
    np.add.at(confusion, (classes, predicted), 1)
    rows, right = confusion.sum(), confusion.trace()
    true, guessed = confusion.sum(axis=1), confusion.sum(axis=0)
    spread = math.sqrt((rows**2 - true @ true) * (rows**2 - guessed @ guessed))
    values = {"accuracy": right / rows, "mcc": (right * rows - true @ guessed) / spread if spread else 0.0}
    if count == 2:
        found = true[1] + guessed[1]
        values["f1"] = 2 * confusion[1, 1] / found if found else 0.0
    return {name: float(value) for name, value in values.items()}


class FineTuning(L.LightningModule):
    """Train and validate a classifier. The hooks appear in the order in which Lightning calls them."""

    def __init__(self, config: FinetuneConfig, folder: RunFolder, data: TaskData, model: LanguageModel):
        """Draw the weights of the classifier."""
        super().__init__()
        self.automatic_optimization = False  # `training_step` calls the optimiser itself
        self.config, self.task, self.folder, self.data = config, config.task, folder, data
        torch.manual_seed(derived_seed(None, config.seed, "classifier"))
        self.classifier = Classifier(model, len(data.labels), config.task.dropout)
        # Dropout draws from its own seed, so that it is the same whatever the classifier drew.
        torch.manual_seed(derived_seed(None, config.seed, "fine-tuning"))
        self.state = TrainState(self.classifier, Ranks())
        self.metrics = MetricsFile(folder.metrics, COLUMNS)
        self.preemption = Preemption(Ranks())
        self.steps = data.steps_per_epoch * config.task.epochs
        self.earlier: Mapping[str, Any] = folder.read_manifest()  # of earlier attempts
        self.used = ("cpu", 1, 1)  # kind of device, number of devices, number of threads
        self.started = time.monotonic()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        task = self.task
        self.state.optimizer = torch.optim.AdamW(
            self.classifier.parameters(), lr=task.lr, weight_decay=task.weight_decay, fused=True
        )
        return self.state.optimizer

    def on_train_start(self) -> None:
        """Restore the checkpoint, forget the later rows of metrics.csv, and start listening for signals."""
        step, rows = self.state.step, self.task.batch
        if step:
            say(f"Resuming {self.folder.path} after {step:,} of {self.steps:,} steps.")
        self.state.restore(self.device)
        self.metrics.forget_after(step)
        self.activity = Activity("fine-tuning", self.steps * rows, "rows", step * rows)
        self.activity.begin()
        self.preemption.listen()
        self.classifier.train()

    def training_step(self, batch: Batch, batch_idx: int) -> None:
        """Set the learning rate and update the weights."""
        state = self.state
        state.rate = learning_rate(self.task, state.step, self.steps)
        state.optimizer.zero_grad()
        loss = functional.cross_entropy(self.classifier(batch.tokens, batch.places).float(), batch.classes)
        with torch.autocast(self.device.type, enabled=False):
            self.manual_backward(loss)
        state.optimizer.step()
        state.add_loss(loss * len(batch.classes), len(batch.classes))
        state.step += 1

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        """Validate after an epoch. Save after an epoch or a signal, but not at the end."""
        step = self.state.step
        self.activity.completed = step * self.task.batch
        ends_epoch = step % self.data.steps_per_epoch == 0
        if ends_epoch:
            self.validate()
        if step < self.steps and (ends_epoch or self.preemption.requested(step)):
            self.save()

    def on_train_end(self) -> None:
        self.activity.end()

    def validate(self) -> None:
        """Add a row to metrics.csv. If this epoch is the best so far, write its predictions."""
        step, task = self.state.step, self.task
        loss = self.state.take_loss()
        if not math.isfinite(loss):
            raise RunError(
                f"{self.folder.path}: the loss is {loss} after {step:,} of {self.steps:,} steps. Remove this folder "
                f"and use a lower task.lr than {task.lr:g}."
            )
        predicted = self.predict()
        classes = self.data.valid.classes.numpy()
        values = classification_metrics(classes, predicted, len(self.data.labels))
        epoch = step // self.data.steps_per_epoch
        self.metrics.add(step, {"epoch": epoch, "lr": self.state.rate, "train_nats_per_row": loss, **values})
        self.activity.detail = f"epoch {epoch} of {task.epochs}: {task.metric} {values[task.metric]:.3f}"
        if self.state.best is not None and values[task.metric] <= self.state.best:
            return
        self.state.best = values[task.metric]
        names = np.array(self.data.labels, dtype=object)
        table = {"row": range(len(classes)), "label": names[classes], "predicted": names[predicted]}
        write_csv(self.folder.path / PREDICTIONS, pd.DataFrame(table))
        weights = {name: weight.detach().cpu().contiguous() for name, weight in self.classifier.named_parameters()}
        digest = hashlib.sha256(save(weights)).hexdigest()
        self.folder.update_manifest(best={"epoch": epoch, **values, "weights": digest})

    def predict(self) -> Integers:
        """Return the predicted class of each row of the validation table (N,)."""
        data, size = self.data.valid, self.task.valid_batch
        self.classifier.eval()
        found: list[Tensor] = []
        with without_gradients(self.device, self.config.precision == "bf16"):
            for first in range(0, len(data), size):
                batch = data.batch(range(first, min(first + size, len(data))))
                logits = self.classifier(batch.tokens.to(self.device), batch.places.to(self.device))
                found.append(logits.argmax(dim=-1).cpu())
        self.classifier.train()
        predicted: Integers = torch.cat(found).numpy()
        return predicted

    def save(self) -> None:
        """Write metrics.csv and a checkpoint, then handle any signal."""
        self.metrics.write()
        write_checkpoint(self.folder, self.state.state_dict())
        self.folder.update_manifest(**self.spent)
        self.preemption.saved()

    @property
    def spent(self) -> dict[str, Any]:
        """The time (wall_s, in seconds) and cost of all attempts so far, for the manifest."""
        seconds = time.monotonic() - self.started
        return {
            "wall_s": round(self.earlier.get("wall_s", 0) + seconds, 1),
            "cost": cost(self.earlier.get("cost", {}), seconds, *self.used),
        }

    def finish(self) -> None:
        """Write metrics.csv, mark the work as done, and remove the checkpoints."""
        self.metrics.write()
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        self.folder.update_manifest(status=DONE, ended=ended, **self.spent)
        self.folder.remove_checkpoints()
        self.preemption.ended()
