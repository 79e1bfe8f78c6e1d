"""The section of a study with ablations: what removing a construction from the training text changes."""

from functools import partial

import pandas as pd

from analysis.curves.ablations import ALL_SIZES, DIRECT, OVER_DOSES, ablation_effects, main_effects
from analysis.figures.charts import Axis, dot_chart
from analysis.figures.style import looks_of
from analysis.formats import count, level_text, p_in_text, points, points_between, rows_of, signed_text, title
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.findings import Finding
from analysis.sections import section


@section(order=8)
def ablations(results: BenchmarkResults) -> list[Exhibit]:
    """Differences between runs whose text lacks a construction and their matched controls."""
    effects = effects_of(results)
    if effects.empty:
        return []
    rows = effects[(effects["over"] == ALL_SIZES) & (effects["level"] != "paradigm") & (effects["kind"] != OVER_DOSES)]
    names = rows["construction"] + ": " + rows["kind"]
    shown = {
        "kind": "comparison",
        "construction": "construction",
        "name": "phenomenon",
        "accuracy": "accuracy",
        "other_accuracy": "of the other",
        "difference": "difference",
        "low": "low",
        "high": "high",
        "p_holm": "p (Holm)",
        "equivalent": "equivalent",
        "runs": "runs",
        "note": "note",
    }
    table = _without_empty(rows[list(shown)].rename(columns=shown))
    drawn = rows.assign(name=rows["name"].map(title), comparison=names)
    chart = partial(
        dot_chart,
        drawn,
        "difference",
        Axis("Difference in accuracy", "+.4f"),
        looks_of(list(names.unique())),
        by="comparison",
    )
    about = (
        "What removing a construction changes, over all sizes: each run minus the run of the same size and seed "
        "whose text lacks as many other sentences (its matched control), or with the full text."
    )
    of_sizes = effects[(effects["over"] != ALL_SIZES) & effects["level"].isin(["overall", "scope"])]
    sizes = _without_empty(of_sizes[["over", *shown]].rename(columns=shown))
    return [
        Exhibit(
            "ablations",
            "Ablations",
            about,
            table,
            cells={"difference": signed_text},
            charts={"differences": chart},
        ),
        Exhibit(
            "ablations-by-size",
            "Ablations by size",
            "The same at each size, per doubling of the text, and over doses.",
            sizes,
            cells={"difference": signed_text},
        ),
        *_removed(results),
    ]


def _removed(results: BenchmarkResults) -> list[Exhibit]:
    """Return how much text each intervention left out or rewrote, if the runs recorded it."""
    if results.removed.empty:
        return []
    counts = [name for name in results.removed if name not in ("construction", "action", "dose")]
    names = {name: str(name).replace("of_", "all ").replace("_", " ") for name in counts}
    about = "Sentences and words of the train split that each intervention left out or rewrote; means over its runs."
    table = _without_empty(results.removed.rename(columns=names))
    return [Exhibit("removed-text", "What was removed", about, table, cells=dict.fromkeys(names.values(), count))]


def effects_of(results: BenchmarkResults) -> pd.DataFrame:
    """Return the table of `analysis.ablation_effects`; no rows if no run has an intervention."""
    if "construction" not in results.runs or (results.runs["construction"].fillna("") == "").all():
        return pd.DataFrame(columns=["over"])
    return ablation_effects(
        results.accuracies,
        results.runs,
        margin=results.options.margin,
        confidence=results.options.confidence,
        direct=results.direct,
        paired=bool(results.accuracies["sample"].notna().all()),  # equal seeds of others may have nothing in common
    )


def ablation_findings(effects: pd.DataFrame, confidence: float) -> list[Finding]:
    """Return one finding per ablation: the overall change, its interval, and what it shows."""
    findings: list[Finding] = []
    if effects.empty:
        return findings
    main = main_effects(effects)
    for row in rows_of(main[(main["level"] == "overall") | (main["name"] == DIRECT)]):
        of = "" if row.level == "overall" else ", paradigms that test it"
        subject = f"{row.curve}{of}"
        falls = row.difference < 0
        verb, low, high = ("falls", -row.high, -row.low) if falls else ("rises", row.low, row.high)
        if pd.isna(row.low):
            change = f"accuracy {verb} by {points(abs(row.difference))} points compared with {row.other}"
            findings.append(Finding(subject, f"{change}, without a confidence interval. {row.note}"))
            continue
        change = f"accuracy {verb} by {points(abs(row.difference), low, high)} points compared with {row.other}"
        interval = f"{level_text(confidence)} confidence interval {points_between(low, high)}"
        text = f"{change} ({interval}; {p_in_text(row.p_holm)} after Holm's correction)"
        if row.p_holm < 1 - confidence:
            text += "."
        elif row.equivalent is not pd.NA and row.equivalent:
            text += ". The interval lies within the margin, so nothing that matters changes."
        else:
            text += ". These runs can't tell whether it changes anything."
        findings.append(Finding(subject, text))
    return findings


def _without_empty(table: pd.DataFrame) -> pd.DataFrame:
    empty = [name for name in table if table[name].isna().all() or (table[name].astype(str) == "").all()]
    return table.drop(columns=empty)
