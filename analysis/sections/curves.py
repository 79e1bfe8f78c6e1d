"""Make the main sections: the overall curves, phenomena, slopes and differences between slopes."""

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd

from analysis.figures.charts import Axis, curve_chart, dot_chart
from analysis.figures.style import Chart, accuracy_domain
from analysis.formats import joined, level_text, plural, title
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit, for_readers
from analysis.report.findings import MOST_COMPARISONS, comparison_findings, phenomena_findings, size_text
from analysis.sections import section

OVERALL = ("overall", "overall")
Unit = tuple[str, str]  # level and name, such as ("phenomenon", "binding")


def panels(results: BenchmarkResults, units: Sequence[Unit], labelled: bool = False) -> dict[str, Callable[..., Chart]]:
    """Return functions that draw one panel of curves per unit, by name. All panels have the same axis.

    Args:
        results: The results of a benchmark.
        units: The level and name of each panel.
        labelled: Whether to write the names of curves next to their lines (for a single panel).
    """

    def accuracies(table: pd.DataFrame) -> pd.Series:
        return table.loc[table.set_index(["level", "name"]).index.isin(units), "accuracy"]

    shown, chance = (accuracies(results.units), accuracies(results.humans)), results.chance
    domain = None if labelled else accuracy_domain(*shown, chance=chance)
    draw = partial(curve_chart, results.units, results.lines, results.looks, domain=domain, chance=chance)
    draw = partial(draw, labelled=labelled)
    return {unit[1]: partial(draw, levels=levels(results, unit), unit=unit) for unit in units}


def levels(results: BenchmarkResults, unit: Unit = OVERALL) -> pd.DataFrame:
    """Return the accuracies (name, accuracy) of humans and, for the overall unit, published models."""
    humans = results.humans.assign(model="humans")
    rows = pd.concat([results.published_models, humans]) if unit == OVERALL else humans
    rows = rows[(rows["level"] == unit[0]) & (rows["name"] == unit[1])]
    return rows[["model", "accuracy"]].rename(columns={"model": "name"}).astype({"accuracy": float})


def overall(results: BenchmarkResults) -> Exhibit:
    """Return the figure at the top, with the overall curves, the human baseline and published models."""
    bands = " with confidence bands" if results.lines["low"].notna().any() else ""
    pairs = "sentence pairs in which a model prefers the grammatical one"
    about = (
        f"Accuracy is the share of {'choices that a model gets right' if results.has_choices else pairs}. Small marks "
        f"are single runs, and thin lines join their means. Thick lines are least-squares fits{bands}."
    )
    return Exhibit("overall", "Overall accuracy", about, charts=panels(results, [OVERALL], labelled=True))


@section(order=10)
def phenomena(results: BenchmarkResults) -> Exhibit | None:
    """Show accuracy by phenomenon, with one panel per phenomenon."""
    units = results.units[results.units["level"] != "paradigm"]
    names = sorted(units.loc[units["level"] == "phenomenon", "name"].unique())
    if not names:
        return None
    sizes = units.groupby("size")["sample_words"].mean().sort_values().index
    units = units.assign(curve=pd.Categorical(units["curve"], results.curves))  # so that they are sorted in this order
    keys = ["level", "name", "curve"]
    table = units.pivot_table(index=keys, columns="size", values="accuracy", observed=True)[list(sizes)]
    table = table.reset_index().drop(columns="level").rename(columns={"name": "phenomenon"}).rename_axis(columns=None)
    if len(results.humans):
        humans = results.humans[results.humans["level"] != "paradigm"].set_index("name")["accuracy"]
        table["humans"] = table["phenomenon"].map(humans)
    about = (
        "Each panel shows the accuracy on a phenomenon (the mean over its paradigms) by the amount of training text. "
        "Marks and lines mean the same as above. The intervals and tests aren't corrected for the number of phenomena."
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
    """Show slopes with their confidence intervals."""
    return _slopes(results, results.slopes["level"] != "paradigm", "slopes", "Slopes", "phenomenon")


@section(order=25, default=False)
def paradigms(results: BenchmarkResults) -> Exhibit | None:
    """Show the slopes of single paradigms."""
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
        interval: "It applies to new samples of this corpus and new initialisations, on the same pairs.",
        "p (lack of fit)": "If this is small, accuracy doesn't grow at a steady rate, and the slope is an average.",
    }
    if "low new items" in table:
        meanings["With new items"] = "This interval also applies to new pairs of the same paradigms."
    draw = partial(dot_chart, rows.assign(name=rows["name"].map(title)), "slope",
                   Axis("Accuracy gained per doubling of the text", "+.4f"), results.looks)  # fmt: skip
    return Exhibit(
        name,
        heading,
        "A slope is the accuracy gained per doubling of the training text. Lines are confidence intervals.",
        table,
        confidence=results.options.confidence,
        definitions=meanings,
        charts={"slopes": draw},
    )


@section(order=30)
def differences(results: BenchmarkResults) -> Exhibit | None:
    """Compare the slopes of curves."""
    rows = results.differences[results.differences["level"] != "paradigm"]
    if rows.empty:
        return None
    curves = rows["curve"] + " \N{MINUS SIGN} " + rows["other"]
    table = for_readers(rows.assign(curves=curves), "name curves difference low high p p_holm equivalent runs note")
    about = (
        "The table shows how much the slopes of two curves differ, in accuracy per doubling of the training text. "
        "Holm's correction is for all phenomena of a comparison or, for overall slopes, for all comparisons."
    )
    if rows["paired"].all():
        about += " Runs that were trained on the same sample are compared in pairs."
    definitions = {"p (Holm)": "The p value, corrected for the number of tests (Holm 1979)."}
    if results.options.margin is not None:
        definitions["Equivalent"] = f"Whether the interval is within ±{results.options.margin} (analysis.margin)."
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
    """Describe a study in one sentence, with its models, their training text and the benchmark."""
    table, curves = results.accuracies, results.curves
    sizes = sorted(table["sample_words"].unique())
    pairs = table.groupby("paradigm", sort=False)["pairs"].first()
    known = len(pairs) and pairs.notna().all()
    items = "choices" if results.has_choices else "minimal pairs"
    number = f" ({int(pairs.sum()):,} {items} in {plural(len(pairs), 'paradigm')})" if known else ""
    largest = size_text(sizes[-1], results.unit)
    over = f"{size_text(sizes[0])} to {largest}" if len(sizes) > 1 else largest
    corpora = results.runs["corpus"].dropna().astype(str).unique().tolist() if "corpus" in results.runs else []
    corpus = f" of the {'corpus' if len(corpora) == 1 else 'corpora'} {joined(corpora)}" if corpora else ""
    has_names = len(curves) <= MOST_COMPARISONS and not any("," in curve for curve in curves)
    models = joined(curves) if has_names else plural(len(curves), "model")
    were = "was" if len(curves) == 1 else "were"
    counted = f"{plural(len(sizes), 'size')}, {plural(table['run'].nunique(), 'run')}"
    return f"{models} {were} trained on {over}{corpus} ({counted}) and scored on {results.name}{number}."
