"""Define what a tracker is, register trackers by name, and keep their errors from stopping a job.

A tracker is a class with five methods, registered under the name that `logger.name` selects:

    @tracker("mine")
    class Mine(Tracker):
        def log(self, point: dict[str, float]) -> None: ...

Methods that a tracker does not override don't do anything.
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

LOST_LOG = "tracking.log"  # file in a job's folder for the traceback of the error that ended its tracking


@dataclass(kw_only=True)
class LoggerConfig:
    """The settings for where to send metrics, in addition to metrics.csv."""

    name: str  # name of the tracker
    project: str | None = None  # wandb: project; null: W&B's default
    entity: str | None = None  # wandb: user or team; null: the default of the key
    # wandb: null means online if there is a key and a network, and offline otherwise
    mode: Literal["online", "offline", "disabled"] | None = None
    tags: list[str] = field(default_factory=list)  # wandb: tags of the W&B run
    # wandb: what to upload: the model when a run is done, or each checkpoint as it is written.
    artifacts: list[Literal["model", "checkpoint"]] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_choice("logger.name", self.name, trackers())


@dataclass(frozen=True)
class Job:
    """The work to track, which is a command's work on one run or, for the analysis, on one study."""

    kind: Literal["train", "finetune", "eval", "analysis"]
    name: str  # run id (with task and seed of fine-tuning), or name of the study
    study: str | None
    folder: Path  # folder that a tracker may write to
    config: Mapping[str, Any]  # values that distinguish it from other jobs
    tags: tuple[str, ...] = ()
    x: str = "words_seen"  # the key of a point's x


class Tracker:
    """A tracker of one job, from construction to `finish`. Constructing it for the same job again continues it.

    Methods may raise any error: `tracked` reports the first one, and the job continues without its tracker.
    """

    reached = -1.0  # x of the last point that the service has; no earlier ones are sent, except by the job "eval"

    def __init__(self, logger: LoggerConfig, job: Job):
        """Begin or continue to track a job. Raises PairscaleError if the user has to change the configuration."""
        self.logger = logger
        self.job = job

    def log(self, point: dict[str, float]) -> None:
        """Add a new point to the curves whose names are its keys. Its x is the value of job.x (words_seen)."""

    def summarise(self, values: Mapping[str, Any]) -> None:
        """Set values of the whole job by name, replacing earlier ones. A value may be a DataFrame."""

    def chart(self, name: str, content: Any) -> None:
        """Add a figure from the path of a PNG file, or a chart of lines from a DataFrame.

        The DataFrame has a row per point: its x, the name of its line, and its y, in this order.
        """

    def artifact(self, name: str, kind: str, paths: Iterable[Path]) -> None:
        """Store files and folders as an artifact of this kind ("model" or "checkpoint")."""

    def finish(self, failed: bool) -> None:
        """End the tracking. `failed` is True if the job raised an error."""


_TRACKERS: dict[str, type[Tracker]] = {"csv": Tracker}  # metrics.csv is always written, so csv does nothing more
T = TypeVar("T", bound=type[Tracker])


def tracker(name: str) -> Callable[[T], T]:
    """Register a class as the tracker `name`. Raises ValueError if another class has this name."""

    def register(cls: T) -> T:
        if name in _TRACKERS and _TRACKERS[name].__module__ != cls.__module__:
            raise ValueError(
                f"tracker {name}: {_TRACKERS[name].__module__} has already registered this name. Choose another."
            )
        _TRACKERS[name] = cls
        return cls

    return register


def trackers() -> Mapping[str, type[Tracker]]:
    """Return all trackers by name, including those from plug-ins."""
    load_members(__name__.rpartition(".")[0])
    return _TRACKERS


def takes_results(name: str) -> bool:
    """Return True if the tracker `name` accepts results, so that a job has to compute them."""
    return trackers()[name].summarise is not Tracker.summarise


class _Guarded:
    """A tracker whose first error is reported and ends the tracking, but not the job."""

    def __init__(self, logger: LoggerConfig, job: Job):
        """Begin or continue to track a job. Raises the tracker's PairscaleError."""
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
        """Return a method of the tracker that doesn't raise errors. After an error, only `finish` does anything."""

        def call(*arguments: Any, **options: Any) -> None:
            if method == "log" and self.job.kind != "eval":  # a snapshot's point may have more scores than before
                (point,) = arguments
                if point[self.job.x] <= self._inner.reached:
                    return
                self._inner.reached = point[self.job.x]
            if self._lost and method != "finish":
                return
            try:
                getattr(self._inner, method)(*arguments, **options)
            except Exception as error:
                self._report(error)

        return call

    def _report(self, error: Exception) -> None:
        """Print one line and write the traceback to the job's folder, or print the traceback if that fails."""
        if self._lost:
            return
        self._lost = True
        path, lines = self.job.folder / LOST_LOG, "".join(traceback.format_exception(error))
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        ended = f"logger={self.logger.name}: tracking failed ({reason}). The work continues without it."
        try:
            self.job.folder.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {self.job.kind}\n{lines}\n")
            say(f"{ended} The traceback is in {path}.")
        except OSError as unwritten:
            say(f"{ended} The traceback follows, because {path} can't be written ({unwritten}):\n{lines}")


@contextmanager
def tracked(logger: LoggerConfig, job: Job) -> Iterator[Tracker]:
    """Yield a tracker for `job`, and finish it at the end. Its errors don't stop the block.

    Raises PairscaleError, before the block begins, if the user has to change the configuration.
    """
    guarded = cast(Tracker, _Guarded(logger, job))
    try:
        yield guarded
    except BaseException:  # Ctrl-C and signals included
        guarded.finish(failed=True)
        raise
    guarded.finish(failed=False)
