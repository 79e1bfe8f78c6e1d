"""Report the perplexity of runs, baselines that saw no word order, and the cost of each run."""

from functools import partial

import numpy as np
import pandas as pd

from analysis.curves.fit import fit_values
from analysis.curves.units import unit_accuracies
from analysis.figures.charts import Axis, line_chart
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit, for_readers
from analysis.sections import section

_PERPLEXITIES = {
    "valid_ppl": ("perplexity", "Perplexity", "Validation perplexity is per reference word, including sentence ends."),
    "valid_pseudo_ppl": (
        "pseudo-perplexity",
        "Pseudo-perplexity of masked models",
        "Each token is predicted from the rest of its sentence, so compare these values only between masked models.",
    ),
}
_BASELINES = {
    "untrained": "untrained models",
    "sentence": "models of shuffled sentences",
    "sample": "models of shuffled text",
}


@section(order=70)
def perplexity(results: BenchmarkResults) -> list[Exhibit]:
    """Show validation perplexity by amount of training text."""
    exhibits = []
    for column, (name, heading, about) in _PERPLEXITIES.items():
        runs = results.curve_runs.dropna(subset=[column, "sample_words"])
        if runs.empty:
            continue
        unknown = runs["valid_oov_rate"].astype(float).max()
        if unknown > 0:
            about += (
                f" Up to {unknown:.1%} of the validation words are unknown to a model, so compare perplexities only "
                "between models with the same vocabulary."
            )
        axis = Axis(heading, ",.0f", logarithmic=True)
        table = for_readers(
            perplexity_slopes(runs, column, results.options.confidence), "curve factor low high runs note"
        )
        charts = {"runs": partial(line_chart, runs, column, axis, results.looks, unit=results.unit)}
        exhibits.append(Exhibit(name, heading, about, table, confidence=results.options.confidence, charts=charts))
    return exhibits


def perplexity_slopes(runs: pd.DataFrame, column: str, confidence: float) -> pd.DataFrame:
    """Fit log2(perplexity) over log2 of the training text (`fit_values`).

    The column `factor` is 2^slope, by which a doubling of the text multiplies perplexity. The columns low and high are
    its interval.
    """
    slopes = fit_values(runs, runs[column].astype(float).map(np.log2), confidence).rename(columns={"slope": "factor"})
    return slopes.assign(**2 ** slopes[["factor", "low", "high"]])


@section(order=75)
def baselines(results: BenchmarkResults) -> Exhibit | None:
    """Show the accuracy of untrained models and of models trained on shuffled text."""
    if results.baselines.empty:
        return None
    units = unit_accuracies(results.baselines)
    largest = units.groupby(["model", "baseline"])["sample_words"].transform("max")
    is_shown = (units["baseline"] == "untrained") | (units["sample_words"] == largest)
    units = units[is_shown & (units["level"] != "paradigm")]
    of_unit = units.groupby(["level", "name", "model", "baseline"], sort=False)["accuracy"]
    means = of_unit.agg(runs="size", accuracy="mean").reset_index().replace({"baseline": _BASELINES})
    about = (
        "The table shows the accuracy of models that saw no word order. Untrained models prefer some words and "
        "lengths. Models trained on shuffled text prefer frequent words and words that occur together."
    )
    return Exhibit("baselines", "Baselines", about, for_readers(means, "name model baseline runs accuracy"))


@section(order=85, default=False)
def trajectories(results: BenchmarkResults) -> Exhibit | None:
    """Show the accuracy of snapshots by words seen. Snapshots are never fitted together with curves."""
    table = results.read_trajectories() if results.studies else pd.DataFrame()
    if table.empty:
        return None
    units = unit_accuracies(table)
    units = units[units["level"] == "overall"].merge(table[["run", "moment"]].drop_duplicates())
    moments = units.groupby(["curve", "size", "moment"], sort=False)
    units["sample_words"] = moments["sample_words"].transform("mean").round()  # steps are whole, so seeds differ
    means = units.groupby(["curve", "size", "sample_words"], as_index=False).agg(
        accuracy=("accuracy", "mean"), runs=("accuracy", "size")
    )
    about = (
        "The figure shows the overall accuracy of snapshots by words seen in training, including repeats. The points "
        "of one training run depend on each other, so there are no confidence intervals."
    )
    sizes = results.runs.sort_values("sample_words")["size"].unique()
    panels = {size: units[units["size"] == size] for size in sizes if size in set(units["size"])}
    if len(panels) > 1:
        about += " Each panel shows the models trained on one amount of text."
    draw = partial(line_chart, value="accuracy", axis=Axis("Overall accuracy"), looks=results.looks, unit="words seen")
    return Exhibit(
        "trajectories",
        "During training",
        about,
        means.rename(columns={"sample_words": "words seen"}),
        charts={size: partial(draw, rows, heading=size if len(panels) > 1 else "") for size, rows in panels.items()},
    )


@section(order=90)
def runs(results: BenchmarkResults) -> list[Exhibit]:
    """List every run with its sample and its cost, and list the runs that are left out."""
    columns = "run curve size seed sample_words words_seen parameters valid_ppl words_per_s wall_s sample"
    table = for_readers(results.runs, columns)
    if "sample" in table:
        table["sample"] = table["sample"].str[:16]
    exhibits = [Exhibit("runs", "Runs", "These runs were scored on this benchmark.", table)]
    if len(results.problems):
        about = "These runs aren't in this report, or lack some scores."
        exhibits.append(Exhibit("left-out", "Runs left out", about, results.problems.reset_index(drop=True)))
    return exhibits
