"""Train a classifier, predict the validation table after each epoch, and keep the predictions of the best epoch.

The recipe is that of BabyLM's pipeline of 2026 (strict/evaluation_pipeline/finetune): AdamW over all weights, a linear
warm-up and a cosine, and whole batches only. The order of an epoch depends on the seed and the epoch alone, and a
checkpoint contains the rest, so a killed process repeats the same steps (train/loop/state.py).
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import lightning as L
import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from corpora.tokenizers import PAD
from pairscale.errors import RunError
from pairscale.progress import Activity
from pairscale.seeds import derived_seed, permutation
from pairscale.tables import write_csv
from train.config import FinetuneConfig, TaskConfig
from train.finetune.table import Batch, Items
from train.loop.device import Ranks, without_gradients
from train.loop.preemption import Preemption
from train.loop.state import TrainState, write_checkpoint
from train.models.base import LanguageModel
from train.models.huggingface import HuggingFaceModel
from train.runs.folder import DONE, MetricsFile, RunFolder, numbers
from train.runs.provenance import cost
from train.trackers.tracker import Tracker

COLUMNS = ("step", "epoch", "lr", "train_nats_per_row", "accuracy", "mcc", "f1")  # of metrics.csv
Integers = npt.NDArray[np.int64]


def learning_rate(task: TaskConfig, step: int, steps: int) -> float:
    """Return the learning rate at a step (counted from 0): a linear warm-up, then a cosine to `min_lr` * `lr`."""
    warmup = int(task.warmup * steps)
    if step < warmup:
        return task.lr * step / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return task.lr * (task.min_lr + (1 - task.min_lr) * 0.5 * (1 + math.cos(math.pi * progress)))


def classification_metrics(classes: Integers, predicted: Integers, count: int) -> dict[str, float]:
    """Return the accuracy, Matthews' correlation and, for two classes, the F1 of the second one.

    The correlation of several classes is R_K of Gorodkin (2004, equation 8). As in scikit-learn, a measure is 0 if it
    isn't defined. Takes the true and the predicted classes (N,), and the number of classes.
    """
    confusion = np.zeros((count, count))
    np.add.at(confusion, (classes, predicted), 1)
    rows, right, true, guessed = len(classes), confusion.trace(), confusion.sum(axis=1), confusion.sum(axis=0)
    spread = math.sqrt((rows**2 - true @ true) * (rows**2 - guessed @ guessed))
    values = {"accuracy": right / rows, "mcc": (right * rows - true @ guessed) / spread if spread else 0.0}
    if count == 2:
        values["f1"] = 2 * confusion[1, 1] / max(1, true[1] + guessed[1])
    return {name: float(value) for name, value in values.items()}


class Classifier(nn.Module):
    """A language model, and a head that turns the hidden state of one place of each text into logits of classes.

    The head is that of BabyLM's pipeline of 2026: layer norm, linear layer, GELU, layer norm, dropout, linear layer.
    Its layer norms have no weights. All weights of the model are trained, except those of layers that only predict
    tokens.
    """

    def __init__(self, model: LanguageModel, classes: int, dropout: float):
        """Put a new head on a model. Its weights are drawn from torch's global generator."""
        super().__init__()
        self.model = model
        with torch.no_grad():
            width = self._hidden(torch.full((1, 2), PAD + 2)).shape[-1]
        self.head = nn.Sequential(
            nn.LayerNorm(width, 1e-5, elementwise_affine=False),
            nn.Linear(width, width),
            nn.GELU(),
            nn.LayerNorm(width, 1e-5, elementwise_affine=False),
            nn.Dropout(dropout),
            nn.Linear(width, classes),
        )

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Return the logits (B, C) for texts (B, T), padded on the right, from the hidden states at `places` (B,)."""
        hidden = self._hidden(tokens)
        logits: Tensor = self.head(hidden[torch.arange(len(tokens), device=tokens.device), places])
        return logits

    def _hidden(self, tokens: Tensor) -> Tensor:
        """Return the last hidden states (B, T, D), before the layers that predict tokens.

        Only masked models need to know the padding; other models don't look ahead.
        """
        if not isinstance(self.model, HuggingFaceModel):
            hidden: Tensor = self.model(tokens, self.model.initial_state(len(tokens)))[0]
            return hidden
        attended = {} if self.model.pad is None else {"attention_mask": (tokens != self.model.pad).long()}
        states: Tensor = self.model.network.base_model(input_ids=tokens, **attended).last_hidden_state
        return states


class FineTuning(L.LightningModule):
    """Train and validate a classifier. The hooks appear in the order in which Lightning calls them."""

    def __init__(
        self,
        config: FinetuneConfig,
        folder: RunFolder,
        model: LanguageModel,
        tables: tuple[Items, Items],
        labels: Sequence[str],
    ):
        """Draw the weights of the classifier. `tables` are those to train on and to predict."""
        super().__init__()
        self.automatic_optimization = False  # `training_step` calls the optimiser itself
        self.config, self.task, self.folder, self.labels = config, config.task, folder, labels
        self.table, self.valid = tables
        self.steps_per_epoch = len(self.table.ids) // self.task.batch
        self.steps = self.steps_per_epoch * self.task.epochs
        torch.manual_seed(derived_seed(None, config.seed, "classifier"))
        self.classifier = Classifier(model, len(labels), self.task.dropout)
        # Dropout draws from its own seed, so that it is the same whatever the classifier drew.
        torch.manual_seed(derived_seed(None, config.seed, "fine-tuning"))
        self.state = TrainState(self.classifier, Ranks())
        self.metrics = MetricsFile(folder.metrics, COLUMNS)
        self.preemption = Preemption(Ranks())
        self.activity: Activity  # set when training begins
        self.tracker: Tracker  # likewise
        self.earlier: Mapping[str, Any] = folder.read_manifest()  # of earlier attempts
        self.used = ("cpu", 1, 1)  # kind of device, number of devices, number of threads
        self.started = time.monotonic()

    def batches(self, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of the steps from `first` on."""
        seed, size = derived_seed(None, self.config.seed, "order"), self.task.batch
        for step in range(first, self.steps):
            epoch, place = divmod(step, self.steps_per_epoch)
            order = permutation(len(self.table.ids), seed, epoch)
            yield self.table.batch(order[place * size : (place + 1) * size].tolist())

    def loss(self, batch: Batch) -> Tensor:
        """Return the mean loss of a batch in nats."""
        return functional.cross_entropy(self.classifier(batch.tokens, batch.places).float(), batch.classes)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        weights, task = self.classifier.parameters(), self.task
        self.state.optimizer = torch.optim.AdamW(weights, lr=task.lr, weight_decay=task.weight_decay, fused=True)
        return self.state.optimizer

    def on_train_start(self) -> None:
        """Restore the checkpoint, forget the later rows of metrics.csv, and start listening for signals."""
        self.state.restore(self.device)
        self.metrics.forget_after(self.state.step)
        self.preemption.listen()
        self.classifier.train()

    def training_step(self, batch: Batch, batch_idx: int) -> None:
        """Set the learning rate and update the weights."""
        state = self.state
        state.rate = learning_rate(self.task, state.step, self.steps)
        state.optimizer.zero_grad()
        loss = self.loss(batch)
        with torch.autocast(self.device.type, enabled=False):
            self.manual_backward(loss)
        state.optimizer.step()
        state.add_loss(loss * len(batch.classes), len(batch.classes))
        state.step += 1

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        """Validate after an epoch. Save after an epoch or a signal, but not at the end."""
        step = self.state.step
        self.activity.completed = step * self.task.batch
        ends_epoch = step % self.steps_per_epoch == 0
        if ends_epoch:
            self.validate()
        if step < self.steps and (ends_epoch or self.preemption.requested(step)):
            self.metrics.write()
            write_checkpoint(self.folder, self.state.state_dict())
            self.folder.update_manifest(**self.spent)
            self.preemption.saved()

    def validate(self) -> None:
        """Add a row to metrics.csv. If this epoch is the best so far, write its predictions and its digest."""
        step, metric, epoch = self.state.step, self.task.metric, self.state.step // self.steps_per_epoch
        loss = self.state.take_loss()
        if not math.isfinite(loss):
            raise RunError(
                f"{self.folder.path}: the loss is {loss} after {step:,} of {self.steps:,} steps. Remove this folder "
                f"and use a lower task.lr than {self.task.lr:g}."
            )
        classes, predicted = self.valid.classes.numpy(), self.predict()
        values = classification_metrics(classes, predicted, len(self.labels))
        self.metrics.add(step, {"epoch": epoch, "lr": self.state.rate, "train_nats_per_row": loss, **values})
        for row in self.metrics.rows:  # the tracker keeps those that it doesn't have
            self.tracker.log(numbers(row))
        self.activity.detail = f"epoch {epoch} of {self.task.epochs}: {metric} {values[metric]:.3f}"
        if self.state.best is None or values[metric] > self.state.best:
            self.state.best = values[metric]
            names = np.array(self.labels)
            predictions = {"row": range(len(classes)), "label": names[classes], "predicted": names[predicted]}
            write_csv(self.folder.path / "predictions.csv", pd.DataFrame(predictions))
            weights = {name: weight.detach().cpu() for name, weight in self.classifier.named_parameters()}
            digest = hashlib.sha256(save(weights)).hexdigest()
            self.folder.update_manifest(best={"epoch": epoch, **values, "weights": digest})

    def predict(self) -> Integers:
        """Return the predicted class of each row of the validation table (N,)."""
        rows, size, found = range(len(self.valid.ids)), self.task.valid_batch, []
        self.classifier.eval()
        with without_gradients(self.device, self.config.precision == "bf16"):
            for first in rows[::size]:
                batch = self.valid.batch(rows[first : first + size])
                logits = self.classifier(batch.tokens.to(self.device), batch.places.to(self.device))
                found.append(logits.argmax(dim=-1).cpu())
        self.classifier.train()
        predicted: Integers = torch.cat(found).numpy()
        return predicted

    @property
    def spent(self) -> dict[str, Any]:
        """The time (wall_s, in seconds) and cost of all attempts so far, for the manifest."""
        seconds = time.monotonic() - self.started
        costs = cost(self.earlier.get("cost", {}), seconds, *self.used)
        return {"wall_s": round(self.earlier.get("wall_s", 0) + seconds, 1), "cost": costs}

    def finish(self) -> None:
        """Write metrics.csv, mark the work as done, and remove the checkpoints."""
        self.metrics.write()
        self.folder.update_manifest(status=DONE, **self.spent)
        self.folder.remove_checkpoints()
        self.preemption.ended()
