"""Hydra's launcher for one machine (`hydra/launcher=local`): a sweep's runs as processes, so many at a time.

Neither of the launchers that there are will do: submitit's local one
starts all runs at once, and joblib's ends all of them when the memory of one runs out. Here the standard library's
thread pool waits for ordinary commands, `python -m eval ...`: what a run is to do when it is stopped, started again or
found done is the run's own matter.
"""

from __future__ import annotations

import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus, configure_log, filter_overrides
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from conf.launchers import check_all
from conf.launchers.remaining import Remaining, Work
from pairscale import environment, started_by
from train.device import available_cores

STOP_SECONDS = 120  # that an interrupted run gets to end: a step and what it writes


class LocalLauncher(Launcher):
    """`jobs` runs at a time; `gpus` are shared out among them by turns. Values: conf/hydra/launcher/local.yaml."""

    def __init__(self, jobs: int | None, per_gpu: int, gpus: list[int] | None, threads: int | None, logs: str) -> None:
        self.gpus = _visible_gpus() if gpus is None else [str(gpu) for gpu in gpus]
        cores = available_cores()
        self.jobs = jobs or (per_gpu * len(self.gpus) if self.gpus else max(1, cores // (threads or 1)))
        self.threads = threads or max(1, cores // self.jobs)
        self.logs = Path(logs)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopping = threading.Event()
        self._guard = threading.Lock()

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """As Hydra asks of a launcher."""
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all, print a line for each that ends. Raises what `check_all` does when all have ended."""
        from corpora.errors import START_AGAIN
        from corpora.progress import clock

        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        self.logs.mkdir(parents=True, exist_ok=True)
        total, failed, unfinished = len(job_overrides), 0, 0
        runs = f"{total} run{'s' if total > 1 else ''}"
        alike = set.intersection(*map(set, job_overrides)) if total > 1 else set()
        slots: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(self.jobs):
            slots.put(slot)
        where = f" on GPUs {','.join(self.gpus)}" if self.gpus else ""
        at_once = f"{min(self.jobs, total)} at a time{where}"
        threads = f"at most {self.threads} thread{'s' if self.threads > 1 else ''} each"
        _say(f"{runs}, {at_once}, {threads}; logs in {self.logs}")
        self._remaining = Remaining(self._works(job_overrides), min(self.jobs, total))
        with ThreadPoolExecutor(self.jobs) as pool, self._stopped_by_signals():
            points = {}
            for index, overrides in enumerate(job_overrides):
                points[pool.submit(self._run, index, initial_job_idx + index, list(overrides), slots)] = index
            for done, future in enumerate(as_completed(points), start=1):
                code, log, seconds = future.result()
                if self._stopping.is_set():
                    continue
                index = points[future]
                self._remaining.ends(index, None if code else seconds)
                point = shlex.join([one for one in filter_overrides(job_overrides[index]) if one not in alike])
                left = self._remaining.left()
                state = {0: "done", START_AGAIN: "UNFINISHED"}.get(code, "FAILED")
                told = f"[{done}/{total}] {state} {point} in {clock(seconds)}"
                _say(told + (f"; about {clock(left)} left" if left is not None else ""))
                if code:
                    failed += code != START_AGAIN
                    unfinished += code == START_AGAIN
                    _say(f"    {_last_line(log)} ({log})")
        if self._stopping.is_set():
            raise KeyboardInterrupt
        check_all(total, failed, unfinished)
        return [
            JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED, _return_value=None)
            for overrides in job_overrides
        ]

    def _works(self, job_overrides: Sequence[Sequence[str]]) -> list[Work]:
        """What each run is to do; nothing is known of those whose values are refused, which they will say."""
        from conf import points

        hydra, known = self.config.hydra, []
        for named, _, config in points(hydra.job.name, [*self._searched, *hydra.overrides.task], skip_refused=True):
            known.append((dict(one.split("=", 1) for one in named), Work.of(config)))
        works = []
        for overrides in job_overrides:
            values = dict(one.lstrip("+").split("=", 1) for one in overrides if "=" in one)
            alike = (work for named, work in known if all(values.get(key, one) == one for key, one in named.items()))
            works.append(next(alike, Work("", 0.0)))
        return works

    def _run(
        self, index: int, number: int, overrides: list[str], slots: queue.SimpleQueue[int]
    ) -> tuple[int, Path, float]:
        """One run to its end: exit code, log and seconds."""
        log = self.logs / f"{number}.log"
        slot = slots.get()
        self._remaining.begins(index)
        started = time.monotonic()
        try:
            with log.open("wb") as file:
                with self._guard:  # between the two a signal would miss the process
                    if self._stopping.is_set():
                        return signal.SIGINT, log, 0.0
                    process = subprocess.Popen(
                        started_by("pairscale", self.config.hydra.job.name, *self._searched, *overrides),
                        stdout=file,
                        stderr=subprocess.STDOUT,
                        stdin=subprocess.DEVNULL,
                        env=self._environment(slot),
                        start_new_session=True,  # Ctrl-C reaches it through us, once
                    )
                    self._running.add(process)
                code = process.wait()
                with self._guard:
                    self._running.discard(process)
        finally:
            slots.put(slot)
        return code, log, time.monotonic() - started

    def _environment(self, slot: int) -> dict[str, str]:
        of_run = environment() | {"OMP_NUM_THREADS": str(self.threads)}
        if self.gpus:
            of_run["CUDA_VISIBLE_DEVICES"] = self.gpus[slot % len(self.gpus)]
        return of_run

    @property
    def _searched(self) -> list[str]:
        """What --config-dir became, the one of Hydra's own overrides that a run needs too."""
        return [line for line in self.config.hydra.overrides.hydra if line.startswith("hydra.searchpath=")]

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM go on to every run as an interrupt; runs that do not end in time are killed."""

        def stop(signum: int, frame: Any) -> None:
            if self._stopping.is_set():
                return
            self._stopping.set()
            _say(f"stopping {len(self._running)} runs")
            threading.Thread(target=self._stop, daemon=True).start()

        before = {signum: signal.signal(signum, stop) for signum in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    def _stop(self) -> None:
        with self._guard:  # no run begins from here on
            running = list(self._running)
        for process in running:
            process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + STOP_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()


def _visible_gpus() -> list[str]:
    """Names of the GPUs that there are, without the seconds that torch takes to say so."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return [name for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if name and name != "-1"]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(number) for number, line in enumerate(line for line in listed.splitlines() if line.startswith("GPU "))]


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "no output")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
