"""Signals: a job that is about to end saves its run first, so that the next job resumes it there.

Signals are handled at the end of a step, and only during training, as there is nothing to save before and after it:

    INT          Ctrl-C: save and end; a second one ends at once
    USR1, USR2   the time limit is near: save, then call the earlier handler, if the program that trains has one; else
                 end with exit code START_AGAIN, on which slurm/run.sbatch requeues it
    TERM         in a SLURM job a preemption or the end is near: save and continue, as SLURM requeues only processes
                 that it had to kill, and takes one that ends by itself for finished. Elsewhere: save and end

Without a signal (a node that fails) the run resumes from its last checkpoint.
"""

import os
import signal
import threading
from types import FrameType
from typing import Any

import lightning as L

from pairscale.console import say
from pairscale.errors import START_AGAIN

SIGNALS = (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
# Of several processes of a run only one may have received the signal: they compare notes every so many steps.
AGREE_STEPS = 10


class Preemption(L.Callback):
    """The signals received during training; the training loop calls `requested` and `saved`."""

    def __init__(self) -> None:
        self.caught: int | None = None
        self._before: dict[int, Any] = {}

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Replace Lightning's handlers (that for TERM ends training as if finished), which restores them later."""
        if threading.current_thread() is not threading.main_thread():
            return  # Python handles signals in the main thread only
        for number in SIGNALS:
            self._before[number] = signal.getsignal(number)
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == self.caught == signal.SIGINT:
            raise KeyboardInterrupt
        self.caught = number

    def requested(self, trainer: L.Trainer) -> bool:
        """Return True if the run is to be saved now, in all its processes alike. Called after each step."""
        if trainer.world_size == 1:
            return self.caught is not None
        if trainer.global_step % AGREE_STEPS:
            return False
        return bool(trainer.strategy.reduce_boolean_decision(self.caught is not None, all=False))

    def saved(self) -> None:
        """End or continue as the signal demands. Called after each checkpoint; raises SystemExit to end."""
        number, self.caught = self.caught, None
        if number is None:
            return
        name = signal.Signals(number).name
        if number == signal.SIGTERM and "SLURM_JOB_ID" in os.environ:
            say(f"{name}: saved, and training goes on until SLURM ends this job")
        elif number in (signal.SIGTERM, signal.SIGINT):
            say(f"{name}: saved; the same command goes on from here")
            raise SystemExit(128 + number)
        elif callable(self._before[number]):
            say(f"{name}: saved")
            self._before[number](number, None)
        elif self._before[number] != signal.SIG_IGN:
            say(f"{name}: saved; exit code {START_AGAIN}: to be started again")
            raise SystemExit(START_AGAIN)

    def ended(self) -> None:
        """Send a signal that came with the last step to its handler now. Called when the run is done."""
        if self.caught is not None:
            os.kill(os.getpid(), self.caught)
