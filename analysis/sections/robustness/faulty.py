"""Known faulty pairs in the report: what they change in accuracies and slopes."""

import numpy as np
import pandas as pd

from analysis.config import COUNT
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.sentences.curves import in_text
from analysis.exhibits.tables.text import count, slope_text
from analysis.sections.section import Report, Section, contributes
from eval.published import OVERALL


def faulty_sentence(rows: pd.DataFrame) -> str:
    """Say by how much overall accuracy, paradigms and slopes of a curve change without faulty pairs, at most."""
    parts = []
    for level, text, what in (
        ("overall", "overall accuracy changes by {}", "accuracy"),
        ("paradigm", "a paradigm's by at most {}", "accuracy"),
        ("phenomenon", "a phenomenon's slope by at most {} per doubling", "slope"),
    ):
        of = rows[rows["level"] == level]
        changes = (of[f"{what}_without"] - of[what]).abs().to_numpy()
        if len(of) and not np.isnan(changes).all():
            most = int(np.nanargmax(changes))
            where = f" ({in_text(of['name'].iloc[most])})" if level != "overall" else ""
            parts.append(text.format(f"{changes[most]:.4f}".lstrip("0")) + where)
    return f"without {int(rows['faulty'].max())} faulty pairs {', '.join(parts)}."


def faulty_exhibit(rows: pd.DataFrame, left_out: bool) -> Exhibit | None:
    """Return the table of units with faulty pairs (analysis.curves.robustness.faulty); None where none is known."""
    if rows.empty:
        return None
    paradigm = rows["level"] == "paradigm"
    table = pd.DataFrame({
        "phenomenon": rows["phenomenon"].where(rows["level"] != "overall", OVERALL),
        "paradigm": rows["name"].where(paradigm, ""), "curve": rows["group"], "pairs": rows["n_pairs"],
        "faulty": rows["faulty"], "accuracy": rows["accuracy"], "without them": rows["accuracy_without"],
        "slope": rows["slope"], "slope without them": rows["slope_without"],
    }).dropna(axis="columns", how="all")  # fmt: skip
    treated = "left out of all else on this page" if left_out else "counted in all else on this page, as published"
    return Exhibit(
        "faulty-pairs",
        "Known faulty pairs",
        "Phenomena and paradigms with pairs that are known to be faulty (eval/benchmarks/known_items.csv has their "
        f"names and reasons), by the same runs with them and without, at each curve's largest size. They are {treated} "
        "(analysis.faulty_pairs).",
        table,
        cells={"faulty": count, "slope": slope_text, "slope without them": slope_text},
        takeaways=[(str(group), faulty_sentence(of)) for group, of in rows.groupby("group", sort=False)],
        filtered=True,
    )


@contributes(75)
def faulty(section: Section, report: Report) -> list[Exhibit | None]:
    rows = section.tables.get("faulty-pairs")
    left_out = report.config.analysis.faulty_pairs != COUNT
    return [None if rows is None else faulty_exhibit(rows, left_out)]
