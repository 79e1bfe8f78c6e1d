"""Judgment methods compared, and what they depend on besides grammar: length, probability, confidence."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.curves.fit import fit_curves
from analysis.curves.units import unit_accuracies
from analysis.figures.charts import Axis, line_chart
from analysis.figures.style import looks_of
from analysis.formats import count, level_text, per_cent_text, points, points_between, rows_of, short_text, signed_text
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.report.labels import in_order
from analysis.sections import section
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
    table = results.every_method
    if table["method"].nunique() < 2:
        return None
    units = unit_accuracies(table)
    units = units[units["level"] == "overall"]
    compared = method_differences(units, results.options.method, results.options.confidence)
    if not compared["difference"].fillna(0).any():
        return None  # all methods judge every pair alike
    at = units[units["sample_words"] == units.groupby("curve")["sample_words"].transform("max")]
    means = at.groupby(["curve", "method"], as_index=False, sort=False)["accuracy"].mean()
    shown = means.merge(compared, on=["curve", "method"], how="left")
    names = looks_of(list(units["method"].unique()))
    charts = {
        str(curve): partial(
            line_chart, rows, "accuracy", Axis("Accuracy"), names, by="method", unit=results.unit, heading=str(curve)
        )
        for curve, rows in units.groupby("curve", sort=False)
    }
    about = (
        "Overall accuracy by judgment method. The table has the mean at each curve's largest size, and how far each "
        f"method lies from {results.options.method} on the same runs, over all sizes."
    )
    interval = f"{level_text(results.options.confidence)} interval"
    return Exhibit(
        "methods",
        "Judgment methods",
        about,
        shown,
        cells={"difference": signed_text},
        charts=charts,
        intervals={interval: ("difference", "low", "high")},
        definitions={interval: "Of the mean difference between two methods on the same run (Student's t)."},
    )


def method_differences(units: pd.DataFrame, method: str, confidence: float) -> pd.DataFrame:
    """Return each method's overall accuracy minus that of `method`, paired by run.

    Returns:
        curve, method, difference (mean over runs), low, high and p (Student's t over runs; missing for one run, and
        if all differences are equal), runs.
    """
    wide = units.pivot(index=["curve", "run"], columns="method", values="accuracy")
    rows = []
    for curve, name in product(units["curve"].unique(), wide.columns):
        if name == method or method not in wide:
            continue
        change = (wide.loc[curve, name] - wide.loc[curve, method]).dropna().to_numpy()
        if not len(change):
            continue
        n, mean = len(change), float(change.mean())
        error = change.std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
        half = student.ppf(0.5 + confidence / 2, n - 1) * error if error > 0 else np.nan
        p = 2 * student.sf(abs(mean) / error, n - 1) if error > 0 else np.nan
        rows.append((curve, name, mean, mean - half, mean + half, p, n))
    return pd.DataFrame(rows, columns=["curve", "method", "difference", "low", "high", "p", "runs"])


@section(order=45, default=False)
def lengths(results: BenchmarkResults) -> Exhibit | None:
    """Accuracy by the difference of the two sentences' lengths (Ide et al. 2024, figure 2)."""
    if results.read_pairs is None:
        return None
    runs = results.largest.drop_duplicates(["run", "method"])
    parts = []
    for method, of_method in runs.groupby("method", sort=False):
        pairs = results.read_pairs(list(of_method["run"]), str(method)).dropna(subset=["good_tokens", "bad_tokens"])
        difference = (pairs["good_tokens"] - pairs["bad_tokens"]).clip(-WIDEST, WIDEST)
        parts.append(
            pairs.assign(method=method, difference=difference)[["curve", "method", "difference", "correct", "run"]]
        )
    judged = pd.concat(parts, ignore_index=True)
    if judged["difference"].nunique() < 2:
        return None
    rows = []
    for key, of in judged.astype({"difference": int}).groupby(["curve", "method", "difference"], sort=True):
        share = float(of["correct"].mean())
        rows.append((*key, len(of), share, *wilson(share, len(of) / of["run"].nunique())))
    table = pd.DataFrame(rows, columns=["curve", "method", "difference", "judgments", "accuracy", "low", "high"])
    about = (
        "Accuracy by the tokens of the good sentence minus those of the bad one, at each curve's largest size, with "
        "Wilson's 95% intervals over the pairs of one run. A method without a bias towards longer or shorter "
        f"sentences has a flat line (Ide et al. 2024, figure 2). {WIDEST} stands for {WIDEST} and more."
    )
    return Exhibit("lengths", "Unequal lengths", about, table, cells={"difference": lambda value: f"{value:+.0f}"})


@section(order=46, default=False)
def predictors(results: BenchmarkResults) -> Exhibit | None:
    """Accuracy by length, perplexity, probability and confidence (Warstadt et al. 2020, section 5.2 and figure 2)."""
    if results.read_pairs is None or "lp" not in set(results.every_method["method"]):
        return None
    runs = results.largest[results.largest["method"] == "lp"]["run"].unique()
    pairs = results.read_pairs(list(runs), "lp")
    rows = [
        part
        for curve, of in pairs.groupby("curve", sort=False)
        for part in accuracy_in_bins(shallow_predictors(of), str(curve))
    ]
    if not rows:
        return None
    table = pd.DataFrame(rows, columns=["curve", "predictor", "tenth", "median", "judgments", "accuracy"])
    about = (
        "Accuracy in ten bins of the length, perplexity and log-probability of the good sentence and of the model's "
        "confidence (Warstadt et al. 2020, section 5.2), at each curve's largest size. Bins are quantiles within "
        "each paradigm, so that no trend arises because easy paradigms have long sentences."
    )
    return Exhibit(
        "predictors",
        "Shallow predictors",
        about,
        table,
        cells={"median": short_text, "judgments": count, "tenth": count},
    )


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


def accuracy_in_bins(pairs: pd.DataFrame, curve: str) -> list[tuple[str, str, int, float, int, float]]:
    """Return curve, predictor, tenth (1 to 10), median, judgments and accuracy of each bin, the lowest bins first.

    The accuracy of a bin is the mean over paradigms, plus how far the bin lies above each paradigm's own accuracy, on
    average. Paradigms in which a predictor doesn't vary are left out of its bins.
    """
    rows = []
    for predictor, label in PREDICTORS.items():
        known = pairs.loc[np.isfinite(pairs[predictor]), ["paradigm", "correct", predictor]]
        known = known[known.groupby("paradigm")[predictor].transform("nunique") > 1]
        within = known.groupby("paradigm")
        place = (within[predictor].rank() - 0.5) / within[predictor].transform("size")
        level = within["correct"].mean()
        for tenth, part in known.groupby(np.floor(place * BINS).clip(0, BINS - 1)):
            means = part.groupby("paradigm")["correct"].mean()
            accuracy = float(level.mean() + (means - level[means.index]).mean())
            rows.append((curve, label, 1 + int(tenth), float(part[predictor].median()), len(part), accuracy))
    return rows


@section(order=50)
def unknown_words(results: BenchmarkResults) -> Exhibit | None:
    """Shares of pairs with unknown words and of ties, and accuracy without unknown words."""
    counted = results.accuracies.dropna(subset=["pairs", "pairs_with_unk", "ties"])
    keys = ["curve", "size", "sample_words"]
    sums = counted.groupby(keys, sort=False)[["pairs", "pairs_with_unk", "ties"]].sum().astype(float)
    takeaways: list[tuple[str, str]] = []
    if sums.empty or not (sums["pairs_with_unk"].any() or sums["ties"].any()):
        return None
    sums = sums.sort_index(level="sample_words", sort_remaining=False)
    sums = sums.sort_index(level="curve", sort_remaining=False, kind="stable")
    known = [name for name in ("ties", "pairs_with_unk") if sums[name].any()]
    shares = sums[known].div(sums["pairs"], axis=0)
    table = shares.reset_index().rename(columns={"ties": "tied", "pairs_with_unk": "with an unknown word"})
    cells = {"tied": per_cent_text, "with an unknown word": per_cent_text}
    about = "Shares of pairs that are tied, and that contain an unknown word in either sentence."
    if sums["pairs_with_unk"].any() and results.read_without_unknown is not None:
        free = in_order(results.read_without_unknown(), results.curves)
        free = free[free["run"].isin(results.accuracies["run"])]
        if len(free):
            number = int(free.drop_duplicates("paradigm")["pairs"].sum())
            table = table.merge(_overall(results.units, "all pairs"), on=["curve", "size"])
            table = table.merge(
                _overall(unit_accuracies(free), "without unknown words"), on=["curve", "size"], how="left"
            )
            about += (
                " The last columns compare overall accuracy on all pairs and on the "
                f"{number:,} pairs that contain no unknown word in any run."
            )
            fits = rows_of(fit_curves(free, results.options.confidence))
            takeaways = [_slope_without(row, results) for row in fits if row.level == "overall"]
    return Exhibit(
        "unknown-words",
        "Unknown words and ties",
        about,
        table.drop(columns="sample_words"),
        cells=cells,
        takeaways=takeaways,
    )


def _overall(units: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return overall accuracy by curve and size, as the column `name`."""
    whole = units[units["level"] == "overall"]
    return whole.groupby(["curve", "size"], sort=False)["accuracy"].mean().rename(name).reset_index()


def _slope_without(row: Any, results: BenchmarkResults) -> tuple[str, str]:
    """Compare the overall slope on pairs without unknown words with that on all pairs."""
    of = results.slopes[(results.slopes["level"] == "overall") & (results.slopes["curve"] == row.curve)].iloc[0]
    texts = []
    for slope, low, high in ((of["slope"], of["low"], of["high"]), (row.slope, row.low, row.high)):
        limits = "" if pd.isna(low) else f" ({points_between(low, high)})"
        texts.append(f"{points(slope, low, high) if limits else points(slope)}{limits}")
    text = f"{texts[1]} points per doubling without unknown words, {texts[0]} on all pairs."
    return str(row.curve), text
