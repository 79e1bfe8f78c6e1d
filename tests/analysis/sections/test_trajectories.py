"""Trajectories over words seen, and shares of ties and unknown words, from small tables."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.exhibits.figures.style import PAGE
from analysis.sections.trajectories import read_trajectories, trajectories, trajectory_exhibit
from analysis.sections.unknown_words import vocabulary_effects, vocabulary_exhibits
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from eval.scores.files import read_scores, score_path, write_scores
from pairscale.errors import RunError
from tests.support.simulated_study import SimulatedStudy


def points(**columns):
    """Return the points of a trajectory whose accuracies are means of 50 judgements."""
    about = {"group": "lstm", "size": "1M", "level": "overall", "name": "overall", "judgements": 50.0}
    return pd.DataFrame({**about, **columns})


def test_a_trajectory_holds_means_over_runs_at_each_moment():
    """Each run reaches a moment at its own number of words; means leave out runs at other sizes."""
    taken = points(
        run=list("ababb"), moment=["1/4", "1/4", "1/2", "1/2", "end"], words_seen=[10, 14, 20, 20, 30],
        accuracy=[0.5, 0.7, 0.6, 0.6, 0.8],
    )  # fmt: skip
    other = points(run=["c"], moment=["1/4"], words_seen=[12], accuracy=[0.9]).assign(size="2M")
    table = trajectories(pd.concat([taken, other], ignore_index=True), 0.95)
    assert table.pop("size").tolist() == ["1M", "1M", "1M", "2M"]
    table = table.iloc[:3]
    assert table["words_seen"].tolist() == [12, 20, 30]
    assert table["runs"].tolist() == [2, 2, 1]
    np.testing.assert_allclose(table["accuracy"], [0.6, 0.6, 0.8])
    # Two accuracies that differ: Wilson's limits of the trials that vary as much, by t(.975, 1 degree). Equal ones:
    # Wilson's of as many judgements.
    trials = 0.6 * 0.4 / (0.02 / 2)
    spread = proportion_confint(0.6 * trials, trials, 2 * norm.sf(student.ppf(0.975, 1)), "wilson")
    limits = [spread, proportion_confint(60, 100, method="wilson"), (np.nan, np.nan)]
    np.testing.assert_allclose(table[["low", "high"]].to_numpy(), limits)
    with pytest.raises(RunError, match="b: two accuracies at one moment"):
        trajectories(points(run=list("bb"), moment="end", words_seen=[10, 11], accuracy=[0.5, 0.6]), 0.95)


def test_three_runs_at_the_ceiling_have_an_interval():
    row = trajectories(points(run=list("abc"), moment="end", words_seen=10, accuracy=1.0), 0.95).iloc[0]
    assert (row["low"], row["high"]) == pytest.approx(proportion_confint(150, 150, method="wilson"))


@pytest.fixture
def simulated(tmp_path):
    """Return a study of two runs at each of two sizes, those at 250k with two scored snapshots, and its folders."""
    rng = np.random.default_rng(5)
    folders = SimulatedStudy(models=("lstm_tiny",), sizes=("125k", "250k"), pairs=30).write(tmp_path)
    for folder in folders[2:]:
        scores = folder.scores("blimp")
        rows, metadata = read_scores(score_path(scores, "lp"))
        for step, moment in ((7, "1/2"), (14, "end")):
            rows["good"] = rows["bad"] + rng.normal(step / 14, 1, len(rows))
            at = {"step": step, "moment": moment, "words_seen": step * 1000 + int(rng.integers(20))}
            write_scores(score_path(scores, "lp", step), rows, metadata | at)
    return collect(tmp_path, "simulated"), folders


def test_a_trajectory_holds_the_accuracies_of_the_snapshots_score_files(simulated):
    study, folders = simulated
    judged = judgements(study, "blimp", "lp", "wrong")
    trajectories = read_trajectories(study, judged, "wrong")
    assert set(trajectories["run"]) == {folder.path.name for folder in folders[2:]}
    counts = trajectories.drop_duplicates(["level", "name"]).set_index(["level", "name"])["judgements"]
    assert counts["overall", "overall"] == pytest.approx(6 * 30)
    assert counts["phenomenon", "island_effects"] == pytest.approx(3 * 30)
    for (run, moment), rows in trajectories.groupby(["run", "moment"]):
        step = {"1/2": 7, "end": 14}[moment]
        scores, metadata = read_scores(score_path(study.folders[run].scores("blimp"), "lp", step))
        assert set(rows["words_seen"]) == {metadata["words_seen"]}
        right = (scores["good"] > scores["bad"]).groupby(scores["paradigm"]).mean()
        named = rows.set_index(["level", "name"])["accuracy"]
        assert named["overall", "overall"] == pytest.approx(right.mean())
        islands = right[[name for name in right.index if name.startswith("island")]].mean()
        assert named["phenomenon", "island_effects"] == pytest.approx(islands)
        assert named["paradigm"].to_dict() == pytest.approx(right.to_dict())


def test_the_section_appears_if_snapshots_were_scored(simulated, tmp_path):
    study, folders = simulated
    exhibit = trajectory_exhibit(study, judgements(study, "blimp", "lp", "wrong"), "wrong", 0.95)
    assert "These are not learning curves" in exhibit.about
    assert "2 runs of this benchmark are missing" in exhibit.about
    assert len(exhibit.charts) == 1  # one panel a size
    assert set(exhibit.table["size"]) == {"250k"}
    assert len(exhibit.table) == 2 * 4
    exhibit.write(tmp_path, "blimp-")
    assert "Words seen in training, with repeats" in (tmp_path / "blimp-trajectories.svg").read_text()
    for folder in folders:
        for path in folder.scores("blimp").glob("*@*"):
            path.unlink()
    assert trajectory_exhibit(study, judgements(study, "blimp", "lp", "wrong"), "wrong", 0.95) is None


def test_untrained_models_stand_apart_and_join_no_line(simulated):
    study, folders = simulated
    for folder in folders[2:]:
        rows, metadata = read_scores(score_path(folder.scores("blimp"), "lp", 7))
        write_scores(
            score_path(folder.scores("blimp"), "lp", 0), rows, metadata | {"step": 0, "moment": "0", "words_seen": 0}
        )
    exhibit = trajectory_exhibit(study, judgements(study, "blimp", "lp", "wrong"), "wrong", 0.95)
    assert (exhibit.table["words seen"] == 0).sum() == 4
    assert "no line leads from them" in exhibit.definitions["0 words"]
    (panel,) = exhibit.charts.values()
    chart = panel(frame=PAGE).to_dict()
    drawn: dict[str, list[dict]] = {}
    for layer in chart["layer"]:
        drawn.setdefault(layer["mark"]["type"], []).extend(chart["datasets"][layer["data"]["name"]])
    assert {row["words"] == 0 for row in drawn["line"]} == {False}
    untrained = [row for row in drawn["point"] if row["words"] == 0]
    assert {row["name"] for row in untrained} >= {"Overall", "Island effects"}
    assert all(row["place"] < min(line["place"] for line in drawn["line"]) / 1.9 for row in untrained)
    axis = next(layer["encoding"]["x"] for layer in chart["layer"] if layer["mark"]["type"] == "line")
    assert min(axis["axis"]["values"]) == untrained[0]["place"] >= axis["scale"]["domain"][0]


def test_scores_of_snapshots_that_differ_from_the_exported_models_are_refused(simulated):
    study, folders = simulated
    judged = judgements(study, "blimp", "lp", "wrong")
    path = score_path(folders[3].scores("blimp"), "lp", 7)
    rows, metadata = read_scores(path)
    for change, message in (
        ({"policy": metadata["policy"] | {"unk": "skip"}}, r"\(unk=skip, there score\)"),
        ({"benchmark": {"name": "blimp", "digest": "00" * 32}}, "of another version of the benchmark"),
        ({"moment": None}, None),
    ):
        changed = metadata | change if message else {key: metadata[key] for key in metadata if key != "moment"}
        write_scores(path, rows, changed)
        with pytest.raises(RunError, match=message or "does not say at how many words seen"):
            read_trajectories(study, judged, "wrong")
    write_scores(path, rows[rows["paradigm"] != "npi_licensing_1"], metadata)
    with pytest.raises(RunError, match="other paradigms than the scores of the exported model"):
        read_trajectories(study, judged, "wrong")


def test_shares_of_ties_and_unknown_words_are_means_over_pairs(tmp_path):
    simulated = SimulatedStudy(models=("lstm_tiny",), sizes=("125k", "250k"), unk_share=0.4)
    folders = simulated.write(tmp_path)
    # In one run half of the pairs with <unk> get it in both sentences: they are no longer unequal.
    path = score_path(folders[0].scores("blimp"), "lp")
    scores, metadata = read_scores(path)
    (with_unk,) = np.nonzero(scores["good_unk"].to_numpy() > 0)
    half = with_unk[: len(with_unk) // 2]
    scores.loc[half, "bad_unk"] = scores.loc[half, "good_unk"]
    scores.loc[:2, "bad"] = scores.loc[:2, "good"]
    write_scores(path, scores, metadata)
    study = collect(tmp_path, "simulated")
    judged = judgements(study, "blimp", "lp", "wrong")
    unequal = judged.unequal
    first = folders[0].path.name
    assert unequal[first] == pytest.approx((len(with_unk) - len(half)) / len(scores))
    table = vocabulary_effects(judged)
    assert table["size"].tolist() == ["125k", "250k"]
    row = table.iloc[0]
    assert row["ties"] == pytest.approx(3 / len(scores) / 2)
    assert row["unk"] == pytest.approx(len(with_unk) / len(scores))
    assert row["unequal_unk"] == pytest.approx((unequal[first] + row["unk"]) / 2)
    assert row["decided_unk"] == pytest.approx(row["unequal_unk"] / row["unk"])
    assert (table["unk"].diff().dropna() < 0).all()


def test_sections_on_unknown_words_appear_if_there_are_any(tmp_path):
    config = CurvesConfig(method="lp", interval="t", confidence=0.95, resamples=10, seed=1)
    SimulatedStudy(models=("lstm_tiny",), unk_share=0.4).write(tmp_path / "some")
    judged = judgements(collect(tmp_path / "some", "simulated"), "blimp", "lp", "wrong")
    curves = fit_curves(judged, config)
    shares, slopes = vocabulary_exhibits(judged, curves, 0.95)
    assert list(shares.table.columns[3:]) == ["pairs with <unk>", "pairs with unequal <unk>", "tied pairs"]
    np.testing.assert_allclose(
        shares.table["pairs with unequal <unk>"], shares.table["pairs with <unk>"]
    )  # as simulated
    assert len(shares.charts) == 3
    whole = slopes.table.set_index("phenomenon").loc["overall"]
    fitted = curves.slopes[curves.slopes["level"] == "overall"].set_index("pairs")
    assert whole["slope"] == fitted.loc["all", "slope"]
    assert whole["without <unk>"] == fitted.loc["without <unk>", "slope"] != whole["slope"]
    assert whole["pairs left"] == f"{int(judged.unk_free.sum())} of {len(judged.pairs)}"
    for exhibit in (shares, slopes):
        exhibit.write(tmp_path, "blimp-", ties="wrong")
    assert "tied pairs" in (tmp_path / "blimp-vocabulary.csv").read_text()
    SimulatedStudy(models=("lstm_tiny",)).write(tmp_path / "none")
    judged = judgements(collect(tmp_path / "none", "simulated"), "blimp", "lp", "wrong")
    (ties,) = vocabulary_exhibits(judged, fit_curves(judged, config), 0.95)
    assert list(ties.table.columns) == ["curve", "size", "runs", "tied pairs"]
    assert not ties.charts
