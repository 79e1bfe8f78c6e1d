"""Report how removing a construction from the training text changes accuracy."""

from functools import partial
from typing import Any

import pandas as pd

from analysis.curves.ablations import ALL_SIZES, DIRECT, OVER_DOSES, ablation_effects, main_effects
from analysis.figures.charts import Axis, dot_chart
from analysis.figures.style import looks_of
from analysis.formats import change_in_text, p_in_text, rows_of, signed_text, title
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit, for_readers
from analysis.report.findings import Finding
from analysis.sections import section

_COLUMNS = "kind construction name accuracy other_accuracy difference low high p_holm equivalent runs note"
_REMOVED = "construction action dose runs sentences of_sentences words of_words matching_sentences rewritten"


@section(order=8)
def ablations(results: BenchmarkResults) -> list[Exhibit]:
    """Compare runs whose text lacks a construction with their matched controls."""
    effects = effects_of(results)
    if effects.empty:
        return []
    over_all = (effects["over"] == ALL_SIZES) & (effects["kind"] != OVER_DOSES)
    rows = effects[over_all & (effects["level"] != "paradigm")]
    sizes = effects[~over_all & effects["level"].isin(["overall", "scope"])]
    comparison = rows["construction"] + ": " + rows["kind"]
    drawn = rows.assign(name=rows["name"].map(title), comparison=comparison)
    axis, looks = Axis("Difference in accuracy", "+.4f"), looks_of(list(comparison.unique()))
    about = (
        "The table shows the effect of removing a construction, over all sizes. Each run is compared with runs of the "
        "same size and seed, whose text lacks the same number of other sentences (matched control) or is complete."
    )
    show = partial(Exhibit, cells={"difference": signed_text}, confidence=results.options.confidence)
    charts = {"differences": partial(dot_chart, drawn, "difference", axis, looks, by="comparison")}
    exhibits = [show("ablations", "Ablations", about, for_readers(rows, _COLUMNS), charts=charts)]
    about = "These are the same comparisons at each size, per doubling of the training text, and over doses."
    exhibits.append(show("ablations-by-size", "Ablations by size", about, for_readers(sizes, f"over {_COLUMNS}")))
    if results.studies and len(removed := results.studies.removed_text):
        about = (
            "The table shows how many sentences and words of the train split each intervention left out or rewrote "
            "(means over runs)."
        )
        exhibits.append(show("removed-text", "What was removed", about, for_readers(removed, _REMOVED)))
    return exhibits


def effects_of(results: BenchmarkResults) -> pd.DataFrame:
    """Return the table of `analysis.ablation_effects`. It is empty if no run has an intervention."""
    if "construction" not in results.runs or (results.runs["construction"].fillna("") == "").all():
        return pd.DataFrame(columns=["over"])
    return ablation_effects(
        results.accuracies,
        results.runs,
        margin=results.options.margin,
        confidence=results.options.confidence,
        direct=results.direct,
        paired=bool(results.accuracies["sample"].notna().all()),  # equal seeds may be unrelated in external results
    )


def ablation_findings(effects: pd.DataFrame, confidence: float) -> list[Finding]:
    """Return one finding per ablation, with the overall change, its interval, and whether it is clear."""
    if effects.empty:
        return []
    main = main_effects(effects)
    stated = main[(main["level"] == "overall") | (main["name"] == DIRECT)]
    return [
        Finding(row.curve + ("" if row.level == "overall" else ", paradigms that test it"), _change(row, confidence))
        for row in rows_of(stated)
    ]


def _change(row: Any, confidence: float) -> str:
    number, interval = change_in_text(row.difference, row.low, row.high, confidence)
    change = f"accuracy {'falls' if row.difference < 0 else 'rises'} by {number} compared with {row.other}"
    if row.difference == 0:
        change = f"accuracy is the same as for {row.other}"
    if not interval:
        return f"{change} (no confidence interval). {row.note}"
    if row.p_holm < 1 - confidence:
        verdict = ""
    elif pd.notna(row.equivalent) and row.equivalent:
        verdict = " The interval is within the margin, so any change is too small to matter."
    else:
        verdict = " These runs don't show whether accuracy changes."
    return f"{change} ({interval}; {p_in_text(row.p_holm)} after Holm's correction).{verdict}"
