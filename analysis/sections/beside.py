"""Sections that set models beside others: published models and humans, and models that aren't on a curve."""

from functools import partial

import pandas as pd

from analysis.curves.units import unit_accuracies
from analysis.figures.charts import Axis, dot_chart
from analysis.figures.style import looks_of
from analysis.formats import title
from analysis.report.benchmark import HUMANS, BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.findings import over_pairs, size_text
from analysis.sections import section
from eval.scores.table import BESIDE


@section(order=15)
def published(results: BenchmarkResults) -> Exhibit | None:
    """Accuracy at each curve's largest size beside published models and humans."""
    shown = BESIDE.get(results.benchmark, {})
    theirs = results.published[results.published["level"] != "paradigm"]
    if results.accuracies.empty or not set(theirs["model"]) & set(shown) - {HUMANS}:
        return None
    at = results.units[results.units["sample_words"] == results.units.groupby("curve")["sample_words"].transform("max")]
    at = at[at["level"] != "paradigm"]
    sizes = at.groupby("curve")["sample_words"].max()
    names = {curve: f"{curve}, {size_text(words, results.unit)}" for curve, words in sizes.items()}
    ours = (
        at.assign(model=at["curve"].map(names))
        .groupby(["level", "name", "model"], as_index=False, sort=False)["accuracy"]
        .mean()
    )
    beside = theirs[theirs["model"].isin(shown) & (theirs["model"] != HUMANS)]
    beside = beside.assign(model=beside["model"].map(shown).str.replace("\n", " ") + " (published)")
    humans = results.humans[results.humans["level"] != "paradigm"].assign(model="humans")
    table = pd.concat([ours, beside, humans])[["level", "name", "model", "accuracy"]]
    wide = table.pivot_table(index=["level", "name"], columns="model", values="accuracy", sort=False)
    wide = (
        wide[wide[next(iter(names.values()))].notna()]
        .reset_index()
        .drop(columns="level")
        .rename(columns={"name": "phenomenon"})
    )
    about = (
        "Mean accuracy at each curve's largest size beside published models, which were trained on other and mostly "
        "more text, and the human baseline."
    )
    return Exhibit("published", "Compared with published models", about, wide.rename_axis(columns=None))


@section(order=5)
def models(results: BenchmarkResults) -> list[Exhibit]:
    """Accuracy of pretrained models, for which there is no learning curve."""
    if results.models.empty:
        return []
    units = unit_accuracies(results.models)
    units = units.assign(
        entry=units["curve"] if units["method"].nunique() == 1 else units["curve"] + ", " + units["method"]
    )
    table = units[units["level"] != "paradigm"]
    wide = table.pivot_table(index=["level", "name"], columns="entry", values="accuracy", sort=False).reset_index()
    if len(results.humans):
        human = results.humans.drop_duplicates(["level", "name"]).rename(columns={"accuracy": "humans"})
        wide = wide.merge(human, on=["level", "name"], how="left")
    wide = wide.drop(columns="level").rename(columns={"name": "phenomenon"}).rename_axis(columns=None)
    drawn = table.assign(name=table["name"].map(title))
    chart = partial(
        dot_chart,
        drawn,
        "accuracy",
        Axis("Accuracy"),
        looks_of(list(table["entry"].unique())),
        by="entry",
        reference=0.5,
    )
    about = (
        "Accuracy of pretrained models in each phenomenon, which is the mean over its paradigms. The line marks chance."
    )
    by_paradigm = units[units["level"] == "paradigm"].pivot_table(
        index="name", columns="entry", values="accuracy", sort=False
    )
    by_paradigm = by_paradigm.reset_index().rename(columns={"name": "paradigm"}).rename_axis(columns=None)
    return [
        Exhibit("models", "Pretrained models", about, wide, charts={"accuracy": chart}),
        Exhibit("models-by-paradigm", "Pretrained models by paradigm", "Accuracy in each paradigm.", by_paradigm),
    ]


def model_findings(results: BenchmarkResults) -> list[tuple[str, str]]:
    """Return a finding per pretrained model and method: its overall accuracy and its best and worst phenomena."""
    if results.models.empty:
        return []
    findings = []
    units = unit_accuracies(results.models)
    of_one_run = results.models.drop_duplicates(["curve", "method", "paradigm"])
    pairs = of_one_run.groupby(["curve", "method"])["pairs"].sum(min_count=1)
    for (curve, method), rows in units.groupby(["curve", "method"], sort=False):
        whole = float(rows.loc[rows["level"] == "overall", "accuracy"].iloc[0])
        single = rows[rows["level"] == "phenomenon"].sort_values("accuracy")
        ends = ""
        if len(single) > 3:
            worst, best = single.iloc[0], single.iloc[-1]
            best_text, worst_text = (f"{title(of['name'])} ({of['accuracy']:.0%})" for of in (best, worst))
            ends = f" Best: {best_text}; worst: {worst_text}."
        over = over_pairs(whole, pairs.get((curve, method)), results.options.confidence)
        findings.append((f"{curve} ({method})", f"{whole:.0%} correct overall{over}.{ends}"))
    return findings
