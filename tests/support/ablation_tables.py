"""The committed effects of the study ablation_small: findings and a picture for docs/results.md.

python -m tests.support.ablation_tables     copies the tables from reports/ablation_small
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.config import FigureConfig
from analysis.curves.ablations.ablations import Ablations, of_comparison
from analysis.curves.ablations.effects import ALL_SIZES, PER_DOUBLING
from analysis.curves.ablations.matching import SCOPE, Comparison
from analysis.exhibits.figures.ablations import sizes_chart
from analysis.exhibits.figures.files import figure
from analysis.exhibits.sentences.ablations import ablation_findings
from analysis.exhibits.sentences.findings import Finding
from analysis.exhibits.tables.text import accuracy_text, interval_text, slope_text, supported_digits
from pairscale.sizes import parse_size
from pairscale.tables import write_csv
from tests.support import ROOT
from tests.support.committed_results import config, copy

STUDY = "ablation_small"
FOLDER = ROOT / "analysis" / "results" / STUDY
KEYS = ["kind", "base", "filter", "action", "dose", "group", "other"]
TEXTS = ("dose", "note", "phenomenon")  # columns that may be empty
TABLES = {"effects": "ablation-differences", "shares": "ablation-shares"}  # committed name -> that of the report


def copy_tables(report: Path = Path("reports") / STUDY) -> None:
    """Copy the tables of the report, of phenomena and of paradigms that test the construction only over all sizes."""
    copy(STUDY, report)
    for name, source in TABLES.items():
        (path,) = report.glob(f"blimp*-{source}.csv")
        table = pd.read_csv(path)
        wide, whole = table["level"].isin([SCOPE, "overall"]), table["over"] == ALL_SIZES
        chosen = table[wide | (whole & ((table["level"] == "phenomenon") | table["direct"]))]
        write_csv(FOLDER / f"{name}.csv", chosen.round(8))


def committed() -> Ablations:
    """Return the committed effects."""
    effects, shares = (
        pd.read_csv(FOLDER / f"{name}.csv", dtype=dict.fromkeys(TEXTS, str), na_values=[""], keep_default_na=False)
        for name in TABLES
    )
    for table in (effects, shares):
        for column in TEXTS:
            table[column] = table[column].astype(object).where(table[column].notna(), "")
    rows: dict[str, Any] = {"rows": np.empty(0, np.intp), "other_rows": np.empty(0, np.intp), "paired": True}
    compared = effects[KEYS].drop_duplicates().to_dict("records")
    return Ablations(
        [Comparison(**{str(key): str(of[key]) for key in KEYS}, **rows) for of in compared], effects, shares
    )


def effects_found() -> list[Finding]:
    """Return the findings on interventions, as the report states them."""
    return ablation_findings(committed(), config())


def direct_table() -> str:
    """Return the paradigms that test each construction: accuracies, and treatment minus control over all sizes."""
    of = committed()
    rows = of.differences[(of.differences["over"] == ALL_SIZES) & of.differences["direct"]]
    lines = [
        "| removed | paradigm | accuracy | control | difference, 95% interval |",
        "| --- | --- | ---: | ---: | --- |",
    ]
    for group, other in of.primary:
        for row in of_comparison(rows, group, other).to_dict("records"):
            digits = supported_digits(row["low"], row["high"])
            change = slope_text(row["difference"], digits=digits)
            cells = [
                f"`{row['filter']}`",
                row["name"].replace("_", " "),
                *(accuracy_text(row[of]) for of in ("first", "second")),
            ]
            lines.append(f"| {' | '.join(cells)} | {change} {interval_text(row['low'], row['high'], digits=digits)} |")
    return "\n".join(lines)


def effects_picture() -> str:
    """Return the differences over sizes of each treatment, as SVG."""
    of = committed()
    rows = of.differences[~of.differences["over"].isin([ALL_SIZES, PER_DOUBLING])]
    rows = rows[rows["level"].isin([SCOPE, "overall"])]
    rows = rows.assign(words=rows["over"].map(parse_size), name=rows["name"].replace("overall", "Overall"))
    units = list(dict.fromkeys(rows["name"]))
    panels = [
        partial(
            sizes_chart, of_comparison(rows, group, other)[["name", "words", "difference", "low", "high", "pairs"]],
            units, title=group.partition(", ")[2], unit="words",
        )
        for group, other in of.primary
    ]  # fmt: skip
    return figure(panels, FigureConfig(), 2)


if __name__ == "__main__":
    copy_tables()
