"""The interface and the registry of trackers. A tracker is a class, registered by the name that `logger.name` takes.

    @tracker("mine")
    class Mine(Tracker):
        def add_point(self, values: dict[str, float]) -> None: ...

Each method of Tracker does nothing unless a subclass overrides it: a tracker takes what its service can show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from omegaconf import MISSING

from pairscale.command.schemas import store_schemas
from pairscale.errors import check_choice
from pairscale.plugins import load_members

if TYPE_CHECKING:
    import pandas as pd

MODES = ("online", "offline", "disabled")
ARTIFACTS = ("model", "checkpoint")  # what scoring needs, once a run is done; each checkpoint as it is written


@dataclass
class LoggerConfig:
    """Where metrics go besides metrics.csv."""

    name: str = MISSING  # of the tracker
    project: str | None = None  # of Weights & Biases; null: its default
    entity: str | None = None  # of Weights & Biases: user or team; null: the default of the key
    mode: str | None = None  # wandb: online, offline or disabled; null: online where there is a key and a network
    tags: list[str] = field(default_factory=list)  # wandb
    artifacts: list[str] = field(default_factory=list)  # wandb: which of ARTIFACTS to keep there

    def __post_init__(self) -> None:
        check_choice("logger.name", self.name, trackers())
        if self.mode is not None:
            check_choice("logger.mode", self.mode, MODES)
        for artifact in self.artifacts:
            check_choice("logger.artifacts", artifact, ARTIFACTS)


@dataclass(frozen=True)
class Job:
    """One thing to track: the work of a command on a run or, for the analysis, on a study."""

    kind: Literal["train", "eval", "analysis"]
    name: str  # run id, or name of the study
    study: str | None
    folder: Path  # a tracker may write below it
    config: Mapping[str, Any]  # the values that tell it from others


class Tracker:
    """Tracking of one job, from construction to `finish`. Constructing the same job again continues it."""

    words_seen = -1.0  # x of the last point that the service has

    def __init__(self, logger: LoggerConfig, job: Job):
        """Begin or continue a job. Raises RunError in one line if the service cannot be reached."""
        self.logger = logger
        self.job = job

    def log(self, values: Mapping[str, float]) -> None:
        """Add one point to the curves named in `values`, which holds their x, words_seen; none twice."""
        if values["words_seen"] > self.words_seen:
            self.add_point(dict(values))
            self.words_seen = values["words_seen"]

    def add_point(self, values: dict[str, float]) -> None:
        """Add a point that is not there yet."""

    def summarise(self, values: Mapping[str, Any]) -> None:
        """Set values of the whole job by name, in place of earlier ones."""

    def table(self, name: str, table: pd.DataFrame) -> None:
        """Set a table of the whole job, in place of an earlier one."""

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
    chosen = trackers()[name]
    return chosen.summarise is not Tracker.summarise or chosen.table is not Tracker.table


@contextmanager
def tracked(logger: LoggerConfig, job: Job) -> Iterator[Tracker]:
    """Yield the tracker of `job`, which fails if the block raises. Raises as the tracker's constructor."""
    active = trackers()[logger.name](logger, job)
    try:
        yield active
    except BaseException:  # Ctrl-C and signals included
        active.finish(failed=True)
        raise
    active.finish(failed=False)


store_schemas("logger", logger_schema=LoggerConfig)
