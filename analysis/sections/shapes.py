"""Sections on the form of curves: shapes, the words needed to match humans, and the order of acquisition."""

import pandas as pd

from analysis.acquisition import acquisition_order, words_to_threshold
from analysis.benchmark import BenchmarkResults
from analysis.exhibit import Exhibit
from analysis.sections import section
from analysis.shapes import fit_shapes, words_to_humans


@section(order=80, default=False)
def shapes(results: BenchmarkResults) -> Exhibit | None:
    """A line, a power law and a logistic curve, compared by AICc and by predicting the largest size."""
    table = fit_shapes(results.accuracies)
    return Exhibit("shapes", "Shapes of curves", "", table) if len(table) else None


@section(order=81, default=False)
def words_to_match_humans(results: BenchmarkResults) -> Exhibit | None:
    """How much text each curve would need to match the human baseline."""
    if results.humans.empty or results.accuracies.empty:
        return None
    table = words_to_humans(results.accuracies, results.humans)
    return Exhibit("words-to-match-humans", "Words needed to match humans", "", table) if len(table) else None


@section(order=82, default=False)
def acquisition(results: BenchmarkResults) -> list[Exhibit]:
    """After how much text each phenomenon is acquired, and whether curves agree on the order."""
    table = words_to_threshold(results.accuracies)
    order = acquisition_order(table)
    shown = [Exhibit("acquisition", "Order of acquisition", "", table)]
    return [*shown, *([Exhibit("acquisition-agreement", "Agreement on the order", "", order)] if isinstance(order, pd.DataFrame) else [])]
