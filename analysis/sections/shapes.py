"""Sections on the form of curves: shapes, the words needed to match humans, and the order of acquisition."""

from analysis.curves.acquisition import compare_orders, words_to_threshold
from analysis.curves.shapes import fit_shapes, words_to_humans
from analysis.formats import count, decimal_text, short_text
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.sections import section


@section(order=80, default=False)
def shapes(results: BenchmarkResults) -> Exhibit | None:
    """A line, a power law and a logistic curve, compared by AICc and by predicting the largest size."""
    table = fit_shapes(results.accuracies)
    if table.empty:
        return None
    about = (
        "Three shapes fitted to each curve. A lower AICc is better. The prediction error is the accuracy at the "
        "largest size minus what the smaller sizes predict for it."
    )
    return Exhibit(
        "shapes", "Shapes of curves", about, table.drop(columns=["benchmark", "method"]), cells={"aicc": decimal_text}
    )


@section(order=81, default=False)
def words_to_match_humans(results: BenchmarkResults) -> Exhibit | None:
    """How much text each curve would need to match the human baseline."""
    if results.humans.empty or results.accuracies.empty:
        return None
    table = words_to_humans(results.accuracies, results.humans)
    if table.empty:
        return None
    about = (
        "The amount of training text at which each curve would reach the human baseline if it went on as it is. "
        "Amounts beyond the largest size are extrapolations. Intervals come from the fitted line (Fieller 1954) and "
        "may be unbounded."
    )
    shown = table.drop(columns=["benchmark", "method"])
    cells = dict.fromkeys(("words", "low", "high", "words_line", "words_power_law", "words_logistic"), short_text)
    return Exhibit("words-to-match-humans", "Words needed to match humans", about, shown, cells=cells, intervals={})


@section(order=82, default=False)
def acquisition(results: BenchmarkResults) -> list[Exhibit]:
    """After how much text each phenomenon is acquired, and whether curves agree on the order."""
    import pandas as pd

    everything = pd.concat([results.accuracies, results.baselines.assign(method=results.method)], ignore_index=True)
    words = words_to_threshold(everything, confidence=results.options.confidence)
    orders = compare_orders(words, confidence=results.options.confidence)
    table = (
        words[words["level"] != "paradigm"]
        .drop(columns=["benchmark", "method", "level"])
        .rename(columns={"name": "phenomenon"})
    )
    about = (
        "The amount of text from which on accuracy stays .1 above its baseline, which is chance or an untrained "
        "model, whichever is higher."
    )
    cells = dict.fromkeys(("words", "low", "high"), short_text) | {"rank": count}
    shown = [Exhibit("acquisition", "Order of acquisition", about, table, cells=cells, intervals={})]
    if len(orders):
        agreement = "Spearman's correlation of the orders in which two curves acquire the same units."
        shown.append(
            Exhibit(
                "acquisition-agreement",
                "Agreement on the order",
                agreement,
                orders.drop(columns=["benchmark", "method"]),
            )
        )
    return shown
