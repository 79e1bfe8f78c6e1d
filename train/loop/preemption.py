"""A job that is about to end saves its run first, so that the next one goes on from there.

What clusters send, and what a run does with it at the end of the step that it is in (before training and after it
nothing is caught here: there is nothing to save):

    INT          somebody pressed Ctrl-C: save and end; a second one ends at once
    USR1, USR2   the time limit is near: save, then call the handler that was there before training (submitit's starts
                 the job again); where there was none, end with exit code START_AGAIN, on which slurm/run.sbatch does
    TERM         in a SLURM job the warning of a preemption or of the end: save and go on, as SLURM takes a process that
                 ends by itself for one that is finished, and requeues only what it had to kill. Elsewhere: save and end

Without a signal (a node that fails) the run goes on from its last checkpoint.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

import lightning as L

from pairscale.errors import START_AGAIN

SIGNALS = (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
# Of several processes that train one run only one may have been told yet: they ask each other every so many steps.
AGREE_STEPS = 10


class Preemption(L.Callback):
    """Notes the signals that come during training; `asked` and `saved` are what the training loop has to do with it."""

    def __init__(self) -> None:
        self.caught: int | None = None
        self._before: dict[int, Any] = {}

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Put our handlers in the place of Lightning's, whose one for TERM ends training as if it were finished.

        Lightning itself puts back, after training, all handlers that were there before it.
        """
        if threading.current_thread() is not threading.main_thread():
            return  # Python hears signals in the main thread only
        for number in SIGNALS:
            self._before[number] = signal.getsignal(number)
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == self.caught == signal.SIGINT:
            raise KeyboardInterrupt
        self.caught = number

    def asked(self, trainer: L.Trainer) -> bool:
        """Whether to save now, the same in all processes of a run. Called after each step."""
        if trainer.world_size == 1:
            return self.caught is not None
        if trainer.global_step % AGREE_STEPS:
            return False
        return bool(trainer.strategy.reduce_boolean_decision(self.caught is not None, all=False))

    def saved(self) -> None:
        """Do what the caught signal wants beside saving. Called after each checkpoint; raises SystemExit to end."""
        number, self.caught = self.caught, None
        if number is None:
            return
        name = signal.Signals(number).name
        if number == signal.SIGTERM and "SLURM_JOB_ID" in os.environ:
            _say(f"{name}: saved, and training goes on until SLURM ends this job")
        elif number in (signal.SIGTERM, signal.SIGINT):
            _say(f"{name}: saved; the same command goes on from here")
            raise SystemExit(128 + number)
        elif callable(self._before[number]):
            _say(f"{name}: saved")
            self._before[number](number, None)
        elif self._before[number] != signal.SIG_IGN:
            _say(f"{name}: saved; exit code {START_AGAIN}: to be started again")
            raise SystemExit(START_AGAIN)

    def ended(self) -> None:
        """Hand a signal that came with the last step to what handles it now. Called when the run is done."""
        if self.caught is not None:
            os.kill(os.getpid(), self.caught)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
