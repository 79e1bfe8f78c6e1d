"""Remaining time of a sweep, estimated from the words that its runs train on rather than from their number."""

import time
from collections.abc import Sequence
from statistics import fmean

from pairscale.command.launchers.jobs import Work

MEASURED_SECONDS = 20  # of training from which on its rate is that of the run, not of its first steps


class Remaining:
    """Remaining time of a sweep, `jobs` runs at a time, from the runs that have ended.

    A run is expected to start and score as fast as others of its kind, and to train at their words per second, or at
    its own once it trains. A kind without a finished run is taken to be like the others; before any run has ended, all
    are taken to be like those that have trained for MEASURED_SECONDS.
    """

    def __init__(self, runs: Sequence[Work], jobs: int):
        self.runs, self.jobs = runs, jobs
        self._begun: dict[int, float] = {}
        self._ended: dict[int, tuple[float, float] | None] = {}  # seconds of training, and of all else
        self._seen: dict[int, float] = {}  # moments at which runs were first seen to train
        self._at_work: dict[int, tuple[float, float]] = {}  # the same of runs at work, all else up to now
        self._trained: dict[int, float] = {}  # moments at which runs at work will be trained

    def begins(self, run: int) -> None:
        self._begun[run] = time.monotonic()

    def ends(self, run: int, seconds: float | None) -> None:
        """Record that a run took `seconds`; None: it failed or was done before, which says nothing about the others."""
        training = self.runs[run].trained() if seconds is not None else None
        if seconds is None:
            self._ended[run] = None
        elif self.runs[run].words and training is None:
            self._ended[run] = seconds, 0.0
        else:
            training = min(training or 0.0, seconds)
            self._ended[run] = training, seconds - training

    def observes(self, run: int, rate: float, left: float) -> None:
        """Record that a run at work trains at `rate` words per second, and needs `left` more seconds for that."""
        now = time.monotonic()
        if now - self._seen.setdefault(run, now) < MEASURED_SECONDS:
            return
        training = self.runs[run].words / rate
        # What a resumed run trained before counts as training, too: the rest of its time is not negative.
        self._at_work[run] = training, max(0.0, now - self._begun[run] + left - training)
        self._trained[run] = now + left

    def left(self) -> float | None:
        """Return the seconds until all runs have ended; None before the first has, or has trained for a while."""
        now = time.monotonic()
        ends = [self._end(run, now) for run in range(len(self.runs)) if run not in self._ended]
        rest = [max(0.0, end - now) for end in ends if end is not None]
        return max(max(rest), sum(rest) / self.jobs) if rest else None

    def _end(self, run: int, now: float) -> float | None:
        """Return the moment at which a run that has not ended is expected to, if it begins now or has begun."""
        work = self.runs[run]
        ended = [(self.runs[one], took) for one, took in self._ended.items() if took is not None]
        ended = ended or [(self.runs[one], took) for one, took in self._at_work.items()]
        alike = [one for one in ended if one[0].kind == work.kind]
        if not ended:
            return None
        others = fmean(took[1] for _, took in alike or ended)
        if run in self._trained:
            return self._trained[run] + max(0.0, others - self._at_work[run][1])
        trained = [one for one in alike if one[0].words] or [one for one in ended if one[0].words]
        words = sum(of.words for of, _ in trained)
        per_word = sum(took[0] for _, took in trained) / words if words else 0.0
        return self._begun.get(run, now) + others + work.words * per_word
