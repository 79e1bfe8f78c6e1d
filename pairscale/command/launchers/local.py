"""Hydra launcher for one machine (`hydra/launcher=local`): the runs of a sweep as processes, several at a time.

Submitit's local launcher starts all runs at once, and joblib's ends all when one runs out of memory. Here a thread pool
waits for ordinary commands, `python -m eval ...`, which stop, resume, or skip what is done. Small runs of networks on
the CPU are forks of one process (forks.py), as they would spend a third of their time on importing torch and Lightning.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from hydra.core.utils import JobReturn, JobStatus, configure_log
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import MISSING, DictConfig

from pairscale import environment, started_by
from pairscale.command.launchers import check_all, register_launcher
from pairscale.command.launchers.board import Board, Ended, run_names, shows_board
from pairscale.command.launchers.forks import Fork, Forks
from pairscale.command.launchers.jobs import Job, distinct
from pairscale.command.line import search_path
from pairscale.command.rooms import runs
from pairscale.command.schemas import store_schemas
from pairscale.command.used import CHECKED
from pairscale.console import say
from pairscale.errors import START_AGAIN, ConfigError, check_between
from pairscale.machine import available_cores, fit_memory, granted_threads
from pairscale.progress import PROGRESS_FILE, read_progress

STOP_SECONDS = 120  # for an interrupted run to end: a step and its files
MAX_JOBS = 4096  # runs or threads at a time


@dataclass
class LocalConfig:
    """Schema of conf/hydra/launcher/local.yaml."""

    _target_: str = MISSING
    jobs: int | None = None
    per_gpu: int = 1
    gpus: list[str] | None = None
    threads: int | None = None
    logs: str = MISSING


@dataclass(frozen=True)
class Slots:
    """Shares of a machine: `count` runs at a time, each with `threads`, and one of `gpus` (CUDA_VISIBLE_DEVICES)."""

    count: int
    threads: int
    gpus: tuple[str, ...] = ()

    @property
    def forked(self) -> bool:
        """True if runs can be forks of a process, which neither CUDA nor the threads of OpenBLAS survive."""
        return sys.platform == "linux" and self.threads == 1 and not self.gpus

    def environment(self, slot: int) -> dict[str, str]:
        """Return the environment of a run in slot 0, 1 ... count - 1."""
        variables = environment() | {"OMP_NUM_THREADS": str(self.threads), CHECKED: "true"}
        variables["PYTHONIOENCODING"] = "utf-8"  # of its log
        if self.gpus:
            variables["CUDA_VISIBLE_DEVICES"] = self.gpus[slot % len(self.gpus)]
        return variables


class LocalLauncher(Launcher):
    """Launcher of `jobs` runs at a time, which take turns on `gpus`. Values: conf/hydra/launcher/local.yaml."""

    def __init__(self, jobs: int | None, per_gpu: int, gpus: list[str] | None, threads: int | None, logs: str) -> None:
        check_between("hydra.launcher.jobs", jobs, 1, MAX_JOBS)
        check_between("hydra.launcher.per_gpu", per_gpu, 1, MAX_JOBS)
        check_between("hydra.launcher.threads", threads, 1, MAX_JOBS)
        self.jobs, self.per_gpu, self.threads = jobs, per_gpu, threads
        self.gpus = _visible_gpus() if gpus is None else list(gpus)
        self.logs = Path(logs)
        self._running: set[subprocess.Popen[bytes] | Fork] = set()
        self._forks: Forks | None = None
        self._stopping = threading.Event()
        self._guard = threading.Lock()

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Store what Hydra hands to a launcher."""
        self.config = config
        self.loader = hydra_context.config_loader

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all jobs, those on one folder in turn; print a line for each that ends. Raises as `check_all`."""
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        jobs = distinct(runs().jobs(self.loader, self.config, job_overrides))
        queues = _queues(jobs)
        slots = self.slots(jobs, len(queues))
        free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(slots.count):
            free.put(slot)
        # A folder for each sweep, so that two sweeps at once do not overwrite each other's files.
        logs = self.logs / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        logs.mkdir(parents=True)
        count = f"{len(jobs)} run{'s' if len(jobs) > 1 else ''}"
        where = f" on GPUs {' '.join(slots.gpus)}" if slots.gpus else ""
        threads = f"at most {slots.threads} thread{'s' if slots.threads > 1 else ''} each"
        say(f"{count}, {slots.count} at a time{where}, {threads}")
        say(f"logs in {logs}")
        self._board = Board(run_names(jobs), [job.work for job in jobs], slots.count)
        with ExitStack() as stack:
            forked = slots.forked and sum(job.preloads for job in jobs) > slots.count and not _may_use_gpu(jobs)
            self._forks = Forks(slots.environment(0), logs / "forks.log") if forked else None
            if self._forks:
                stack.callback(self._forks.close)
            if shows_board(self.config):
                stack.enter_context(self._board.shown())
            pool = stack.enter_context(ThreadPoolExecutor(slots.count))
            stack.enter_context(self._stopped_by_signals())

            def begin(waiting: deque[Job]) -> tuple[Future[Ended], deque[Job]]:
                return pool.submit(self._run, waiting.popleft(), slots, free, logs), waiting

            pending = dict(map(begin, queues))
            while pending:
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    waiting = pending.pop(future)
                    pending |= [begin(waiting)] if waiting else []
                    ended = future.result()
                    if not self._stopping.is_set():
                        self._board.end(ended)
                        if ended.code:
                            say(f"    {ended.reason}")
            if self._stopping.is_set():
                raise KeyboardInterrupt
        codes = [one.code for one in self._board.ended]
        unfinished = codes.count(START_AGAIN)
        check_all(len(jobs), len(codes) - codes.count(0) - unfinished, unfinished)
        return [
            JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED, _return_value=None)
            for overrides in job_overrides
        ]

    def slots(self, jobs: Sequence[Job], most: int) -> Slots:
        """Divide the machine among jobs, `most` at a time; ConfigError if a run needs more GPUs than there are."""
        cores, granted = available_cores(), granted_threads()
        devices = max((job.devices for job in jobs), default=1)
        gpus: tuple[str, ...] = ()
        if self.gpus and any(job.on_gpu for job in jobs):
            if len(self.gpus) < devices:
                raise ConfigError(
                    f"trainer.devices={devices}: must be at most {len(self.gpus)}, the number of GPUs here "
                    f"({','.join(self.gpus)}; hydra.launcher.gpus, CUDA_VISIBLE_DEVICES)"
                )
            starts = range(0, len(self.gpus) - devices + 1, devices)
            gpus = tuple(",".join(self.gpus[start : start + devices]) for start in starts)
        wanted = self.jobs or (self.per_gpu * len(gpus) if gpus else cores // (self.threads or 1) // devices)
        count = max(1, min(wanted, most))
        if count > 1 and not (gpus or self.jobs):
            each = runs().memory_of(jobs)
            if (fitting := fit_memory(count, each)) < count:
                say(
                    f"a run takes up to {each / 2**20:,.0f} MiB: {fitting} at a time, not {count} (hydra.launcher.jobs)"
                )
                count = fitting
        shared = max(1, cores // count // (1 if gpus else devices))
        return Slots(count, self.threads or min(shared, granted or shared), gpus)

    def _run(self, job: Job, slots: Slots, free: queue.SimpleQueue[int], logs: Path) -> Ended:
        """Wait for one run to end."""
        log, progress = logs / f"{job.index}.log", logs / f"{job.index}.json"
        slot = free.get()
        started = time.monotonic()
        try:
            with log.open("wb") as file:
                with self._guard:  # between the two a signal would miss the process
                    if self._stopping.is_set():
                        return Ended(job.index, signal.SIGINT, 0.0)
                    process = self._start(job, slots.environment(slot), progress, file)
                    self._running.add(process)
                self._board.begin(job.index, lambda: read_progress(progress)[0])
                code = process.wait()
                with self._guard:
                    self._running.discard(process)
        finally:
            free.put(slot)
        seconds, result = time.monotonic() - started, read_progress(progress)[1]
        progress.unlink(missing_ok=True)
        return Ended(job.index, code, seconds, result, f"{_last_line(log)} ({log})" if code else "")

    def _start(
        self, job: Job, environment: dict[str, str], progress: Path, log: BinaryIO
    ) -> subprocess.Popen[bytes] | Fork:
        words = [self.config.hydra.job.name, *search_path(self.config.hydra.overrides.hydra), *job.overrides]
        followed = {PROGRESS_FILE: str(progress.absolute())}
        if self._forks and job.preloads:
            return self._forks.start(words, followed, log)
        return subprocess.Popen(
            started_by("pairscale", *words),
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment | followed,
            start_new_session=True,  # Ctrl-C reaches it through us, once
        )

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """Pass SIGINT and SIGTERM on to every run as an interrupt; kill runs that do not end in time."""

        def stop(signum: int, frame: Any) -> None:
            if self._stopping.is_set():
                return
            self._stopping.set()
            number = len(self._running)
            say(f"stopping {number} run{'s' if number != 1 else ''}")
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
        while self._running and time.monotonic() < deadline:
            time.sleep(0.1)
        with self._guard:
            for process in self._running:
                process.send_signal(signal.SIGKILL)


def _queues(jobs: Sequence[Job]) -> list[deque[Job]]:
    """Return one queue for each folder; jobs without a known folder have their own."""
    queues: dict[Path | int, deque[Job]] = {}
    for job in jobs:
        queues.setdefault(job.folder or job.index, deque()).append(job)
    return list(queues.values())


def _visible_gpus() -> list[str]:
    """Return the names of the GPUs of this machine, without importing torch, which takes seconds."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return [name for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if name and name != "-1"]
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, encoding="utf-8", errors="replace", timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(number) for number, line in enumerate(line for line in listed.splitlines() if line.startswith("GPU "))]


def _may_use_gpu(jobs: Sequence[Job]) -> bool:
    """Return True if a job would use a GPU that is here, though hydra.launcher.gpus assigns it none."""
    return any(job.on_gpu for job in jobs) and bool(_visible_gpus())


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "no output")


store_schemas("hydra/launcher", local_schema=LocalConfig)
register_launcher(LocalLauncher)
