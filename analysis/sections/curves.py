"""The main sections: the overall curves, phenomena, slopes and differences of slopes."""

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd

from analysis.figures.charts import Axis, curve_chart, dot_chart
from analysis.figures.style import Chart, accuracy_domain
from analysis.formats import joined, level_text, plural, title
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit, for_readers
from analysis.report.findings import comparison_findings, phenomena_findings, size_text
from analysis.sections import section

OVERALL = ("overall", "overall")
Unit = tuple[str, str]  # level and name, such as ("phenomenon", "binding")


def panels(results: BenchmarkResults, units: Sequence[Unit], labelled: bool = False) -> dict[str, Callable[..., Chart]]:
    """Return a panel of curves for each unit, all with the same axis, by name.

    Args:
        results: the results of a benchmark.
        units: level and name of each panel.
        labelled: write the names of curves beside their lines; for a single panel.
    """

    def accuracies(table: pd.DataFrame) -> pd.Series:
        return table.loc[table.set_index(["level", "name"]).index.isin(units), "accuracy"]

    domain = None if labelled else accuracy_domain(accuracies(results.units), accuracies(results.humans))
    draw = partial(curve_chart, results.units, results.lines, results.looks, domain=domain, labelled=labelled)
    return {unit[1]: partial(draw, levels=levels(results, unit), unit=unit) for unit in units}


def levels(results: BenchmarkResults, unit: Unit = OVERALL) -> pd.DataFrame:
    """Return the accuracies of humans and, overall, of published models: name, accuracy."""
    humans = results.humans.assign(model="humans")
    rows = pd.concat([results.published_models, humans]) if unit == OVERALL else humans
    rows = rows[(rows["level"] == unit[0]) & (rows["name"] == unit[1])]
    return rows[["model", "accuracy"]].rename(columns={"model": "name"}).astype({"accuracy": float})


def overall(results: BenchmarkResults) -> Exhibit:
    """Return the figure of the first screen: the overall curves beside humans and published models."""
    is_human = levels(results)["name"] == "humans"
    dashed = {"chance": True, "the human baseline": is_human.any(), "published models": (~is_human).any()}
    band = " with its confidence band" if results.lines["low"].notna().any() else ""
    about = (
        "Overall accuracy. Large marks: means over runs; small marks: runs; thick lines: the fitted line"
        f"{band}; thin lines join the means. Dashed: {joined([name for name, there in dashed.items() if there])}."
    )
    return Exhibit("overall", "Overall accuracy", about, charts=panels(results, [OVERALL], labelled=True))


@section(order=10)
def phenomena(results: BenchmarkResults) -> Exhibit | None:
    """Accuracy in each phenomenon, one panel each."""
    units = results.units[results.units["level"] != "paradigm"]
    names = sorted(units.loc[units["level"] == "phenomenon", "name"].unique())
    if not names:
        return None
    sizes = units.groupby("size")["sample_words"].mean().sort_values().index
    units = units.assign(curve=pd.Categorical(units["curve"], results.curves))  # which sorts by their order
    keys = ["level", "name", "curve"]
    table = units.pivot_table(index=keys, columns="size", values="accuracy", observed=True)[list(sizes)]
    table = table.reset_index().drop(columns="level").rename(columns={"name": "phenomenon"}).rename_axis(columns=None)
    if len(results.humans):
        humans = results.humans[results.humans["level"] != "paradigm"].set_index("name")["accuracy"]
        table["humans"] = table["phenomenon"].map(humans)
    about = (
        "Accuracy in each phenomenon, which is the mean over its paradigms, against training text. Marks and lines "
        "are as above. Statements on single phenomena aren't corrected for their number."
    )
    return Exhibit(
        "phenomena",
        "Phenomena",
        about,
        table,
        charts=panels(results, [("phenomenon", name) for name in names]),
        columns=4,
        legend=results.looks,
        takeaways=phenomena_findings(results.slopes),
    )


@section(order=20)
def slopes(results: BenchmarkResults) -> Exhibit | None:
    """Slopes with their confidence intervals."""
    return _slopes(results, results.slopes["level"] != "paradigm", "slopes", "Slopes", "phenomenon")


@section(order=25, default=False)
def paradigms(results: BenchmarkResults) -> Exhibit | None:
    """Slopes of single paradigms."""
    return _slopes(results, results.slopes["level"] == "paradigm", "paradigms", "Slopes by paradigm", "paradigm")


def _slopes(results: BenchmarkResults, chosen: pd.Series, name: str, heading: str, kind: str) -> Exhibit | None:
    rows = results.slopes[chosen & results.slopes["slope"].notna()]
    if rows.empty:
        return None
    steepness = rows.groupby("name")["slope"].transform("mean").where(rows["level"] != "overall", float("inf"))
    rows = rows.iloc[(-steepness).argsort(kind="stable")]
    columns = (
        "curve smallest_accuracy largest_accuracy slope low high low_new_items high_new_items lack_of_fit runs note"
    )
    table = for_readers(rows.rename(columns={"name": kind}), f"{kind} {columns}")
    interval = f"{level_text(results.options.confidence)} interval"
    meanings = {
        "Slope": "Accuracy gained per doubling of the training text.",
        interval: "For new samples of this corpus and new initialisations, on these pairs.",
        "p (lack of fit)": "Small if accuracy doesn't grow at a steady rate; the slope is then an average.",
    }
    if "low new items" in table:
        meanings["With new items"] = "For new pairs of the same paradigms as well."
    draw = partial(dot_chart, rows.assign(name=rows["name"].map(title)), "slope",
                   Axis("Accuracy gained per doubling of the text", "+.4f"), results.looks)  # fmt: skip
    return Exhibit(
        name,
        heading,
        "Accuracy gained per doubling of the text (least squares on log2 of the amount), with confidence intervals.",
        table,
        confidence=results.options.confidence,
        definitions=meanings,
        charts={"slopes": draw},
    )


@section(order=30)
def differences(results: BenchmarkResults) -> Exhibit | None:
    """Differences of slopes between curves."""
    rows = results.differences[results.differences["level"] != "paradigm"]
    if rows.empty:
        return None
    curves = rows["curve"] + " \N{MINUS SIGN} " + rows["other"]
    table = for_readers(rows.assign(curves=curves), "name curves difference low high p p_holm equivalent runs note")
    about = (
        "Difference between two curves' slopes, in accuracy per doubling of the text. Holm's correction is for all "
        "phenomena of one comparison, and for all comparisons of the overall slope."
    )
    if rows["paired"].all():
        about += " Runs are compared in pairs that were trained on the same sample."
    definitions = {"p (Holm)": "Corrected for the number of tests (Holm 1979)."}
    if results.options.margin is not None:
        definitions["Equivalent"] = f"The interval lies within ±{results.options.margin} (analysis.margin)."
    return Exhibit(
        "differences",
        "Differences between curves",
        about,
        table,
        confidence=results.options.confidence,
        definitions=definitions,
        takeaways=comparison_findings(results.differences, results.slopes, results.options.confidence),
    )


def extent(results: BenchmarkResults) -> str:
    """Describe a study: how many runs, curves and sizes, and what they were scored on."""
    table = results.accuracies
    sizes = sorted(table["sample_words"].unique())
    pairs = table.groupby("paradigm", sort=False)["pairs"].first()
    known = len(pairs) and pairs.notna().all()
    number = f", {int(pairs.sum()):,} minimal pairs in {len(pairs)} paradigms" if known else ""
    largest = size_text(sizes[-1], results.unit)
    over = f"{len(sizes)} sizes from {size_text(sizes[0])} to {largest}" if len(sizes) > 1 else f"one size, {largest}"
    corpora = results.runs["corpus"].dropna().astype(str).unique().tolist() if "corpus" in results.runs else []
    of = f" of the {'corpus' if len(corpora) == 1 else 'corpora'} {joined(corpora)}" if corpora else ""
    counted = f"{plural(table['run'].nunique(), 'run')}: {plural(len(results.curves), 'curve')}"
    return f"{counted} over {over}{of}, scored on {results.name}{number}."
