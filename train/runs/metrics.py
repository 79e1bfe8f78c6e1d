"""metrics.csv: one row per log point or validation, keyed by step, so that a resumed run writes the same file."""

import csv
from collections.abc import Mapping
from pathlib import Path

from pairscale.errors import RunError
from pairscale.files import atomic_path

COLUMNS = (
    "step",
    "words_seen",
    "epoch",
    "lr",
    "train_nats_per_token",
    "valid_nats_per_word",
    "valid_ppl",
    "valid_ppl_without_eos",
    "valid_ppl_without_unk",
    "valid_oov_rate",
)
MASKED_COLUMNS = ("valid_pseudo_nats_per_word", "valid_pseudo_ppl")  # of masked models alone


class MetricsFile:
    """The rows of a run so far. No column is a time, so the file depends on the configuration alone."""

    def __init__(self, path: Path):
        """Read the existing rows. Raises RunError for a damaged file."""
        self.path = path
        self.rows = _read(path) if path.exists() else []

    def forget_after(self, step: int) -> None:
        """Drop the rows after `step`, which a run that resumes there writes again."""
        self.rows = [row for row in self.rows if int(row["step"]) <= step]

    def add(self, step: int, values: dict[str, float]) -> None:
        """Add values to the row of a step."""
        if not self.rows or int(self.rows[-1]["step"]) != step:
            self.rows.append(dict.fromkeys(COLUMNS, "") | {"step": str(step)})
        self.rows[-1].update({name: repr(value) for name, value in values.items()})

    def at(self, step: int) -> dict[str, float]:
        """Return the values of a step that is the last one so far; {} if it has none."""
        if not self.rows or int(self.rows[-1]["step"]) != step:
            return {}
        return numbers(self.rows[-1])

    def write(self) -> None:
        """Write the file in one move."""
        with atomic_path(self.path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            masked = any(row.get(name) for row in self.rows for name in MASKED_COLUMNS)
            writer = csv.DictWriter(file, COLUMNS + MASKED_COLUMNS if masked else COLUMNS)
            writer.writeheader()
            writer.writerows(self.rows)


def _read(path: Path) -> list[dict[str, str]]:
    """Return the rows of metrics.csv after step 0, with those of MASKED_COLUMNS that they fill. Raises RunError."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows, columns = list(reader), reader.fieldnames or []
        if missing := {"step", "valid_ppl", "valid_oov_rate"}.difference(columns):
            raise ValueError(f"without the columns {', '.join(sorted(missing))}")
        for row in rows:
            if None in row or None in row.values():
                raise ValueError(f"step {row['step']}: not as many cells as columns")
            numbers(row)
        rows = [{name: text for name, text in row.items() if text or name in COLUMNS} for row in rows]
        return [row for row in rows if int(row["step"])]
    except (ValueError, csv.Error) as error:
        raise RunError(f"{path}: not readable ({error}); remove the run's folder to train it again") from None


def numbers(row: Mapping[str, str]) -> dict[str, float]:
    """Return the values of a row without empty cells."""
    return {name: float(text) for name, text in row.items() if text}


def exported_validation(path: Path, export: str) -> dict[str, float | None]:
    """Return the exported model's valid_ppl and valid_oov_rate, None if missing, and a masked one's valid_pseudo_ppl.

    Raises RunError for a damaged file.
    """
    rows = MetricsFile(path).rows
    for loss in ("valid_ppl", "valid_pseudo_ppl"):
        validated = [numbers(row) for row in rows if row.get(loss)]
        if validated:
            row = min(validated, key=lambda row: row[loss]) if export == "best" else validated[-1]
            return {"valid_ppl": None, "valid_oov_rate": row.get("valid_oov_rate")} | {loss: row[loss]}
    return {"valid_ppl": None, "valid_oov_rate": None}
