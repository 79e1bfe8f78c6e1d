"""Separation of all good from all bad sentences of a benchmark of pairs, over training text."""

from functools import partial

import pandas as pd

from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.methods import bands_note
from analysis.exhibits.figures.ratings import agreement_chart
from analysis.measures.ratings import over_sizes
from analysis.measures.separation import separations
from analysis.sections.section import Report, Section, contributes
from eval.ratings.measures import ALL_SENTENCES, WITHIN_PARADIGMS

MOST_LINES = 8  # of a panel: the methods of few curves, or one method of several


@contributes(45, from_files=True)
def separation(section: Section, report: Report) -> list[Exhibit | None]:
    judged = section.judged
    if judged.of_paradigms:
        return []
    of = separations(report.study, judged.label, judged.runs, judged.left_out)
    return [separation_exhibit(over_sizes(of, report.confidence), judged.unit, report.confidence)]


def separation_exhibit(means: pd.DataFrame, unit: str, confidence: float) -> Exhibit | None:
    """Return the AUC of each curve and method by size; `means`: of analysis.measures.ratings.over_sizes."""
    if means.empty:
        return None
    several = means["group"].nunique() > 1
    rows = means.assign(name=means["group"] + ", " + means["score"] if several else means["score"])
    if rows["name"].nunique() > MOST_LINES:
        rows = rows[rows["score"] == rows["score"].iloc[0]]
    charts = {}
    if means.groupby("group")["size"].nunique().max() > 1:
        for name, measure in (("all", ALL_SENTENCES), ("paradigms", WITHIN_PARADIGMS)):
            of = rows[rows["measure"] == measure]
            charts[name] = partial(agreement_chart, of, f"AUC, {measure}", 0.5, unit=unit)
    columns = {"group": "curve", "score": "method", "measure": "measure", "size": "size", "runs": "runs",
               "value": "AUC", "low": "low", "high": "high", "low_both": "low both",
               "high_both": "high both"}  # fmt: skip
    return Exhibit(
        "separation",
        "Good and bad by one threshold",
        "Share of all good and bad sentences, paired or not, of which the good one scores higher (area under the curve "
        f"of hits over false alarms); a tie counts half.{bands_note(rows['name']) if charts else ''}",
        means[list(columns)].rename(columns=columns),
        intervals={
            f"{confidence:.0%} interval": ("AUC", "low", "high"),
            "for new pairs too": ("AUC", "low both", "high both"),
        },
        charts=charts,
        confidence=confidence,
        definitions={
            ALL_SENTENCES.capitalize(): "One threshold for the whole benchmark, whose sentences differ in length and "
            "words.",
            WITHIN_PARADIGMS.capitalize(): "Mean over paradigms, each with its own threshold.",
            "Bands": f"{confidence:.0%} intervals for new runs, on these pairs.",
        },
    )
