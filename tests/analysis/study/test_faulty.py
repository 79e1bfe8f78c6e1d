"""Known faulty pairs: counted or left out of every accuracy, what that changes, and flags in tables of pairs."""

import numpy as np
import pandas as pd
import pytest

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.curves.robustness.faulty import faulty_changes
from analysis.measures.methods import count_judgements, pair_outcomes, score_files
from analysis.measures.predictors import accuracy_by_predictor
from analysis.sections.robustness.faulty import faulty_exhibit, faulty_sentence
from analysis.study.collect import collect
from analysis.study.faulty import faulty_mask, known_faults, without_faulty
from analysis.study.judgements import judgements
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support.simulated_study import SimulatedStudy

CONFIG = CurvesConfig(method="lp", interval="t", confidence=0.95, resamples=100, seed=1)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Return a study of which five pairs of one paradigm, and one of another, are known to be faulty."""
    written = SimulatedStudy(pairs=20, seeds=(1, 2, 3))
    written.write(tmp_path)
    paradigms = [*["anaphor_agreement_1"] * 5, "npi_licensing_1"]
    known = pd.DataFrame(
        {"benchmark": "blimp", "paradigm": paradigms, "pair_id": [*"01234", "7"], "reason": "misspelt"}
    )
    monkeypatch.setattr("eval.benchmarks.known_items._table", lambda name: known)
    return collect(tmp_path, written.name)


def test_faulty_pairs_are_left_out(study):
    judged = judgements(study, "blimp", "lp", "wrong")
    rest = without_faulty(judged)
    assert (len(judged.pairs), len(rest.pairs), faulty_mask(judged).sum()) == (120, 114, 6)
    assert sorted(rest.left_out["pair_id"]) == ["0", "1", "2", "3", "4", "7"]
    assert not faulty_mask(rest).any()
    assert any(
        "6 of 120 pairs (5.0%) are known to be faulty, and counted as published" in note for note in judged.notes
    )
    (note,) = [note for note in rest.notes if "faulty" in note]
    assert "6 of 120 pairs (5.0%) are known to be faulty, and left out: 6 'unsuprising'" in note
    assert rest.unequal.equals(judged.unequal)
    assert without_faulty(rest) is rest


def test_changes_are_those_of_curves_fitted_with_and_without(study):
    judged = judgements(study, "blimp", "lp", "wrong")
    changes = faulty_changes(judged)
    assert set(changes["name"]) == {
        "overall", "anaphor_agreement", "anaphor_agreement_1", "npi_licensing", "npi_licensing_1",
    }  # fmt: skip
    keys = ["group", "level", "name"]
    for part, suffix in ((judged, ""), (without_faulty(judged), "_without")):
        curves = fit_curves(part, CONFIG)
        slopes = curves.slopes.set_index(keys)["slope"].loc[pd.MultiIndex.from_frame(changes[keys])]
        assert np.allclose(slopes, changes[f"slope{suffix}"], atol=1e-12)
        largest = curves.accuracies[curves.accuracies["size"] == "1M"].set_index(keys)["accuracy"]
        assert np.allclose(largest.loc[slopes.index], changes[f"accuracy{suffix}"], atol=1e-12)
    assert changes[changes["level"] == "overall"]["faulty"].tolist() == [6, 6]


def test_what_changes_is_said_in_a_sentence(study):
    rows = pd.DataFrame(
        [("lstm", "overall", "overall", 100, 6, 0.6, 0.61, 0.02, 0.0215),
         ("lstm", "phenomenon", "npi", 50, 6, 0.5, 0.52, 0.01, 0.015),
         ("lstm", "paradigm", "npi_0", 50, 6, 0.5, 0.52, 0.01, 0.015)],
        columns=["group", "level", "name", "n_pairs", "faulty", "accuracy", "accuracy_without", "slope",
                 "slope_without"],
    )  # fmt: skip
    assert faulty_sentence(rows) == (
        "without 6 faulty pairs overall accuracy changes by .0100, a paradigm's by at most .0200 (NPI 0), a "
        "phenomenon's slope by at most .0050 per doubling (NPI)."
    )
    exhibit = faulty_exhibit(faulty_changes(judgements(study, "blimp", "lp", "wrong")), left_out=False)
    assert "counted in all else on this page" in exhibit.about
    assert len(exhibit.takeaways) == 2
    assert faulty_exhibit(faulty_changes(without_faulty(judgements(study, "blimp", "lp", "wrong"))), True) is None


def test_counts_of_score_files_leave_them_out(study):
    judged = without_faulty(judgements(study, "blimp", "lp", "wrong"))
    files = score_files(study, "blimp")
    counts, _ = count_judgements(files, "wrong", judged.left_out)
    of_run = counts[counts["run"] == judged.runs.index[0]].set_index("paradigm")
    assert of_run["pairs"].to_dict() == judged.pairs.groupby("paradigm").size().to_dict()
    outcome = pd.Series(judged.outcome[0], judged.pairs["paradigm"]).groupby(level=0).sum()
    assert of_run["right"].to_dict() == outcome.to_dict()
    assert len(pair_outcomes(files, "wrong", judged.left_out)) == 114
    files = files.assign(group="lstm_tiny")[["group", "path"]].iloc[:1]
    counted, whole = (
        accuracy_by_predictor(files, "wrong", bins=1, left_out=left_out).set_index("predictor")["judgements"]
        for left_out in (judged.left_out, None)
    )
    assert (whole - counted).tolist() == [6] * len(whole)


def test_pairs_have_their_faults():
    pairs = pd.DataFrame({"paradigm": ["passive_1", "passive_1"], "pair_id": ["324", "1"]})
    assert known_faults("blimp+pairs-100", pairs).tolist() == ["both sentences are the same, so every model ties", ""]
    assert known_faults("climp", pairs).tolist() == ["", ""]


def test_the_setting_is_checked():
    assert compose("analysis", ["study=s"]).analysis.faulty_pairs == "count"
    with pytest.raises(ConfigError, match=r"analysis\.faulty_pairs=drop: must be one of count, leave_out"):
        compose("analysis", ["study=s", "analysis.faulty_pairs=drop"])
