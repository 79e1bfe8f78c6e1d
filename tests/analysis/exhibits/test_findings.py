"""Findings say no more than their intervals: the rules of analysis/exhibits/sentences/findings.py on small tables."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from analysis.curves.fit import Curves
from analysis.curves.groups import NO_INTERVAL
from analysis.exhibits.sentences.findings import comparisons, correlation, findings
from analysis.exhibits.tables.slopes import slope_table
from analysis.exhibits.tables.text import supported_digits
from tests.support.slopes_by_hand import NAN, curve

EIGHT = {"overall": (0.02, 0.01, 0.03)}


def sentences(*curves_of, unit="words"):
    """Return the findings about curves of `curve` by group."""
    slopes, at = (pd.concat(parts, ignore_index=True) for parts in zip(*curves_of, strict=True))
    of_curves = findings(Curves(slopes, at, pd.DataFrame()), unit, 0.95)
    return {finding.subject: finding.full for finding in [*of_curves, *correlation(slopes, 0.95)]}


def test_a_curve_rises_where_its_interval_lies_above_0():
    text = sentences(curve(EIGHT))["lstm"]
    assert text.startswith(
        "overall accuracy rises over 16k to 128k words: +.020 per doubling of the text (95% interval [+.010, +.030]); "
        ".500 at 16k words, .560 at 128k words."
    )
    assert "tokens (95%" not in text
    assert "over 16k to 128k tokens" in sentences(curve(EIGHT), unit="tokens")["lstm"]


def test_an_interval_that_holds_0_shows_no_change():
    """The review's example said "falls" for [-.0081, +.0010]."""
    text = sentences(curve({"overall": (-0.0036, -0.0081, 0.0010)}, ends=(0.56, 0.5)))["lstm"]
    assert "falls" not in text
    assert "overall accuracy: 8 runs do not show a change over 16k to 128k words (-.004 per doubling" in text
    assert "95% interval [-.008, +.001]" in text


def test_a_curve_falls_where_its_interval_lies_below_0():
    assert "overall accuracy falls over" in sentences(curve({"overall": (-0.02, -0.03, -0.01)}))["lstm"]


def test_without_an_interval_no_change_is_claimed():
    text = sentences(curve({"overall": (0.02, NAN, NAN)}, runs=3, note="one run a size"))["lstm"]
    assert "rises" not in text
    assert "without an interval (one run a size), so that nothing shows whether it changes" in text


def test_falling_phenomena_are_named_apart_from_those_without_a_change():
    slopes = {f"up_{i}": (0.1, 0.05, 0.15) for i in range(8)}
    slopes |= {"island_effects": (-0.02, -0.03, -0.01), "npi_licensing": (0.0, -0.01, 0.01)}
    text = sentences(curve(EIGHT | slopes))["lstm"]
    assert (
        "Accuracy rises in 8 of 10 phenomena; it falls in 1 (island effects); in the other one (NPI licensing), 8 runs "
        "do not show a change (by 95% intervals, not corrected for multiple comparisons)."
    ) in text
    assert "each for itself" not in text
    many = {f"down_{i}": (-0.02, -0.03, -0.01) for i in range(8)}
    assert all(f"down {i}" in sentences(curve(EIGHT | many))["lstm"] for i in range(8))


def test_without_a_direction_no_count_of_0_is_stated():
    flat = {"agreement": (0.0, -0.1, 0.1), "licensing": (0.0, -0.1, 0.1)}
    text = sentences(curve(EIGHT | flat))["lstm"]
    assert "8 runs do not show a change in any of the 2 phenomena (agreement and licensing) (by 95% intervals" in text
    one = sentences(curve(EIGHT | {"agreement": (0.0, -0.1, 0.1)}))["lstm"]
    assert "8 runs do not show a change in the one phenomenon (agreement) (by" in one
    left = sentences(curve(EIGHT | {"agreement": (0.0, -0.1, 0.1), "licensing": (0.0, np.nan, np.nan)}))["lstm"]
    assert "not show a change in the one phenomenon with an interval (agreement) (by" in left
    assert "comparisons). 1 phenomenon has no interval (licensing)." in left
    falls = sentences(curve(EIGHT | flat | {"binding": (-0.2, -0.3, -0.1)}))["lstm"]
    assert "Accuracy falls in 1 of 3 phenomena (binding); in the other 2 (agreement and licensing), 8 runs do" in falls


def test_what_rises_below_chance_is_named():
    """Tiny models rose from .39 to .46 in irregular forms: they did not learn these."""
    slopes, at = curve(
        EIGHT | {"irregular_forms": (0.02, 0.01, 0.03), "binding": (0.02, 0.01, 0.03)}, ends=(0.39, 0.46)
    )
    rows = [at.assign(level="phenomenon", name=name, accuracy=at["accuracy"] + more)
            for name, more in (("irregular_forms", 0.0), ("binding", 0.1))]  # fmt: skip
    text = sentences((slopes, pd.concat([at, *rows])))["lstm"]
    assert ".390 at 16k words, .460 at 128k words, below chance at all sizes." in text
    assert "Mean accuracy in irregular forms is below chance (.5) at all sizes, though it rises." in text
    assert "below chance" not in sentences(curve(EIGHT))["lstm"]


@pytest.mark.parametrize(
    ("log_odds", "expected"),
    [
        ((0.04, -0.01, 0.09), "does not confirm this: +.04 per doubling (95% interval [-.01, +.09], which holds 0)."),
        ((-0.04, -0.07, -0.01), "does not confirm this: -.040 per doubling (95% interval [-.070, -.010], the other"),
        ((0.04, 0.01, 0.09), None),
        ((NAN, NAN, NAN), None),
    ],
)
def test_a_rise_that_log_odds_do_not_confirm_says_so(log_odds, expected):
    slopes, at = curve(EIGHT)
    row = {"group": "lstm", "level": "overall", "name": "overall", "over": "runs and paradigms"}
    row |= dict(zip(("slope", "low", "high"), log_odds, strict=True))
    (finding,) = findings(Curves(slopes, at, pd.DataFrame()), "words", 0.95, pd.DataFrame([row]))
    assert ("log-odds" in finding.text) == (expected is not None)
    assert (expected or "") in finding.text


@pytest.mark.parametrize(
    ("second", "ranks", "expected"),
    [
        ((0.08, 0.04, 0.12), {"first": 1}, None),  # its interval overlaps with the first's
        ((0.03, 0.01, 0.05), {}, None),  # ranks are open
        (
            (0.03, 0.01, 0.05),
            {"first": 1},
            "Steepest: first (+.10, 95% interval [+.06, +.14]); its interval lies above all others.",
        ),
        (
            (0.09, 0.055, 0.13),
            {"first": 2, "second": 2},
            "Steepest: first (+.10, 95% interval [+.06, +.14]) and second (+.09, 95% interval [+.06, +.13]); their "
            "intervals lie above all others.",
        ),
    ],
)
def test_the_steepest_phenomenon_needs_separate_intervals_and_ranks(second, ranks, expected):
    rest = {"c": (0.01, -0.02, 0.045), "d": (0.0, -0.01, 0.01), "e": (0.0, -0.01, 0.01)}
    text = sentences(curve(EIGHT | {"first": (0.10, 0.06, 0.14), "second": second} | rest, ranks=ranks))["lstm"]
    assert ("Steepest" in text) == (expected is not None)
    assert (expected or "") in text
    assert "hallowest" not in text


def test_two_sizes_give_a_difference_and_no_slope():
    slopes = {"overall": (0.03, 0.01, 0.05)} | {
        f"p_{i}": (0.03 * i, 0.03 * i - 0.01, 0.03 * i + 0.01) for i in range(5)
    }
    two = [curve(slopes, group=group, sizes=("16k", "64k"), runs=4) for group in ("lstm", "txl")]
    texts = sentences(*two)
    assert set(texts) == {"lstm", "txl"}  # no correlation of slopes
    # two doublings apart
    assert ": .500 at 16k words, .560 at 64k words: a difference of +.06 (95% interval [+.02, +.10])." in texts["lstm"]
    assert "is higher at 64k words in 4 of 5 phenomena" in texts["lstm"]
    for word in ("slope", "teepest", "per doubling", "rises", "line"):
        assert word not in texts["lstm"], word
    none = sentences(curve({"overall": (0.01, -0.01, 0.03)}, sizes=("16k", "32k"), runs=4))["lstm"]
    assert "at 32k words: 4 runs do not show a difference (+.010, 95% interval [-.010, +.030])." in none
    slopes, at = two[0]
    points = at.assign(name="p_1", level="phenomenon")
    table = slope_table(Curves(slopes, pd.concat([at, points]), pd.DataFrame()))
    assert table[["r2", "rank"]].isna().all(axis=None)
    assert table["note"].eq("two sizes: a difference, not a curve").all()


def test_the_slope_without_unknown_words_stands_beside_that_of_all_pairs():
    slopes, at = curve(EIGHT)
    free = slopes.assign(pairs="without <unk>", n_pairs=1204)

    def without_unk(slope, low, high):
        return sentences((pd.concat([slopes, free.assign(slope=slope, low=low, high=high)]), at))["lstm"]

    assert (
        "On the 1,204 pairs without <unk>, 8 runs do not show a change (+.003 per doubling, 95% interval "
        "[-.001, +.007])."
    ) in without_unk(0.003, -0.001, 0.007)
    assert (
        "On the 1,204 pairs without <unk> it rises by .020 per doubling (95% interval [+.010, +.030])."
        in without_unk(0.02, 0.01, 0.03)
    )
    assert "it falls by .020 per doubling (95% interval [-.030, -.010])." in without_unk(-0.02, -0.03, -0.01)
    assert "On the 1,204 pairs without <unk>: +.020 per doubling, without an interval." in without_unk(0.02, NAN, NAN)
    assert "<unk>" not in sentences((slopes, at))["lstm"]
    two, at = curve(EIGHT, sizes=("16k", "64k"))
    text = sentences((pd.concat([two, two.assign(pairs="without <unk>", n_pairs=1204)]), at))["lstm"]
    assert "On the 1,204 pairs without <unk> it is higher by .040 (95% interval [+.020, +.060])." in text


def test_one_size_has_no_slope():
    text = sentences(curve({"overall": (NAN, NAN, NAN)}, sizes=("16k",), note="one size only: no slope"))["lstm"]
    assert text == "overall accuracy .500 at 16k words; one size only: no slope."


def test_a_rejected_line_is_reported_with_its_range_of_sizes():
    slopes = EIGHT | {"island_effects": (-0.02, -0.03, -0.01), "binding": (0.02, 0.01, 0.03)}
    text = sentences(curve(slopes, bent={"overall": 0.0004, "island_effects": 0.005, "binding": 0.2}))["lstm"]
    assert (
        "A straight line is rejected (lack of fit, p < .001), so that +.020 is an average over 16k to 128k words"
        in text
    )
    assert (
        "A straight line is rejected (lack of fit, p < .05, not corrected for multiple comparisons) in island effects: "
        "its slope is an average over 16k to 128k words." in text
    )
    assert "rejected" not in sentences(curve(slopes, bent={"overall": 0.3}))["lstm"]


def test_a_correlation_of_slopes_has_an_interval():
    x, y = np.array([0.0, 1, 2, 3, 4]) / 100, np.array([0.1, 1.3, 1.8, 3.4, 3.9]) / 100
    both = [
        curve(EIGHT | {f"p_{i}": (value, value - 0.01, value + 0.01) for i, value in enumerate(values)}, group=group)
        for group, values in (("lstm", x), ("txl", y))
    ]
    r = np.corrcoef(x, y)[0, 1]
    low, high = np.tanh(np.arctanh(r) + np.array([-1, 1]) * norm.ppf(0.975) / np.sqrt(5 - 3))  # Fisher's z, by hand
    shown = [f"{value:.2f}".replace("0.", ".", 1) for value in (r, low, high)]
    expected = "over 5 phenomena their slopes correlate (r = {}, 95% interval [{}, {}]).".format(*shown)
    assert sentences(*both)["lstm and txl"] == expected
    one_training = [(slopes.assign(low=NAN, high=NAN, method="none"), at) for slopes, at in both]
    assert set(sentences(*one_training)) == {"lstm", "txl"}


def comparison_sentence(bent=(), **values):
    row = {"group": "lstm", "other": "txl", "level": "overall", "name": "overall", "difference": -0.007, "low": -0.012,
           "high": -0.002, "p_holm": 0.01, "sizes": 2, "from_size": "16k", "to_size": "32k", "margin": 0.005,
           "p_equivalent": 0.4, "note": ""}  # fmt: skip
    slopes = pd.concat([curve(EIGHT, group=group, bent=dict.fromkeys(bent, 0.01))[0] for group in ("lstm", "txl")])
    ((about, text, _),) = comparisons(pd.DataFrame([row | values]), slopes, "words", 0.95)
    assert about == "lstm and txl"
    return text


def test_a_difference_needs_holms_p_value_and_equality_an_equivalence_test():
    assert comparison_sentence() == (
        "their changes in overall accuracy differ from 16k to 32k words, the two sizes that both have: -.007 per "
        "doubling (95% interval [-.012, -.002]; p = .010 after Holm's correction for 1 comparison)."
    )
    assert comparison_sentence(p_holm=0.06).startswith(
        "it is open whether their changes in overall accuracy differ from"
    )
    assert comparison_sentence(sizes=4, to_size="128k").startswith(
        "their overall slopes differ over the 4 sizes that both have (16k to 128k words): -.007 per doubling"
    )
    alike = {"difference": 0.001, "low": -0.002, "high": 0.004, "p_holm": 0.6, "p_equivalent": 0.02}
    same = comparison_sentence(**alike)
    assert same.startswith("their changes in overall accuracy do not differ by more than .005 per doubling from 16k")
    assert "(equivalence test, p = .020)" in same


def test_a_claim_of_equality_agrees_with_the_interval_beside_it():
    """Two one-sided tests at 5% go with a 90% interval: the 95% interval beside them may hold the margin."""
    alike = {"difference": 0.001, "low": -0.0035, "high": 0.0055, "p_holm": 0.6, "p_equivalent": 0.045}
    assert comparison_sentence(**alike).startswith("it is open whether")
    assert comparison_sentence(low=-0.016, high=0.002).startswith("it is open whether")  # of 99%, say


def test_a_comparison_whose_limits_are_left_out_is_left_open():
    left_out = dict.fromkeys(("low", "high", "p_holm", "p_equivalent"), NAN) | {"note": f"{NO_INTERVAL}few judgements"}
    assert comparison_sentence(**left_out) == (
        "it is left open whether their changes in overall accuracy differ from 16k to 32k words, the two sizes that "
        "both have: -.007 per doubling, without an interval (few judgements)."
    )


def test_a_comparison_says_which_line_is_rejected():
    four = {"sizes": 4, "to_size": "128k"}
    assert comparison_sentence(bent=["overall"], **four).endswith(
        "A straight line is rejected for lstm and txl, so this compares average slopes over 16k to 128k words, not the "
        "rates at any size."
    )
    assert "rejected" not in comparison_sentence(**four)
    assert "rejected" not in comparison_sentence(bent=["overall"])  # two sizes have no line to reject


@pytest.mark.parametrize(
    ("low", "high", "digits"),
    [(0.0082, 0.0187, 3), (-0.0081, 0.0010, 3), (0.01, 0.12, 2), (0.0211, 0.0234, 4), (0.0004, 0.0204, 4), (0, 0, 3)],
)
def test_digits_are_those_that_an_interval_supports(low, high, digits):
    assert supported_digits(low, high) == digits
