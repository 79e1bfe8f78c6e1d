"""Handle signals, so that a job that is about to end saves its run, and the next job can resume it.

Signals are handled at the end of a step, and only during training, because there is nothing to save before or after it:

    INT          Ctrl-C: save and end. A second Ctrl-C ends at once.
    USR1, USR2   The time limit is near: save, then call the program's earlier handler. Without one, end with the exit
                 code START_AGAIN, after which slurm/run.sbatch requeues the job.
    TERM         In a SLURM job, preemption or the end is near: save and continue, because SLURM requeues only processes
                 that it had to kill. It considers those that end by themselves finished. Elsewhere: save and end.

If there is no signal, for example because a node fails, the run resumes from its last checkpoint.
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
# A signal may reach only one of a run's processes, so they ask each other after this many steps.
AGREE_STEPS = 10


class Preemption:
    """A handler that notes signals during training and acts on them after a step."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self.caught: int | None = None
        self._before: dict[int, Any] = {}

    def listen(self) -> None:
        """Start noting signals. Lightning restores the earlier handlers when training ends.

        Call this after Lightning has set its own handlers, because its TERM handler would end training as if finished.
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
        """Return True if the run has to be saved after this step. All its processes get the same answer."""
        if self.ranks.size > 1 and step % AGREE_STEPS:
            return False
        return any(self.ranks.gathered(self.caught is not None))

    def saved(self) -> None:
        """End or continue as the signal requires. Call this after each checkpoint. It raises SystemExit to end."""
        number, self.caught = self.caught, None
        if number is None:
            return
        name = signal.Signals(number).name
        if number == signal.SIGTERM and "SLURM_JOB_ID" in os.environ:
            say(f"Received {name}: the run is saved, and training continues until SLURM ends this job.")
        elif number in (signal.SIGTERM, signal.SIGINT):
            say(f"Received {name}: the run is saved. Run the same command again to continue.")
            raise SystemExit(128 + number)
        elif callable(self._before[number]):
            say(f"Received {name}: the run is saved.")
            self._before[number](number, None)
        elif self._before[number] != signal.SIG_IGN:
            say(f"Received {name}: the run is saved. Exit code {START_AGAIN} asks for the command to be started again.")
            raise SystemExit(START_AGAIN)

    def ended(self) -> None:
        """Pass a signal that arrived during the last step to its handler. Call this when the run is done."""
        if self.caught is not None:
            os.kill(os.getpid(), self.caught)
