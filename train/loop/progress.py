"""Progress of training: speed, loss, perplexity and time left on a terminal, and words in progress.json."""

import math
import time
from datetime import UTC, datetime
from typing import Any

import lightning as L

from pairscale.console import say
from pairscale.files import write_json
from pairscale.progress import Activity
from train.loop.state import TrainState

DETAIL_SECONDS = 1.0  # between readings of the loss, for which a GPU waits
FILE_SECONDS = 5  # between versions of progress.json


class TrainingProgress(L.Callback):
    """An activity with words, loss and perplexity if it is to be shown, and in any case progress.json."""

    def __init__(self, state: TrainState, show: bool):
        self.state = state
        self.name = state.folder.path.name
        self.batches = state.batches
        self.show = show
        self.started = self.detailed = self.noted = time.monotonic()
        self.activity: Activity | None = None

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        step = trainer.global_step
        self.started = self.detailed = self.noted = time.monotonic()
        if step:
            say(f"resuming {self.name} at {self.batches.words_seen(step):,} words seen")
        if self.show:
            words = self.batches.words_seen(len(self.batches))
            self.activity = Activity("training", words, "words", self.batches.words_seen(step))
            self.activity.begin()

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *unused: Any) -> None:
        step, now = trainer.global_step, time.monotonic()
        if now - self.noted >= FILE_SECONDS:
            self.noted = now
            self._note(step, now - self.started)
        if self.activity is not None:
            self.activity.completed = self.batches.words_seen(step)
            if now - self.detailed >= DETAIL_SECONDS:
                self.detailed = now
                self.activity.detail = self._summary()

    def _note(self, step: int, seconds: float) -> None:
        seen = self.batches.words_seen(step)
        rate = (seen - self.batches.words_seen(self.state.first_step)) / seconds
        words = {"words_seen": seen, "words": self.batches.words_seen(len(self.batches)), "words_per_s": round(rate)}
        write_json(self.state.folder.progress, words | {"at": datetime.now(UTC).isoformat(timespec="seconds")})

    def _summary(self) -> str:
        """Return training loss and the latest validation as words."""
        parts = []
        if self.state.interval_tokens:
            loss = self.state.interval_loss.item() / self.state.interval_tokens
            parts.append(f"loss {loss:.3f} nats/token ({math.exp(min(loss, 50)):,.1f})")
        if self.state.last is not None:
            parts.append(f"valid {self.state.last.called} {self.state.last.value:,.1f} a word")
        return ", ".join(parts)

    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._stop()
        if self.show and self.state.last is not None and self.state.last.stuck:
            say(f"{self.name}: {self.state.last.stuck}")

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        self._stop()

    def _stop(self) -> None:
        if self.activity is not None:
            self.activity.end()
            self.activity = None
