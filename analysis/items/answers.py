"""What benchmarks of items have in common: diagnostics, test suites and rated sentences.

Their runs have answers to items in place of scores of minimal pairs. cloze.py, suites.py and ratings.py turn these into
measures of each run; here are the reader of answers, means over runs, slopes, and the exhibits that they share.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.curves.fit import fit_curves
from analysis.curves.units import RUN_COLUMNS
from analysis.figures.charts import Axis, dot_chart, line_chart
from analysis.figures.style import GREY, TEXT_GREY, Chart, Frame, layer, looks_of, number, text
from analysis.formats import count, joined, level_text, plural, slope_text
from analysis.report.exhibit import Exhibit
from analysis.report.findings import size_text
from analysis.study.score_files import check_alike
from eval.published import COLUMNS, read_published
from pairscale.errors import RunError, first_few
from pairscale.shares import wilson
from pairscale.sizes import written
from train.runs.axes import flatten
from train.runs.folder import RunFolder

MEASURE = ["level", "name"]
PAPER = " (paper)"  # after the names of published models
AT_LARGEST = "Ours are means over the runs at each curve's largest size."
_HEADINGS = {
    "level": "measure", "name": "name", "curve": "curve", "size": "size", "runs": "runs", "items": "items",
    "accuracy": "value", "low": "low", "high": "high", "sd": "± trials", "ties": "ties", "unknown": "not expressible",
    "known": "without these",
}  # fmt: skip


@dataclass(frozen=True)
class Answers:
    """The answers of runs to the items of a benchmark.

    Attributes:
        label: the name of their folder of scores.
        runs: one row per run that has answers: the columns of `analysis.runs`, scores (its folder of scores), and
            policy and unigrams (of its score file).
        tables: the answers of each of these runs.
        notes: runs that have no answers, and scoring settings that differ.
    """

    label: str
    runs: pd.DataFrame
    tables: list[pd.DataFrame]
    notes: list[str]

    @property
    def benchmark(self) -> str:
        return self.label.partition("+")[0]

    @property
    def one_per_curve(self) -> pd.DataFrame:
        """The first run of each curve at its largest size."""
        return at_largest(self.runs).drop_duplicates("curve")

    def measured(self, measures: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
        """Return the measures of each run: RUN_COLUMNS and the columns of `measures` of its answers."""
        parts = pd.concat(map(measures, self.tables), keys=self.runs.index).droplevel(1)
        return self.runs[RUN_COLUMNS].join(parts, how="inner").reset_index(drop=True)


def read_answers(
    runs: pd.DataFrame,
    label: str,
    folder: str | Path,
    metadata_of: Callable[[Path], dict[str, Any] | None],
    read: Callable[[Path], tuple[pd.DataFrame, dict[str, Any]]],
) -> Answers:
    """Read the answers of every run that has them.

    Args:
        runs: the table of `analysis.runs`; baselines are left out.
        label: the name of the folder of scores.
        folder: where studies are (`paths.runs`).
        metadata_of: reads the metadata of a folder of scores; None if files are missing or don't belong together.
        read: reads the answers in a folder of scores, and their metadata.

    Raises:
        RunError: for a damaged file, if no run has answers, if runs answered different questions, and if runs with one
            tokenizer were scored under different settings.
    """
    models = runs[runs["baseline"] == ""]
    folders = [RunFolder(Path(folder) / study / run) for study, run in models[["study", "run"]].to_numpy()]
    models = models.assign(scores=[of.scores(label) for of in folders])
    is_scored = models["scores"].map(metadata_of).notna()
    study, scored = "+".join(runs["study"].unique()), models[is_scored].reset_index(drop=True)
    if scored.empty:
        remedy = f"python -m eval study={study} benchmark={label.partition('+')[0]}"
        raise RunError(f"study={study}: no run has complete scores of {label}. Score them: {remedy}")
    tables, metadata = zip(*map(read, scored["scores"]), strict=True)
    about = pd.DataFrame(metadata)
    scored = scored.assign(policy=about["policy"], unigrams=about["parameters"].str.get("unigrams"))
    settings = [{name: written(value) for name, value in flatten(of).items()} for of in about["policy"]]
    digest, methods = about["benchmark"].str.get("digest"), about["policy"].str.get("pll").fillna("lp")
    check_alike(study, scored.assign(benchmark=label, method=methods, digest=digest, settings=settings))
    notes = [
        f"Scoring settings differ between models: {name} is {joined(sorted(values.dropna().unique()))}."
        for name, values in pd.DataFrame(settings).items()
        if values.nunique() > 1
    ]
    if not is_scored.all():
        notes.append(f"Runs without scores of {label}: {first_few([*models.loc[~is_scored, 'run']])}.")
    return Answers(label, scored, list(tables), notes)


def over_sizes(measured: pd.DataFrame) -> pd.DataFrame:
    """Average measures over the runs of a curve and size.

    Args:
        measured: one row per run and measure: RUN_COLUMNS, level, name, accuracy, and other numbers.

    Returns:
        curve, size, sample_words (missing for models without a known amount of text), level, name, the means of the
        numbers, and runs.
    """
    numbers = [name for name in measured if name not in (*RUN_COLUMNS, *MEASURE)]
    groups = measured.groupby(["curve", "size", "sample_words", *MEASURE], sort=False, dropna=False)
    return groups[numbers].mean().assign(runs=groups.size()).reset_index()


def with_limits(rows: pd.DataFrame) -> pd.DataFrame:
    """Set low and high to Wilson's 95% interval of `accuracy` for as many new items of the same kind as `items`."""
    limits = [wilson(share, items) for share, items in rows[["accuracy", "items"]].to_numpy(dtype=float)]
    return rows.assign(**pd.DataFrame(limits, rows.index, ["low", "high"], dtype=float))


def published_next_to(benchmark: str, means: pd.DataFrame, columns: Sequence[str] = COLUMNS) -> pd.DataFrame:
    """Return a paper's measures that `means` of `over_sizes` has, too: `columns`, items, low and high."""
    rows = read_published(benchmark, columns).assign(model=lambda of: of["model"] + PAPER)
    return with_limits(rows.merge(means.drop_duplicates(MEASURE)[[*MEASURE, "items"]], on=MEASURE))


def at_largest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows at each curve's largest size, and those of models without a known amount of text."""
    words = rows["sample_words"]
    return rows[words.isna() | (words == words.groupby(rows["curve"]).transform("max")).fillna(False)]


def of_measure(rows: pd.DataFrame, level: str, name: str) -> pd.DataFrame:
    """Return the rows of a measure."""
    return rows[(rows["level"] == level) & (rows["name"] == name)]


def slopes(measured: pd.DataFrame, label: str, confidence: float) -> pd.DataFrame:
    """Fit each measure over log2(sample_words), for curves with two sizes or more.

    Returns:
        The columns of `analysis.fit_curves`, a row per curve and measure; level and name are those of the measure.
    """
    rows = measured[measured.groupby("curve")["sample_words"].transform("nunique") > 1]
    table = rows.assign(benchmark=label, method=rows["level"], phenomenon=rows["name"], paradigm=None)
    fitted = fit_curves(table.rename(columns={"items": "pairs"}).drop(columns=MEASURE), confidence)
    fitted = fitted[fitted["level"] == "phenomenon"].reset_index(drop=True)
    return fitted.assign(level=fitted["method"])


def lead_of(found: Answers, about: str) -> str:
    """Return a sentence on the runs after one on the items."""
    placed, parts = found.runs.dropna(subset="sample_words"), []
    if len(placed):
        ends = dict.fromkeys(size_text(words) for words in placed["sample_words"].agg(["min", "max"]))
        runs = f"{plural(len(placed), 'run')} of {joined([*placed['curve'].unique()])}"
        parts.append(f"{runs} on {' to '.join(ends)} {placed['unit'].iloc[0]}")
    if others := len(found.runs) - len(placed):
        parts.append(f"{plural(others, 'pretrained model')} whose amount of training text isn't known")
    return f"{about} {' and '.join(parts)}."


def finding(row: Any, confidence: float, what: str) -> tuple[str, str]:
    """Return a curve and how much its measure changes with more text; `row`: of `slopes`, `what`: "The share"."""
    ends = f"{row.smallest_accuracy:.2f} after {size_text(row.smallest_words)}"
    ends += f" and {row.largest_accuracy:.2f} after {size_text(row.largest_words, row.unit)}"
    if pd.isna(row.low):
        return str(row.curve), f"{what} is {ends}. The change has no confidence interval: {row.note}"
    limits = f"{slope_text(row.slope)} per doubling, {level_text(confidence)} interval {slope_text(row.low)} to "
    limits += slope_text(row.high)
    if row.low <= 0 <= row.high:
        return str(row.curve), f"{what} is {ends}. We can't tell whether it changes with more text ({limits})."
    verb = "rises" if row.low > 0 else "falls"
    return str(row.curve), f"{what} {verb} with more text ({limits}). It is {ends}."


def by_model(
    name: str,
    heading: str,
    about: str,
    rows: pd.DataFrame,
    axis_title: str,
    definitions: dict[str, str],
    not_drawn: Collection[str] = (),
) -> Exhibit:
    """Return accuracies with a row per model and a column per measure, and a figure of those that have an interval.

    Args:
        name, heading, about, definitions: as of `Exhibit`.
        rows: model, measure, accuracy, low and high, in the order of models and measures.
        axis_title: what the axis of the figure shows.
        not_drawn: measures that the figure leaves out.
    """
    models, measures = rows["model"].unique(), list(rows["measure"].unique())
    table = rows.pivot(index="model", columns="measure", values="accuracy").reindex(index=models, columns=measures)
    drawn = rows[rows["low"].notna() & ~rows["measure"].isin(not_drawn)]
    drawn = drawn.sort_values("measure", key=lambda of: of.map(measures.index), kind="stable")
    drawn, looks = drawn.assign(name=drawn["measure"]), looks_of([*drawn["model"].unique()])
    chart = partial(dot_chart, drawn, "accuracy", Axis(axis_title), looks, by="model", reference=None)
    table = table.rename_axis(columns=None).reset_index()
    return Exhibit(name, heading, about, table, charts={"models": chart}, definitions=definitions)


def over_text(
    measured: pd.DataFrame,
    fitted: pd.DataFrame,
    wanted: Sequence[Sequence[str]],
    axis_title: str,
    confidence: float,
    levels: pd.DataFrame | None = None,
) -> Exhibit | None:
    """Return measures over training text: a panel each, and a table of their slopes; None without two sizes.

    Args:
        measured: rows of runs.
        fitted: the table of `slopes`.
        wanted: level, name and heading of each measure.
        axis_title: what the vertical axis shows.
        confidence: the level of the intervals of slopes.
        levels: chance and published models: level, name, model and accuracy.
    """
    rows = measured[measured["curve"].isin(fitted["curve"])]
    panels = [(heading, level, name) for level, name, heading in wanted if len(of_measure(rows, level, name))]
    if not panels:
        return None
    charts = {}
    for place, (heading, *measure) in enumerate(panels):
        lines = None if levels is None else of_measure(levels, *measure)
        charts[f"sizes-{place}"] = partial(_size_chart, of_measure(rows, *measure), lines, axis_title, heading)
    table = pd.concat([of_measure(fitted, *measure).assign(measure=heading) for heading, *measure in panels])
    table = table.rename(columns={"smallest_accuracy": "smallest", "largest_accuracy": "largest"})
    table = table[["measure", "curve", "runs", "sizes", "smallest", "largest", "slope", "low", "high", "note"]]
    about = "Each mark is a run, and lines join the means of sizes. The table has slopes per doubling of the text."
    about += "" if levels is None else " Level lines show chance and published models."
    definitions = {"Smallest, largest": "Means over the runs at the curve's smallest and largest size."}
    return Exhibit(
        "sizes", "By training text", about, table, cells={"slope": slope_text}, confidence=confidence, charts=charts,
        definitions=definitions,
    )  # fmt: skip


def _size_chart(
    rows: pd.DataFrame, levels: pd.DataFrame | None, axis_title: str, heading: str, *, frame: Frame
) -> Chart:
    looks, unit = looks_of([*rows["curve"].unique()]), str(rows["unit"].iloc[0])
    chart = line_chart(rows, "accuracy", Axis(axis_title, ".2~f"), looks, unit=unit, heading=heading, frame=frame)
    if levels is None or levels.empty:
        return chart
    named = levels.groupby("accuracy", as_index=False, sort=False).agg({"model": " and ".join})
    y = number("accuracy")
    rules = layer(named, "rule", {"y": y}, strokeDash=[3, 3], color=GREY)
    at = {"x": {"value": 0}, "y": y, "text": text("model")}
    names = layer(named, "text", at, align="left", dx=4, dy=-5, fontSize=10, color=TEXT_GREY)
    return {**chart, "layer": [rules, names, *chart["layer"]]}


def all_measures(means: pd.DataFrame, theirs: pd.DataFrame | None = None) -> Exhibit:
    """Return every measure at every size, with those of published models (`theirs`: model, level, name, accuracy)."""
    table = means[[name for name in _HEADINGS if name in means]]
    if theirs is not None:
        table = table.join(theirs.pivot(index=MEASURE, columns="model", values="accuracy"), on=MEASURE)
    cells = dict.fromkeys(("items", "ties", "not expressible"), count)
    about = "Means over the runs of a size. Intervals are 95% intervals for new items of the same kind."
    definitions = {"Not expressible": "Items with a word that the model can't express. They count as wrong."}
    return Exhibit("measures", "All measures", about, table.rename(columns=_HEADINGS), cells, definitions=definitions)
