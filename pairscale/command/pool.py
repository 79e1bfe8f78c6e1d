"""Run a sweep on this machine in a pool of worker processes (worker.py), each of which does one run after another.

Each worker gets a share of the cores, and a GPU or part of one. If a worker dies, for example because memory ran out,
its run fails. Another worker replaces it, and the other runs continue. board.py shows the runs.
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

STOP_SECONDS = 120  # how long an interrupted run may take to finish its step and write its files
CLOSE_SECONDS = 10  # how long an idle worker may take to end
REDRAW_SECONDS = 0.25
Jobs = Annotated[int, Meta(ge=1, le=4096)]  # runs at a time, or threads


@dataclass(frozen=True)
class Job:
    """A run of a sweep.

    Attributes:
        words: its command line, without the command
        name: its name in the terminal
        folder: the folder of the run, or of a study that is scored as a whole; jobs on the same folder run in turn
        on_gpu: whether it uses a GPU if there is one
        devices: GPUs that it needs, or processes on a machine without one
        training_words: words that it trains on, with repeats
        config: the run's configuration, from which its memory is estimated; None in tests
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
    """The settings for how a sweep (-m) divides this machine between its runs."""

    jobs: Jobs | None = None  # runs at a time; null: one per GPU, or one per core, if memory allows
    per_gpu: Jobs = 1  # runs that share a GPU
    gpus: list[int | str] | None = None  # GPUs to use; null: those in CUDA_VISIBLE_DEVICES, or all
    threads: Jobs | None = None  # most threads per run; null: an equal share of the cores


@dataclass(frozen=True)
class Slots:
    """The slots of a machine for `count` simultaneous runs, each with `threads` and one of `gpus`."""

    count: int
    threads: int
    gpus: tuple[str, ...] = ()

    def environment(self, slot: int) -> dict[str, str]:
        """Return the environment variables of the runs in a slot, from 0 to count - 1."""
        variables = environment() | {"OMP_NUM_THREADS": str(self.threads)}
        variables["PYTHONIOENCODING"] = "utf-8"  # for their logs
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
    """Run `pairscale COMMAND` for each job, several at a time, and print a line for each job that ends.

    Args:
        command: one of pairscale.COMMANDS
        jobs: the runs
        config: how to divide the machine
        folder: where to write the logs
        memory: returns the bytes that the largest run needs, or 0 if unknown
        progress: whether to show the active runs, and a table at the end

    Returns:
        The exit codes of the jobs, in order; -N after signal N

    Raises:
        ConfigError: if there are too few GPUs
        KeyboardInterrupt: after SIGINT or SIGTERM, when the active runs have ended
    """
    slots = divide(jobs, config, memory)
    # Each sweep has its own folder, so that two sweeps at once do not overwrite each other's files.
    logs = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    logs.mkdir(parents=True)
    where = f" on GPUs {' '.join(slots.gpus)}" if slots.gpus else ""
    say(f"{plural(len(jobs), 'run')}, {slots.count} at a time{where}, at most {plural(slots.threads, 'thread')} each")
    say(f"Logs: {logs}")
    board = Board([job.name for job in jobs], [job.training_words for job in jobs])
    pool = _Pool(command, jobs, slots, logs.absolute(), board)
    with board.shown() if progress else nullcontext():
        pool.run()
    return [one.code for one in sorted(board.ended, key=lambda one: one.run)]


def check_codes(codes: Sequence[int]) -> None:
    """Raise RunError if runs of a sweep failed, or else RunInUse (exit code 75) if some have to be started again.

    A run usually has to be started again because another process is working on it, so nothing is wrong.
    """
    unfinished = codes.count(START_AGAIN)
    failed = len(codes) - codes.count(0) - unfinished
    if failed:
        rest = f", and {unfinished} did not start or finish" if unfinished else ""
        again = "Correct what the messages name, and run the command again. Finished runs are kept."
        raise RunError(f"{failed} of {len(codes)} runs failed{rest} (see above). {again}")
    if unfinished:
        again = "Run the same command again to continue them."
        raise RunInUse(f"{unfinished} of {len(codes)} runs did not start or finish (see above). {again}")


def divide(jobs: Sequence[Job], config: PoolConfig, memory: Callable[[], int]) -> Slots:
    """Divide the machine between jobs.

    Each job needs at most `memory()` bytes. Raises ConfigError if there are too few GPUs.
    """
    cores, granted = available_cores(), granted_threads()
    devices = max((job.devices for job in jobs), default=1)
    gpus: tuple[str, ...] = ()
    here = visible_gpus() if config.gpus is None else list(map(str, config.gpus))
    if here and any(job.on_gpu for job in jobs):
        if len(here) < devices:
            raise ConfigError(
                f"trainer.devices={devices}: only {plural(len(here), 'GPU')} can be used ({','.join(here)}). "
                "Use fewer devices, or make more GPUs available with pool.gpus or CUDA_VISIBLE_DEVICES."
            )
        starts = range(0, len(here) - devices + 1, devices)
        gpus = tuple(",".join(here[start : start + devices]) for start in starts)
    wanted = config.per_gpu * len(gpus) if gpus else cores // (config.threads or 1) // devices
    count = max(1, min(config.jobs or wanted, len({job.folder or number for number, job in enumerate(jobs)})))
    if count > 1 and not (gpus or config.jobs):
        each = memory()
        if (fitting := fit_memory(count, each)) < count:
            say(
                f"A run needs up to {each / 2**20:,.0f} MiB of memory, so only {fitting} instead of {count} can run "
                "at a time. To start more, set pool.jobs."
            )
            count = fitting
    shared = max(1, cores // count // (1 if gpus else devices))
    return Slots(count, config.threads or min(shared, granted or shared), gpus)


def visible_gpus() -> list[str]:
    """Return the names of this machine's GPUs. torch is not imported, because that takes seconds."""
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
    """A worker process. It puts (worker, answer) into a queue, and (worker, None) when it has ended."""

    def __init__(self, environment: Mapping[str, str], log: Path, answers: queue.SimpleQueue[Any]):
        self.run: int | None = None  # the number of its current run
        self.began = 0.0
        self.is_leaving = False
        with log.open("ab") as errors:  # errors while it starts go to the log of its first run
            self.process = subprocess.Popen(
                started_by("pairscale.command.worker"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=environment, start_new_session=True,  # so that Ctrl-C reaches it only once, from us
            )  # fmt: skip
        threading.Thread(target=self._read, args=(answers,), daemon=True).start()

    def _read(self, answers: queue.SimpleQueue[Any]) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with suppress(ValueError):  # an unfinished line of a process that was killed
                    answers.put((self, json.loads(line)))
        self.process.wait()
        answers.put((self, None))

    def start(self, run: int, words: Sequence[str], log: Path) -> None:
        """Start a run. If the process has died, `_read` reports that this run has ended, too."""
        self.run, self.began = run, time.monotonic()
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"words": list(words), "log": str(log)}).encode() + b"\n")
            self.process.stdin.flush()

    def leave(self) -> None:
        """Let the process end after its current run."""
        self.is_leaving = True
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()


class _Pool:
    """The state of a running sweep. Everything except reading the workers' answers happens in one thread."""

    def __init__(self, command: str, jobs: Sequence[Job], slots: Slots, logs: Path, board: Board):
        self.command, self.jobs, self.slots, self.logs, self.board = command, jobs, slots, logs, board
        self.waiting = list(range(len(jobs)))
        self.workers: dict[int, _Worker] = {}  # by slot
        self.answers: queue.SimpleQueue[tuple[_Worker, dict[str, Any] | None]] = queue.SimpleQueue()
        self.is_stopped = False

    def run(self) -> None:
        """Run all jobs. Raises KeyboardInterrupt after SIGINT or SIGTERM, once the active runs have ended."""

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
        """Return the busy workers, by the number of their run."""
        return {worker.run: worker for worker in self.workers.values() if worker.run is not None}

    def _log(self, run: int) -> Path:
        return self.logs / f"{run}.log"

    def _start(self) -> None:
        """Start runs in the free slots, but only one at a time per folder."""
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
        """Handle a worker's answer: the state of its run, how the run ended, or None if the worker has ended."""
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
            worker.leave()  # the failed run may have left anything behind
        result = Result() if answer is None else Result(**answer["result"])
        reason = self._reason(run, code, died=answer is None) if code or answer is None else ""
        seconds, log = time.monotonic() - worker.began, str(self._log(run))
        self.board.end(Ended(run, code or int(answer is None), seconds, result, reason, log))

    def _reason(self, run: int, code: int, died: bool) -> str:
        log = self._log(run)
        lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "no output")
        if not died:
            return last
        how = f"ended with exit code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        memory = ", perhaps because memory ran out" if code == -signal.SIGKILL else ""
        return f"Its process {how}{memory}. The last line of its log: {last}"

    def _end(self) -> None:
        """End all workers. Interrupt those that are still working, and kill those that do not end in time."""
        at_work = self._at_work()
        if at_work:
            say(f"Stopping {plural(len(at_work), 'run')}.")
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
