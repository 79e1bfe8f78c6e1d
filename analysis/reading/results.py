"""What `python -m analysis.reading` computed for one file of times: written there, and read by the report."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pairscale.errors import RunError
from pairscale.files import write_text
from pairscale.tables import write_csv

_TABLES = ("models", "slopes", "excluded")


@dataclass(frozen=True)
class ReadingResult:
    """The result for one file of times.

    Attributes:
        name: of the file, with its measure and regression unless they are the usual ones.
        settings: what was read and fitted: baseline, full, rows, texts, clusters, command, ...
        models: one row per model: columns of `analysis.runs` (missing for a model outside the study) and of
            `reading_deltas`.
        slopes: one row per curve, as `reading_slopes` returns it.
        excluded: how many words were left out, by reason.
    """

    name: str
    settings: dict[str, Any]
    models: pd.DataFrame
    slopes: pd.DataFrame
    excluded: pd.DataFrame

    def write(self, folder: Path) -> None:
        """Write each table as CSV, and the settings as JSON."""
        for name in _TABLES:
            write_csv(folder / f"{name}.csv", getattr(self, name))
        write_text(folder / "settings.json", json.dumps(self.settings, indent=2, ensure_ascii=False) + "\n")


def read_results(reports: Path, study: str) -> list[ReadingResult]:
    """Return what `python -m analysis.reading` wrote for a study, by name. Raises RunError for a damaged file."""
    results = []
    texts = dict.fromkeys(("run", "curve", "size"), str)
    for file in sorted((reports / study / "reading").glob("*/settings.json")):
        try:
            settings = json.loads(file.read_text(encoding="utf-8"))
            tables = [pd.read_csv(file.with_name(f"{name}.csv"), dtype=texts) for name in _TABLES]
        except (OSError, ValueError) as error:
            raise RunError(f"{file.parent}: cannot be read ({error}). Run python -m analysis.reading again.") from None
        results.append(ReadingResult(file.parent.name, settings, *tables))
    return results
