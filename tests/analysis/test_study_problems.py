"""Runs and scores that the long table leaves out or refuses, pairs with the user's own columns, and snapshots."""

import json

import pandas as pd
import pytest
import yaml

from analysis.study.long_table import accuracies, notes, pairs, problems, runs, trajectories
from analysis.study.score_files import PAIR_COLUMNS
from eval.benchmarks.load import load_benchmark
from eval.scores.files import read_items, read_scores, score_path, write_items
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, RunError
from tests.support.scored_runs import rescore, run_folders
from tests.support.simulated_study import SimulatedStudy, rewrite_config

STUDY = SimulatedStudy(sizes=("125k", "1M"), pairs=10)


@pytest.fixture
def folder(tmp_path):
    STUDY.write(tmp_path)
    return tmp_path


def skip_unknown(metadata):
    return {"policy": metadata["policy"] | {"unk": "skip"}}


def policy_of(folder):
    return read_scores(score_path(folder.scores("blimp"), "lp"))[1]


# Problems


def test_unusable_runs_are_listed_with_a_reason_and_left_out(folder):
    first = run_folders(folder)
    first[0].update_manifest(status="failed", reason="ValueError: loss is nan")
    first[1].update_manifest(status="unfinished")
    first[2].config.write_text("a: [")
    first[3].manifest.write_text("[]")
    score_path(first[4].scores("blimp"), "lp").unlink()
    table = problems("simulated", folder=folder).set_index("run")
    assert table["status"].to_dict() == dict(
        zip(
            [one.path.name for one in first[:5]],
            ["failed", "unfinished", "damaged", "damaged", "unscored"],
            strict=True,
        )
    )
    assert table["reason"].iloc[0] == "ValueError: loss is nan"
    assert "config.yaml: not readable as YAML" in table.loc[first[2].path.name, "reason"]
    assert len(runs("simulated", folder=folder)) == 4
    assert accuracies("simulated", folder=folder)["run"].nunique() == 3
    assert any("seed 1 at" in note for note in notes("simulated", folder=folder)) is False  # all of lstm_tiny are gone


def test_a_requested_run_that_is_not_there_is_missing(folder):
    name = "lstm_tiny-english-unigram-125k-s1"
    request = {"point": "model=lstm_tiny seed=1", "reason": "", "benchmark": "blimp", "commands": ["x"], "config": {}}
    (folder / "simulated" / name).rename(folder / "simulated" / f"{name}-aaaaaaaa")
    monkey = {f"{name}-bbbbbbbb": type("Request", (), request)()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.study.long_table.requested_runs", lambda runs, study: monkey)
        (row,) = problems("simulated", folder=folder).to_dict("records")
    assert (row["run"], row["status"]) == ("model=lstm_tiny seed=1", "missing")
    assert f"{name}-aaaaaaaa was trained with another configuration" in row["reason"]


def test_missing_seeds_are_noted(folder):
    run_folders(folder)[0].update_manifest(status="unfinished")
    (note,) = notes("simulated", folder=folder)
    assert "lstm_tiny has no finished run with seed 1 at 125k" in note


def test_a_study_without_a_finished_run_is_refused(folder):
    for one in run_folders(folder):
        one.update_manifest(status="unfinished")
    with pytest.raises(RunError, match=r"study=simulated: no run is finished .* python -m train"):
        runs("simulated", folder=folder)


def test_bad_requests_are_refused(folder):
    with pytest.raises(ConfigError, match="at least one study"):
        accuracies(folder=folder)
    with pytest.raises(RunError, match=r"“simulate”.*Studies there: simulated"):
        runs("simulate", folder=folder)
    for wrong in ({"ties": "left"}, {"faulty_pairs": "drop"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            accuracies("simulated", folder=folder, **wrong)
    for wrong, named in (({"benchmark": "climp"}, "of climp"), ({"method": "slor"}, "slor scores")):
        with pytest.raises(RunError, match=f"no run has .*{named}.*There are scores of blimp by lp"):
            accuracies("simulated", folder=folder, **wrong)


# Scores that can't be compared


def test_versions_of_a_benchmark_are_refused(folder):
    rescore(run_folders(folder)[0], benchmark={"name": "blimp", "digest": "00" * 32})
    with pytest.raises(RunError, match=r"different versions of blimp \(00000000 in lstm.* and bebebebe in lstm"):
        accuracies("simulated", folder=folder)


def test_settings_of_one_tokenizer_must_be_the_same(folder):
    of_lstm = run_folders(folder)[:4]
    for one in of_lstm[:1]:
        rescore(one, **skip_unknown(policy_of(one)))
    with pytest.raises(RunError, match=r"lp scores of blimp: .*different settings \(unk is skip in .* and score in"):
        accuracies("simulated", folder=folder)
    for one in of_lstm:
        rescore(one, **skip_unknown(policy_of(one)))
        rewrite_config(one, tokenizer__name="word")
    (note,) = notes("simulated", folder=folder)
    assert "unk differs: score for txl_tiny, unigram; skip for lstm_tiny, word" in note
    assert len(accuracies("simulated", folder=folder)) == 8 * 6


@pytest.mark.parametrize("change", [lambda s: s.iloc[1:], lambda s: s.assign(pair_id="x")], ids=["fewer", "others"])
def test_scores_of_other_pairs_are_refused(folder, change):
    rescore(run_folders(folder)[5], change)
    with pytest.raises(RunError, match="not the 60 pairs of blimp that lp judges"):
        accuracies("simulated", folder=folder)


def test_scores_of_other_weights_are_refused(folder):
    run_folders(folder)[0].model.write_text(json.dumps({"digest": "ff" * 32}))
    with pytest.raises(RunError, match=r"scores of another model \(digest 0d0d0d0d\) than the run's \(ffffffff\)"):
        accuracies("simulated", folder=folder)


def test_a_damaged_score_file_is_refused(folder):
    score_path(run_folders(folder)[0].scores("blimp"), "lp").write_bytes(b"PAR1")
    with pytest.raises(RunError, match=r"lp\.parquet: damaged"):
        accuracies("simulated", folder=folder)


# Pairs


def test_pairs_are_sentences_with_scores(folder):
    table = pairs("simulated", folder=folder)
    assert tuple(table.columns) == PAIR_COLUMNS
    counted = table.groupby(["run", "paradigm"])["correct"].sum()
    expected = accuracies("simulated", folder=folder).set_index(["run", "paradigm"])["correct"]
    assert (counted == expected).all()
    first = run_folders(folder)[0]
    scores, _ = read_scores(score_path(first.scores("blimp"), "lp"))
    some = table[table["run"] == first.path.name].set_index(["paradigm", "pair_id"])
    for row in scores.itertuples():
        found = some.loc[(row.paradigm, row.pair_id)]
        assert (found["good_score"], found["bad_score"]) == (row.good, row.bad)
        assert (found["good"], found["bad"]) == ("A cat sleeps .", "A cat sleep .")
    one = pairs("simulated", runs=[first.path.name], folder=folder)
    assert one["run"].unique().tolist() == [first.path.name]


def test_own_columns_of_a_benchmark_are_in_the_table_of_pairs(folder, tmp_path):
    items, metadata = read_items(run_folders(folder)[0].scores("blimp"))
    extra = {"frequency": "3.5", "verb": "eat", "size": "long", "empty": None}
    for one in run_folders(folder):
        write_items(one.scores("blimp"), items.assign(**extra), **metadata["benchmark"])
    table = pairs("simulated", folder=folder)
    assert list(table.columns) == [*PAIR_COLUMNS, "frequency", "verb", "item_size"]
    assert table["frequency"].unique().tolist() == [3.5]
    assert set(table["size"]) == {"125k", "1M"}


@pytest.mark.parametrize("labelled", [False, True])
def test_a_benchmark_keeps_own_columns(tmp_path, labelled):
    path = tmp_path / "mine.csv"
    if labelled:
        path.write_text("text,ok,verb,rating\nThe cat sleeps.,1,sleep,6\nThe cat sleep.,0,sleep,2\n")
        columns = ["benchmark.columns.sentence=text", "benchmark.columns.label=ok"]
    else:
        path.write_text("good,bad,verb,pair_ID\nThe cat sleeps.,The cat sleep.,sleep,a\n")
        columns = []
    config = compose("eval", ["study=s", "benchmark=local", f"benchmark.path={path}", "benchmark.name=mine", *columns])
    loaded = load_benchmark(config.benchmark)
    assert loaded.pairs["verb"].tolist() == ["sleep"]
    assert "rating" not in loaded.pairs  # it differs between the two sentences of a pair
    write_items(tmp_path, loaded.pairs, **loaded.described)
    items, _ = read_items(tmp_path)
    pd.testing.assert_frame_equal(items[["good", "verb"]], loaded.pairs[["good", "verb"]], check_dtype=False)


# Snapshots


def test_trajectories_have_the_words_that_a_snapshot_had_seen(folder):
    first, second, *_ = run_folders(folder)
    against = {"change": lambda rows: rows.assign(good=rows["bad"], bad=rows["good"])}
    for one in (first, second):
        rescore(one, **against, name="lp@7", moment="start", words_seen=1000, step=7)
        rescore(one, name="lp@70", moment="end", words_seen=9000, step=70)
    final = accuracies("simulated", folder=folder)
    table = trajectories("simulated", folder=folder)
    assert list(table.columns) == [*final.columns, "moment"]
    assert set(table["unit"]) == {"words seen"}
    assert sorted(set(table["run"])) == [f"{one.path.name}@{at}" for one in (first, second) for at in ("end", "start")]
    merged = table.assign(run=table["run"].str.partition("@")[0]).merge(
        final, on=["run", "paradigm"], suffixes=("", "_final")
    )
    start, end = (merged[merged["sample_words"] == words] for words in (1000, 9000))
    assert start["accuracy"].to_numpy() == pytest.approx(1 - start["accuracy_final"].to_numpy(), abs=1e-12)
    assert (end["accuracy"] == end["accuracy_final"]).all()
    assert len(accuracies("simulated", folder=folder)) == len(final)
    rescore(first, name="lp@8", moment="end", words_seen=9000, step=8, **skip_unknown(policy_of(first)))
    with pytest.raises(RunError, match="different settings"):
        trajectories("simulated", folder=folder)


def test_a_study_without_snapshots_has_no_trajectories(folder):
    table = trajectories("simulated", folder=folder)
    assert table.empty
    assert "moment" in table


def test_names_of_missing_values_are_told(folder):
    first = run_folders(folder)[0]
    config = yaml.safe_load(first.config.read_text())
    del config["corpus"]["name"]
    first.config.write_text(yaml.safe_dump(config))
    assert problems("simulated", folder=folder)["status"].tolist() == ["damaged"]
