"""Compare models with published models and humans, and report the accuracy of pretrained models."""

from functools import partial

import pandas as pd

from analysis.curves.units import unit_accuracies
from analysis.figures.charts import Axis, dot_chart
from analysis.figures.style import looks_of
from analysis.formats import in_text, title
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.findings import over_pairs, size_text, trials_of
from analysis.sections import section


@section(order=15)
def published(results: BenchmarkResults) -> Exhibit | None:
    """Compare the accuracy at each curve's largest size with published models and humans."""
    theirs = results.published_models
    if results.accuracies.empty or theirs.empty:
        return None
    largest = results.units.groupby("curve")["sample_words"].transform("max")
    at = results.units[results.units["sample_words"] == largest]
    sizes = at.drop_duplicates("curve").set_index("curve")["sample_words"]
    names = {curve: f"{curve}, {size_text(words, results.unit)}" for curve, words in sizes.items()}
    ours = at.assign(model=at["curve"].map(names))
    theirs = theirs.assign(model=theirs["model"].str.replace("\n", " "))
    table = _wide(pd.concat([ours, theirs, results.humans.assign(model="humans")]), "model")
    about = (
        "The table compares mean accuracy at each curve's largest size with published models and the human baseline. "
        "The published models were trained on other text, and most of them on more text."
    )
    known = table[next(iter(names.values()))].notna()
    return Exhibit("published", "Compared with published models", about, table[known].reset_index(drop=True))


@section(order=5)
def models(results: BenchmarkResults) -> list[Exhibit]:
    """Show the accuracy of pretrained models, which have no learning curve."""
    if results.models.empty:
        return []
    units = unit_accuracies(results.models)
    entry = units["curve"] if units["method"].nunique() == 1 else units["curve"] + ", " + units["method"]
    units = units.assign(entry=entry)
    above = units[units["level"] != "paradigm"]
    humans = results.humans.drop_duplicates(["level", "name"]).merge(above[["level", "name"]].drop_duplicates())
    draw = partial(
        dot_chart,
        above.assign(name=above["name"].map(title)),
        "accuracy",
        Axis("Accuracy"),
        looks_of(list(entry.unique())),
        by="entry",
        reference=results.chance,
    )
    about = "The accuracy in a phenomenon is the mean over its paradigms. The vertical line marks chance."
    table = _wide(pd.concat([above, humans.assign(entry="humans")]), "entry")
    theirs = results.published_models.assign(entry=results.published_models["model"].str.replace("\n", " "))
    by_paradigm = _wide(pd.concat([units, theirs]), "entry", "paradigm").dropna(subset=list(entry.unique()), how="all")
    return [
        Exhibit("models", "Pretrained models", about, table, charts={"accuracy": draw}),
        Exhibit("models-by-paradigm", "Pretrained models by paradigm", "These are the accuracies.", by_paradigm),
    ]


def _wide(rows: pd.DataFrame, columns: str, kind: str = "phenomenon") -> pd.DataFrame:
    """Return mean accuracies, with one row for overall and each unit of a kind, and one column per model."""
    rows = rows[rows["level"].isin(["overall", kind])]
    wide = rows.pivot_table(index=["level", "name"], columns=columns, values="accuracy", sort=False).reset_index()
    return wide.drop(columns="level").rename(columns={"name": kind}).rename_axis(columns=None)


def model_findings(results: BenchmarkResults) -> list[tuple[str, str]]:
    """Return one finding per pretrained model and method, with overall accuracy and the best and worst phenomenon."""
    if results.models.empty:
        return []
    findings = []
    units = unit_accuracies(results.models)
    trials = {key: trials_of(rows) for key, rows in results.models.groupby(["curve", "method"])}
    for (curve, method), rows in units.groupby(["curve", "method"], sort=False):
        whole = float(rows.loc[rows["level"] == "overall", "accuracy"].iloc[0])
        over = over_pairs(whole, trials[curve, method], results.options.confidence)
        text = f"accuracy is {whole:.0%} overall{over}."
        single = rows[rows["level"] == "phenomenon"].sort_values("accuracy")
        if len(single) > 3:
            worst, *_, best = (f"{in_text(of['name'])} ({of['accuracy']:.0%})" for of in single.to_dict("records"))
            text += f" The best phenomenon is {best}, and the worst is {worst}."
        findings.append((f"{curve} ({method})", text))
    return findings
