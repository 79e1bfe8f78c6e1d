"""Sections on the form of curves: shapes, the words needed to match humans, and the order of acquisition."""

import math

import pandas as pd

from analysis.curves.acquisition import compare_orders, words_to_threshold
from analysis.curves.shapes import fit_shapes, words_text, words_to_humans
from analysis.formats import DASH, count, decimal_text, level_text, signed_text
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.sections import section


@section(order=80, default=False)
def shapes(results: BenchmarkResults) -> Exhibit | None:
    """A line, a power law and a logistic curve, compared by AICc and by predicting the largest size."""
    fits = fit_shapes(results.accuracies)
    if fits.empty:
        return None
    columns = {
        "name": "phenomenon", "curve": "curve", "shape": "shape", "aicc_above_best": "AICc above the best",
        "largest_accuracy": "at the largest size", "predicted": "predicted", "error": "error of prediction",
        "note": "note",
    }  # fmt: skip
    about = (
        "Three shapes fitted to each curve. The best one by AICc has 0. The prediction is what the smaller sizes give "
        "for the largest one. Its error is above 0 if the shape predicts too much."
    )
    cells = {"AICc above the best": decimal_text, "error of prediction": lambda value: signed_text(value, 3)}
    return Exhibit("shapes", "Shapes of curves", about, _shown(fits, columns), cells=cells)


@section(order=81, default=False)
def words_to_match_humans(results: BenchmarkResults) -> Exhibit | None:
    """How much text each curve would need to match the human baseline."""
    if results.humans.empty or results.accuracies.empty:
        return None
    words = words_to_humans(results.accuracies, results.humans, confidence=results.options.confidence)
    if words.empty:
        return None
    interval = f"{level_text(results.options.confidence)} interval"
    words["extrapolation"] = words["extrapolation"].map({True: "yes", False: "no"}).where(words["words"].notna(), DASH)
    columns = {
        "name": "phenomenon", "curve": "curve", "humans": "humans", "shape": "shape", "words": "words",
        "interval": interval, "extrapolation": "beyond the largest size", "note": "note",
    }  # fmt: skip
    about = (
        "The amount of training text at which each curve would reach the human baseline if it went on as it is. "
        "Amounts beyond the largest size are extrapolations. Intervals come from the fitted line (Fieller 1954) and "
        "may be unbounded."
    )
    return Exhibit(
        "words-to-match-humans",
        "Words needed to match humans",
        about,
        _shown(words, columns),
        cells={"words": _amount, "humans": lambda value: f"{value:.3f}".removeprefix("0")},
    )


@section(order=82, default=False)
def acquisition(results: BenchmarkResults) -> list[Exhibit]:
    """After how much text each phenomenon is acquired, and whether curves agree on the order."""
    everything = pd.concat([results.accuracies, results.baselines.assign(method=results.method)], ignore_index=True)
    words = words_to_threshold(everything, confidence=results.options.confidence)
    orders = compare_orders(words, confidence=results.options.confidence)
    interval = f"{level_text(results.options.confidence)} interval"
    limits = zip(words["low"], words["high"], strict=True)
    words[interval] = [DASH if pd.isna(low) else f"{_amount(low)} to {_amount(high)}" for low, high in limits]
    columns = {
        "name": "phenomenon", "curve": "curve", "rank": "rank", "words": "words", interval: interval,
        "status": "status", "threshold": "threshold", "note": "note",
    }  # fmt: skip
    about = (
        "The amount of text from which on accuracy stays .1 above its baseline, which is chance or an untrained "
        "model, whichever is higher."
    )
    shown = [
        Exhibit(
            "acquisition",
            "Order of acquisition",
            about,
            _shown(words, columns),
            cells={"words": _amount, "rank": count},
        )
    ]
    if len(orders):
        agreement = "Spearman's correlation of the orders in which two curves acquire the same units."
        table = orders.drop(columns=["benchmark", "method"])
        shown.append(Exhibit("acquisition-agreement", "Agreement on the order", agreement, table))
    return shown


def _shown(table: pd.DataFrame, columns: dict[str, str]) -> pd.DataFrame:
    """Return the overall rows and those of phenomena, with the columns that readers see."""
    rows = table.loc[table["level"] != "paradigm", list(columns)].rename(columns=columns)
    return rows.drop(columns="note") if (rows["note"] == "").all() else rows


def _amount(words: float) -> str:
    """Write an amount of text: 2.4M, beyond 1e20, never."""
    return DASH if pd.isna(words) else "never" if math.isinf(words) else words_text(words)
