"""The two modules above this package that commands need, by name; they are imported when a command starts.

SCHEMAS puts all rooms' classes into Hydra's ConfigStore; RUNS knows run folders, the points of sweeps, and jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from hydra.core.config_loader import ConfigLoader
from omegaconf import DictConfig

from pairscale.plugins import load_plugins

if TYPE_CHECKING:
    from pairscale.command.pool import Job

SCHEMAS = "analysis.config"  # it imports the configuration classes of all rooms
RUNS = "eval.sweeps"

Point = tuple[list[str], DictConfig, Any]  # overrides that name a run, its composed node, its configuration


class Runs(Protocol):
    """The interface of RUNS."""

    def points(self, command: str, overrides: list[str], refused: list[Exception] | None = None) -> Iterator[Point]:
        """Yield the runs of a sweep; add the errors of those that cannot be to `refused`, or raise the first."""

    def record_points(self, points: Iterable[Point], command: str, typed: str) -> None:
        """Record the runs of the command line `typed` in the folders of their studies."""

    def jobs(self, loader: ConfigLoader, master: DictConfig, overrides: Sequence[Sequence[str]]) -> list[Job]:
        """Return the jobs of a sweep, from the overrides that Hydra hands to a launcher."""

    def memory_of(self, jobs: Sequence[Job]) -> int:
        """Return the bytes that the largest of `jobs` needs; 0 if unknown."""


def runs() -> Runs:
    return cast(Runs, import_module(RUNS))


def register() -> None:
    """Make schemas, resolvers, launchers and plugins known, once or again; ConfigError for a plugin that fails."""
    import_module(SCHEMAS)
    import_module(RUNS)
    load_plugins()
