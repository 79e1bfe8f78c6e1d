"""Make a part of the report from the measures of runs on the items of a benchmark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from analysis.curves.fit import fit_curves
from analysis.curves.units import RUN_COLUMNS
from analysis.figures.charts import Axis, dot_chart, line_chart
from analysis.figures.style import GREY, Chart, layer, looks_of, number
from analysis.formats import count, joined, level_text, plural, rows_of, slope_text
from analysis.report.exhibit import Exhibit
from analysis.report.findings import size_text
from analysis.report.write import Part
from eval.scores.names import benchmark_name
from pairscale.shares import wilson

MEASURE = ["level", "name"]
PAPER, CHANCE = " (paper)", "chance"  # suffix of published models' names, and the name of chance


@dataclass(frozen=True)
class Answers:
    """The answers of runs to the items of a benchmark.

    Attributes:
        label: The name of the folder of scores.
        runs: One row per run with answers. In addition to the columns of `analysis.runs`, it has the policy and
            unigrams of its scores.
        tables: The answers of each of these runs, with the columns of CLOZE, SUCCESS or SENTENCES in
            eval.scores.schemas.
        notes: Notes on runs without answers, and on different scoring settings.
    """

    label: str
    runs: pd.DataFrame
    tables: list[pd.DataFrame]
    notes: list[str]

    def measured(self, measures: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
        """Return the measures of each run, with RUN_COLUMNS and the columns that `measures` returns for its answers."""
        parts = pd.concat(map(measures, self.tables), keys=self.runs.index).droplevel(1)
        return self.runs[RUN_COLUMNS].join(parts, how="inner").reset_index(drop=True)


@dataclass(frozen=True)
class Description:
    """The measures of a benchmark and the texts about them. A level and a name identify a measure.

    Attributes:
        about: A sentence on the items.
        measured: One row per run and measure, with RUN_COLUMNS, level, name, items, accuracy and other numbers. If the
            columns low and high are missing, accuracies are shares of items and get Wilson's intervals.
        main: The measures that figures show. Findings describe the first one that a curve has.
        what: The name of a main measure in sentences, such as "The AUC of {name}".
        methods: A paragraph for the methods section of a paper.
        others: The values of published models, people and chance, with the columns model, level, name and accuracy.
        notes: Notes on the runs.
    """

    about: str
    measured: pd.DataFrame
    main: Sequence[Sequence[str]]
    what: str
    methods: str
    others: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["model", *MEASURE, "accuracy"]))
    notes: Sequence[str] = ()

    def main_of(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of the main measures, in the order of `main`."""
        return pd.DataFrame(self.main, columns=MEASURE).merge(rows, on=MEASURE)


def part_of(found: Answers, of: Description, confidence: float, everything: bool = False) -> Part:
    """Return the part of a report about a benchmark.

    Args:
        found: The answers of the runs.
        of: The description of the benchmark.
        confidence: The level of the intervals of slopes.
        everything: Whether to add a table of all measures at all sizes.
    """
    means, slopes = means_of(of.measured), slopes_of(of, confidence)
    exhibits = [_measures(means, of), *([_over_text(slopes, of, confidence)] if len(slopes) else [])]
    if everything:
        about = "These are means over the runs of each size, with 95% confidence intervals over new items of this kind."
        table = means.drop(columns="sample_words").rename(columns={"accuracy": "value"})
        first = [*MEASURE, "curve", "size", "runs", "items", "value", "low", "high"]
        table = table[[*first, *table.columns.difference(first, sort=False)]]
        cells = dict.fromkeys(("items", "ties", "trials", "unknown", "known_items"), count)
        exhibits.append(Exhibit("measures-by-size", "All measures by size", about, table, cells))
    notes = [*found.notes, *of.notes]
    if "unknown" in means and (share := (means["unknown"] / means["items"]).max()) > 0:
        notes.append(f"Up to {share:.0%} of a measure's items need a word that isn't in a model's vocabulary.")
    runs, largest = found.runs, of.main_of(at_largest(means)).drop_duplicates("curve")
    rows = largest.merge(slopes, how="left", on=[*MEASURE, "curve"], suffixes=("_items", ""))
    return Part(
        found.label,
        benchmark_name(found.label),
        f"{of.about} The scores come from {plural(len(runs), 'run')} of {joined(list(runs['curve'].unique()))}.",
        exhibits=exhibits,
        findings=[(str(row.curve), _finding(row, of.what.format(name=row.name), confidence)) for row in rows_of(rows)],
        notes=notes,
        methods=[of.methods],
    )


def means_of(measured: pd.DataFrame) -> pd.DataFrame:
    """Average all numbers over the runs of each curve, size and measure, and add the number of `runs`.

    low and high are the means of the runs' own intervals. If runs have none, they are Wilson's 95% interval of the mean
    for the same number of new items.
    """
    numbers = [name for name in measured if name not in (*RUN_COLUMNS, *MEASURE)]
    groups = measured.groupby(["curve", "size", "sample_words", *MEASURE], sort=False, dropna=False)
    means = groups[numbers].mean().assign(runs=groups.size()).reset_index()
    return means if "low" in means else _with_limits(means)


def _with_limits(rows: pd.DataFrame) -> pd.DataFrame:
    shares = rows[["accuracy", "items"]].astype(float).fillna({"items": 0})
    limits = [wilson(share, items) for share, items in shares.to_numpy()]
    return rows.assign(**pd.DataFrame(limits, rows.index, ["low", "high"], dtype=float))


def slopes_of(of: Description, confidence: float) -> pd.DataFrame:
    """Return the slopes of the main measures, with level, name and the columns of `analysis.fit_curves`.

    Curves with a single size have no rows.
    """
    rows = of.main_of(of.measured)
    rows = rows[rows.groupby("curve")["sample_words"].transform("nunique") > 1]
    table = rows.assign(benchmark="", method=rows["level"], phenomenon=rows["name"], paradigm=None)
    fitted = fit_curves(table.rename(columns={"items": "pairs"}).drop(columns=MEASURE), confidence)
    fitted = fitted[fitted["level"] == "phenomenon"].assign(level=fitted["method"])
    return of.main_of(fitted)


def at_largest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows at each curve's largest size, and the rows of models without a known amount of text."""
    words = rows["sample_words"].fillna(0)
    return rows[words == words.groupby(rows["curve"]).transform("max")]


def _measures(means: pd.DataFrame, of: Description) -> Exhibit:
    """Return a table with one row per measure and one column per model, and a figure of the main measures."""
    measures = means.drop_duplicates(MEASURE)[[*MEASURE, "items"]]
    others = of.others.merge(measures, on=MEASURE)
    is_paper = others["model"].str.endswith(PAPER)
    ours = at_largest(means).rename(columns={"curve": "model"})
    rows = pd.concat([ours, _with_limits(others[is_paper]), others[~is_paper]])
    wide = rows.pivot(index=MEASURE, columns="model", values="accuracy")[rows["model"].unique()]
    drawn = of.main_of(rows)
    drawn = drawn.assign(name=drawn["level"] + ": " + drawn["name"])
    looks = looks_of(list(drawn["model"].unique()))
    chart = partial(dot_chart, drawn, "accuracy", Axis("Value"), looks, by="model", reference=None)
    about = "Values are means at each curve's largest size. Lines are 95% confidence intervals over new items."
    table = measures.join(wide, on=MEASURE)
    return Exhibit("measures", "Measures", about, table, charts={"measures": chart})


def _over_text(slopes: pd.DataFrame, of: Description, confidence: float) -> Exhibit:
    """Return one panel per main measure, by amount of training text, and a table of slopes."""
    drawn = of.main_of(of.measured[of.measured["curve"].isin(slopes["curve"])])
    charts: dict[str, Callable[..., Chart]] = {}
    for (level, name), rows in drawn.groupby(MEASURE, sort=False):
        chance = of.others.query("model == @CHANCE and level == @level and name == @name")
        charts[f"sizes-{len(charts)}"] = partial(_size_chart, rows, chance, f"{level}: {name}")
    table = slopes.rename(columns={"smallest_accuracy": "smallest", "largest_accuracy": "largest"})
    table = table[[*MEASURE, "curve", "runs", "sizes", "smallest", "largest", "slope", "low", "high", "note"]]
    about = "Each mark is a run, and lines join the means of sizes. A dashed line marks chance, if it is known. The "
    about += "table has the means at the smallest and largest size, and slopes per doubling of the training text."
    return Exhibit("sizes", "By training text", about, table, confidence=confidence, charts=charts)


def _size_chart(rows: pd.DataFrame, chance: pd.DataFrame, heading: str) -> Chart:
    looks, unit = looks_of(list(rows["curve"].unique())), str(rows["unit"].iloc[0])
    chart = line_chart(rows, "accuracy", Axis("Value", ".2~f"), looks, unit=unit, heading=heading)
    rules = [layer(chance, "rule", {"y": number("accuracy")}, strokeDash=[3, 3], color=GREY)] if len(chance) else []
    return {**chart, "layer": [*rules, *chart["layer"]]}


def _finding(row: Any, what: str, confidence: float) -> str:
    """Describe how a measure changes with more text, or its value if there is no slope."""
    if pd.isna(row.slope):
        limits = f"95% confidence interval over new items {row.low_items:.2f} to {row.high_items:.2f}"
        return f"{what} is {row.accuracy:.2f} ({limits})."
    ends = f"{row.smallest_accuracy:.2f} after {size_text(row.smallest_words)}"
    ends += f" and {row.largest_accuracy:.2f} after {size_text(row.largest_words, row.unit)}"
    if pd.isna(row.low):
        return f"{what} is {ends}. The change has no confidence interval. {row.note}"
    interval = f"{level_text(confidence)} confidence interval {slope_text(row.low)} to {slope_text(row.high)}"
    limits = f"({slope_text(row.slope)} per doubling, {interval})"
    if row.low <= 0 <= row.high:
        return f"{what} is {ends}. We can't tell whether it changes with more text {limits}."
    return f"{what} {'rises' if row.low > 0 else 'falls'} with more text {limits}. It is {ends}."
