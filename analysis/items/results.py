"""A part of the report from the measures of runs that answered the items of a benchmark."""

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
PAPER, CHANCE = " (paper)", "chance"  # after the names of published models, and a model


@dataclass(frozen=True)
class Answers:
    """The answers of runs to the items of a benchmark.

    Attributes:
        label: the name of their folder of scores.
        runs: one row per run that has answers: the columns of `analysis.runs`, and policy and unigrams of its scores.
        tables: the answers of each of these runs: eval.scores.schemas.CLOZE, eval.scores.schemas.SUCCESS or
            eval.scores.schemas.SENTENCES.
        notes: runs that have no answers, and scoring settings that differ.
    """

    label: str
    runs: pd.DataFrame
    tables: list[pd.DataFrame]
    notes: list[str]

    def measured(self, measures: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
        """Return the measures of each run: RUN_COLUMNS and the columns of `measures` of its answers."""
        parts = pd.concat(map(measures, self.tables), keys=self.runs.index).droplevel(1)
        return self.runs[RUN_COLUMNS].join(parts, how="inner").reset_index(drop=True)


@dataclass(frozen=True)
class Description:
    """What a kind of benchmark says about itself. A measure has a level and a name.

    Attributes:
        about: a sentence on the items.
        measured: a row per run and measure: RUN_COLUMNS, level, name, items, accuracy and other numbers. Without the
            columns low and high, accuracies are shares of items, and their limits are Wilson's.
        main: the measures that figures show. Findings are about the first one that a curve has.
        what: what a sentence calls a main measure, such as "The AUC of {name}".
        methods: a paragraph for the methods section of a paper.
        others: what published models, people and chance have: model, level, name, accuracy.
        notes: sentences on the runs.
    """

    about: str
    measured: pd.DataFrame
    main: Sequence[Sequence[str]]
    what: str
    methods: str
    others: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["model", *MEASURE, "accuracy"]))
    notes: Sequence[str] = ()

    def main_of(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of main measures, in their order."""
        return pd.DataFrame(self.main, columns=MEASURE).merge(rows, on=MEASURE)


def part_of(found: Answers, of: Description, confidence: float, everything: bool = False) -> Part:
    """Return the part of a report about a benchmark.

    Args:
        found: the answers.
        of: the description of their benchmark.
        confidence: the level of the intervals of slopes.
        everything: add all measures at all sizes.
    """
    means, slopes = means_of(of.measured), slopes_of(of, confidence)
    exhibits = [_measures(means, of), *([_over_text(slopes, of, confidence)] if len(slopes) else [])]
    if everything:
        about = "Means over the runs of a size. Intervals are 95% intervals for new items of the same kind."
        table = means.drop(columns="sample_words").rename(columns={"accuracy": "value"})
        first = [*MEASURE, "curve", "size", "runs", "items", "value", "low", "high"]
        table = table[[*first, *table.columns.difference(first, sort=False)]]
        cells = dict.fromkeys(("items", "ties", "trials", "unknown", "known_items"), count)
        exhibits.append(Exhibit("measures-by-size", "All measures by size", about, table, cells))
    notes = [*found.notes, *of.notes]
    if "unknown" in means and (share := (means["unknown"] / means["items"]).max()) > 0:
        notes.append(f"In up to {share:.0%} of a measure's items, a model can't express a word that the measure needs.")
    runs, largest = found.runs, of.main_of(at_largest(means)).drop_duplicates("curve")
    rows = largest.merge(slopes, how="left", on=[*MEASURE, "curve"], suffixes=("_items", ""))
    return Part(
        found.label,
        benchmark_name(found.label),
        f"{of.about} Answers of {plural(len(runs), 'run')}: {joined(list(runs['curve'].unique()))}.",
        exhibits=exhibits,
        findings=[(str(row.curve), _finding(row, of.what.format(name=row.name), confidence)) for row in rows_of(rows)],
        notes=notes,
        methods=[of.methods],
    )


def means_of(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the means of all numbers over the runs of a curve and size, with runs, how many these are.

    Limits are Wilson's 95% limits of the mean for as many new items, or means of the runs' own limits.
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
    """Return slopes of the main measures: their level and name, and the columns of `analysis.fit_curves`.

    Curves of one size have no rows.
    """
    rows = of.main_of(of.measured)
    rows = rows[rows.groupby("curve")["sample_words"].transform("nunique") > 1]
    table = rows.assign(benchmark="", method=rows["level"], phenomenon=rows["name"], paradigm=None)
    fitted = fit_curves(table.rename(columns={"items": "pairs"}).drop(columns=MEASURE), confidence)
    fitted = fitted[fitted["level"] == "phenomenon"].assign(level=fitted["method"])
    return of.main_of(fitted)


def at_largest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows at each curve's largest size, and those of models without a known amount of text."""
    words = rows["sample_words"].fillna(0)
    return rows[words == words.groupby(rows["curve"]).transform("max")]


def _measures(means: pd.DataFrame, of: Description) -> Exhibit:
    """Return a row per measure with a column per model, and a figure of the main measures."""
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
    about = "Ours are means over the runs at each curve's largest size. Lines are 95% intervals for new items."
    table = measures.join(wide, on=MEASURE)
    return Exhibit("measures", "Measures", about, table, charts={"measures": chart})


def _over_text(slopes: pd.DataFrame, of: Description, confidence: float) -> Exhibit:
    """Return the main measures over training text, a panel each, with their slopes."""
    drawn = of.main_of(of.measured[of.measured["curve"].isin(slopes["curve"])])
    charts: dict[str, Callable[..., Chart]] = {}
    for (level, name), rows in drawn.groupby(MEASURE, sort=False):
        chance = of.others.query("model == @CHANCE and level == @level and name == @name")
        charts[f"sizes-{len(charts)}"] = partial(_size_chart, rows, chance, f"{level}: {name}")
    table = slopes.rename(columns={"smallest_accuracy": "smallest", "largest_accuracy": "largest"})
    table = table[[*MEASURE, "curve", "runs", "sizes", "smallest", "largest", "slope", "low", "high", "note"]]
    about = "Each mark is a run, and lines join the means of sizes. Dashed: chance, if it is known. The table has "
    about += "the means at the smallest and largest size, and slopes per doubling of the text."
    return Exhibit("sizes", "By training text", about, table, confidence=confidence, charts=charts)


def _size_chart(rows: pd.DataFrame, chance: pd.DataFrame, heading: str) -> Chart:
    looks, unit = looks_of(list(rows["curve"].unique())), str(rows["unit"].iloc[0])
    chart = line_chart(rows, "accuracy", Axis("Value", ".2~f"), looks, unit=unit, heading=heading)
    rules = [layer(chance, "rule", {"y": number("accuracy")}, strokeDash=[3, 3], color=GREY)] if len(chance) else []
    return {**chart, "layer": [*rules, *chart["layer"]]}


def _finding(row: Any, what: str, confidence: float) -> str:
    """Say how much a measure changes with more text, or what it is if there is no slope."""
    if pd.isna(row.slope):
        limits = f"95% interval for new items {row.low_items:.2f} to {row.high_items:.2f}"
        return f"{what} is {row.accuracy:.2f} ({limits})."
    ends = f"{row.smallest_accuracy:.2f} after {size_text(row.smallest_words)}"
    ends += f" and {row.largest_accuracy:.2f} after {size_text(row.largest_words, row.unit)}"
    if pd.isna(row.low):
        return f"{what} is {ends}. The change has no confidence interval: {row.note}"
    interval = f"{level_text(confidence)} interval {slope_text(row.low)} to {slope_text(row.high)}"
    limits = f"({slope_text(row.slope)} per doubling, {interval})"
    if row.low <= 0 <= row.high:
        return f"{what} is {ends}. We can't tell whether it changes with more text {limits}."
    return f"{what} {'rises' if row.low > 0 else 'falls'} with more text {limits}. It is {ends}."
