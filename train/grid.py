"""The grid of a study: the runs that its sweeps asked for, so that those that never began can be told as missing.

    runs/<study>/grid/<8 hex digits>.json    of one sweep: its command, and its runs

A sweep of other values adds a file; the same one again replaces its own, so that none has to be read, changed and
written back while another sweep does so too. Removing a file takes its sweep back. Imports no torch.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpora.errors import RunError
from corpora.files import sha256_json, write_json
from train.config import RunConfig
from train.runs import run_id
from train.tracking import described

GRID_FOLDER = "grid"
GRID_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Asked:
    """A run that was asked for.

    point: what a command line says of it alone; config: the part of its configuration that says what it is
    (train.tracking.DESCRIBED); benchmarks: those that it is to be scored on; commands: which asked for it.
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


def read_grid(study: Path) -> dict[str, Asked]:
    """All that the sweeps of a study asked for, by run id; {} where none was kept.

    Raises RunError for a file that this code did not write.
    """
    asked: dict[str, Asked] = {}
    for path in sorted((study / GRID_FOLDER).glob("*.json")):
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["version"] != GRID_VERSION:
                raise RunError(f"{path}: version {kept['version']}, this code reads {GRID_VERSION}")
            benchmarks = frozenset([kept["benchmark"]] if kept["benchmark"] else [])
            for run, one in kept["runs"].items():
                before = asked.get(run, Asked(one["point"], one["config"]))
                asked[run] = dataclasses.replace(
                    before, benchmarks=before.benchmarks | benchmarks, commands=(*before.commands, kept["command"])
                )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            told = f"no grid of a sweep ({type(error).__name__}: {error})"
            raise RunError(f"{path}: {told}; remove it, and sweep again for the runs that lack") from None
    return asked
