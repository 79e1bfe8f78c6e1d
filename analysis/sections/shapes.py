"""Report the shapes of curves, the words needed to match humans, and the order of acquisition."""

import pandas as pd

from analysis.curves.acquisition import words_to_threshold
from analysis.curves.shapes import fit_shapes, interval_texts, words_text, words_to_humans
from analysis.formats import DASH, level_text
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit, for_readers
from analysis.sections import section


@section(order=80, default=False)
def shapes(results: BenchmarkResults) -> Exhibit | None:
    """Compare a line, a power law and a logistic curve by AICc, and by how well they predict the largest size."""
    fits = fit_shapes(results.accuracies)
    if fits.empty:
        return None
    columns = "name curve shape aicc_above_best largest_accuracy predicted error note"
    about = (
        "Three shapes are fitted to each curve. The best shape by AICc has the value 0. The accuracy at the largest "
        "size is predicted from the smaller sizes. The error is positive if the prediction is too high."
    )
    return Exhibit("shapes", "Shapes of curves", about, for_readers(fits[fits["level"] != "paradigm"], columns))


@section(order=81, default=False)
def words_to_match_humans(results: BenchmarkResults) -> Exhibit | None:
    """Show how much text each curve would need to match the human baseline."""
    if results.humans.empty or results.accuracies.empty:
        return None
    confidence = results.options.confidence
    words = words_to_humans(results.accuracies, results.humans, confidence=confidence)
    words = words[words["level"] != "paradigm"]
    if words.empty:
        return None
    words["extrapolation"] = words["extrapolation"].map({True: "yes", False: "no"}).where(words["words"].notna(), DASH)
    about = (
        "The table shows the amount of training text at which each curve's line would reach the human baseline. "
        "Amounts beyond the largest size are extrapolations. Intervals (Fieller 1954) may be unbounded."
    )
    table = for_readers(words, "name curve humans words interval extrapolation note")
    table = table.rename(columns={"interval": f"{level_text(confidence)} interval"})
    return Exhibit("words-to-match-humans", "Words needed to match humans", about, table, cells={"words": words_text})


@section(order=82, default=False)
def acquisition(results: BenchmarkResults) -> Exhibit:
    """Show how much text it takes to acquire each phenomenon."""
    confidence = results.options.confidence
    everything = pd.concat([results.accuracies, results.baselines.assign(method=results.method)], ignore_index=True)
    words = words_to_threshold(everything, confidence=confidence, chance=results.chance)
    words["interval"] = interval_texts(words["low"], words["high"])
    about = (
        "The table shows the amount of text after which accuracy stays at least .1 above its baseline. The baseline is "
        "the highest of chance, the untrained model and the model trained on shuffled text."
    )
    table = for_readers(words[words["level"] != "paradigm"], "name curve rank words interval status threshold note")
    table = table.rename(columns={"interval": f"{level_text(confidence)} interval"})
    return Exhibit("acquisition", "Order of acquisition", about, table, cells={"words": words_text})
