"""Sections on the form of curves: shapes, the words needed to match humans, and the order of acquisition."""

import pandas as pd

from analysis.curves.acquisition import compare_orders, words_to_threshold
from analysis.curves.shapes import fit_shapes, interval_texts, words_text, words_to_humans
from analysis.formats import DASH, accuracy_text, count, decimal_text, level_text, signed_text
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Cell, Exhibit
from analysis.sections import for_readers, section


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
    cells = {"AICc above the best": decimal_text, "error of prediction": signed_text}
    table = for_readers(fits[fits["level"] != "paradigm"], columns)
    return Exhibit("shapes", "Shapes of curves", about, table, cells=cells)


@section(order=81, default=False)
def words_to_match_humans(results: BenchmarkResults) -> Exhibit | None:
    """How much text each curve would need to match the human baseline."""
    if results.humans.empty or results.accuracies.empty:
        return None
    confidence = results.options.confidence
    words = words_to_humans(results.accuracies, results.humans, confidence=confidence)
    words = words[words["level"] != "paradigm"]
    if words.empty:
        return None
    words["extrapolation"] = words["extrapolation"].map({True: "yes", False: "no"}).where(words["words"].notna(), DASH)
    columns = {
        "name": "phenomenon", "curve": "curve", "humans": "humans", "words": "words",
        "interval": f"{level_text(confidence)} interval", "extrapolation": "beyond the largest size", "note": "note",
    }  # fmt: skip
    about = (
        "The amount of training text at which the line of each curve would reach the human baseline. Amounts beyond "
        "the largest size are extrapolations. Intervals (Fieller 1954) may be unbounded."
    )
    cells: dict[str, Cell] = {"words": words_text, "humans": accuracy_text}
    table = for_readers(words, columns)
    return Exhibit("words-to-match-humans", "Words needed to match humans", about, table, cells=cells)


@section(order=82, default=False)
def acquisition(results: BenchmarkResults) -> list[Exhibit]:
    """After how much text each phenomenon is acquired, and whether curves agree on the order."""
    confidence = results.options.confidence
    everything = pd.concat([results.accuracies, results.baselines.assign(method=results.method)], ignore_index=True)
    words = words_to_threshold(everything, confidence=confidence)
    orders = compare_orders(words, confidence=confidence)
    words["interval"] = interval_texts(words["low"], words["high"])
    columns = {
        "name": "phenomenon", "curve": "curve", "rank": "rank", "words": "words",
        "interval": f"{level_text(confidence)} interval", "status": "status", "threshold": "threshold", "note": "note",
    }  # fmt: skip
    about = (
        "The amount of text from which on accuracy stays .1 above its baseline, which is chance or an untrained "
        "model, whichever is higher."
    )
    table, cells = for_readers(words[words["level"] != "paradigm"], columns), {"words": words_text, "rank": count}
    shown = [Exhibit("acquisition", "Order of acquisition", about, table, cells=cells)]
    if len(orders):
        agreement = "Spearman's correlation of the orders in which two curves acquire the same units."
        table = orders.drop(columns=["benchmark", "method"])
        shown.append(Exhibit("acquisition-agreement", "Agreement on the order", agreement, table))
    return shown
