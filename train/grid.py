"""The grid of a study: the runs that its sweeps requested, so that those that never began count as missing.

    runs/<study>/grid/<8 hex digits>.json    of one sweep: its command, and its runs

A sweep of other values adds a file, the same one replaces its own; removing a file takes it back. Imports no torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypedDict, cast

from pairscale.errors import RunError
from pairscale.files import sha256_json, write_json
from pairscale.schema import FolderName, read_json
from train.config import RunConfig, described, run_id
from train.runs.folder import GRID, RunFolder
from train.runs.schemas import StoredConfig, check_stored

GRID_VERSION = 1
_REMEDY = "remove it, and sweep again for the missing runs"


class _Point(TypedDict):
    point: str
    config: StoredConfig


class _Grid(TypedDict):
    """Schema of a file of the grid."""

    command: str
    benchmark: str | None
    runs: dict[FolderName, _Point]


@dataclasses.dataclass(frozen=True)
class RequestedRun:
    """A run that sweeps requested."""

    point: str  # the overrides that tell it from the others of its sweep
    config: Mapping[str, Any]  # the part of its configuration that says what it is (train.config.DESCRIBED)
    benchmarks: frozenset[str] = frozenset()  # those that it is to be scored on
    commands: tuple[str, ...] = ()  # the sweeps

    @classmethod
    def of(cls, point: str, config: RunConfig, benchmark: str, command: str) -> RequestedRun:
        return cls(point, described(dataclasses.asdict(config)), frozenset([benchmark]), (command,))


def write_grid(study: Path, points: Mapping[str, RunConfig], benchmark: str | None, command: str) -> None:
    """Write the runs that the sweep `command` requests (point -> configuration); raises WriteError if it cannot.

    benchmark: None for runs that are only to be trained.
    """
    runs = {
        run_id(config): {"point": point, "config": described(dataclasses.asdict(config))}
        for point, config in points.items()
    }
    content = {"version": GRID_VERSION, "command": command, "benchmark": benchmark, "runs": runs}
    write_json(study / GRID / f"{sha256_json([sorted(runs), benchmark])[:8]}.json", content)


def forget_runs(study: Path, runs: Collection[str]) -> None:
    """Take runs out of the grid of a study; a sweep of nothing else is gone. Raises as `read_grid`."""
    for path, grid in _grids(study):
        rest = {run: one for run, one in grid["runs"].items() if run not in runs}
        if not rest:
            path.unlink()
        elif len(rest) < len(grid["runs"]):
            write_json(path, {**grid, "runs": rest})


def read_grid(study: Path) -> dict[str, RequestedRun]:
    """Return all runs that the sweeps of a study requested, by run id. Raises RunError for any other file there."""
    requested: dict[str, RequestedRun] = {}
    for path, grid in _grids(study):
        for run, one in grid["runs"].items():
            check_stored(one["config"], path, _REMEDY)
            before = requested.get(run, RequestedRun(one["point"], cast(dict[str, Any], one["config"])))
            benchmarks = before.benchmarks.union([grid["benchmark"]] if grid["benchmark"] else [])
            commands = (*before.commands, grid["command"])
            requested[run] = dataclasses.replace(before, benchmarks=benchmarks, commands=commands)
    return requested


def is_requested(run: RunFolder, benchmark: str) -> bool:
    """Return True if a sweep requested scores of a run on `benchmark`, or if the grid cannot be read."""
    try:
        requested = read_grid(run.path.parent).get(run.path.name)
    except RunError:
        return True
    return requested is not None and benchmark in requested.benchmarks


def _grids(study: Path) -> list[tuple[Path, _Grid]]:
    paths = sorted((study / GRID).glob("*.json"))
    return [(path, read_json(path, _Grid, RunError, _REMEDY, GRID_VERSION)) for path in paths]
