"""Several studies in one report: their curves, their comparison, and combinations that are refused."""

import re
import shutil
from itertools import product

import numpy as np
import pytest

from analysis.curves.comparisons import compare_slopes
from analysis.curves.fit import fit_curves
from analysis.curves.p_values import holm
from analysis.exhibits.sentences.findings import comparisons
from analysis.sections.together import common_sizes
from analysis.study.collect import collect
from analysis.study.combine import combine, common_labels, names_of
from analysis.study.judgements import judgements
from eval.scores.files import read_scores, score_path, write_scores
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, RunError
from tests.support.commands import run_command
from tests.support.simulated_section import CONFIG
from tests.support.simulated_study import PHENOMENA, SimulatedStudy, as_revisions, rewrite_config
from train.runs.folder import RunFolder


def together(runs, *names):
    return combine([collect(runs, name) for name in names])


@pytest.fixture
def two(tmp_path):
    """Return the runs folder of study a (two models) and b (one of them with another dropout and one size less)."""
    SimulatedStudy(pairs=20, name="a").write(tmp_path)
    b = SimulatedStudy(pairs=20, name="b", models=("lstm_tiny",), sizes=("250k", "500k", "1M"))
    for folder in b.write(tmp_path, seed=1):
        rewrite_config(folder, model__dropout=0.5)
        folder.update_manifest(started="2026-01-02")  # simulated ids hold no digest of the configuration
    for folder in (tmp_path / "a").iterdir():
        if folder.name.startswith("lstm"):
            rewrite_config(collect(tmp_path, "a").folders[folder.name], model__dropout=0.2)
    return tmp_path


def test_studies_are_named_with_plus_signs(tmp_path):
    assert names_of("a+b+c") == ["a", "b", "c"]
    (tmp_path / "a+b").mkdir()
    assert names_of("a+b", tmp_path) == ["a+b"]
    for wrong in ("a+", "a+a"):
        with pytest.raises(ConfigError, match=re.escape(f"study={wrong}: must be a study's name, or different ones")):
            names_of(wrong)


def test_names_of_groups_include_what_differs_between_studies(two):
    both = together(two, "a", "b")
    groups = both.runs.groupby("study")["group"].agg(set).to_dict()
    assert groups == {"a": {"lstm_tiny, dropout=0.2", "txl_tiny"}, "b": {"lstm_tiny, dropout=0.5"}}
    assert both.name == "a+b"
    assert len(both.runs) == 16 + 6
    assert set(both.folders) == set(both.runs.index)


def test_a_configuration_in_two_studies_has_two_curves(tmp_path):
    for number, name in enumerate("ab"):
        simulated = SimulatedStudy(pairs=5, name=name, models=("lstm_tiny",))
        for folder in simulated.write(tmp_path, seed=number):
            folder.update_manifest(started=f"{name} {folder.path.name}")
    both = together(tmp_path, "a", "b")
    assert both.runs["group"].unique().tolist() == ["lstm_tiny, a", "lstm_tiny, b"]
    assert both.problems.empty


def test_a_run_in_two_studies_counts_once(tmp_path):
    SimulatedStudy(pairs=5, name="a", models=("lstm_tiny",), seeds=(1,)).write(tmp_path)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    for folder in SimulatedStudy(pairs=5, name="c", models=("lstm_tiny",), seeds=(2,)).write(tmp_path):
        folder.path.rename(tmp_path / "b" / folder.path.name)
    for name, folder in collect(tmp_path, "b").folders.items():
        folder.update_manifest(started=name)
        original = tmp_path / "a" / name
        if original.exists():
            collect(tmp_path, "a").folders[name].update_manifest(started=name)
    both = together(tmp_path, "a", "b")
    assert set(both.runs["group"]) == {"lstm_tiny"}
    assert len(both.runs) == 4 + 4
    assert set(both.problems["status"]) == {"shared"}
    assert all(run.startswith("b/") for run in both.problems["run"])


def test_a_study_without_its_own_runs_is_refused(tmp_path):
    SimulatedStudy(pairs=5, name="a").write(tmp_path)
    SimulatedStudy(pairs=5, name="b", models=("lstm_tiny",)).write(tmp_path)  # the same ids and start times
    with pytest.raises(RunError, match="study=b: each of its runs is one of a too"):
        together(tmp_path, "a", "b")


def test_slopes_are_compared_across_studies_only(two):
    judged = judgements(together(two, "a", "b"), "blimp", "lp", "wrong")
    table = compare_slopes(judged, CONFIG)
    assert {frozenset(pair) for pair in table[["group", "other"]].to_numpy().tolist()} == {
        frozenset({"lstm_tiny, dropout=0.2", "lstm_tiny, dropout=0.5"}),
        frozenset({"txl_tiny", "lstm_tiny, dropout=0.5"}),
    }
    phenomena = table[table["level"] == "phenomenon"]
    assert len(phenomena) == 2 * len(PHENOMENA)
    assert phenomena["p_holm"].to_numpy() == pytest.approx(holm(phenomena["p"].to_numpy()))
    curves = fit_curves(judged, CONFIG)
    points = curves.points.query("level == 'overall' and pairs == 'all'")
    for _, row in table[table["level"] == "overall"].iterrows():
        both = [points[points["group"] == row[key]] for key in ("group", "other")]
        common = set(both[0]["size"]) & set(both[1]["size"])
        assert (row["sizes"], row["from_size"], row["to_size"]) == (3, "250k", "1M")
        means = [of[of["size"].isin(common)].groupby("words")["accuracy"].mean() for of in both]
        slopes = [np.polyfit(np.log2(of.index.to_numpy()), of.to_numpy(), 1)[0] for of in means]
        assert row["difference"] == pytest.approx(slopes[0] - slopes[1])
    sentences = comparisons(table, curves.slopes, "words", 0.95)
    assert len(sentences) == 2
    assert all("after Holm's correction for 2 comparisons" in finding.full for finding in sentences)


def test_accuracies_are_compared_at_common_sizes(two):
    both = together(two, "a", "b")
    judged = judgements(both, "blimp", "lp", "wrong")
    table = common_sizes(judged, fit_curves(judged, CONFIG))
    assert table["size"].unique().tolist() == ["250k", "500k", "1M"]
    assert table["name"].unique().tolist() == ["overall", *sorted(PHENOMENA)]
    row = table.query("name == 'npi_licensing' and size == '500k'").iloc[0]
    runs = np.flatnonzero((judged.runs["group"] == "lstm_tiny, dropout=0.5") & (judged.runs["size"] == "500k"))
    of = (judged.pairs["phenomenon"] == "npi_licensing").to_numpy()
    assert row["lstm_tiny, dropout=0.5"] == pytest.approx(judged.outcome[np.ix_(runs, of)].mean())


def test_other_versions_pairs_and_policies_are_refused(two):
    for folder in collect(two, "b").folders.values():
        path = score_path(folder.scores("blimp"), "lp")
        scores, metadata = read_scores(path)
        write_scores(path, scores, metadata | {"policy": metadata["policy"] | {"unk": "skip"}})
    with pytest.raises(RunError, match=r"study=a\+b: .*different policies \(unk: score in a/.* 15 more; skip in b/"):
        judgements(together(two, "a", "b"), "blimp", "lp", "wrong")
    for folder in collect(two, "b").folders.values():
        path = score_path(folder.scores("blimp"), "lp")
        scores, metadata = read_scores(path)
        write_scores(path, scores, metadata | {"benchmark": {"name": "blimp", "digest": "00" * 32}})
    with pytest.raises(RunError, match=r"different versions of the benchmark \(bebebebe in a/.*; 00000000 in b/"):
        judgements(together(two, "a", "b"), "blimp", "lp", "wrong")


def test_a_benchmark_of_one_study_only_is_warned_of(two):
    for folder, other in product(collect(two, "b").folders.values(), ["blimp+unk-skip"]):
        shutil.copytree(folder.scores("blimp"), folder.scores(other))
    both = together(two, "a", "b")
    labels, notes = common_labels(both, ["a", "b"], None)
    assert labels == ["blimp"]
    assert notes == ["Not compared, as not all studies were scored on it: blimp+unk-skip of b."]
    for folder in collect(two, "b").folders.values():
        shutil.rmtree(folder.scores("blimp"))
    with pytest.raises(RunError, match=r"a on blimp; b on blimp\+unk-skip"):
        common_labels(both, ["a", "b"], None)


def test_words_and_tokens_seen_cannot_share_an_axis(tmp_path):
    SimulatedStudy(pairs=5, name="a", models=("lstm_tiny",)).write(tmp_path)
    as_revisions(SimulatedStudy(pairs=5, name="b", models=("lstm_tiny",)).write(tmp_path))
    with pytest.raises(RunError, match="a over words; b over tokens seen"):
        together(tmp_path, "a", "b")


@pytest.mark.slow
def test_the_command_compares_studies(tmp_path):
    phenomena = {"npi_licensing": (1, 0.55, 0.02)}  # one, as figures take most of the time
    for seed, name in enumerate("ab"):
        study = SimulatedStudy(("lstm_tiny",), ("250k", "500k", "1M"), phenomena=phenomena, pairs=20, name=name)
        for folder in study.write(tmp_path, seed):
            rewrite_config(folder, model__dropout=0.5 * seed)
            folder.update_manifest(started=name)  # simulated ids hold no digest of the configuration
    paths = [f"paths.runs={tmp_path}", f"paths.reports={tmp_path}/reports"]
    done = run_command("analysis", "study=a+b", "analysis.resamples=50", *paths)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "reports" / "a+b"
    html = (folder / "report.html").read_text(encoding="utf-8").partition("<script")[0]
    for text in (
        "Overall accuracy",
        "Phenomena",
        "Accuracy at common sizes",
        "Slopes compared",
        "python -m analysis study=a+b",
    ):
        assert text in html, text
    assert (folder / "blimp-together.svg").stat().st_size > 0


def test_several_studies_are_for_analysis_only():
    assert compose("analysis", ["study=one+other"]).study == "one+other"
    with pytest.raises(ConfigError, match="study=one\\+other: names a folder"):
        RunFolder.of(compose("train", ["study=one+other", "corpus=toy"]))


def test_masked_models_are_judged_by_their_own_method_beside_the_others(two):
    for folder in collect(two, "b").folders.values():
        path = score_path(folder.scores("blimp"), "lp")
        scores, metadata = read_scores(path)
        write_scores(score_path(folder.scores("blimp"), "pll"), scores, metadata | {"method": "pll"})
        path.unlink()
    both = together(two, "a", "b")
    judged = judgements(both, "blimp", "lp", "wrong")
    by_study = judged.runs.assign(method=[judged.method_of(run) for run in judged.runs.index]).groupby("study")
    assert {study: set(part["method"]) for study, part in by_study} == {"a": {"lp"}, "b": {"pll"}}
    assert judged.method_names == "lp or pll"
    groups = " | ".join(sorted(set(judged.runs.loc[judged.runs["study"] == "b", "group"])))
    assert any(note.startswith("Not one method: lp for ") and f"; pll for {groups}. " in note for note in judged.notes)
    alone = judgements(collect(two, "b"), "blimp", "lp", "wrong")
    assert (alone.method, alone.method_names) == ("pll", "pll")
    with pytest.raises(RunError, match=r"analysis.method=mean_lp: no run .*; methods there: lp, pll"):
        judgements(both, "blimp", "mean_lp", "wrong")
