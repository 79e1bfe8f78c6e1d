"""Trackers: the interface, the registry, and the guard that keeps a tracker's errors away from the work.

A tracker is a class with five methods, registered by the name that `logger.name` takes:

    @tracker("mine")
    class Mine(Tracker):
        def log(self, point: dict[str, float]) -> None: ...

A method that a tracker does not override does nothing.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from pairscale.console import say
from pairscale.errors import PairscaleError, check_choice
from pairscale.plugins import load_members

LOST_LOG = "tracking.log"  # in the folder of a job: the traceback of the error that ended its tracking


@dataclass(kw_only=True)
class LoggerConfig:
    """Where metrics go besides metrics.csv."""

    name: str  # of the tracker
    project: str | None = None  # of Weights & Biases; null: its default
    entity: str | None = None  # of Weights & Biases: user or team; null: the default of the key
    # wandb; null: online where there is a key and a network
    mode: Literal["online", "offline", "disabled"] | None = None
    tags: list[str] = field(default_factory=list)  # wandb
    # wandb: what it keeps: what scoring needs, once a run is done; each checkpoint as it is written.
    artifacts: list[Literal["model", "checkpoint"]] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_choice("logger.name", self.name, trackers())


@dataclass(frozen=True)
class Job:
    """The work of a command to track: on a run or, for the analysis, on a study."""

    kind: Literal["train", "eval", "analysis"]
    name: str  # run id, or name of the study
    study: str | None
    folder: Path  # a tracker may write below it
    config: Mapping[str, Any]  # the values that tell it from others
    tags: tuple[str, ...] = ()


class Tracker:
    """The tracking of one job, from construction to `finish`. Constructing the same job again continues it.

    Methods may raise anything: `tracked` reports the first error, and the job goes on without its tracker.
    """

    words_seen = -1.0  # x of the last point that the service has

    def __init__(self, logger: LoggerConfig, job: Job):
        """Begin or continue a job. Raises PairscaleError if the user must change the configuration first."""
        self.logger = logger
        self.job = job

    def log(self, point: dict[str, float]) -> None:
        """Add a point, which is not there yet, to the curves that it names. It contains their x, words_seen."""

    def summarise(self, values: Mapping[str, Any]) -> None:
        """Set values of the whole job by name, in place of earlier ones. A value may be a DataFrame."""

    def image(self, name: str, path: Path) -> None:
        """Add a figure from a PNG file."""

    def artifact(self, name: str, kind: str, paths: Iterable[Path]) -> None:
        """Keep files and folders."""

    def finish(self, failed: bool) -> None:
        """End the job; `failed` if it raised."""


_TRACKERS: dict[str, type[Tracker]] = {"csv": Tracker}  # metrics.csv is always written, and csv tracks nothing else
T = TypeVar("T", bound=type[Tracker])


def tracker(name: str) -> Callable[[T], T]:
    """Register a class as the tracker `name`. Raises ValueError for a name in use."""

    def register(cls: T) -> T:
        if name in _TRACKERS and _TRACKERS[name].__module__ != cls.__module__:
            raise ValueError(f"tracker {name}: registered by {_TRACKERS[name].__module__} already")
        _TRACKERS[name] = cls
        return cls

    return register


def trackers() -> Mapping[str, type[Tracker]]:
    """Return all trackers by name: those of this folder, and those that plug-ins registered."""
    load_members(__name__.rpartition(".")[0])
    return _TRACKERS


def takes_results(name: str) -> bool:
    """Return True if the tracker `name` has a place for results, which the job would compute for it."""
    return trackers()[name].summarise is not Tracker.summarise


class _Guarded:
    """A tracker whose first error is reported, and ends the tracking but not the job."""

    def __init__(self, logger: LoggerConfig, job: Job):
        """Begin or continue a job. Raises the tracker's PairscaleError."""
        self.logger, self.job = logger, job
        self._lost = False
        self._inner = Tracker(logger, job)
        try:
            self._inner = trackers()[logger.name](logger, job)
        except PairscaleError:
            raise
        except Exception as error:
            self._report(error)

    def __getattr__(self, method: str) -> Callable[..., None]:
        """Return a method of the tracker, which raises nothing; a lost one is only finished, to free what it holds."""

        def call(*arguments: Any, **options: Any) -> None:
            if method == "log":
                (point,) = arguments
                if point["words_seen"] <= self._inner.words_seen:
                    return
                self._inner.words_seen = point["words_seen"]
            if self._lost and method != "finish":
                return
            try:
                getattr(self._inner, method)(*arguments, **options)
            except Exception as error:
                self._report(error)

        return call

    def _report(self, error: Exception) -> None:
        """Print one line, and write the traceback to the folder of the job, or print it too if that fails."""
        if self._lost:
            return
        self._lost = True
        path, lines = self.job.folder / LOST_LOG, "".join(traceback.format_exception(error))
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        ended = f"logger={self.logger.name}: tracking has ended ({reason}), and the work goes on without it"
        try:
            self.job.folder.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {self.job.kind}\n{lines}\n")
            say(f"{ended}; the traceback is in {path}")
        except OSError as unwritten:
            say(f"{ended}; {path} cannot be written ({unwritten}), so here is the traceback:\n{lines}")


@contextmanager
def tracked(logger: LoggerConfig, job: Job) -> Iterator[Tracker]:
    """Yield the tracker of `job`, and tell it at the end if the block raised. Its own errors do not end the block.

    Raises PairscaleError, before the block begins, if the tracker needs another configuration.
    """
    guarded = cast(Tracker, _Guarded(logger, job))
    try:
        yield guarded
    except BaseException:  # Ctrl-C and signals included
        guarded.finish(failed=True)
        raise
    guarded.finish(failed=False)
