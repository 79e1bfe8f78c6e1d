"""Findings say what the table says: direction, points, interval, and what a report can't tell."""

import math

import pandas as pd
import pytest

from analysis.formats import points, supported_digits, title
from analysis.report.findings import (
    checked,
    comparison_findings,
    curve_findings,
    headline,
    missing_runs,
    notes_of_runs,
    notes_of_scores,
    phenomena_findings,
)


def slope(curve="LSTM", level="overall", name="overall", slope=0.074, low=0.06, high=0.088, **others):
    row = {
        "curve": curve,
        "level": level,
        "name": name,
        "unit": "words",
        "smallest_words": 4000,
        "largest_words": 64000,
        "smallest_accuracy": 0.608,
        "largest_accuracy": 0.886,
        "slope": slope,
        "low": low,
        "high": high,
        "lack_of_fit": math.nan,
        "note": "",
    }
    return row | others


def text_of(**changes):
    (finding,) = curve_findings(pd.DataFrame([slope(**changes)]), 0.95)
    assert finding.subject == "LSTM"
    return finding.text


def test_a_finding_has_both_ends_the_slope_and_its_interval():
    text = text_of()
    for part in (
        "61% correct after 4k",
        "89% after 64k words",
        "adds about 7.4 points",
        "6.0 to 8.8",
        "95% confidence",
    ):
        assert part in text


def test_a_falling_curve_loses_points_and_keeps_its_interval_in_order():
    text = text_of(slope=-0.02, low=-0.03, high=-0.01)
    assert "takes away about 2.0 points" in text
    assert "1.0 to 3.0" in text


def test_an_interval_with_zero_claims_nothing():
    text = text_of(slope=0.01, low=-0.01, high=0.03)
    assert "can't tell" in text
    assert "adds" not in text


def test_without_an_interval_the_reason_is_given():
    text = text_of(low=math.nan, high=math.nan, note="two runs: no interval")
    assert "two runs: no interval" in text


def test_one_size_has_no_curve():
    assert "only one training size" in text_of(slope=math.nan, low=math.nan, high=math.nan)


def test_lack_of_fit_is_said_below_five_per_cent_only():
    assert "isn't steady" in text_of(lack_of_fit=0.01)
    assert "isn't steady" not in text_of(lack_of_fit=0.2)


def test_the_headline_needs_every_curve():
    rising, unclear = slope(), slope("GPT-2", low=-0.01)
    assert "rises" in headline(pd.DataFrame([rising, slope("GPT-2")]))
    assert headline(pd.DataFrame([rising, unclear])) == ""
    assert headline(pd.DataFrame([rising])) == ""


def difference(**changes):
    row = {
        "curve": "LSTM",
        "other": "TXL",
        "level": "overall",
        "name": "overall",
        "difference": -0.016,
        "low": -0.03,
        "high": -0.002,
        "p_holm": 0.035,
        "equivalent": pd.NA,
        "note": "",
    }
    return pd.DataFrame([row | changes])


SLOPES = pd.DataFrame([slope(), slope("TXL")])


def test_where_both_curves_fall_the_better_one_loses_more_slowly():
    falling = pd.DataFrame([slope(slope=-0.02), slope("TXL", slope=-0.01)])
    (finding,) = comparison_findings(difference(), falling, 0.95)
    assert finding.subject == "TXL loses more slowly"


def test_the_verdict_follows_the_level_of_the_intervals():
    (finding,) = comparison_findings(difference(), SLOPES, 0.99)
    assert "can't tell" in finding.text
    assert "99% confidence interval" in finding.text


def test_curves_without_a_slope_are_not_compared():
    assert comparison_findings(difference(), SLOPES.assign(slope=[0.1, math.nan]), 0.95) == []


def test_the_faster_curve_is_named_first():
    (finding,) = comparison_findings(difference(), SLOPES, 0.95)
    assert finding.subject == "TXL gains faster"
    assert "1.6 points more" in finding.text
    assert "0.2 to 3.0" in finding.text
    (finding,) = comparison_findings(difference(difference=0.016, low=0.002, high=0.03), SLOPES, 0.95)
    assert finding.subject == "LSTM gains faster"


def test_a_difference_follows_the_adjusted_p_value():
    (finding,) = comparison_findings(difference(p_holm=0.2), SLOPES, 0.95)
    assert "can't tell" in finding.text


def test_equivalence_is_said_only_with_a_margin():
    (finding,) = comparison_findings(difference(p_holm=0.4, equivalent=True), SLOPES, 0.95)
    assert "equal within the margin" in finding.text


def test_phenomena_are_counted_and_unclear_ones_are_named():
    rows = [
        slope(level="phenomenon", name="island_effects"),
        slope(level="phenomenon", name="binding", low=-0.01),
        slope(level="phenomenon", name="npi_licensing", slope=-0.02, low=-0.03, high=-0.01),
    ]
    (finding,) = phenomena_findings(pd.DataFrame(rows))
    assert "rises in 1 of 3 phenomena and falls in 1 (NPI licensing)" in finding.text
    assert "unclear in binding" in finding.text


def scores(**changes):
    row = {
        "run": "r",
        "curve": "LSTM",
        "size": "4k",
        "benchmark": "toy",
        "phenomenon": "binding",
        "paradigm": "p",
        "pairs": 100,
        "ties": 0,
        "pairs_with_unk": 0,
    }
    return pd.DataFrame([row | changes])


def test_unknown_words_ties_and_few_pairs_are_noted_from_their_thresholds_on():
    assert notes_of_scores(scores(), "wrong") == []
    assert "5.0%" in notes_of_scores(scores(pairs_with_unk=5), "wrong")[0]
    assert "ties" in notes_of_scores(scores(ties=1), "wrong")[0]
    assert "binding (19)" in notes_of_scores(scores(pairs=19), "wrong")[0]


def runs(**changes):
    row = {"run": "r", "curve": "LSTM", "size": "4k", "sample_words": 4000, "overlap": 0.0, "vocabulary": "sample"}
    return pd.DataFrame([row, row | {"run": "s"} | changes])


def test_notes_of_runs_concern_sizes_shared_text_and_vocabulary():
    assert notes_of_runs(runs()) == []
    assert "70%" in notes_of_runs(runs(overlap=0.7))[0]
    assert "different sizes" in notes_of_runs(runs(curve="GPT-2", sample_words=8000))[0]
    assert "vocabulary" in notes_of_runs(runs(vocabulary="pieces"))[0]


def test_what_is_in_order_is_never_also_a_problem():
    problems = pd.DataFrame({"run": ["x"], "status": ["failed"], "reason": [""]})
    assert "no missing runs" in checked(scores(), runs(), complete=True)
    assert "no missing runs" not in checked(scores(), runs(), complete=False)
    assert "1 failed" in missing_runs(problems)[0]
    assert "no ties" not in checked(scores(ties=1), runs(), complete=False)


@pytest.mark.parametrize(
    ("low", "high", "digits"), [(0.0082, 0.0187, 3), (0.06, 0.088, 3), (-0.1, 0.3, 2), (0.00021, 0.00034, 4), (0, 0, 3)]
)
def test_digits_follow_the_interval(low, high, digits):
    assert supported_digits(low, high) == digits


def test_points_have_the_digits_of_their_interval():
    assert points(0.0742, 0.06, 0.088) == "7.4"
    assert points(0.0742, -0.1, 0.3) == "7"


@pytest.mark.parametrize(
    ("name", "text"),
    [("npi_licensing", "NPI licensing"), ("determiner_noun_agreement", "Determiner-noun agreement"), ("own", "Own")],
)
def test_titles(name, text):
    assert title(name) == text
