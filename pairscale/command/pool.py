"""The runs of a sweep on this machine: a pool of worker processes (worker.py), each of which takes one after another.

A worker has its share of the cores, and a GPU or its part of one. If it dies (memory ran out, say) its run has failed,
another takes its place, and the other runs go on. board.py shows them.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from pairscale import environment, started_by
from pairscale.command.board import Board, Ended
from pairscale.console import say
from pairscale.errors import START_AGAIN, ConfigError, RunError, RunInUse
from pairscale.machine import available_cores, fit_memory, granted_threads
from pairscale.progress import Result, State
from pairscale.sizes import plural

STOP_SECONDS = 120  # for an interrupted run to end: a step and its files
CLOSE_SECONDS = 10  # for a worker to end that has nothing to do
REDRAW_SECONDS = 0.25
Jobs = Annotated[int, Meta(ge=1, le=4096)]  # runs or threads at a time


@dataclass(frozen=True)
class Job:
    """A run of a sweep.

    words: its command line, without the command. folder: of its run, or of a study that is scored as a whole; jobs on
    one folder run in turn. on_gpu: True if it uses a GPU where there is one. devices: GPUs, or processes, that it
    takes. training_words: words that it trains on, with repeats. config: of the run, for its memory; None in tests.
    """

    words: list[str]
    name: str = ""
    folder: Path | None = None
    on_gpu: bool = True
    devices: int = 1
    training_words: float = 0.0
    config: Any = None


@dataclass(kw_only=True)
class PoolConfig:
    """How a sweep (-m) divides this machine among its runs."""

    jobs: Jobs | None = None  # runs at a time; null: as many as there are GPUs, or else cores, and memory for
    per_gpu: Jobs = 1  # runs that share a GPU
    gpus: list[int | str] | None = None  # null: those of CUDA_VISIBLE_DEVICES, or all
    threads: Jobs | None = None  # limit per run; null: an equal share of the cores


@dataclass(frozen=True)
class Slots:
    """Shares of a machine: `count` runs at a time, each with `threads`, and one of `gpus` (CUDA_VISIBLE_DEVICES)."""

    count: int
    threads: int
    gpus: tuple[str, ...] = ()

    def environment(self, slot: int) -> dict[str, str]:
        """Return the environment of the runs in slot 0, 1 ... count - 1."""
        variables = environment() | {"OMP_NUM_THREADS": str(self.threads)}
        variables["PYTHONIOENCODING"] = "utf-8"  # of their logs
        if self.gpus:
            variables["CUDA_VISIBLE_DEVICES"] = self.gpus[slot % len(self.gpus)]
        return variables


def run_jobs(
    command: str,
    jobs: Sequence[Job],
    config: PoolConfig,
    folder: Path,
    memory: Callable[[], int],
    progress: bool = True,
) -> list[int]:
    """Run `pairscale COMMAND` for each job, several at a time; return the exit codes, -N after signal N.

    folder: of the logs. memory: returns the bytes that the largest run takes, 0 if unknown.

    Print a line for each that ends, and with `progress` show those at work, and a table at the end. Raises ConfigError
    for too few GPUs, and KeyboardInterrupt after a signal.
    """
    slots = divide(jobs, config, memory)
    # A folder for each sweep, so that two sweeps at once do not overwrite each other's files.
    logs = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    logs.mkdir(parents=True)
    where = f" on GPUs {' '.join(slots.gpus)}" if slots.gpus else ""
    say(f"{plural(len(jobs), 'run')}, {slots.count} at a time{where}, at most {plural(slots.threads, 'thread')} each")
    say(f"logs in {logs}")
    board = Board([job.name for job in jobs], [job.training_words for job in jobs])
    pool = _Pool(command, jobs, slots, logs.absolute(), board)
    with board.shown() if progress else nullcontext():
        pool.run()
    return [one.code for one in sorted(board.ended, key=lambda one: one.run)]


def check_codes(codes: Sequence[int]) -> None:
    """Raise RunError if runs of a sweep failed, else RunInUse (exit code 75) if some have to be started again.

    The latter are nobody's fault: most often another process is working on them.
    """
    unfinished = codes.count(START_AGAIN)
    failed = len(codes) - codes.count(0) - unfinished
    again = "(see above); the same command"
    if failed:
        rest = f", and {unfinished} did not begin or end" if unfinished else ""
        raise RunError(f"{failed} of {len(codes)} runs failed{rest} {again} tries them again")
    if unfinished:
        raise RunInUse(f"{unfinished} of {len(codes)} runs did not begin or end {again} goes on with them")


def divide(jobs: Sequence[Job], config: PoolConfig, memory: Callable[[], int]) -> Slots:
    """Divide the machine among jobs, the largest of which takes `memory`. Raises ConfigError for too few GPUs."""
    cores, granted = available_cores(), granted_threads()
    devices = max((job.devices for job in jobs), default=1)
    gpus: tuple[str, ...] = ()
    here = visible_gpus() if config.gpus is None else list(map(str, config.gpus))
    if here and any(job.on_gpu for job in jobs):
        if len(here) < devices:
            raise ConfigError(
                f"trainer.devices={devices}: must be at most {len(here)}, the number of GPUs here "
                f"({','.join(here)}; pool.gpus, CUDA_VISIBLE_DEVICES)"
            )
        starts = range(0, len(here) - devices + 1, devices)
        gpus = tuple(",".join(here[start : start + devices]) for start in starts)
    wanted = config.per_gpu * len(gpus) if gpus else cores // (config.threads or 1) // devices
    count = max(1, min(config.jobs or wanted, len({job.folder or number for number, job in enumerate(jobs)})))
    if count > 1 and not (gpus or config.jobs):
        each = memory()
        if (fitting := fit_memory(count, each)) < count:
            say(f"a run takes up to {each / 2**20:,.0f} MiB: {fitting} at a time, not {count} (pool.jobs)")
            count = fitting
    shared = max(1, cores // count // (1 if gpus else devices))
    return Slots(count, config.threads or min(shared, granted or shared), gpus)


def visible_gpus() -> list[str]:
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


class _Worker:
    """A worker process; its answers come to a queue as (worker, answer), and None once it has ended."""

    def __init__(self, environment: Mapping[str, str], log: Path, answers: queue.SimpleQueue[Any]):
        self.run: int | None = None  # the number of the run that it is at
        self.began = 0.0
        self.is_leaving = False
        with log.open("ab") as errors:  # of its start, which are those of its first run
            self.process = subprocess.Popen(
                started_by("pairscale.command.worker"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=environment, start_new_session=True,  # Ctrl-C reaches it through us, once
            )  # fmt: skip
        threading.Thread(target=self._read, args=(answers,), daemon=True).start()

    def _read(self, answers: queue.SimpleQueue[Any]) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with suppress(ValueError):  # the beginning of a line of one that was killed
                    answers.put((self, json.loads(line)))
        self.process.wait()
        answers.put((self, None))

    def start(self, run: int, words: Sequence[str], log: Path) -> None:
        """Start a run; if the process is dead, its end is the run's."""
        self.run, self.began = run, time.monotonic()
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"words": list(words), "log": str(log)}).encode() + b"\n")
            self.process.stdin.flush()

    def leave(self) -> None:
        """Let the process end after the run that it is at."""
        self.is_leaving = True
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()


class _Pool:
    """The state of a sweep at work. All is done in one thread, but for reading what workers say."""

    def __init__(self, command: str, jobs: Sequence[Job], slots: Slots, logs: Path, board: Board):
        self.command, self.jobs, self.slots, self.logs, self.board = command, jobs, slots, logs, board
        self.waiting = list(range(len(jobs)))
        self.workers: dict[int, _Worker] = {}  # by slot
        self.answers: queue.SimpleQueue[tuple[_Worker, dict[str, Any] | None]] = queue.SimpleQueue()
        self.is_stopped = False

    def run(self) -> None:
        """Run all jobs. Raises KeyboardInterrupt after SIGINT or SIGTERM, once the runs at work have ended."""

        def stop(number: int, frame: Any) -> None:
            self.is_stopped = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not self.is_stopped and (self.waiting or self._at_work()):
                self._start()
                with suppress(queue.Empty):
                    self._take(*self.answers.get(timeout=REDRAW_SECONDS))
                self.board.refresh()
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)
        if self.is_stopped:
            raise KeyboardInterrupt

    def _at_work(self) -> dict[int, _Worker]:
        """Return the workers that are at a run, by the number of the run."""
        return {worker.run: worker for worker in self.workers.values() if worker.run is not None}

    def _log(self, run: int) -> Path:
        return self.logs / f"{run}.log"

    def _start(self) -> None:
        """Start runs in the free slots; of those on one folder one at a time."""
        for slot in range(self.slots.count):
            worker = self.workers.get(slot)
            busy = {self.jobs[run].folder for run in self._at_work()} - {None}
            run = next((run for run in self.waiting if self.jobs[run].folder not in busy), None)
            if run is None or (worker and (worker.run is not None or worker.is_leaving)):
                continue
            self.waiting.remove(run)
            worker = worker or _Worker(self.slots.environment(slot), self._log(run), self.answers)
            self.workers[slot] = worker
            worker.start(run, [self.command, *self.jobs[run].words], self._log(run))
            self.board.observe(run, State("starting"))

    def _take(self, worker: _Worker, answer: dict[str, Any] | None) -> None:
        """Take an answer of a worker: what its run does, or how it has ended; None: the process has."""
        run = worker.run
        if answer is None:
            self.workers = {slot: one for slot, one in self.workers.items() if one is not worker}
        if run is None:
            return
        if answer is not None and "state" in answer:
            self.board.observe(run, State(**answer["state"]))
            return
        worker.run = None
        code = worker.process.returncode if answer is None else answer["code"]
        if code:
            worker.leave()  # nobody knows what the run has left behind
        result = Result() if answer is None else Result(**answer["result"])
        reason = self._reason(run, code, died=answer is None) if code or answer is None else ""
        self.board.end(Ended(run, code or int(answer is None), time.monotonic() - worker.began, result, reason))

    def _reason(self, run: int, code: int, died: bool) -> str:
        log = self._log(run)
        lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "no output")
        if not died:
            return f"{last} ({log})"
        how = f"ended with exit code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        memory = ", as the system does where memory is short" if code == -signal.SIGKILL else ""
        return f"its process {how}{memory}; last line: {last} ({log})"

    def _end(self) -> None:
        """End all workers; those still at a run are interrupted, and killed if they do not end in time."""
        at_work = self._at_work()
        if at_work:
            say(f"stopping {plural(len(at_work), 'run')}")
        for worker in self.workers.values():
            worker.leave()
            if worker.run is not None:
                worker.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + (STOP_SECONDS if at_work else CLOSE_SECONDS)
        for worker in self.workers.values():
            try:
                worker.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
