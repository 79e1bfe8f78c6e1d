"""What benchmarks of items have in common: diagnostics, test suites and rated sentences.

Their runs have answers to items in place of scores of minimal pairs. cloze.py, suites.py and ratings.py turn these into
measures of each run; here are the reader of answers, means over runs, slopes, and the parts of a report about them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.curves.fit import fit_curves
from analysis.figures.charts import Axis, dot_chart, line_chart
from analysis.figures.style import GREY, TEXT_GREY, Chart, Frame, layer, looks_of, number, text
from analysis.formats import count, joined, level_text, plural, slope_text
from analysis.report.exhibit import Exhibit
from analysis.report.findings import size_text
from eval.published import COLUMNS, read_published
from pairscale.errors import RunError, first_few
from pairscale.shares import wilson
from train.runs.axes import flatten
from train.runs.folder import RunFolder

RUN_COLUMNS = ["study", "run", "curve", "model", "size", "sample_words", "seed", "sample", "nested", "unit", "baseline"]
MEASURE = ["level", "name"]
PAPER = " (paper)"  # after the names of published models
_AT = ["curve", "size", "sample_words"]
Read = Callable[[Path], tuple[pd.DataFrame, dict[str, Any]]]


@dataclass(frozen=True)
class ItemsSection:
    """One benchmark of items in a report.

    Attributes:
        label: the name of its folder of scores.
        kind: its heading: "Diagnostics", "Test suites" or "Ratings".
        lead: one sentence on what was scored.
        notes: what a reader needs to know before quoting the numbers.
        findings: (curve, sentence) pairs.
        exhibits: its tables and figures, in order.
        methods: paragraphs on how the numbers were computed.
    """

    label: str
    kind: str
    lead: str
    notes: Sequence[str]
    findings: Sequence[tuple[str, str]]
    exhibits: Sequence[Exhibit]
    methods: Sequence[str]


@dataclass(frozen=True)
class Answers:
    """The answers of runs to the items of a benchmark.

    Attributes:
        label: the name of their folder of scores.
        table: one row per run and item: the columns of the run (RUN_COLUMNS) and those of the score file.
        metadata: that of each run's score file, by (study, run).
        notes: runs that have no answers, and scoring settings that differ.
    """

    label: str
    table: pd.DataFrame
    metadata: dict[tuple[str, str], dict[str, Any]]
    notes: list[str]

    @property
    def runs(self) -> pd.DataFrame:
        """One row per run that has answers."""
        return self.table[RUN_COLUMNS].drop_duplicates(["study", "run"], ignore_index=True)

    def of_runs(self) -> Iterable[tuple[pd.Series, pd.DataFrame]]:
        """Yield each run's columns and its answers."""
        for _, rows in self.table.groupby(["study", "run"], sort=False):
            yield rows.iloc[0][RUN_COLUMNS], rows.drop(columns=RUN_COLUMNS).reset_index(drop=True)

    def measured(self, measures: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
        """Return the measures of each run: RUN_COLUMNS and the columns of `measures` of its answers."""
        parts = [with_run(run, measures(rows)) for run, rows in self.of_runs()]
        return with_types(pd.concat(parts, ignore_index=True), self.table)


def with_run(run: pd.Series, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the columns of a run before its own."""
    return table.assign(**run)[[*RUN_COLUMNS, *table.columns]]


def with_types(table: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns of runs have the types that those of `like` have."""
    return table.astype({name: like[name].dtype for name in RUN_COLUMNS})


def read_answers(
    runs: pd.DataFrame,
    label: str,
    folder: str | Path,
    metadata_of: Callable[[Path], dict[str, Any] | None],
    read: Read,
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
    tables, metadata, unscored = [], {}, []
    for _, run in runs[runs["baseline"] == ""].iterrows():
        scores = RunFolder(Path(folder) / run["study"] / run["run"]).scores(label)
        if metadata_of(scores) is None:
            unscored.append(str(run["run"]))
            continue
        rows, metadata[run["study"], run["run"]] = read(scores)
        tables.append(with_run(run[RUN_COLUMNS], rows))
    if not tables:
        study, benchmark = "+".join(runs["study"].unique()), label.partition("+")[0]
        remedy = f"python -m eval study={study} benchmark={benchmark}"
        raise RunError(f"study={study}: no run has complete scores of {label}. Score them: {remedy}")
    notes = _check(runs, label, metadata)
    if unscored:
        has = "has" if len(unscored) == 1 else "have"
        notes.append(f"{plural(len(unscored), 'run')} {has} no scores of {label}: {first_few(unscored)}.")
    return Answers(label, with_types(pd.concat(tables, ignore_index=True), runs), metadata, notes)


def _check(runs: pd.DataFrame, label: str, metadata: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    """Return notes on settings that differ between tokenizers. Raises RunError as `read_answers` does."""
    digests = {of["benchmark"]["digest"][:8]: run for (_, run), of in metadata.items()}
    if len(digests) > 1:
        versions = " and ".join(f"{digest} in {run}" for digest, run in list(digests.items())[:2])
        raise RunError(f"{label}: runs were scored on different versions of it ({versions}). Score them again.")
    tokenizer = runs["tokenizer"].fillna(runs["curve"]).astype(str)
    tokenizers = dict(zip(runs[["study", "run"]].itertuples(index=False, name=None), tokenizer, strict=True))
    first: dict[str, tuple[str, dict[str, Any]]] = {}
    differing: dict[str, set[str]] = {}
    for key, of in metadata.items():
        policy = flatten(of["policy"])
        for name, value in policy.items():
            differing.setdefault(name, set()).add(str(value))
        other, settings = first.setdefault(tokenizers[key], (key[1], policy))
        for name in policy.keys() | settings.keys():
            if name != "pll" and policy.get(name) != settings.get(name):  # pll: of masked models only
                values = f"{name} is {settings.get(name)} in {other} and {policy.get(name)} in {key[1]}"
                raise RunError(
                    f"{label}: runs were scored under different settings ({values}). Score one of them again."
                )
    return [
        f"Scoring settings differ between models: {name} is {joined(sorted(values))}."
        for name, values in differing.items()
        if len(values) > 1
    ]


def over_sizes(measured: pd.DataFrame) -> pd.DataFrame:
    """Average measures over the runs of a curve and size.

    Args:
        measured: one row per run and measure: RUN_COLUMNS, level, name, items, accuracy, and some of sd, ties, unknown
            and known (eval.diagnostics.measures.MEASURES).

    Returns:
        curve, size, sample_words (missing for models without a known amount of text), level, name, runs, the means of
        these columns, and low and high: Wilson's 95% interval of the mean accuracy for new items of the same kind.
    """
    columns = [name for name in ("items", "accuracy", "sd", "ties", "unknown", "known") if name in measured]
    groups = measured.groupby([*_AT, *MEASURE], sort=False, dropna=False)
    means = groups[columns].mean().assign(runs=groups.size()).reset_index()
    return with_limits(means)


def with_limits(rows: pd.DataFrame) -> pd.DataFrame:
    """Add low and high, Wilson's 95% interval of `accuracy` for new items, to rows of accuracy and items."""
    limits = [wilson(share, items) for share, items in rows[["accuracy", "items"]].to_numpy(dtype=float)]
    return rows.assign(low=[low for low, _ in limits], high=[high for _, high in limits])


def published_next_to(benchmark: str, means: pd.DataFrame, columns: Sequence[str] = COLUMNS) -> pd.DataFrame:
    """Return a paper's measures that `means` of `over_sizes` has, too: `columns`, items, low and high."""
    rows = read_published(benchmark, columns).assign(model=lambda of: of["model"] + PAPER)
    return with_limits(rows.merge(means.drop_duplicates(MEASURE)[[*MEASURE, "items"]], on=MEASURE))


def table_of_models(rows: pd.DataFrame, column: str, order: list[str]) -> pd.DataFrame:
    """Return accuracies with a row per model, and a column for each of `order`, which are values of `column`."""
    table = rows.pivot(index="model", columns=column, values="accuracy")
    return table.reindex(index=rows["model"].unique(), columns=order).rename_axis(None, axis=1).reset_index()


def at_largest(means: pd.DataFrame) -> pd.DataFrame:
    """Return rows at each curve's largest size, and those of models without a known amount of text."""
    largest = means.groupby("curve")["sample_words"].transform("max")
    return means[(means["sample_words"] == largest).fillna(False) | means["sample_words"].isna()].reset_index(drop=True)


def on_curves(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of curves with at least two sizes."""
    sizes = measured.groupby("curve")["sample_words"].transform("nunique")
    return measured[measured["sample_words"].notna() & (sizes > 1)].reset_index(drop=True)


def slopes(measured: pd.DataFrame, label: str, confidence: float) -> pd.DataFrame:
    """Fit each measure over log2(sample_words); the statistics are those of `analysis.fit_curves`.

    Returns:
        The columns of `fit_curves` for curves with two sizes or more, a row per curve and measure: `method` is the
        measure's level, and `level` is "phenomenon".
    """
    rows = on_curves(measured)
    unit = rows["level"] + "/" + rows["name"]
    known = dict(zip(unit, rows[MEASURE].itertuples(index=False, name=None), strict=True))
    table = rows.assign(benchmark=label, method="", phenomenon=unit, paradigm=None, pairs=rows["items"])
    fitted = fit_curves(table.drop(columns=MEASURE), confidence)
    fitted = fitted[fitted["level"] == "phenomenon"].reset_index(drop=True)
    names = [known[unit] for unit in fitted["name"]]
    return fitted.assign(method=[level for level, _ in names], name=[name for _, name in names])


def lead_of(answers: Answers, about: str) -> str:
    """Return a sentence on the runs after one on the items."""
    runs = answers.runs
    placed = runs["sample_words"].notna()
    parts = []
    if placed.any():
        ends = runs.loc[placed, "sample_words"].agg(["min", "max"])
        small, large = size_text(ends["min"]), size_text(ends["max"], str(runs.loc[placed, "unit"].iloc[0]))
        text = f"{small} to {large}" if ends["min"] < ends["max"] else large
        curves = joined([str(curve) for curve in runs.loc[placed, "curve"].unique()])
        parts.append(f"{plural(int(placed.sum()), 'run')} of {curves} on {text}")
    if not placed.all():
        parts.append(f"{plural(int((~placed).sum()), 'pretrained model')} whose amount of training text isn't known")
    return f"{about} {' and '.join(parts)}."


def findings(fitted: pd.DataFrame, confidence: float, what: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return a sentence per row of `slopes`, with its curve; `what` returns the subject of a measure's sentence."""
    return [(str(row.curve), finding(row, confidence, what(str(row.name)))) for row in fitted.itertuples()]


def finding(row: Any, confidence: float, what: str) -> str:
    """Return how much a measure changes with more text; `row`: of `slopes`, `what`: such as "The share"."""
    ends = f"{row.smallest_accuracy:.2f} after {size_text(row.smallest_words)}"
    ends += f" and {row.largest_accuracy:.2f} after {size_text(row.largest_words, row.unit)}"
    if pd.isna(row.low):
        return f"{what} is {ends}. The change has no confidence interval: {row.note}"
    limits = f"{slope_text(row.slope)} per doubling, {level_text(confidence)} interval {slope_text(row.low)} to "
    limits += slope_text(row.high)
    if row.low <= 0 <= row.high:
        return f"{what} is {ends}. We can't tell whether it changes with more text ({limits})."
    return f"{what} {'rises' if row.low > 0 else 'falls'} with more text ({limits}). It is {ends}."


def beside(rows: pd.DataFrame, axis_title: str) -> dict[str, Callable[..., Chart]]:
    """Return a figure of measures in rows with a mark per model; `rows`: model, measure, accuracy, low and high."""
    looks = looks_of(list(dict.fromkeys(rows["model"])))
    named = rows.assign(name=rows["measure"])
    return {"models": partial(dot_chart, named, "accuracy", Axis(axis_title), looks, by="model", reference=None)}


def over_text(
    measured: pd.DataFrame,
    fitted: pd.DataFrame,
    wanted: Sequence[tuple[str, str, str]],
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
    rows = on_curves(measured)
    charts, tables = {}, []
    for place, (level, name, heading) in enumerate(wanted):
        drawn = rows[(rows["level"] == level) & (rows["name"] == name)]
        if drawn.empty:
            continue
        lines = None if levels is None else levels[(levels["level"] == level) & (levels["name"] == name)]
        looks = looks_of(list(dict.fromkeys(drawn["curve"])))
        unit = str(drawn["unit"].iloc[0])
        charts[f"sizes-{place}"] = partial(_size_chart, drawn, lines, axis_title, looks, unit, heading)
        slope = fitted[(fitted["method"] == level) & (fitted["name"] == name)]
        tables.append(slope.assign(measure=heading))
    if not charts:
        return None
    table = pd.concat(tables).rename(columns={"smallest_accuracy": "smallest", "largest_accuracy": "largest"})
    table = table[["measure", "curve", "runs", "sizes", "smallest", "largest", "slope", "low", "high", "note"]]
    about = "Each mark is a run, and lines join the means of sizes. The table has slopes per doubling of the text."
    about += "" if levels is None else " Level lines show chance and published models."
    definitions = {"Smallest, largest": "Means over the runs at the curve's smallest and largest size."}
    return Exhibit(
        "sizes", "By training text", about, table, cells={"slope": slope_text}, confidence=confidence, charts=charts,
        definitions=definitions,
    )  # fmt: skip


def _size_chart(
    rows: pd.DataFrame,
    levels: pd.DataFrame | None,
    axis_title: str,
    looks: pd.DataFrame,
    unit: str,
    heading: str,
    *,
    frame: Frame,
) -> Chart:
    chart = line_chart(rows, "accuracy", Axis(axis_title, ".2~f"), looks, unit=unit, heading=heading, frame=frame)
    if levels is None or levels.empty:
        return chart
    named = levels.groupby("accuracy", as_index=False, sort=False).agg({"model": " and ".join})
    y = number("accuracy")
    rules = layer(named, "rule", {"y": y}, strokeDash=[3, 3], color=GREY)
    at = {"x": {"value": 0}, "y": y, "text": text("model")}
    names = layer(named, "text", at, align="left", dx=4, dy=-5, fontSize=10, color=TEXT_GREY)
    return {**chart, "layer": [rules, names, *chart["layer"]]}


def all_measures(means: pd.DataFrame, theirs: pd.DataFrame) -> Exhibit:
    """Return every measure at every size, with those of published models (`theirs`: model, level, name, accuracy)."""
    columns = {"level": "measure", "name": "items", "curve": "curve", "size": "size", "runs": "runs", "items": "number",
               "accuracy": "share", "low": "low", "high": "high", "sd": "± trials", "ties": "ties",
               "unknown": "not expressible", "known": "without these"}  # fmt: skip
    table = means[list(columns)].rename(columns=columns)
    wide = theirs.pivot(index=MEASURE, columns="model", values="accuracy").rename_axis(None, axis=1)
    table = table.join(wide, on=["measure", "items"])
    cells = dict.fromkeys(("number", "ties", "not expressible"), count)
    about = "Means over the runs of a size. Intervals are Wilson's 95% intervals for new items of the same kind."
    definitions = {"Not expressible": "Items with a word that the model can't express. They count as wrong."}
    return Exhibit("measures", "All measures", about, table, cells=cells, definitions=definitions)
