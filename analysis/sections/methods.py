"""Judgment methods compared, and what they depend on besides grammar: length, probability, confidence."""

from functools import partial

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from analysis.curves.fit import fit_curves
from analysis.curves.units import unit_accuracies
from analysis.figures.charts import Axis, line_chart
from analysis.figures.style import looks_of
from analysis.formats import count, level_text, per_cent_text, points, points_between, rows_of, short_text, signed_text
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Cell, Exhibit
from analysis.sections import for_readers, section
from pairscale.shares import wilson

WIDEST = 5  # tokens of difference between two sentences, from which on they are counted together
BINS = 10
PREDICTORS = {
    "length": "words of the good sentence",
    "perplexity": "perplexity per word of the good sentence",
    "log_probability": "log-probability of the good sentence (nats)",
    "confidence": "difference of the two log-probabilities (nats)",
}


@section(order=40)
def methods(results: BenchmarkResults) -> Exhibit | None:
    """Accuracy by judgment method, and the differences from the report's method, run by run."""
    units = unit_accuracies(results.every_method)
    units = units[units["level"] == "overall"]
    compared = method_differences(units, results.options.method, results.options.confidence)
    if not compared["difference"].fillna(0).any():
        return None  # there is one method, or all judge every pair alike
    at = units[units["sample_words"] == units.groupby("curve")["sample_words"].transform("max")]
    means = at.groupby(["curve", "method"], as_index=False, sort=False)["accuracy"].mean()
    names = looks_of(list(units["method"].unique()))
    draw = partial(line_chart, value="accuracy", axis=Axis("Accuracy"), looks=names, by="method", unit=results.unit)
    about = (
        "Overall accuracy by judgment method. The table has the mean at each curve's largest size, and how far each "
        f"method lies from {results.options.method} on the same runs, over all sizes."
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
        definitions={interval: "Of the mean difference between two methods on the same run (Student's t)."},
    )


def method_differences(units: pd.DataFrame, method: str, confidence: float) -> pd.DataFrame:
    """Return each method's overall accuracy minus that of `method`, paired by run.

    Returns:
        curve, method, difference (mean over runs), low, high and p (Student's t over runs; missing for one run, and
        if all differences are equal), runs.
    """
    wide = units.pivot(index=["curve", "run"], columns="method", values="accuracy")
    others = wide.drop(columns=method, errors="ignore")
    changes = others.sub(wide.reindex(columns=[method])[method], axis=0).melt(ignore_index=False).dropna()
    table = changes.groupby(["curve", "method"], sort=False)["value"].agg(["mean", "sem", "size"]).reset_index()
    table = table.rename(columns={"mean": "difference", "size": "runs"})
    error, degrees = table["sem"].where(table["sem"] > 0), table["runs"] - 1
    half = stdtrit(degrees, 0.5 + confidence / 2) * error
    p = 2 * stdtr(degrees, -(table["difference"] / error).abs())
    table = table.assign(low=table["difference"] - half, high=table["difference"] + half, p=p)
    return table[["curve", "method", "difference", "low", "high", "p", "runs"]]


@section(order=45, default=False)
def lengths(results: BenchmarkResults) -> Exhibit | None:
    """Accuracy by the difference of the two sentences' lengths (Ide et al. 2024, figure 2)."""
    if not results.studies:
        return None
    runs = results.largest.groupby("method", sort=False)["run"].unique()
    read = [results.read_pairs(list(of), str(method)).assign(method=str(method)) for method, of in runs.items()]
    judged = pd.concat(read, ignore_index=True).dropna(subset=["good_tokens", "bad_tokens"])
    difference = (judged["good_tokens"] - judged["bad_tokens"]).clip(-WIDEST, WIDEST).astype(int)
    if difference.nunique() < 2:
        return None
    of_length = judged.assign(difference=difference).groupby(["curve", "method", "difference"])
    table = of_length.agg(judgments=("correct", "size"), accuracy=("correct", "mean")).reset_index()
    pairs = table["judgments"] / of_length["run"].nunique().to_numpy()
    table["low"], table["high"] = zip(*map(wilson, table["accuracy"].astype(float), pairs), strict=True)
    about = (
        "Accuracy by the tokens of the good sentence minus those of the bad one, at each curve's largest size, with "
        "Wilson's 95% intervals over the pairs of one run. A method without a bias towards longer or shorter "
        f"sentences has a flat line (Ide et al. 2024, figure 2). {WIDEST} stands for {WIDEST} and more."
    )
    return Exhibit("lengths", "Unequal lengths", about, table, cells={"difference": lambda value: f"{value:+.0f}"})


@section(order=46, default=False)
def predictors(results: BenchmarkResults) -> Exhibit | None:
    """Accuracy by length, perplexity, probability and confidence (Warstadt et al. 2020, section 5.2 and figure 2)."""
    runs = results.largest[results.largest["method"] == "lp"]["run"].unique()
    if not results.studies or not len(runs):
        return None
    pairs = shallow_predictors(results.read_pairs(list(runs), "lp"))
    of_curves = {curve: accuracy_in_bins(of) for curve, of in pairs.groupby("curve", sort=False)}
    table = pd.concat(of_curves, names=["curve"]).reset_index("curve")
    if table.empty:
        return None
    about = (
        "Accuracy in ten bins of the length, perplexity and log-probability of the good sentence and of the model's "
        "confidence (Warstadt et al. 2020, section 5.2), at each curve's largest size. Bins are quantiles within "
        "each paradigm, so that no trend arises because easy paradigms have long sentences."
    )
    cells: dict[str, Cell] = {"median": short_text, "tenth": count}
    return Exhibit("predictors", "Shallow predictors", about, table.reset_index(drop=True), cells=cells)


def shallow_predictors(pairs: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of PREDICTORS to rows of `analysis.pairs` by the method lp.

    Perplexity is exp(-log-probability / words) over reference words, so that models of words and of word pieces
    compare. Confidence is |ln p(good) - ln p(bad)|.
    """
    words = pairs["good_words"].to_numpy(dtype=np.float64)
    good, bad = (pairs[f"{side}_score"].to_numpy(dtype=np.float64) for side in ("good", "bad"))
    with np.errstate(over="ignore"):
        perplexity = np.exp(-good / np.maximum(words, 1))
    return pairs.assign(length=words, perplexity=perplexity, log_probability=good, confidence=np.abs(good - bad))


def accuracy_in_bins(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return predictor, tenth (1 to 10), median, judgments and accuracy of each bin, the lowest bins first.

    The accuracy of a bin is the mean over paradigms, plus how far the bin lies above each paradigm's own accuracy, on
    average. Paradigms in which a predictor doesn't vary are left out of its bins.
    """
    tables = {}
    for predictor, label in PREDICTORS.items():
        known = pairs.loc[np.isfinite(pairs[predictor]), ["paradigm", "correct", predictor]]
        known = known[known.groupby("paradigm")[predictor].transform("nunique") > 1].astype({"correct": float})
        within = known.groupby("paradigm")
        place = (within[predictor].rank() - 0.5) / within[predictor].transform("size")
        tenth = 1 + np.floor(place * BINS).clip(0, BINS - 1).astype(int).rename("tenth")
        above = (known["correct"] - within["correct"].transform("mean")).groupby([tenth, known["paradigm"]]).mean()
        table = known.groupby(tenth)[predictor].agg(median="median", judgments="size")
        tables[label] = table.assign(accuracy=within["correct"].mean().mean() + above.groupby("tenth").mean())
    return pd.DataFrame(pd.concat(tables, names=["predictor"]).reset_index())


@section(order=50)
def unknown_words(results: BenchmarkResults) -> Exhibit | None:
    """Shares of pairs with unknown words and of ties, and accuracy without unknown words."""
    counted = results.accuracies.dropna(subset=["pairs", "pairs_with_unk", "ties"])
    sums = counted.groupby(["curve", "sample_words", "size"])[["ties", "pairs_with_unk", "pairs"]].sum().astype(float)
    shares = sums.loc[:, sums.any()].div(sums["pairs"], axis=0).drop(columns="pairs", errors="ignore")
    if shares.columns.empty:
        return None
    columns = {"curve": "curve", "size": "size", "ties": "tied", "pairs_with_unk": "with an unknown word"}
    table = for_readers(shares.reset_index(), columns)
    about = "Shares of pairs that are tied, and that contain an unknown word in either sentence."
    takeaways: list[tuple[str, str]] = []
    free = pd.DataFrame()
    if "pairs_with_unk" in shares and results.studies:
        free = results.read_without_unknown()
    if len(free):
        for name, units in {"all pairs": results.units, "without unknown words": unit_accuracies(free)}.items():
            whole = units[units["level"] == "overall"].groupby(["curve", "size"])["accuracy"].mean().rename(name)
            table = table.join(whole, on=["curve", "size"])
        about += (
            " The last columns compare overall accuracy on all pairs and on the "
            f"{int(free.drop_duplicates('paradigm')['pairs'].sum()):,} pairs that contain no unknown word in any run."
        )
        of_all = _slopes(results.slopes)
        takeaways = [
            (curve, f"{slope} points per doubling without unknown words, {of_all[curve]} on all pairs.")
            for curve, slope in _slopes(fit_curves(free, results.options.confidence)).items()
        ]
    return Exhibit(
        "unknown-words",
        "Unknown words and ties",
        about,
        table,
        cells={"tied": per_cent_text, "with an unknown word": per_cent_text},
        takeaways=takeaways,
    )


def _slopes(table: pd.DataFrame) -> dict[str, str]:
    """Return the overall slope of each curve in points, with its interval if there is one."""
    return {
        row.curve: points(row.slope, row.low, row.high)
        + ("" if pd.isna(row.low) else f" ({points_between(row.low, row.high)})")
        for row in rows_of(table[table["level"] == "overall"])
    }
