"""What benchmarks of items have in common: diagnostics, test suites and rated sentences.

Their runs have answers to items in place of scores of minimal pairs. cloze.py, suites.py and ratings.py turn these into
measures of each run; here are the reader of answers, means over runs, slopes, and the exhibits that they share.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.curves.fit import fit_curves
from analysis.curves.units import RUN_COLUMNS
from analysis.figures.charts import Axis, dot_chart, line_chart
from analysis.figures.style import GREY, TEXT_GREY, Chart, layer, looks_of, number, text
from analysis.formats import count, joined, level_text, plural, rows_of, slope_text
from analysis.report.exhibit import Exhibit
from analysis.report.findings import size_text
from analysis.report.write import Part
from analysis.study.score_files import check_alike
from eval.diagnostics.files import cloze_metadata, read_cloze
from eval.published import COLUMNS, read_published
from eval.ratings.config import is_ratings
from eval.ratings.files import read_sentences, sentences_metadata
from eval.scores.names import benchmark_name
from eval.syntaxgym.config import is_syntaxgym
from eval.syntaxgym.files import read_success, success_metadata
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
        tables: the answers of each of these runs: eval.diagnostics.files.CLOZE, eval.syntaxgym.files.SUCCESS or
            eval.ratings.files.SENTENCES.
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


def read_answers(runs: pd.DataFrame, label: str, folder: str | Path = "runs") -> Answers:
    """Read the answers of every run that has them: rows of a diagnostic, of suites, or of rated sentences.

    Args:
        runs: the table of `analysis.runs`; baselines are left out.
        label: the name of the folder of scores.
        folder: where studies are (`paths.runs`).

    Raises:
        RunError: for a damaged file, if no run has answers, if runs answered different questions, and if runs with one
            tokenizer were scored under different settings.
    """
    metadata_of, read = cloze_metadata, read_cloze
    if is_syntaxgym(label):
        metadata_of, read = success_metadata, read_success
    elif is_ratings(label):
        metadata_of, read = sentences_metadata, read_sentences
    models = runs[runs["baseline"] == ""].copy()
    folders = [RunFolder(Path(folder) / run.study / run.run).scores(label) for run in rows_of(models)]
    models["scores"] = pd.Series(folders, models.index, dtype=object)
    is_scored = models["scores"].map(metadata_of).notna()
    study, scored = "+".join(runs["study"].unique()), models[is_scored].reset_index(drop=True)
    if scored.empty:
        remedy = f"python -m eval study={study} benchmark={label.partition('+')[0]}"
        raise RunError(f"study={study}: no run has complete scores of {label}. Score them: {remedy}")
    tables, metadata = zip(*map(read, scored["scores"]), strict=True)
    about = pd.DataFrame(metadata)
    settings = [{name: written(value) for name, value in flatten(of).items()} for of in about["policy"]]
    digests, methods = about["benchmark"].str.get("digest"), about["policy"].str.get("pll").fillna("lp")
    scored = scored.assign(policy=about["policy"], unigrams=about["parameters"].str.get("unigrams"))
    scored = scored.assign(benchmark=label, method=methods, digest=digests, settings=pd.Series(settings))
    check_alike(study, scored)
    notes = [
        f"Scoring settings differ between models: {name} is {joined(sorted(values.dropna().unique()))}."
        for name, values in pd.DataFrame(settings).items()
        if values.nunique() > 1
    ]
    if not is_scored.all():
        notes.append(f"Runs without scores of {label}: {first_few([*models.loc[~is_scored, 'run']])}.")
    return Answers(label, scored, list(tables), notes)


@dataclass(frozen=True)
class Results:
    """The measures of runs that answered the items of a benchmark.

    Attributes:
        found: their answers, with curves named as readers see them.
        measured: one row per run and measure: RUN_COLUMNS, level, name, items, accuracy, and other numbers.
        confidence: the level of the intervals of slopes.
    """

    found: Answers
    measured: pd.DataFrame
    confidence: float

    @cached_property
    def means(self) -> pd.DataFrame:
        """The means of all numbers over the runs of a curve and size, with runs, how many these are."""
        numbers = [name for name in self.measured if name not in (*RUN_COLUMNS, *MEASURE)]
        groups = self.measured.groupby(["curve", "size", "sample_words", *MEASURE], sort=False, dropna=False)
        return groups[numbers].mean().assign(runs=groups.size()).reset_index()

    @cached_property
    def slopes(self) -> pd.DataFrame:
        """Slopes over log2(sample_words) of curves with two sizes or more: the columns of `analysis.fit_curves`.

        There is a row per curve and measure, whose level and name are those of the measure.
        """
        rows = self.measured[self.measured.groupby("curve")["sample_words"].transform("nunique") > 1]
        table = rows.assign(benchmark=self.found.label, method=rows["level"], phenomenon=rows["name"], paradigm=None)
        fitted = fit_curves(table.rename(columns={"items": "pairs"}).drop(columns=MEASURE), self.confidence)
        fitted = fitted[fitted["level"] == "phenomenon"].reset_index(drop=True)
        return fitted.assign(level=fitted["method"])

    def findings(self, level: str, name: str, what: str) -> list[tuple[str, str]]:
        """Return curves, and sentences on how much a measure changes with more text; `what`: such as "The share"."""
        rows = rows_of(of_measure(self.slopes, level, name))
        return [(str(row.curve), _sentence(row, self.confidence, what)) for row in rows]

    def over_text(
        self, wanted: Sequence[Sequence[str]], axis_title: str, levels: pd.DataFrame | None = None
    ) -> list[Exhibit]:
        """Return an exhibit of measures over training text, a panel each, with their slopes; none without two sizes.

        Args:
            wanted: level, name and heading of each measure.
            axis_title: what the vertical axis shows.
            levels: chance and published models: level, name, model and accuracy.
        """
        rows = self.measured[self.measured["curve"].isin(self.slopes["curve"])]
        charts: dict[str, Callable[..., Chart]] = {}
        tables = []
        for level, name, heading in wanted:
            if len(drawn := of_measure(rows, level, name)):
                lines = None if levels is None else of_measure(levels, level, name)
                charts[f"sizes-{len(charts)}"] = partial(_size_chart, drawn, lines, axis_title, heading)
                tables.append(of_measure(self.slopes, level, name).assign(measure=heading))
        if not charts:
            return []
        table = pd.concat(tables).rename(columns={"smallest_accuracy": "smallest", "largest_accuracy": "largest"})
        table = table[["measure", "curve", "runs", "sizes", "smallest", "largest", "slope", "low", "high", "note"]]
        about = "Each mark is a run, and lines join the means of sizes. The table has slopes per doubling of the text."
        about += "" if levels is None else " Level lines show chance and published models."
        definitions = {"Smallest, largest": "Means over the runs at the curve's smallest and largest size."}
        exhibit = Exhibit(
            "sizes", "By training text", about, table, cells={"slope": slope_text}, confidence=self.confidence,
            charts=charts, definitions=definitions,
        )  # fmt: skip
        return [exhibit]

    def part(self, about: str, exhibits: list[Exhibit], findings: Any, notes: list[str], methods: list[str]) -> Part:
        """Return the part of a report; `about`: a sentence on the items, which one on the runs follows."""
        label, lead = self.found.label, f"{about} {_runs_text(self.found.runs)}."
        return Part(
            label, benchmark_name(label), lead, exhibits=exhibits, findings=findings,
            notes=[*self.found.notes, *notes], methods=methods,
        )  # fmt: skip


def with_limits(rows: pd.DataFrame) -> pd.DataFrame:
    """Set low and high to Wilson's 95% interval of `accuracy` for as many new items of the same kind as `items`."""
    limits = [wilson(share, items) for share, items in rows[["accuracy", "items"]].to_numpy(dtype=float)]
    return rows.assign(**pd.DataFrame(limits, rows.index, ["low", "high"], dtype=float))


def published_next_to(benchmark: str, means: pd.DataFrame, columns: Sequence[str] = COLUMNS) -> pd.DataFrame:
    """Return a paper's measures that `Results.means` has, too: `columns`, items, low and high."""
    rows = read_published(benchmark, columns).assign(model=lambda of: of["model"] + PAPER)
    return with_limits(rows.merge(means.drop_duplicates(MEASURE)[[*MEASURE, "items"]], on=MEASURE))


def at_largest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows at each curve's largest size, and those of models without a known amount of text."""
    words = rows["sample_words"]
    return rows[words.isna() | (words == words.groupby(rows["curve"]).transform("max")).fillna(False)]


def of_measure(rows: pd.DataFrame, level: str, name: str) -> pd.DataFrame:
    """Return the rows of a measure."""
    return rows[(rows["level"] == level) & (rows["name"] == name)]


def _sentence(row: Any, confidence: float, what: str) -> str:
    """Return how much a measure changes with more text; `row`: of `Results.slopes`."""
    ends = f"{row.smallest_accuracy:.2f} after {size_text(row.smallest_words)}"
    ends += f" and {row.largest_accuracy:.2f} after {size_text(row.largest_words, row.unit)}"
    if pd.isna(row.low):
        return f"{what} is {ends}. The change has no confidence interval: {row.note}"
    limits = f"{slope_text(row.slope)} per doubling, {level_text(confidence)} interval {slope_text(row.low)} to "
    limits += slope_text(row.high)
    if row.low <= 0 <= row.high:
        return f"{what} is {ends}. We can't tell whether it changes with more text ({limits})."
    return f"{what} {'rises' if row.low > 0 else 'falls'} with more text ({limits}). It is {ends}."


def _runs_text(runs: pd.DataFrame) -> str:
    """Say how many runs there are, of which curves and on how much text."""
    placed, parts = runs.dropna(subset="sample_words"), []
    if len(placed):
        ends = dict.fromkeys(size_text(words) for words in placed["sample_words"].agg(["min", "max"]))
        curves = joined(list(placed["curve"].unique()))
        parts.append(f"{plural(len(placed), 'run')} of {curves} on {' to '.join(ends)} {placed['unit'].iloc[0]}")
    if others := len(runs) - len(placed):
        parts.append(f"{plural(others, 'pretrained model')} whose amount of training text isn't known")
    return " and ".join(parts)


def by_model(
    rows: pd.DataFrame, axis_title: str, not_drawn: Collection[str] = ()
) -> tuple[pd.DataFrame, dict[str, Callable[..., Chart]]]:
    """Return a table with a row per model and a column per measure, and a figure of those that have an interval.

    Args:
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
    return table.rename_axis(columns=None).reset_index(), {"models": chart}


def _size_chart(rows: pd.DataFrame, levels: pd.DataFrame | None, axis_title: str, heading: str) -> Chart:
    looks, unit = looks_of([*rows["curve"].unique()]), str(rows["unit"].iloc[0])
    chart = line_chart(rows, "accuracy", Axis(axis_title, ".2~f"), looks, unit=unit, heading=heading)
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
