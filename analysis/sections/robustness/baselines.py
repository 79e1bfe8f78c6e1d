"""Baselines in the report: how far untrained models and models of shuffled text get without grammar."""

import numpy as np
import pandas as pd

from analysis.curves.fit import ALL_PAIRS, BASELINES, CHANCE, inverse_trials, spread_limits
from analysis.curves.units import paradigm_accuracies, units_of
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.sentences.curves import in_text
from analysis.exhibits.tables.text import accuracy_text
from analysis.sections.section import Report, Section, contributes
from analysis.study.baselines import baseline_rows
from analysis.study.collect import UNTRAINED
from eval.published import OVERALL

COLUMNS = ["phenomenon", "curve", "baseline", "text", "runs", "accuracy", "low", "high", "curve's accuracy"]


def baseline_table(section: Section, confidence: float) -> pd.DataFrame:
    """Return the accuracies of a section's baselines, overall and by phenomenon: COLUMNS, text: "" of untrained models.

    Limits over new runs, NaN of one run (analysis.curves.fit.spread_limits). The last column is the accuracy of the
    curve at its largest size.
    """
    baselines, units = section.baselines, units_of(section.judged.pairs)
    assert baselines is not None
    at = section.curves.accuracies[section.curves.accuracies["pairs"] == ALL_PAIRS]
    levels = units.table["level"] != "paradigm"
    rows = []
    for group, of_curve in at.groupby("group", sort=False):
        of_largest = of_curve[of_curve["words"] == of_curve["words"].max()]
        known = {(level, name): at for level, name, at in of_largest[["level", "name", "accuracy"]].to_numpy()}
        for kind, numbers in baseline_rows(baselines, str(group)).items():
            outcome, size = baselines.outcome[numbers], np.zeros(len(numbers), dtype=np.intp)
            y = paradigm_accuracies(outcome, units.bounds) @ units.weights
            means, low, high = spread_limits(y, size, confidence, inverse_trials(outcome, size, units))
            text = "" if kind == UNTRAINED else str(baselines.runs["size"].iloc[numbers[0]])
            table = units.table.assign(accuracy=means[0], low=low[0], high=high[0])[levels]
            rows += [
                (row.name, group, BASELINES[kind], text, len(numbers), row.accuracy, row.low, row.high,
                 known[row.level, row.name])
                for row in table.itertuples(index=False)
            ]  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def _takeaway(rows: pd.DataFrame) -> str:
    """Say how far a curve's baselines get overall, and which phenomenon one of them decides furthest from chance."""
    parts = []
    for kind, of in rows.groupby("baseline", sort=False):
        overall = of[of["phenomenon"] == OVERALL].iloc[0]
        parts.append(f"{accuracy_text(overall['accuracy'])} by {kind}")
    single = rows[rows["phenomenon"] != OVERALL]
    text = f"overall {', '.join(parts)}"
    if single.empty:
        return f"{text}."
    furthest = single.iloc[int((single["accuracy"] - CHANCE).abs().to_numpy().argmax())]
    which = f"{accuracy_text(furthest['accuracy'])} by {furthest['baseline']}"
    return f"{text}; furthest from chance {in_text(furthest['phenomenon'])} ({which})."


def baseline_exhibit(section: Section, confidence: float) -> Exhibit | None:
    """Return the table of baselines; None of a study without any."""
    if section.baselines is None:
        return None
    table = baseline_table(section, confidence)
    if table.empty:
        return None
    return Exhibit(
        "baselines",
        "Baselines",
        "Accuracy of models that saw no order of words: untrained ones prefer some words or lengths, those of shuffled "
        "text words that are frequent or occur together. Onsets and thresholds of acquisition lie above the highest "
        "of them and of chance.",
        table,
        confidence=confidence,
        takeaways=[(str(group), _takeaway(rows)) for group, rows in table.groupby("curve", sort=False)],
        definitions={
            f"{confidence:.0%} interval": "For new runs on these pairs; none of a single run.",
            "Text": "The largest size of shuffled text that was trained on.",
            "Curve's accuracy": "Mean over the runs at the curve's largest size.",
        },
    )


@contributes(52)
def baselines(section: Section, report: Report) -> list[Exhibit | None]:
    return [baseline_exhibit(section, report.confidence)]
