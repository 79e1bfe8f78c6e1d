"""Signals: a job that is about to end saves its run first, so that the next job resumes it there.

Signals are handled at the end of a step, and only during training, because there is nothing to save before and after:

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

from pairscale.console import say
from pairscale.errors import START_AGAIN
from train.loop.device import Ranks

SIGNALS = (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
# Only one of a run's processes may have received the signal: they ask each other every so many steps.
AGREE_STEPS = 10


class Preemption:
    """The signals received during training."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self.caught: int | None = None
        self._before: dict[int, Any] = {}

    def listen(self) -> None:
        """Note signals from now on. Lightning restores the earlier handlers when training ends.

        Called when Lightning has set its own handlers: its handler of TERM ends training as if it were finished.
        """
        if threading.current_thread() is not threading.main_thread():
            return  # Python handles signals in the main thread only
        for number in SIGNALS:
            self._before[number] = signal.getsignal(number)
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == self.caught == signal.SIGINT:
            raise KeyboardInterrupt
        self.caught = number

    def requested(self, step: int) -> bool:
        """Return True if the run is to be saved after this step: the same answer in all its processes."""
        if self.ranks.size > 1 and step % AGREE_STEPS:
            return False
        return any(self.ranks.gathered(self.caught is not None))

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
