"""The committed effects of the study ablation_small.

effects.csv is the table of the report that was written then. Its rows of paradigms can't be computed from
accuracies.csv, which has phenomena only.
"""

import pandas as pd

from analysis.config import FigureConfig
from analysis.curves.ablations import ALL_SIZES, DIRECT, SCOPE, TREATMENT_CONTROL
from analysis.figures.charts import Axis, dot_chart
from analysis.figures.files import figure
from analysis.figures.style import looks_of
from analysis.formats import accuracy_text, rows_of, slope_text, supported_digits, title
from tests.support.committed_results import ABLATION, RESULTS

NEW_NAMES = {"group": "curve", "filter": "construction", "first": "accuracy", "second": "other_accuracy"}


def committed_effects() -> pd.DataFrame:
    """Return the committed rows over all sizes, with the columns of `analysis.ablation_effects` that sentences need."""
    table = pd.read_csv(RESULTS / ABLATION / "effects.csv", dtype={"note": str}).rename(columns=NEW_NAMES)
    table = table[table["over"] == ALL_SIZES]
    return table.assign(benchmark="blimp", method="lp", equivalent=pd.NA, note=table["note"].fillna(""))


def paradigm_table() -> str:
    """Return the paradigms that test each construction: accuracies, and treatment minus control."""
    table = committed_effects()
    rows = table[(table["kind"] == TREATMENT_CONTROL) & (table["level"] == "paradigm") & table["direct"]]
    lines = ["| removed | paradigm | accuracy | control | difference, 95% interval |"]
    lines.append("| --- | --- | ---: | ---: | --- |")
    for row in rows_of(rows):
        digits = supported_digits(row.low, row.high)
        cells = [f"`{row.construction}`", row.name.replace("_", " ")]
        cells += [accuracy_text(row.accuracy), accuracy_text(row.other_accuracy)]
        change = f"{slope_text(row.difference, digits)} [{slope_text(row.low, digits)}, {slope_text(row.high, digits)}]"
        lines.append(f"| {' | '.join([*cells, change])} |")
    return "\n".join(lines)


def effects_picture() -> str:
    """Return each treatment minus its matched control over all sizes, as SVG."""
    table = committed_effects()
    rows = table[(table["kind"] == TREATMENT_CONTROL) & table["level"].isin([SCOPE, "overall"])]
    rows = rows.assign(name=rows["name"].replace(DIRECT, "paradigms that test it").map(title))
    looks = looks_of(list(rows["curve"].unique()))
    chart = dot_chart(rows, "difference", Axis("Accuracy less that of the matched control", "+.4f"), looks)
    return figure([chart], FigureConfig(), 1)
