"""Findings say what the table says: direction, points, interval, and what a report can't tell."""

import math

import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from analysis.formats import points, supported_digits
from analysis.report.findings import (
    comparison_findings,
    curve_findings,
    extreme_findings,
    missing_runs,
    notes_of_runs,
    notes_of_scores,
    over_pairs,
    phenomena_findings,
    trials_of,
)
from eval.scores.accuracy import accuracies

SLOPE = {
    "curve": "LSTM", "level": "overall", "name": "overall", "unit": "words", "smallest_words": 4000,
    "largest_words": 64000, "smallest_accuracy": 0.608, "largest_accuracy": 0.886, "slope": 0.074, "low": 0.06,
    "high": 0.088, "lack_of_fit": math.nan, "note": "",
}  # fmt: skip
DIFFERENCE = {
    "curve": "LSTM", "other": "TXL", "level": "overall", "name": "overall", "difference": -0.016, "low": -0.03,
    "high": -0.002, "p_holm": 0.035, "equivalent": pd.NA, "note": "",
}  # fmt: skip
SCORES = {
    "run": "r", "curve": "LSTM", "size": "4k", "benchmark": "toy", "phenomenon": "binding", "paradigm": "p",
    "pairs": 100, "ties": 0, "pairs_with_unk": 0,
}  # fmt: skip
RUN = {"run": "r", "curve": "LSTM", "size": "4k", "sample_words": 4000, "overlap": 0.0, "vocabulary": "sample"}
UNKNOWN = {"low": math.nan, "high": math.nan}


def table(row, *changes):
    return pd.DataFrame([row | changed for changed in changes])


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({}, ["61% after 4k", "89% after 64k words", "adds", "7.4 points", "95% confidence", "6.0 to 8.8"]),
        ({"slope": -0.02, "low": -0.03, "high": -0.01}, ["takes away", "2.0 points", "1.0 to 3.0"]),
        ({"slope": 0.01, "low": -0.01, "high": 0.03}, ["can't tell", "by about 1.0 points", "-1.0 to 3.0"]),
        ({"slope": -0.01, "low": -0.03, "high": 0.01}, ["can't tell", "by about -1.0 points", "-3.0 to 1.0"]),
        ({**UNKNOWN, "note": "two runs: no interval"}, ["two runs: no interval."]),
        ({**UNKNOWN, "slope": math.nan}, ["only one training size", "interval over pairs"]),
        ({"lack_of_fit": 0.01}, ["isn't steady"]),
        ({"lack_of_fit": 0.2}, []),
    ],
)
def test_a_finding_has_both_ends_the_slope_and_how_sure_it_is(changes, parts):
    ((subject, text),) = curve_findings(table(SLOPE, changes), 0.95, {"LSTM": 150})
    assert subject == "LSTM"
    assert [part for part in parts if part not in text] == []
    assert ("isn't steady" in text) == (changes.get("lack_of_fit", 1) < 0.05)
    assert ("can't tell" in text) == ("can't tell" in parts)


def test_the_interval_over_pairs_is_wilsons():
    low, high = proportion_confint(133, 150, alpha=0.01, method="wilson")
    assert f"99% confidence interval over pairs {low:.0%} to {high:.0%}" in over_pairs(133 / 150, 150, 0.99)
    assert over_pairs(0.5, math.nan, 0.95) == ""


def test_an_overall_accuracy_has_the_interval_of_the_terminal_that_scores_it():
    """A mean over paradigms varies less than a share of as many pairs: eval and the report agree on it."""
    good = [1.0] * 27 + [0.0] * 3 + [1.0] * 4 + [0.0] * 6
    scores = pd.DataFrame({"paradigm": ["a"] * 30 + ["b"] * 10, "phenomenon": "binding", "good": good, "bad": 0.5})
    of_paradigms = accuracies(scores)
    overall = of_paradigms.set_index("level").loc["overall"]
    rows = of_paradigms[of_paradigms["level"] == "paradigm"].rename(columns={"name": "paradigm"})
    text = over_pairs(overall["accuracy"], trials_of(rows.assign(phenomenon="binding")), 0.95)
    assert f"{overall['low']:.0%} to {overall['high']:.0%}" in text
    assert math.isnan(trials_of(rows.assign(phenomenon="binding", pairs=math.nan)))


@pytest.mark.parametrize(
    ("changes", "confidence", "parts"),
    [
        ({}, 0.95, ["TXL gains faster", "1.6 points more", "0.2 to 3.0"]),
        ({"difference": 0.016, "low": 0.002, "high": 0.03}, 0.95, ["LSTM gains faster", "1.6 points more"]),
        ({}, 0.99, ["can't tell", "99% confidence interval"]),
        ({"p_holm": 0.2}, 0.95, ["can't tell"]),
        ({"p_holm": 0.4, "equivalent": True}, 0.95, ["within the margin"]),
        ({**UNKNOWN, "note": "why"}, 0.95, ["no confidence interval", "why."]),
    ],
)
def test_a_comparison_follows_the_corrected_p_value_and_names_the_better_curve_first(changes, confidence, parts):
    of = table(SLOPE, {}, {"curve": "TXL"})
    ((subject, text),) = comparison_findings(table(DIFFERENCE, changes), of, confidence)
    assert [part for part in parts if part not in f"{subject}: {text}"] == []
    assert comparison_findings(table(DIFFERENCE, changes), of.assign(slope=[0.1, math.nan]), confidence) == []


def test_phenomena_are_counted_and_unclear_ones_are_named():
    falls = {"name": "npi_licensing", "slope": -0.02, "low": -0.03, "high": -0.01}
    equal = {"name": "ellipsis", **UNKNOWN}
    rows = table(SLOPE, {"name": "island_effects"}, {"name": "binding", "low": -0.01}, falls, equal)
    ((_, text),) = phenomena_findings(rows.assign(level="phenomenon"))
    assert "rises in 1 of 4 phenomena. It falls in NPI licensing." in text
    assert "no confidence interval for ellipsis" in text
    assert "unclear in binding" in text


def test_the_first_screen_names_the_phenomena_with_the_steepest_and_the_flattest_slope():
    flat = {"name": "npi_licensing", "slope": 0.0, "low": -0.01, "high": 0.01, "largest_accuracy": 0.61}
    high = {"name": "b", "slope": 0.02, "largest_accuracy": 0.95}
    names = [{"name": "a", "slope": 0.01}, {"name": "island_effects", "slope": 0.03}, high]
    rows = table(SLOPE, *names, flat).assign(level="phenomenon")
    ((_, text),) = extreme_findings(rows)
    least = "least in NPI licensing (61% to 61%; the trend is unclear)"
    ends = "With the most text, it is best at b (95%) and worst at NPI licensing (61%)."
    assert text == f"LSTM gains most in island effects (61% to 89%) and {least}. {ends}"
    assert extreme_findings(rows.head(3)) == []
    ((_, text),) = extreme_findings(pd.concat([rows.assign(curve=str(number)) for number in range(4)]))
    assert text.count("gains most") == 3
    assert "other curves" in text


def scores(**changes):
    return notes_of_scores(table(SCORES, changes), "wrong")


def runs(**changes):
    return notes_of_runs(table(RUN, {}, {"run": "s"} | changes))


@pytest.mark.parametrize(
    ("notes", "changes", "part"),
    [
        (scores, {"pairs_with_unk": 5}, "5.0%"),
        (scores, {"ties": 1}, "ties"),
        (scores, {"pairs": 19}, "binding (19)"),
        (runs, {"overlap": 0.7}, "70%"),
        (runs, {"curve": "GPT-2", "sample_words": 8000}, "different sizes"),
        (runs, {"vocabulary": "pieces"}, "vocabulary"),
    ],
)
def test_what_readers_must_know_of_scores_and_runs_is_noted_from_its_threshold_on(notes, changes, part):
    assert notes() == []
    assert part in notes(**changes)[0]
    assert "2 runs (1 failed and 1 unscored)" in missing_runs(pd.DataFrame({"status": ["failed", "unscored"]}))[0]


@pytest.mark.parametrize(
    ("low", "high", "digits"), [(0.0082, 0.0187, 3), (0.06, 0.088, 3), (-0.1, 0.3, 2), (0.00021, 0.00034, 4), (0, 0, 3)]
)
def test_digits_follow_the_interval(low, high, digits):
    assert supported_digits(low, high) == digits
    assert points(0.0742, low, high) == f"{7.42:.{digits - 2}f}"
