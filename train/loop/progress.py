"""Progress of training: speed, loss, perplexity and time left on a terminal, and words in progress.json."""

import math
import time
from datetime import UTC, datetime
from typing import Any

import lightning as L
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pairscale.console import say
from pairscale.files import write_json
from train.loop.state import TrainState

BAR_SECONDS = 0.5
PLAIN_SECONDS = 30  # between lines where the output is no terminal
FILE_SECONDS = 5  # between versions of progress.json


class TrainingProgress(L.Callback):
    """A bar on a terminal, a line every half minute elsewhere, and in any case progress.json."""

    def __init__(self, state: TrainState, show: bool):
        self.state = state
        self.name = state.folder.path.name
        self.batches = state.batches
        self.show = show
        self.started = self.printed = self.noted = time.monotonic()
        self.bar: Progress | None = None
        self.task = TaskID(0)
        self.console = Console(stderr=True, highlight=False, markup=False)

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        step = trainer.global_step
        self.started = self.printed = self.noted = time.monotonic()
        if step:
            self.console.print(f"resuming {self.name} at {self.batches.words_seen(step):,} words seen", soft_wrap=True)
        if self.show and self.console.is_terminal:
            self.bar = Progress(
                TextColumn("{task.description}", style="bold", markup=False),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[state]}", markup=False),
                console=self.console,
            )
            self.task = self.bar.add_task(self.name, total=len(self.batches), completed=step, state="")
            self.bar.start()

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *unused: Any) -> None:
        step = trainer.global_step
        seconds = time.monotonic() - self.started
        if time.monotonic() - self.noted >= FILE_SECONDS:
            self.noted = time.monotonic()
            self._note(step, seconds)
        if not self.show:
            return
        # Reading the loss makes a GPU wait, so it is read a few times a second at most.
        if time.monotonic() - self.printed < (BAR_SECONDS if self.bar else PLAIN_SECONDS):
            return
        self.printed = time.monotonic()
        if self.bar is not None:
            self.bar.update(self.task, completed=step, state=self._summary(step, seconds))
        else:
            left = seconds / (step - self.state.first_step) * (len(self.batches) - step)
            share = step / len(self.batches)
            self.console.print(
                f"{self.name} {share:.0%} {self._summary(step, seconds)}, {left:.0f} s left", soft_wrap=True
            )

    def _note(self, step: int, seconds: float) -> None:
        seen = self.batches.words_seen(step)
        rate = (seen - self.batches.words_seen(self.state.first_step)) / seconds
        words = {"words_seen": seen, "words": self.batches.words_seen(len(self.batches)), "words_per_s": round(rate)}
        write_json(self.state.folder.progress, words | {"at": datetime.now(UTC).isoformat(timespec="seconds")})

    def _summary(self, step: int, seconds: float) -> str:
        """Return speed, training loss and the latest validation as words."""
        words = self.batches.words_seen(step) - self.batches.words_seen(self.state.first_step)
        text = f"{words / max(seconds, 1e-9):,.0f} words/s"
        if self.state.interval_tokens:
            loss = self.state.interval_loss.item() / self.state.interval_tokens
            text += f", loss {loss:.3f} nats/token ({math.exp(min(loss, 50)):,.1f})"
        if self.state.last is not None:
            text += f", valid perplexity {self.state.last.value:,.1f} a word"
        return text

    def on_train_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._stop()
        if self.show:
            seconds = time.monotonic() - self.started
            self.console.print(
                f"trained {self.name} in {seconds:.0f} s: {self._summary(trainer.global_step, seconds)}", soft_wrap=True
            )
            if self.state.last is not None and self.state.last.stuck:
                say(f"{self.name}: {self.state.last.stuck}")

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        self._stop()

    def _stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
