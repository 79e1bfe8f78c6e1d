"""What commands take from the rooms above, which this package names and never imports before a command starts.

`register` loads them: a room's configuration classes put themselves into Hydra's ConfigStore, and `runs` answers what
folders, points of sweeps and jobs are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from hydra.core.config_loader import ConfigLoader
from omegaconf import DictConfig

if TYPE_CHECKING:
    from pairscale.command.launchers.jobs import Job

SCHEMAS = "analysis.config"  # it imports the configuration classes of all rooms
RUNS = "eval.sweeps"

Point = tuple[list[str], DictConfig, Any]  # overrides that name a run, its composed node, its configuration


class Runs(Protocol):
    """What a module that knows runs answers."""

    def points(self, command: str, overrides: list[str], skip_refused: bool = False) -> Iterator[Point]:
        """The runs of a sweep."""

    def keep_points(self, found: Iterable[Point], command: str, typed: str) -> None:
        """Keep the runs that the command line `typed` asks for with their studies."""

    def jobs(self, loader: ConfigLoader, master: DictConfig, overrides: Sequence[Sequence[str]]) -> list[Job]:
        """The jobs of a sweep, from the overrides that Hydra gives to a launcher."""

    def memory_of(self, jobs: Sequence[Job]) -> int:
        """Bytes that the largest of `jobs` takes; 0 where none can be estimated."""


def runs() -> Runs:
    return cast(Runs, import_module(RUNS))


def register() -> None:
    """Make the schemas, resolvers and launchers known to Hydra; may be called more than once."""
    import_module(SCHEMAS)
    import_module(RUNS)
