"""How often a study's own intervals hold: what is simulated, and how it is counted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.curves.designs import Design
from analysis.curves.fit import fit_curves
from analysis.curves.units import paradigm_accuracies, units_of
from analysis.exhibits.exhibit import Exhibit
from analysis.sections.curves import coverage, own_coverage_exhibit
from analysis.simulation.coverage import (
    DIFFERENCE,
    NEW,
    SLOPE,
    THESE,
    LikeStudy,
    can_be_simulated,
    correlation,
    coverage_table,
    draws_of,
    runs_like,
    simulated_coverage,
)  # fmt: skip
from analysis.simulation.spreads import between_runs, judgement_squares
from analysis.simulation.studies import SimulatedRuns
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from tests.support.commands import run_command
from tests.support.simulated_section import CONFIG, report_of, section_of
from tests.support.simulated_study import SimulatedStudy


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return the runs, judgements and slopes of a study with a run missing at the largest size."""
    runs = tmp_path_factory.mktemp("coverage")
    folders = SimulatedStudy(pairs=20, seeds=(1, 2, 3), sizes=("125k", "250k", "500k")).write(runs)
    missing = next(folder for folder in folders if folder.path.name == "txl_tiny-english-unigram-500k-s3")
    missing.manifest.unlink()
    judged = judgements(collect(runs, "simulated"), "blimp", "lp", "wrong")
    return runs, judged, fit_curves(judged, CONFIG).slopes


def test_simulated_studies_have_the_studys_runs_and_pairs(study):
    _, judged, slopes = study
    like = LikeStudy.of(judged, slopes)
    simulated, expected = like.draw(np.random.default_rng(1))
    assert simulated.outcome.shape == judged.outcome.shape
    assert set(np.unique(simulated.outcome)) == {0, 1}
    assert [len(runs.design.x) for runs in like.groups.values()] == [9, 8]
    assert list(like.groups["txl_tiny"].design.counts) == [3, 3, 2]
    assert expected["txl_tiny"].shape == (3, 6)


def test_runs_like_others_vary_as_they_do():
    """What is estimated from many simulated runs is what they were simulated with."""
    units = units_of(pd.DataFrame(
        [("ab"[k > 1], f"p{k}", str(p)) for k in range(4) for p in range(50)],
        columns=["phenomenon", "paradigm", "pair_id"],
    ))  # fmt: skip
    sizes = np.repeat(np.arange(3), 150)
    design = Design(17.0 + sizes, sizes, np.tile(np.arange(150), 3), nested=False)
    expected = np.array([[0.55, 0.6, 0.65, 0.7]] * 3) + 0.03 * np.arange(3)[:, None]
    own = SimulatedRuns(design, units, expected, np.full(3, 0.2), np.full(3, 0.15), 0.8, 0.05)
    outcome, _ = own.draw(np.random.default_rng(4))
    like = runs_like(outcome.astype(float), design, units, np.zeros(4, dtype=bool))
    assert like.common_sd == pytest.approx(own.common_sd, rel=0.15)
    assert like.own_sd == pytest.approx(own.own_sd, rel=0.2)
    assert like.pair_sd == pytest.approx(0.8, rel=0.2)
    assert like.pair_slope_sd == pytest.approx(0.05, abs=0.03)
    again, _ = like.draw(np.random.default_rng(5))
    spreads = [between_runs(paradigm_accuracies(of, units.bounds).mean(axis=1)[:, None], design)[0].mean()
               for of in (outcome, again)]  # fmt: skip
    assert spreads[1] == pytest.approx(spreads[0], rel=0.25)
    assert judgement_squares(again, design, units).mean() == pytest.approx(
        judgement_squares(outcome, design, units).mean(), rel=0.1
    )


def test_runs_on_one_text_go_together_as_they_do(study):
    _, judged, _ = study
    units = units_of(judged.pairs)
    keys = draws_of(judged.runs)
    assert (np.bincount(keys) == 2).sum() == 8  # one run of the two models lacks its partner
    assert 0 <= correlation(judged, units) <= 1


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_correlation_of_curves_is_of_what_samples_add(study, share):
    """Chance in single judgements, more than what samples add, leaves it as it is; spreads differ by model and size."""
    _, judged, _ = study
    pairs = pd.DataFrame({"phenomenon": "a", "paradigm": "p", "pair_id": [str(i) for i in range(300)]})
    runs = pd.DataFrame([(g, f"{s}k", seed) for g in "ab" for s in (1, 2) for seed in range(200)]).set_axis(
        ["group", "size", "seed"], axis=1
    )
    runs = runs.assign(sample_words=1000.0, nested=False, overlap=0.0, manifest=[
        {"corpus": {"sample": {"digest": f"{size}-{seed}"}}} for size, seed in runs[["size", "seed"]].to_numpy()
    ])  # fmt: skip
    runs["sample_words"] *= runs["size"].str[0].astype(float)
    rng = np.random.default_rng(3)
    of_text, own = np.tile(rng.normal(size=400), 2), rng.normal(size=800)
    spread = np.repeat([0.01, 0.02, 0.03, 0.01], 200)
    right = 0.7 + spread * (np.sqrt(share) * of_text + np.sqrt(1 - share) * own)
    outcome = (rng.random((800, 300)) < right[:, None]).astype(np.float32)
    known = replace(judged, runs=runs, pairs=pairs, outcome=outcome)
    assert correlation(known, units_of(pairs)) == pytest.approx(share, abs=0.15)


def test_coverage_is_counted_by_hand(study):
    _, judged, _ = study
    units = units_of(judged.pairs)
    count = len(units.table)
    key = ("lstm", SLOPE, THESE, "t")
    low, high = np.zeros(count), np.ones(count)
    truths = [np.full(count, 0.5), np.full(count, 0.5), np.full(count, 2.0)]
    truths[1] = truths[1] + 3 * (units.table["name"] == "npi_licensing").to_numpy()
    results = [{key: (low, high, truth)} for truth in truths] + [{key: (low * np.nan, high, truths[0])}]
    table = coverage_table(results, units).set_index("level")
    assert table.loc["overall", "covered"] == pytest.approx(2 / 3)
    assert table.loc["overall", "none"] == pytest.approx(1 / 4)
    assert table.loc["overall", "standard_error"] == pytest.approx(np.sqrt(4 / 7 * 3 / 7 / 7))  # two more of four more
    assert table.loc["phenomenon", "name"] == "npi_licensing"
    assert table.loc["phenomenon", "covered"] == pytest.approx(1 / 3)


@pytest.mark.slow
def test_intervals_of_a_simulated_study_hold_its_truth(study):
    _, judged, slopes = study
    config = replace(CONFIG, coverage_studies=20)
    results = [of for _, of in simulated_coverage(judged, slopes, config)]
    table = coverage_table(results, units_of(judged.pairs))
    overall = table[table["level"] == "overall"]
    assert set(overall["quantity"]) == {
        SLOPE,
        DIFFERENCE,
        "accuracy at the smallest size",
        "accuracy at the largest size",
    }
    assert set(overall["question"]) == {THESE, NEW}
    assert overall["covered"].mean() > 0.85
    again = [of for _, of in simulated_coverage(judged, slopes, config)]
    pd.testing.assert_frame_equal(coverage_table(again, units_of(judged.pairs)), table)


def test_the_exhibit_stands_in_place_of_the_fixed_table(study, tmp_path):
    section = section_of(tmp_path)
    config = replace(CONFIG, coverage=True)
    assert coverage(section, report_of(section, config=config)) == []
    section.tables["simulated-coverage"] = pd.DataFrame([
        {"curve": "lstm", "quantity": SLOPE, "question": THESE, "level": "overall", "name": "overall", "interval": "t",
         "studies": 400, "none": 0.0, "covered": 0.943, "standard_error": 0.012},
        {"curve": "lstm", "quantity": SLOPE, "question": THESE, "level": "phenomenon", "name": "npi_licensing",
         "interval": "t", "studies": 400, "none": 0.0, "covered": 0.915, "standard_error": 0.014},
    ])  # fmt: skip
    [shown] = coverage(section, report_of(section, config=config))
    assert isinstance(shown, Exhibit)
    assert shown.heading == "How often these intervals hold"
    assert shown.rows()[1][3:6] == ["NPI licensing", "t", "91.5%"]
    assert "94.3% to 94.3%" in shown.takeaways[0][1]
    table = section.tables["simulated-coverage"]
    assert own_coverage_exhibit(table, 0.9).about.count("90%") == 1
    left_out = own_coverage_exhibit(table.assign(none=1.0, covered=np.nan), 0.95)
    assert left_out.about.endswith(" No study had limits of: slope, lstm.")
    assert left_out.takeaways == left_out.rows() == []
    assert "No study" not in shown.about


def test_studies_that_cannot_be_simulated_say_why(study):
    _, judged, _ = study
    assert can_be_simulated(judged) == ""
    first = judged.runs["seed"] == 1
    alone = replace(judged, runs=judged.runs[first], outcome=judged.outcome[first.to_numpy()])
    assert "no two runs at any size" in can_be_simulated(alone)


@pytest.mark.slow
def test_the_command_simulates_the_study(study, tmp_path):
    runs, *_ = study
    words = ("analysis.coverage=true", "analysis.coverage_studies=20", "analysis.resamples=50")
    done = run_command("analysis", "study=simulated", f"paths.runs={runs}", f"paths.reports={tmp_path}", *words)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "simulated/report.html").read_text(encoding="utf-8")
    assert "How often these intervals hold" in page
    assert "Coverage of the intervals" not in page
    table = pd.read_csv(tmp_path / "simulated/blimp-coverage.csv")
    assert set(table["curve"]) == {"lstm_tiny", "txl_tiny", "lstm_tiny less txl_tiny"}
