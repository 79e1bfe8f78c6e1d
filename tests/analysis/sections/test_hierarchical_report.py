"""The hierarchical model in the report: exhibits and sentences, from draws that are known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.config import KEEP, LEAVE_OUT, CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.curves.groups import FEW
from analysis.curves.hierarchical.checks import diagnose, predictive_rows
from analysis.curves.hierarchical.fit import (
    OF_DIFFERENCES,
    OF_SLOPES,
    OTHER,
    Hierarchical,
    beside_default,
    without_cautioned,
    without_ranks,
)
from analysis.curves.hierarchical.posterior import SLOPE_COLUMNS, difference_rows, rank_rows, slope_rows
from analysis.exhibits.figures.style import finished
from analysis.exhibits.sentences.hierarchical import beside_sentence, hierarchical_findings, sampler_sentence
from analysis.sections.hierarchical.exhibits import (
    differences_exhibit,
    hierarchical,
    predictive_exhibit,
    rank_summary,
    slopes_exhibit,
)
from analysis.sections.section import Section
from tests.support.known_posterior import judgements, known_posterior
from tests.support.simulated_section import report_of

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1, cautioned_limits=KEEP)


@pytest.fixture(scope="module")
def section():
    judged = judgements()
    judged.runs["reference"] = "treebank"
    curves, posterior = fit_curves(judged, CONFIG), known_posterior(judged)
    slopes = without_cautioned(slope_rows(posterior, 0.95), OF_SLOPES, CONFIG)
    differences = without_cautioned(difference_rows(posterior, 0.95), OF_DIFFERENCES, CONFIG)
    of = Hierarchical(
        beside_default(slopes, curves), differences, rank_rows(posterior, 0.1),
        predictive_rows(posterior, 0.95, np.random.default_rng(1)), diagnose(posterior, slopes, differences), [],
    )  # fmt: skip
    return Section(judged, curves, pd.DataFrame(), hierarchical=of)


def test_exhibits_have_tables_figures_and_sentences(section, tmp_path):
    exhibits = {of.name: of for of in hierarchical(section, report_of(section))}
    assert list(exhibits) == [f"hierarchical-{of}" for of in ("slopes", "ranks", "differences", "check", "sampler")]
    for exhibit in exhibits.values():
        assert exhibit.rows()
        for draw in exhibit.charts.values():
            assert finished(draw())["$schema"]
        exhibit.write(tmp_path)
    assert len(exhibits["hierarchical-slopes"].charts) == 4  # of both models: phenomena and paradigms
    assert "credible" in exhibits["hierarchical-slopes"].takeaways[0][1]


def test_few_runs_are_a_caution_in_table_and_sentences(section):
    of = section.hierarchical
    for exhibit in (slopes_exhibit(of, "words", 0.95), differences_exhibit(of, "words", 0.95)):
        assert set(exhibit.table["caution"]) == {"fewer than 5 runs at all sizes"}
        assert "caution" not in exhibit.optional, "it is never hidden"
        assert "which few runs hardly show" in exhibit.definitions["Few runs"]
        assert "evenly more or less, which fewer than 5 runs at all sizes hardly show." in exhibit.takeaways[0][1]
    several = replace(of, slopes=of.slopes.assign(caution=""), differences=of.differences.assign(caution=""))
    for exhibit in (slopes_exhibit(several, "words", 0.95), differences_exhibit(several, "words", 0.95)):
        assert "caution" not in exhibit.table
        assert not {"Few runs", "Few judgements"} & set(exhibit.definitions)
        assert "hardly show" not in exhibit.takeaways[0][1]


def test_few_judgements_are_a_caution_in_table_and_sentences(section):
    of = section.hierarchical
    few = replace(of, slopes=of.slopes.assign(caution=FEW), differences=of.differences.assign(caution=FEW))
    for exhibit in (slopes_exhibit(few, "words", 0.95), differences_exhibit(few, "words", 0.95)):
        assert "drawn to the others" in exhibit.definitions["Few judgements"]
        assert "Few runs" not in exhibit.definitions
        assert exhibit.takeaways[0][1].endswith(f" {FEW.capitalize()}, so this rests on what the model expects.")


def test_intervals_with_a_caution_are_left_out_by_default(section):
    of, config = section.hierarchical, replace(CONFIG, cautioned_limits=LEAVE_OUT)
    first = of.slopes["caution"].where(of.slopes["group"] == "model 0", "")
    slopes = beside_default(
        without_cautioned(of.slopes[SLOPE_COLUMNS].assign(caution=first), OF_SLOPES, config), section.curves
    )
    left, kept = slopes[slopes["group"] == "model 0"], slopes[slopes["group"] != "model 0"]
    assert left[OF_SLOPES].isna().all(axis=None)
    assert (left["slope"] == of.slopes["slope"].head(len(left))).all()
    reason = (
        "no interval, as intervals may contain the truth in fewer, or more, studies than they say: "
        "fewer than 5 runs at all sizes"
    )
    assert set(left["note"]) == {f"{reason}; analysis.cautioned_limits=keep gives them"}
    assert set(slopes["caution"]) == set(left["beside"]) == set(kept["note"]) == {""}
    pd.testing.assert_frame_equal(kept, of.slopes[of.slopes["group"] != "model 0"].assign(caution=""))
    ranks, without = without_ranks(of.ranks, slopes)
    assert set(ranks["group"]) == set(without.loc[without["rank"].notna(), "group"]) == {"model 1"}
    differences = without_cautioned(of.differences, OF_DIFFERENCES, config)
    fewer = replace(of, slopes=slopes, ranks=ranks, differences=differences)
    exhibits = {of.name: of for of in hierarchical(replace(section, hierarchical=fewer), report_of(section))}
    assert list(exhibits) == [f"hierarchical-{of}" for of in ("slopes", "ranks", "differences", "check", "sampler")]
    slopes_shown, differences_shown = exhibits["hierarchical-slopes"], exhibits["hierarchical-differences"]
    assert f"model 0, 7 of 7: {reason}" in slopes_shown.about
    assert f"model 0 − model 1, overall, A and B: {reason}" in differences_shown.about
    for draw in slopes_shown.charts.values():
        assert finished(draw())["$schema"]
    for exhibit in (slopes_shown, differences_shown):
        assert "which few runs hardly show" in exhibit.definitions["Few runs"]
    first, *_ = (text for _, text in slopes_shown.takeaways)
    assert first == (
        "it is left open whether accuracy changes over 0 to 3 words, +.025 per doubling, without an interval "
        f"({reason.removeprefix('no interval, as ')}; analysis.cautioned_limits=keep gives them)."
    )
    assert len(slopes_shown.takeaways) == 3, "nothing is said of model 0 beside the default"
    assert "without an interval" in differences_shown.takeaways[0][1]
    part = of.slopes.assign(note="")
    part.loc[part["name"] == "a", ["low", "high"]] = np.nan
    part.loc[part["name"] == "a", "note"] = reason
    ranks, part = without_ranks(of.ranks, part)
    assert set(ranks["level"]) == set(part.loc[part["rank"].notna(), "level"]) == {"paradigm"}
    _, subject, *_ = hierarchical_findings(replace(of, slopes=part, ranks=ranks), "words", 0.95)
    assert "It rises in 1 phenomenon of 1 (each by its own interval). 1 phenomenon has no interval." in subject.text
    assert "steepest" not in subject.text
    assert all("credible" not in finding.text for finding in hierarchical_findings(
        replace(fewer, slopes=of.slopes.assign(low=np.nan, high=np.nan, note=reason)), "words", 0.95
    ))  # fmt: skip


def test_runs_that_are_left_out_are_not_beside_simulated_ones(section):
    of, rows = section.hierarchical, section.hierarchical.predictive
    fewer = replace(of, predictive=rows[rows["size"] != "3"])
    shown = predictive_exhibit(section, fewer, 0.95).charts["0"].args[1]
    every = predictive_exhibit(section, of, 0.95).charts["0"].args[1]
    assert (len(shown), len(every)) == (6, 8)
    assert shown["words"].max() < every["words"].max()


def test_findings_state_slopes_ranks_and_differences(section):
    beside, *subjects = hierarchical_findings(section.hierarchical, "words", 0.95)
    assert beside.text.startswith("credible intervals hold given the model")
    assert [finding.subject for finding in subjects] == [
        "model 0, hierarchical model", "model 1, hierarchical model", "model 0 and model 1, hierarchical model"
    ]  # fmt: skip
    first = subjects[0].text
    assert first.startswith("accuracy rises over 0 to 3 words, +.0250 per doubling (95% credible interval [")
    assert "[+.0240, +.0259]" in first
    assert "It rises in 2 phenomena of 2" in first
    assert "B is the steepest with probability above .99." in first
    assert "the slope of model 0 is above that of model 1 over 0 to 3 words, +.0125 per doubling" in subjects[2].text


def test_disagreements_with_the_default_are_counted(section):
    rows = section.hierarchical.slopes
    rows = rows[rows["group"] == "model 0"].assign(beside="")
    assert beside_sentence(rows) == (
        "Every interval says the same of the direction as the default one (1 curve, 2 phenomena and 4 paradigms)."
    )
    other = rows.assign(beside=np.where(rows["name"] == "paradigm_0", OTHER, ""))
    assert "1 interval disagrees with the default one: 1 paradigm (paradigm 0)." in beside_sentence(other)
    assert "no intervals" in beside_sentence(rows.assign(default_low=np.nan))
    by_phenomenon = rows.assign(paradigms=rows["paradigms"].where(rows["level"] != "phenomenon", 1))
    assert "(1 curve and 2 phenomena)" in beside_sentence(by_phenomenon)


def test_nothing_is_stated_of_chains_that_failed(section):
    of = replace(section.hierarchical, diagnosis=replace(section.hierarchical.diagnosis, r_hat=1.2))
    failed = replace(section, hierarchical=of)
    (exhibit,) = hierarchical(failed, report_of(section))
    assert exhibit.name == "hierarchical-sampler"
    (finding,) = hierarchical_findings(of, "words", 0.95)
    assert finding.text.startswith("no results are stated, as the sampler did not converge: R-hat up to 1.200")
    cautious = replace(section.hierarchical.diagnosis, divergences=2)
    assert "2 of 1,000 draws diverged" in sampler_sentence(cautious)
    assert hierarchical(replace(section, hierarchical=None), report_of(section)) == []


def test_intervals_of_ranks():
    ranks = pd.DataFrame({
        "group": "g", "by": "slope", "level": "phenomenon", "name": "a", "rank": [1, 2, 3],
        "probability": [0.02, 0.9, 0.08],
    })  # fmt: skip
    row = rank_summary(ranks, 0.95).iloc[0]
    assert (row["rank_low"], row["rank_high"], row["first"]) == (2, 3, 0.02)
    assert row["rank"] == pytest.approx(2.06)
