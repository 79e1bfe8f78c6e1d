"""The main sections: the overall curves, phenomena, slopes and differences of slopes."""

from functools import partial

import pandas as pd

from analysis.figures.charts import Axis, curve_chart, dot_chart, panels_of
from analysis.figures.style import accuracy_domain
from analysis.formats import joined, level_text, plural, slope_text, title
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.findings import comparison_findings, phenomena_findings, size_text, texts
from analysis.sections import section
from eval.scores.table import BESIDE

SLOPE = "Accuracy gained per doubling of the text"
_INTERVAL = "For new samples of this corpus and new initialisations, on these pairs."


def overall(results: BenchmarkResults) -> Exhibit | None:
    """Return the figure of the first screen: the overall curves beside humans and published models."""
    if results.accuracies.empty:
        return None
    beside = levels(results)["name"]
    dashed = [
        of
        for of, there in (
            ("the human baseline", (beside == "humans").any()),
            ("published models", (beside != "humans").any()),
        )
        if there
    ]
    band = " with its confidence band" if results.lines["low"].notna().any() else ""
    about = (
        "Overall accuracy. Large marks: means over runs; small marks: runs; thick lines: the fitted line"
        f"{band}; thin lines join the means. Dashed: {joined(['chance', *dashed])}."
    )
    draw = partial(curve_chart, results.units, results.lines, results.looks, levels(results), labelled=True)
    return Exhibit("overall", "Overall accuracy", about, charts={"overall": draw})


def levels(results: BenchmarkResults) -> pd.DataFrame:
    """Return the overall accuracies of humans and published models: name, accuracy."""
    shown = BESIDE.get(results.benchmark, {})
    theirs = results.published[(results.published["level"] == "overall") & results.published["model"].isin(shown)]
    rows = [
        (f"{shown[model]} (published)", value)
        for model, value in zip(theirs["model"], theirs["accuracy"], strict=True)
        if model != "people"
    ]
    rows += [("humans", value) for value in results.humans.loc[results.humans["level"] == "overall", "accuracy"]]
    return pd.DataFrame(rows, columns=["name", "accuracy"]).astype({"accuracy": float})


@section(order=10)
def phenomena(results: BenchmarkResults) -> Exhibit | None:
    """Accuracy in each phenomenon, one panel each."""
    units = results.units[results.units["level"] == "phenomenon"]
    if units.empty:
        return None
    means = units.groupby(["name", "curve", "size", "sample_words"], as_index=False, sort=False)["accuracy"].mean()
    sizes = means.groupby("size")["sample_words"].mean().sort_values().index
    table = means.pivot(index=["name", "curve"], columns="size", values="accuracy")[list(sizes)]
    whole = results.units[results.units["level"] == "overall"].groupby(["curve", "size"], sort=False)["accuracy"].mean()
    overall_rows = pd.concat({"overall": whole.unstack()[list(sizes)]}, names=["name", "curve"])
    table = pd.concat([overall_rows, table.sort_index()]).reset_index().rename(columns={"name": "phenomenon"})
    human = results.humans.set_index("name")["accuracy"]
    if len(human):
        table["humans"] = table["phenomenon"].map(human[~human.index.duplicated()])
    domain = accuracy_domain(units["accuracy"], results.humans.loc[results.humans["level"] == "phenomenon", "accuracy"])
    charts = {}
    for name in panels_of(units):
        rows = results.humans[(results.humans["level"] == "phenomenon") & (results.humans["name"] == name)]
        levels_here = rows.assign(name="humans")[["name", "accuracy"]]
        charts[name] = partial(
            curve_chart,
            results.units,
            results.lines,
            results.looks,
            levels_here,
            unit=("phenomenon", name),
            domain=domain,
        )
    about = (
        "Accuracy in each phenomenon, which is the mean over its paradigms, against training text. Marks and lines "
        "are as above. Statements on single phenomena aren't corrected for their number."
    )
    return Exhibit(
        "phenomena",
        "Phenomena",
        about,
        table,
        charts=charts,
        columns=4,
        legend=results.looks,
        takeaways=texts(phenomena_findings(results.slopes)),
    )


@section(order=20)
def slopes(results: BenchmarkResults) -> Exhibit | None:
    """Slopes with their confidence intervals."""
    return _slopes(results, ["overall", "phenomenon"], "slopes", "Slopes")


@section(order=25, default=False)
def paradigms(results: BenchmarkResults) -> Exhibit | None:
    """Slopes of single paradigms."""
    return _slopes(results, ["paradigm"], "paradigms", "Slopes by paradigm")


def _slopes(results: BenchmarkResults, of: list[str], name: str, heading: str) -> Exhibit | None:
    rows = results.slopes[results.slopes["level"].isin(of) & results.slopes["slope"].notna()]
    if rows.empty:
        return None
    mean = rows.groupby("name")["slope"].transform("mean").where(rows["level"] != "overall", float("inf"))
    rows = rows.iloc[(-mean).argsort(kind="stable")]
    kind = "paradigm" if of == ["paradigm"] else "phenomenon"
    shown = {
        "name": kind,
        "curve": "curve",
        "smallest_accuracy": "at the smallest size",
        "largest_accuracy": "at the largest size",
        "slope": "slope",
        "low": "low",
        "high": "high",
        "low_new_items": "low new items",
        "high_new_items": "high new items",
        "lack_of_fit": "p (lack of fit)",
        "runs": "runs",
        "note": "note",
    }
    table = rows[[column for column in shown if column in rows]].rename(columns=shown)
    table = table.drop(columns="note") if (table["note"] == "").all() else table
    interval = f"{level_text(results.options.confidence)} interval"
    intervals = {interval: ("slope", "low", "high")}
    definitions = {
        "Slope": "Accuracy gained per doubling of the training text.",
        interval: _INTERVAL,
        "p (lack of fit)": "Small if accuracy doesn't grow at a steady rate; the slope is then an average.",
    }
    if "low new items" in table:
        intervals["with new items"] = ("slope", "low new items", "high new items")
        definitions["With new items"] = "For new pairs of the same paradigms as well."
    drawn = rows.assign(name=rows["name"].map(title))
    chart = partial(dot_chart, drawn, "slope", Axis(SLOPE, "+.4f"), results.looks)
    about = "Accuracy gained per doubling of the text (least squares on log2 of the amount), with confidence intervals."
    return Exhibit(
        name,
        heading,
        about,
        table,
        cells={"slope": slope_text},
        intervals=intervals,
        definitions=definitions,
        charts={"slopes": chart},
    )


@section(order=30)
def differences(results: BenchmarkResults) -> Exhibit | None:
    """Differences of slopes between curves."""
    rows = results.differences[results.differences["level"] != "paradigm"]
    if rows.empty:
        return None
    names = rows["curve"] + " \N{MINUS SIGN} " + rows["other"]
    shown = {
        "name": "phenomenon",
        "curves": "curves",
        "difference": "difference",
        "low": "low",
        "high": "high",
        "p": "p",
        "p_holm": "p (Holm)",
        "equivalent": "equivalent",
        "runs": "runs",
        "note": "note",
    }
    table = rows.assign(curves=names)[list(shown)].rename(columns=shown)
    table = table.drop(columns=[name for name in ("equivalent",) if results.options.margin is None])
    table = table.drop(columns="note") if (table["note"] == "").all() else table
    paired = "Runs are compared in pairs that were trained on the same sample." if rows["paired"].all() else ""
    about = (
        "Difference between two curves' slopes, in accuracy per doubling of the text. Holm's correction is for all "
        f"phenomena of one comparison, and for all comparisons of the overall slope. {paired}"
    )
    definitions = {"p (Holm)": "Corrected for the number of tests (Holm 1979)."}
    if results.options.margin is not None:
        definitions["Equivalent"] = f"The interval lies within ±{results.options.margin} (analysis.margin)."
    return Exhibit(
        "differences",
        "Differences between curves",
        about.strip(),
        table,
        cells={"difference": slope_text},
        definitions=definitions,
        takeaways=texts(comparison_findings(results.differences, results.slopes, results.options.confidence)),
    )


def extent(results: BenchmarkResults) -> str:
    """Describe a study: how many runs, curves and sizes, and what they were scored on."""
    table = results.accuracies
    runs, sizes = table["run"].nunique(), sorted(table["sample_words"].dropna().unique())
    pairs = table.groupby("paradigm", sort=False)["pairs"].first()
    number = (
        f", {int(pairs.sum()):,} minimal pairs in {len(pairs)} paradigms" if len(pairs) and pairs.notna().all() else ""
    )
    if len(sizes) > 1:
        over = f"{len(sizes)} sizes from {size_text(sizes[0])} to {size_text(sizes[-1], results.unit)}"
    else:
        over = f"one size, {size_text(sizes[0], results.unit)}"
    corpora = [str(name) for name in results.runs["corpus"].dropna().unique()] if "corpus" in results.runs else []
    of = f" of the {'corpus' if len(corpora) == 1 else 'corpora'} {joined(corpora)}" if corpora else ""
    counted = f"{plural(runs, 'run')}: {plural(len(results.curves), 'curve')}"
    return f"{counted} over {over}{of}, scored on {results.name}{number}."
