"""Collecting a study: runs, groups, missing runs, and runs that must not be mixed."""

import dataclasses
import re

import numpy as np
import pytest
import yaml

from analysis.config import CurvesConfig
from analysis.curves.comparisons import compare_policies
from analysis.curves.fit import fit_curves
from analysis.exhibits.tables.curves import curve_tables
from analysis.study.collect import collect
from analysis.study.judgements import judgements, score_labels
from eval.published import read_published
from eval.scores.files import read_items, read_scores, score_path, write_items, write_scores
from pairscale.errors import RunError
from tests.support.simulated_study import SimulatedStudy, as_revisions, rewrite_config
from train.runs.axes import labels


@pytest.fixture
def study_files(tmp_path):
    simulated = SimulatedStudy(pairs=10)
    return simulated, tmp_path, simulated.write(tmp_path)


def rewrite_scores(folder, change):
    path = score_path(folder.scores("blimp"), "lp")
    scores, metadata = read_scores(path)
    scores, metadata = change(scores, metadata)
    write_scores(path, scores, metadata)


def test_runs_have_the_columns_that_curves_need(study_files):
    _, runs, _ = study_files
    study = collect(runs, "simulated")
    assert len(study.runs) == 16
    assert set(study.runs["group"]) == {"lstm_tiny", "txl_tiny"}
    row = study.runs.loc["lstm_tiny-english-unigram-125k-s1"]
    assert (row["size"], row["seed"], row["sample_words"], row["parameters"]) == ("125k", 1, 125_000, 1_300_000)
    assert 500 < row["valid_ppl"] < 700  # of the exported, best model, not of the last validation
    assert study.problems.empty
    assert study.notes == []


def test_outcomes_equal_the_score_files(study_files):
    _, runs, folders = study_files
    scores, _ = read_scores(score_path(folders[3].scores("blimp"), "lp"))
    judged = judgements(collect(runs, "simulated"), "blimp", "lp", "wrong")
    row = judged.runs.index.get_loc(folders[3].path.name)
    by_pair = scores.set_index(["paradigm", "pair_id"])
    for column in np.flatnonzero(np.arange(judged.outcome.shape[1]) % 7 == 0):
        pair = by_pair.loc[tuple(judged.pairs.loc[column, ["paradigm", "pair_id"]])]
        assert judged.outcome[row, column] == (pair["good"] > pair["bad"])


def test_missing_unfinished_failed_and_unscored_runs_are_listed(study_files):
    simulated, runs, folders = study_files
    folders[0].update_manifest(status="failed", reason="ValueError: loss is nan")
    folders[1].update_manifest(status="unfinished")
    score_path(folders[2].scores("blimp"), "lp").unlink()
    expected = {folder.path.name: "" for folder in folders}
    expected |= {f"{model}-english-unigram-2M-s1": f"model={model} sample.size=2M" for model in simulated.models}
    study = collect(runs, "simulated", expected)
    judged = judgements(study, "blimp", "lp", "wrong")
    statuses = {row.run: row.status for row in judged.problems.itertuples()}
    assert statuses == {
        folders[0].path.name: "failed",
        folders[1].path.name: "unfinished",
        folders[2].path.name: "unscored",
        "model=lstm_tiny sample.size=2M": "missing",
        "model=txl_tiny sample.size=2M": "missing",
    }
    assert len(judged.runs) == 13
    assert any("250k words with seed 1" in note for note in judged.notes)


def test_a_run_of_another_configuration_does_not_replace_a_missing_one(tmp_path):
    """Run ids end in a digest of the configuration."""
    (folder,) = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k",), seeds=(1,)).write(tmp_path)
    folder.path.rename(folder.path.with_name("lstm_tiny-english-unigram-125k-s1-aaaaaaaa"))
    study = collect(tmp_path, "simulated", {"lstm_tiny-english-unigram-125k-s1-bbbbbbbb": "model=lstm_tiny seed=1"})
    assert study.problems.to_numpy().tolist() == [
        [
            "model=lstm_tiny seed=1",
            "missing",
            "lstm_tiny-english-unigram-125k-s1-aaaaaaaa has another configuration than requested",
        ]
    ]


@pytest.mark.parametrize(
    ("what", "fit_on", "curves"), [("text", "train", 2), ("tokenizer", "train", 2), ("tokenizer", "sample", 1)]
)
def test_runs_on_another_text_have_their_own_curve(study_files, what, fit_on, curves):
    simulated, runs, folders = study_files
    for folder in folders:
        rewrite_config(folder, tokenizer__fit_on=fit_on)
    for folder in folders[:2]:
        folder.update_manifest(corpus=folder.read_manifest()["corpus"] | {what: "cd" * 32})
    study = collect(runs, "simulated")
    first = set(study.runs.loc[study.runs["model"] == simulated.models[0], "group"])
    assert len(first) == curves
    assert len(study.notes) == curves - 1


def test_different_configurations_are_different_groups(study_files):
    _, runs, folders = study_files
    for folder in folders[4:8]:
        rewrite_config(folder, tokenizer__name="word")
    names = set(collect(runs, "simulated").runs["group"])
    assert names == {"lstm_tiny, unigram", "lstm_tiny, word", "txl_tiny, unigram"}


def test_group_labels_name_keys_that_have_no_name(study_files):
    simulated, *_ = study_files
    configs = {
        f"{size}-{layers}": simulated.config("lstm_tiny", size, 1) for size in ("125k", "1M") for layers in (2, 3)
    }
    for run, config in configs.items():
        config["model"]["layers"] = int(run[-1])
    names, notes = labels(configs)
    assert set(names.values()) == {"lstm_tiny, layers=2", "lstm_tiny, layers=3"}
    assert notes == []


def test_seeds_paths_and_scoring_do_not_separate_groups(study_files):
    simulated, *_ = study_files
    configs = {str(seed): simulated.config("lstm_tiny", "125k", seed) for seed in (1, 2)}
    configs["2"]["model"]["seed"] = 5
    configs["2"]["policy"] = {"context": "eos"}
    assert set(labels(configs)[0].values()) == {"lstm_tiny"}


def test_a_recipe_that_follows_size_is_one_curve_and_noted(study_files):
    simulated, *_ = study_files
    configs = {size: simulated.config("lstm_tiny", size, 1) for size in ("125k", "1M")}
    configs["125k"]["recipe"]["budget"]["epochs"] = 20.0
    names, notes = labels(configs)
    assert set(names.values()) == {"lstm_tiny"}
    assert notes == ["recipe.budget.epochs differs between sizes of one curve: 20.0, 3.0."]


def test_runs_under_different_policies_are_refused(study_files):
    _, runs, folders = study_files
    for folder in folders[:8:2]:
        rewrite_scores(folder, lambda s, m: (s, m | {"policy": m["policy"] | {"unk": "skip"}}))
    message = (
        "study=simulated: lp scores of blimp: runs were scored under different policies (unk: score in "
        f"{folders[1].path.name} and 11 more; skip in {folders[0].path.name} and 3 more); score again those of one"
    )
    with pytest.raises(RunError, match=re.escape(message)):
        judgements(collect(runs, "simulated"), "blimp", "lp", "wrong")


def test_a_policy_that_follows_the_tokenizer_is_noted(study_files):
    """score_eos does so by default: true for word models, false for pieces."""
    _, runs, folders = study_files
    for folder in folders[:8]:
        rewrite_config(folder, tokenizer__name="word")
        rewrite_scores(folder, lambda s, m: (s, m | {"policy": m["policy"] | {"score_eos": True}}))
    judged = judgements(collect(runs, "simulated"), "blimp", "lp", "wrong")
    policies = "score_eos is false for txl_tiny, unigram; true for lstm_tiny, word. Compare their levels with care."
    assert judged.notes == [f"Not one scoring policy: {policies}"]


def test_versions_of_a_benchmark_are_refused(study_files):
    _, runs, folders = study_files
    rewrite_scores(folders[0], lambda s, m: (s, m | {"benchmark": {"name": "blimp", "digest": "00" * 32}}))
    with pytest.raises(RunError, match="different versions of the benchmark"):
        judgements(collect(runs, "simulated"), "blimp", "lp", "wrong")


@pytest.mark.parametrize("change", [lambda s: s.iloc[1:], lambda s: s.assign(pair_id="x")], ids=["fewer", "others"])
def test_runs_scored_on_other_pairs_are_refused(study_files, change):
    _, runs, folders = study_files
    rewrite_scores(folders[5], lambda s, m: (change(s), m))
    with pytest.raises(RunError, match="not the 60 pairs of blimp"):
        judgements(collect(runs, "simulated"), "blimp", "lp", "wrong")


def test_score_labels_include_those_of_other_policies(study_files):
    simulated, runs, folders = study_files
    write_items(folders[0].scores("blimp+context-eos-32"), simulated.items(), "blimp", "be" * 32)
    study = collect(runs, "simulated")
    assert score_labels(study) == ["blimp", "blimp+context-eos-32"]
    assert score_labels(study, "blimp") == ["blimp", "blimp+context-eos-32"]
    with pytest.raises(RunError, match="no run has scores of benchmark=climp; scores there: blimp"):
        score_labels(study, "climp")


def test_mistakes_of_the_user_are_explained(study_files, tmp_path):
    _, runs, folders = study_files
    with pytest.raises(RunError, match="study=other: no folder"):
        collect(runs, "other")
    with pytest.raises(RunError, match=r"analysis.method=pen_lp: no run .* methods there: lp"):
        judgements(collect(runs, "simulated"), "blimp", "pen_lp", "wrong")
    for folder in folders:
        folder.config.write_text(yaml.safe_dump({}))
        folder.update_manifest(status="unfinished")
    with pytest.raises(RunError, match=r"no run in .* is done"):
        collect(runs, "simulated")


def test_a_run_with_damaged_files_is_listed_and_the_others_are_collected(study_files):
    _, runs, folders = study_files
    whole = collect(runs, "simulated")
    folders[0].config.write_text("a: [")
    folders[1].manifest.write_text("[]")
    study = collect(runs, "simulated")
    assert [*study.runs.index] == [
        run for run in whole.runs.index if run not in (folders[0].path.name, folders[1].path.name)
    ]
    reasons = dict(study.problems[["run", "reason"]].to_numpy().tolist())
    assert set(study.problems["status"]) == {"damaged"}
    assert "config.yaml: not readable as YAML" in reasons[folders[0].path.name]
    assert "manifest.json: $: expected object, got array" in reasons[folders[1].path.name]


def test_a_pretrained_model_is_listed_but_on_no_curve(study_files):
    _, runs, folders = study_files
    rewrite_config(folders[0], model__path="org/gpt")
    study = collect(runs, "simulated")
    assert folders[0].path.name not in study.runs.index
    assert study.problems[["run", "status"]].to_numpy().tolist() == [[folders[0].path.name, "pretrained"]]


def test_a_method_for_some_paradigms_has_accuracies_of_those_only(study_files):
    """Files of one-prefix scores have rows for the flagged pairs only."""
    _, runs, folders = study_files
    for folder in folders:
        items, metadata = read_items(folder.scores("blimp"))
        flagged = items["paradigm"].str.endswith("_1")
        write_items(folder.scores("blimp"), items.assign(one_prefix_method=flagged), **metadata["benchmark"])
        scores, described = read_scores(score_path(folder.scores("blimp"), "lp"))
        chosen = scores[scores["paradigm"].str.endswith("_1")]
        write_scores(score_path(folder.scores("blimp"), "one_prefix"), chosen, described | {"method": "one_prefix"})
    study = collect(runs, "simulated")
    judged, whole = (judgements(study, "blimp", method, "wrong") for method in ("one_prefix", "lp"))
    assert 0 < len(judged.pairs) < len(whole.pairs)
    assert judged.pairs["paradigm"].str.endswith("_1").all()
    assert (judged.outcome == whole.select(whole.pairs["paradigm"].str.endswith("_1").to_numpy()).outcome).all()


def test_revisions_of_a_model_make_a_curve_over_tokens(tmp_path):
    simulated = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "250k"), seeds=(1, 2))
    folders = simulated.write(tmp_path)
    as_revisions(folders)
    study = collect(tmp_path, "simulated")
    assert study.runs["group"].unique().tolist() == ["gpt"]
    assert sorted(study.runs["sample_words"]) == [1000, 2000, 3000]
    assert sorted(study.runs["size"]) == ["1k tokens", "2k tokens", "3k tokens"]
    assert judgements(study, "blimp", "lp", "wrong").unit == "tokens"
    assert any("one training" in note for note in study.notes)
    ((_, status, reason),) = study.problems.to_numpy()
    assert status == "pretrained"
    assert "size is not known" in reason


def test_revisions_of_a_model_are_one_training(tmp_path):
    """Checkpoints depend on each other: no interval, p value, Holm correction, rank or shape for any number of them."""
    for name, model in (("a", "lstm_tiny"), ("b", "txl_tiny")):
        sizes = ("125k", "250k", "500k", "1M", "2M", "4M", "8M")
        folders = SimulatedStudy(pairs=20, name=name, models=(model,), sizes=sizes, seeds=(1,)).write(tmp_path)
        as_revisions(folders, path=f"models/{name}")
        for folder in folders if name == "b" else []:
            folder.path.rename(tmp_path / "a" / f"{folder.path.name}-b")
    judged = judgements(collect(tmp_path, "a"), "blimp", "lp", "wrong")
    assert judged.runs.groupby("group").size().to_dict() == {"a": 6, "b": 6}
    config = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=100, seed=1)
    for interval in ("auto", "bootstrap", "t"):
        slopes = fit_curves(judged, dataclasses.replace(config, interval=interval)).slopes
        assert slopes["slope"].notna().all()
        assert slopes[["low", "high", "low_new_pairs", "high_new_pairs", "rank", "onset"]].isna().all(axis=None)
        assert slopes["note"].str.contains("one training").all()
    tables = curve_tables(judged, read_published("blimp"), config)
    compared = tables["slope-differences"]
    assert compared["difference"].notna().all()
    assert compared[["low", "high", "p", "p_holm", "p_new_pairs"]].isna().all(axis=None)
    assert tables["shapes"].empty
    people = tables["words-to-people"]
    assert set(people["fit"]) == {"line"}
    assert people[["low", "high"]].isna().all(axis=None)
    assert set(people["status"]) <= {"none", "reached"}
    assert tables["mixed-model"][["slope", "low", "high"]].isna().all(axis=None)
    context = dataclasses.replace(judged, label="blimp+context-eos-32")
    changed = compare_policies(judged, context, 0.95)
    assert changed[["low", "high", "p", "p_holm"]].isna().all(axis=None)


def test_equal_weights_under_two_names_are_an_error(tmp_path):
    """EleutherAI/pythia, issue 203: several revisions on the hub hold the same file."""
    folders = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "250k"), seeds=(1, 2)).write(tmp_path)
    as_revisions(folders)
    folders[1].update_manifest(digest=folders[2].read_manifest()["digest"])
    message = (
        r"models/gpt at revision step2 and models/gpt at revision step3 have the same weights \(digest \w{8}; runs"
    )
    with pytest.raises(RunError, match=message):
        collect(tmp_path, "simulated")
    # The same weights read in two ways are two curves of one name.
    config = yaml.safe_load(folders[2].config.read_text())
    config["model"] |= {"revision": "step2", "dtype": "bf16"}
    folders[2].config.write_text(yaml.safe_dump(config))
    assert collect(tmp_path, "simulated").runs["group"].nunique() == 2


def test_tokens_seen_and_words_of_a_sample_are_never_on_one_curve(tmp_path):
    folders = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "250k"), seeds=(1, 2)).write(tmp_path)
    as_revisions(folders[:2])
    study = collect(tmp_path, "simulated")
    assert set(study.runs["reference"]) == {"treebank"}
    assert len(study.runs) == 2
    assert set(study.problems["status"]) == {"pretrained"}
    assert any("a study of their own" in reason for reason in study.problems["reason"])
