"""Compare judgment methods, and show how unknown words and ties affect accuracy."""

from functools import partial

import pandas as pd

from analysis.curves.fit import fit_curves
from analysis.curves.lines import add_intervals
from analysis.curves.units import unit_accuracies
from analysis.figures.charts import Axis, line_chart
from analysis.figures.style import looks_of
from analysis.formats import level_text, signed_text
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit, for_readers
from analysis.report.findings import curve_findings
from analysis.sections import section


@section(order=40)
def methods(results: BenchmarkResults) -> Exhibit | None:
    """Compare judgment methods with the report's method, run by run."""
    units = unit_accuracies(results.every_method)
    units = units[units["level"] == "overall"]
    compared = method_differences(units, results.options.method, results.options.confidence)
    if not compared["difference"].fillna(0).any():
        return None  # there is only one method, or all methods agree
    at = units[units["sample_words"] == units.groupby("curve")["sample_words"].transform("max")]
    means = at.groupby(["curve", "method"], as_index=False, sort=False)["accuracy"].mean()
    names = looks_of(list(units["method"].unique()))
    draw = partial(line_chart, value="accuracy", axis=Axis("Accuracy"), looks=names, by="method", unit=results.unit)
    about = (
        "The figure shows overall accuracy by judgment method. The table has the mean at each curve's largest size, "
        f"and each method's difference from {results.options.method} on the same runs, over all sizes."
    )
    interval = f"{level_text(results.options.confidence)} interval"
    return Exhibit(
        "methods",
        "Judgment methods",
        about,
        means.merge(compared, on=["curve", "method"], how="left"),
        cells={"difference": signed_text},
        charts={
            str(curve): partial(draw, rows, heading=str(curve)) for curve, rows in units.groupby("curve", sort=False)
        },
        confidence=results.options.confidence,
        definitions={interval: "This is the interval of the mean difference on the same runs (Student's t)."},
    )


def method_differences(units: pd.DataFrame, method: str, confidence: float) -> pd.DataFrame:
    """Return each method's overall accuracy minus the accuracy by `method`, paired by run.

    Returns:
        The columns curve, method, difference (mean over runs), low, high, p and runs (their number). low, high and p
        use Student's t over runs. They are missing if there is one run or if all differences are equal.
    """
    wide = units.pivot(index=["curve", "run"], columns="method", values="accuracy")
    others = wide.drop(columns=method, errors="ignore")
    changes = others.sub(wide.reindex(columns=[method])[method], axis=0).melt(ignore_index=False).dropna()
    of_method = changes.groupby(["curve", "method"], sort=False)["value"]
    table = of_method.agg(difference="mean", se="sem", runs="size").reset_index()
    table = add_intervals(
        table.assign(se=table["se"].where(table["se"] > 0), df=table["runs"] - 1), "difference", confidence
    )
    return table[["curve", "method", "difference", "low", "high", "p", "runs"]]


@section(order=50)
def unknown_words(results: BenchmarkResults) -> Exhibit | None:
    """Show how many pairs are ties or have unknown words, and accuracy without unknown words."""
    counted = results.accuracies.dropna(subset=["pairs", "pairs_with_unk", "ties"])
    sums = counted.groupby(["curve", "sample_words", "size"])[["ties", "pairs_with_unk", "pairs"]].sum().astype(float)
    shares = sums.loc[:, sums.any()].div(sums["pairs"], axis=0).drop(columns="pairs", errors="ignore")
    if shares.columns.empty:
        return None
    table = for_readers(shares.reset_index(), "curve size ties pairs_with_unk")
    about = "The table shows the shares of tied pairs, and of pairs with an unknown word in either sentence."
    takeaways: list[tuple[str, str]] = []
    free = pd.DataFrame()
    if "pairs_with_unk" in shares and results.studies:
        free = results.read_without_unknown()
    if len(free):
        for name, units in {"all pairs": results.units, "without unknown words": unit_accuracies(free)}.items():
            whole = units[units["level"] == "overall"].groupby(["curve", "size"])["accuracy"].mean().rename(name)
            table = table.join(whole, on=["curve", "size"])
        about += (
            " The last two columns compare overall accuracy on all pairs and on the "
            f"{int(free.drop_duplicates('paradigm')['pairs'].sum()):,} pairs whose words are known to all runs."
        )
        found = curve_findings(fit_curves(free, results.options.confidence), results.options.confidence)
        takeaways = [(f"{curve}, without unknown words", text) for curve, text in found]
    return Exhibit("unknown-words", "Unknown words and ties", about, table, takeaways=takeaways)
