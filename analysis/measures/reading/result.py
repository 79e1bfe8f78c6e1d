"""The file of what `python -m analysis.reading` computed, which the report of the study reads: reading.json."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd

from pairscale.errors import RunError
from pairscale.files import write_json
from pairscale.schema import Digest, read_json

VERSION = 1
FILE = "reading.json"
AGAIN = "remove the file, or make it again with python -m analysis.reading"
TABLES = ("runs", "means", "curves", "excluded")


class Made(TypedDict):
    """Schema. times: digest of the file; settings: the section `reading`, resolved; tables: TABLES, lists of rows."""

    version: int
    name: str
    times: Digest
    command: str
    settings: dict[str, Any]
    notes: list[str]
    tables: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Result:
    """Deltas of a study's runs on one file of times.

    name: of the file, its measure and the regression. digest: of the file. command: that made it. settings: what was
    read and fitted: form, measure, regression, baseline, full, clusters, folds, ... notes: sentences that a reader has
    to know. tables: `runs`, a row for each model; `means`, for each curve and size; `curves`, for each curve and axis,
    with the test of its U-turn; `excluded`, words left out by reason.
    """

    name: str
    digest: str
    command: str
    settings: dict[str, Any]
    notes: list[str]
    tables: dict[str, pd.DataFrame]


def write_result(folder: Path, result: Result) -> None:
    """Write `FILE` to a folder."""
    tables = {
        name: [{key: _plain(value) for key, value in row.items()} for row in table.to_dict("records")]
        for name, table in result.tables.items()
    }
    write_json(
        folder / FILE,
        {
            "version": VERSION, "name": result.name, "times": result.digest, "command": result.command,
            "settings": result.settings, "notes": result.notes, "tables": tables,
        },
    )  # fmt: skip


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_results(reports: Path, study: str) -> list[Result]:
    """Return the results of a study, by name. Raises RunError for a damaged file, or one of a later version."""
    return [read_result(file) for file in sorted((reports / study / "reading").glob(f"*/{FILE}"))]


def read_result(file: Path) -> Result:
    """Return one result; errors as of `read_results`."""
    made = read_json(file, Made, RunError, AGAIN)
    if made["version"] > VERSION:
        raise RunError(f"{file}: of version {made['version']}, this pairscale reads up to {VERSION}; {AGAIN}")
    if missing := [name for name in TABLES if name not in made["tables"]]:
        raise RunError(f"{file}: without the table {missing[0]}; {AGAIN}")
    tables = {name: pd.DataFrame(rows) for name, rows in made["tables"].items()}
    return Result(made["name"], made["times"], made["command"], made["settings"], made["notes"], tables)
