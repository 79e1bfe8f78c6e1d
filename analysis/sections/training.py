"""Sections on the runs themselves: perplexity, baselines without grammar, and where each run comes from."""

from functools import partial

import numpy as np
import pandas as pd

from analysis.curves.lines import fit_line
from analysis.curves.units import unit_accuracies
from analysis.figures.charts import Axis, line_chart
from analysis.formats import count, decimal_text, short_text
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.sections import section

_BASELINES = {
    "untrained": "untrained models",
    "sentence": "models of shuffled sentences",
    "sample": "models of shuffled text",
}


@section(order=70)
def perplexity(results: BenchmarkResults) -> list[Exhibit]:
    """Validation perplexity against training text."""
    kinds = {
        "valid_ppl": ("perplexity", "Perplexity", "Validation perplexity per reference word, sentence ends included."),
        "valid_pseudo_ppl": (
            "pseudo-perplexity",
            "Pseudo-perplexity of masked models",
            "Each token is predicted from all others of its sentence; this compares only with other masked models.",
        ),
    }
    shown = []
    for column, (name, heading, about) in kinds.items():
        runs = (
            results.runs[results.runs["curve"].isin(results.curves)]
            if column in results.runs
            else results.runs.iloc[:0]
        )
        runs = runs[runs[column].notna()] if len(runs) else runs
        if len(runs) and runs["sample_words"].notna().all():
            fits = perplexity_slopes(runs, column, results.options.confidence)
            unknown = runs["valid_oov_rate"].astype(float).max() if "valid_oov_rate" in runs else 0.0
            warning = (
                f" Up to {unknown:.1%} of the validation words are unknown to a model, so perplexities are comparable "
                "only between models with the same vocabulary."
                if unknown > 0
                else ""
            )
            draw = partial(
                line_chart, runs, column, Axis(heading, ",.0f", logarithmic=True), results.looks, unit=results.unit
            )
            table = fits.rename(columns={"factor": "factor per doubling"})
            shown.append(
                Exhibit(
                    name, heading, about + warning, table, cells={"factor per doubling": _factor}, charts={"runs": draw}
                )
            )
    return shown


def _factor(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}"


def perplexity_slopes(runs: pd.DataFrame, column: str, confidence: float) -> pd.DataFrame:
    """Return by which factor each doubling of the text multiplies perplexity, with HC3 confidence intervals.

    Fits log2(perplexity) on log2(sample_words) as `analysis.fit_curves` fits accuracies.
    """
    rows = []
    for curve, of in runs.groupby("curve", sort=False):
        x = np.log2(of["sample_words"].to_numpy(np.float64))
        line, y = fit_line(x, np.unique(x, return_inverse=True)[1]), np.log2(of[[column]].to_numpy(np.float64))
        slope, half = float((line.slope @ y)[0]), float(line.quantile(confidence) * np.sqrt(line.variances(y)[1])[0])
        rows.append((curve, 2**slope, 2 ** (slope - half), 2 ** (slope + half), len(of)))
    return pd.DataFrame(rows, columns=["curve", "factor", "low", "high", "runs"])


@section(order=75)
def baselines(results: BenchmarkResults) -> Exhibit | None:
    """How far untrained models and models of shuffled text get."""
    if results.baselines.empty:
        return None
    units = unit_accuracies(results.baselines)
    units = units[units["level"] != "paradigm"]
    largest = units.groupby(["model", "baseline"])["sample_words"].transform("max")
    units = units[(units["baseline"] == "untrained") | (units["sample_words"] == largest)]
    means = (
        units.groupby(["level", "name", "model", "baseline"], sort=False)["accuracy"]
        .agg(["mean", "size"])
        .reset_index()
    )
    table = pd.DataFrame(
        {
            "phenomenon": means["name"],
            "model": means["model"],
            "baseline": means["baseline"].map(_BASELINES),
            "runs": means["size"],
            "accuracy": means["mean"],
        }
    )
    about = (
        "Accuracy of models that saw no word order: untrained models prefer some words and lengths, and models of "
        "shuffled text prefer frequent words and words that occur together."
    )
    return Exhibit("baselines", "Baselines", about, table)


@section(order=85, default=False)
def trajectories(results: BenchmarkResults) -> Exhibit | None:
    """Accuracy of snapshots during training, over the words seen with repeats; never in one fit with curves."""
    if results.read_trajectories is None:
        return None
    table = results.read_trajectories()
    if table.empty:
        return None
    units = unit_accuracies(table)
    units = units[units["level"] == "overall"]
    draw = partial(line_chart, units, "accuracy", Axis("Overall accuracy"), results.looks, unit="words seen")
    means = units.groupby(["curve", "size", "sample_words"], as_index=False, sort=False)["accuracy"].agg(
        ["mean", "size"]
    )
    means = means.rename(columns={"sample_words": "words seen", "mean": "accuracy", "size_y": "runs"})
    about = (
        "Overall accuracy of snapshots during training, by the words seen, repeats included. The points of one "
        "training depend on each other, so there is no confidence interval."
    )
    shown = pd.DataFrame(
        {name: means.iloc[:, number] for number, name in enumerate(["curve", "size", "words seen", "accuracy", "runs"])}
    )
    return Exhibit(
        "trajectories", "During training", about, shown, cells={"words seen": count}, charts={"trajectories": draw}
    )


@section(order=90)
def runs(results: BenchmarkResults) -> list[Exhibit]:
    """Every run with its sample, cost and versions, and the runs that are left out."""
    columns = {
        "run": "run",
        "curve": "curve",
        "size": "size",
        "seed": "seed",
        "sample_words": "words",
        "words_seen": "words seen",
        "parameters": "parameters",
        "valid_ppl": "perplexity",
        "words_per_s": "words/s",
        "wall_s": "seconds",
        "device": "device",
        "commit": "commit",
        "versions": "versions",
        "sample": "sample",
    }
    table = (
        results.runs[[name for name in columns if name in results.runs]]
        .dropna(axis="columns", how="all")
        .rename(columns=columns)
    )
    if "sample" in table:
        table["sample"] = table["sample"].str[:16]
    cells = dict.fromkeys(("seed", "words", "words seen", "parameters", "words/s", "seconds"), count)
    shown = [
        Exhibit(
            "runs",
            "Runs",
            "The runs of this benchmark, with what they cost.",
            table.astype({name: float for name in ("seed",) if name in table}),
            cells={**cells, "perplexity": decimal_text, "samples": short_text},
        )
    ]
    if len(results.problems):
        about = "Runs that aren't in this report, and why."
        shown.append(Exhibit("left-out", "Runs left out", about, results.problems.reset_index(drop=True)))
    return shown
