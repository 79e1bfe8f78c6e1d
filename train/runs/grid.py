"""The grid of a study: the runs that its sweeps asked for, so that those that never began can be told as missing.

    runs/<study>/grid/<8 hex digits>.json    of one sweep: its command, and its runs

A sweep of other values adds a file; the same one again replaces its own, so that none has to be read, changed and
written back while another sweep does so too. Removing a file takes its sweep back. Imports no torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypedDict, cast

from pairscale.errors import RunError
from pairscale.files import sha256_json, write_json
from pairscale.schema import FolderName, read_json
from train.config import RunConfig
from train.runs.folder import RunFolder, StoredConfig, check_stored, run_id
from train.runs.wandb import described

GRID_FOLDER = "grid"
GRID_VERSION = 1
_REMEDY = "remove it, and sweep again for the runs that lack"


class _Point(TypedDict):
    point: str
    config: StoredConfig


class _Grid(TypedDict):
    """Schema of a file of the grid."""

    command: str
    benchmark: str | None
    runs: dict[FolderName, _Point]


@dataclasses.dataclass(frozen=True)
class Asked:
    """A run that was asked for.

    point: what a command line says of it alone; config: the part of its configuration that says what it is
    (train.runs.wandb.DESCRIBED); benchmarks: those that it is to be scored on; commands: which asked for it.
    """

    point: str
    config: Mapping[str, Any]
    benchmarks: frozenset[str] = frozenset()
    commands: tuple[str, ...] = ()

    @classmethod
    def of(cls, point: str, config: RunConfig, benchmark: str | None, command: str) -> Asked:
        """The run of `config`; `benchmark` is None where it is only to be trained."""
        benchmarks = frozenset([benchmark] if benchmark else [])
        return cls(point, described(dataclasses.asdict(config)), benchmarks, (command,))


def keep_grid(study: Path, points: Mapping[str, RunConfig], benchmark: str | None, command: str) -> None:
    """Keep what the sweep of `command` asks for in a study's folder: point -> configuration.

    Raises WriteError where the folder cannot be written to.
    """
    asked = {run_id(config): Asked.of(point, config, benchmark, command) for point, config in points.items()}
    runs = {run: {"point": one.point, "config": one.config} for run, one in asked.items()}
    name = sha256_json([sorted(runs), benchmark])[:8]
    kept = {"version": GRID_VERSION, "command": command, "benchmark": benchmark, "runs": runs}
    write_json(study / GRID_FOLDER / f"{name}.json", kept)


def forget_runs(study: Path, runs: Collection[str]) -> None:
    """Take runs out of what the sweeps of a study asked for; a sweep of nothing else is gone. Raises as `read_grid`."""
    for path, grid in _grids(study):
        rest = {run: one for run, one in grid["runs"].items() if run not in runs}
        if not rest:
            path.unlink()
        elif len(rest) < len(grid["runs"]):
            write_json(path, {**grid, "runs": rest})


def read_grid(study: Path) -> dict[str, Asked]:
    """All that the sweeps of a study asked for, by run id; {} where none was kept.

    Raises RunError for a file that this code did not write.
    """
    asked: dict[str, Asked] = {}
    for path, grid in _grids(study):
        benchmarks = frozenset([grid["benchmark"]] if grid["benchmark"] else [])
        for run, one in grid["runs"].items():
            check_stored(one["config"], path, _REMEDY)
            before = asked.get(run, Asked(one["point"], cast(dict[str, Any], one["config"])))
            asked[run] = dataclasses.replace(
                before, benchmarks=before.benchmarks | benchmarks, commands=(*before.commands, grid["command"])
            )
    return asked


def is_asked_by_a_sweep(run: RunFolder, benchmark: str | None = None) -> bool:
    """True if a sweep asked for a run, and for its scores on `benchmark` where one is given, or none can tell.

    What stopped such a run is kept with it, so that python -m analysis.status can say it.
    """
    try:
        asked = read_grid(run.path.parent).get(run.path.name)
    except RunError:
        return True
    return asked is not None and (benchmark is None or benchmark in asked.benchmarks)


def _grids(study: Path) -> list[tuple[Path, _Grid]]:
    paths = sorted((study / GRID_FOLDER).glob("*.json"))
    return [(path, read_json(path, _Grid, RunError, _REMEDY, GRID_VERSION)) for path in paths]
