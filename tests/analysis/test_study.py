"""The long table of a study, against counts made from its files by plain loops, and what it leaves out or refuses."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from analysis import accuracies, notes, pairs, problems, runs, trajectories
from analysis.study.long_table import ACCURACY_COLUMNS, PAIR_COLUMNS
from analysis.study.run_folders import read_studies
from eval.scores.files import read_items, read_scores, score_path, write_items
from pairscale.errors import ConfigError, RunError
from tests.support.copied_study import FIRST, run_folder
from tests.support.scored_runs import rescore, run_folders
from tests.support.simulated_study import rewrite_config


def of_run(table, run):
    return table[table["run"] == run].set_index("paradigm")


def skip_unknown(folder):
    """Score the unknown words of a run otherwise."""
    metadata = read_scores(score_path(folder.scores("blimp"), "lp"))[1]
    rescore(folder, policy=metadata["policy"] | {"unk": "skip"})


# Accuracies


def test_accuracies_are_the_counts_of_the_score_files(written):
    table = accuracies("simulated", folder=written)
    assert tuple(table.columns) == ACCURACY_COLUMNS
    assert len(table) == 2 * 2 * 2 * 6  # models, sizes, seeds, paradigms
    for path in written.glob("simulated/*/scores/blimp/lp.parquet"):
        counts = {}
        for row in pq.read_table(path).to_pylist():
            count = counts.setdefault(row["paradigm"], [0, 0, 0])
            count[0] += 1
            count[1] += row["good"] > row["bad"]
            count[2] += row["good_unk"] + row["bad_unk"] > 0
        found = of_run(table, path.parents[2].name)
        for paradigm, (number, right, unknown) in counts.items():
            row = found.loc[paradigm]
            assert (row["pairs"], row["correct"], row["pairs_with_unk"]) == (number, right, unknown)
            assert row["accuracy"] == right / number
            assert row["phenomenon"] == paradigm.rpartition("_")[0]
    assert table["pairs_with_unk"].sum() > 0


def test_ties_count_as_asked_in_any_order_of_pairs(own):
    def tied(rows):
        return rows.assign(bad=rows["good"].where(rows["pair_id"] == "3", rows["bad"])).sample(frac=1, random_state=1)

    before = of_run(pairs("simulated", folder=own), FIRST).query("pair_id != '3'").groupby("paradigm")["correct"].sum()
    rescore(run_folder(own, FIRST), tied)
    for ties, worth in (("wrong", 0), ("half", 0.5), ("right", 1)):
        table = of_run(accuracies("simulated", ties=ties, folder=own), FIRST)
        assert (table["ties"] == 1).all()
        assert (table["correct"] == before + worth).all()


@pytest.mark.parametrize("option", ["unknown_words", "faulty_pairs"])
def test_pairs_are_counted_or_left_out(own, monkeypatch, option):
    """Pairs with an unknown word in any run, and pairs that are known to be faulty."""
    known = pd.DataFrame({"benchmark": "blimp", "paradigm": "npi_licensing_1", "pair_id": list("0127")})
    monkeypatch.setattr("eval.benchmarks.known_items._table", lambda name: known.assign(reason="misspelt"))
    judged = pairs("simulated", folder=own)
    names = judged["paradigm"] + " " + judged["pair_id"]
    is_faulty = names.isin("npi_licensing_1 " + known["pair_id"])
    assert (judged["faulty"] != "").equals(is_faulty)
    is_unknown = names.isin(names[(judged["good_unk"] > 0) | (judged["bad_unk"] > 0)])
    kept = judged[~{"unknown_words": is_unknown, "faulty_pairs": is_faulty}[option]]
    for handling, counted in (("count", judged), ("leave_out", kept)):
        table = accuracies("simulated", **{option: handling}, folder=own).set_index(["run", "paradigm"])
        expected = counted.groupby(["run", "paradigm"])["correct"].agg(["size", "sum"]).loc[table.index]
        assert (table["pairs"] == expected["size"]).all()
        assert (table["correct"] == expected["sum"]).all()
    assert any("4 of 120 pairs" in note for note in notes("simulated", folder=own))


def test_a_pair_counts_once_however_many_templates_judge_it(own):
    def in_templates(rows):
        changed = {"one": rows, "two": rows, "three": rows.assign(good=rows["bad"], bad=rows["good"])}
        return pd.concat([of.assign(template=name) for name, of in changed.items()])

    rescore(run_folder(own, FIRST), in_templates, method="in_template_lp")
    alone, templates = (
        of_run(accuracies("simulated", method=method, folder=own), FIRST) for method in ("lp", "in_template_lp")
    )
    assert (templates["pairs"] == alone["pairs"]).all()
    expected = (2 * alone["accuracy"] + (1 - alone["accuracy"])) / 3
    assert templates["accuracy"].to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-12)
    assert len(pairs("simulated", method="in_template_lp", folder=own)) == 3 * 6 * 20
    assert len(accuracies("simulated", folder=own)) == 9 * 6


def test_masked_models_are_judged_by_pll_and_missing_seeds_are_noted(own):
    folders = run_folders(own)
    folders[0].update_manifest(status="unfinished")
    for folder in folders[4:]:
        rescore(folder, method="pll")
        score_path(folder.scores("blimp"), "lp").unlink()
    table = accuracies("simulated", method="lp", folder=own)
    assert table.groupby("model")["method"].agg(set).to_dict() == {"lstm_tiny": {"lp"}, "txl_tiny": {"pll"}}
    text = " ".join(notes("simulated", method="lp", folder=own))
    assert "lp for lstm_tiny; pll for txl_tiny" in text
    assert "no finished run for seed 1 at 125k" in text
    assert set(problems("simulated", folder=own)["status"]) == {"unfinished"}


def test_a_method_for_some_pairs_has_only_their_paradigms(own):
    """Files of one-prefix scores have rows for the flagged pairs only."""
    for folder in run_folders(own):
        items, metadata = read_items(folder.scores("blimp"))
        flagged = items["paradigm"].str.endswith("_1")
        write_items(folder.scores("blimp"), items.assign(one_prefix_method=flagged), **metadata["benchmark"])
        rescore(folder, lambda rows: rows[rows["paradigm"].str.endswith("_1")], method="one_prefix")
    table = accuracies("simulated", folder=own).set_index(["method", "run", "paradigm"])["accuracy"]
    assert table["one_prefix"].index.get_level_values("paradigm").str.endswith("_1").all()
    assert (table["one_prefix"] == table["lp"].loc[table["one_prefix"].index]).all()


# Problems


def test_unusable_runs_are_listed_with_a_reason_and_left_out(own):
    folders = run_folders(own)
    folders[0].update_manifest(status="failed", reason="ValueError: loss is nan")
    folders[1].update_manifest(status="unfinished")
    folders[2].config.write_text("a: [")
    config = yaml.safe_load(folders[3].config.read_text())
    del config["corpus"]["name"]
    folders[3].config.write_text(yaml.safe_dump(config))
    score_path(folders[4].scores("blimp"), "lp").unlink()
    table = problems("simulated", folder=own).set_index("run").loc[[folder.path.name for folder in folders[:5]]]
    assert table["status"].tolist() == ["failed", "unfinished", "damaged", "damaged", "unscored"]
    for reason, part in zip(table["reason"], ["loss is nan", "", "config.yaml", "'name'", "lp"], strict=True):
        assert part in reason
    assert len(runs("simulated", folder=own)) == 4
    assert accuracies("simulated", folder=own)["run"].nunique() == 3
    for folder in folders[4:]:
        folder.update_manifest(status="unfinished")
    with pytest.raises(RunError, match="study=simulated: no run is finished"):
        runs("simulated", folder=own)


def test_a_requested_run_that_is_not_there_is_missing(own, monkeypatch):
    run_folder(own, FIRST).path.rename(own / "simulated" / f"{FIRST}-aaaaaaaa")
    requested = {f"{FIRST}-bbbbbbbb": SimpleNamespace(point="model=lstm_tiny seed=1")}
    monkeypatch.setattr("analysis.study.long_table.requested_runs", lambda runs, study: requested)
    (row,) = problems("simulated", folder=own).to_dict("records")
    assert (row["run"], row["status"]) == ("model=lstm_tiny seed=1", "missing")


@pytest.mark.parametrize(
    ("studies", "options", "message"),
    [
        (["a+"], {}, r"study=a\+"),
        (["simulated"], {"ties": "left"}, "ties=left"),
        (["simulate"], {}, "simulate.*simulated"),
        (["simulated"], {"benchmark": "climp"}, "climp.*blimp by lp"),
        (["simulated"], {"method": "slor"}, "slor scores.*blimp by lp"),
    ],
)
def test_bad_requests_are_refused(written, studies, options, message):
    with pytest.raises((ConfigError, RunError), match=message):
        accuracies(*studies, folder=written, **options)


# Scores that can't be compared


def of_other_weights(run):
    run.model.path.mkdir()
    run.model.description.write_text(json.dumps({"digest": "ff" * 32}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: rescore(run, benchmark={"name": "blimp", "digest": "00" * 32}), "blimp.*00000000.*bebebebe"),
        (skip_unknown, f"blimp.*unk.*score for simulated/.*; skip for simulated/{FIRST}"),
        (lambda run: rescore(run, lambda rows: rows.iloc[1:]), "120 pairs of blimp"),
        (of_other_weights, "another model"),
        (lambda run: score_path(run.scores("blimp"), "lp").write_bytes(b"PAR1"), r"lp\.parquet: this file is damaged"),
    ],
    ids=["version", "settings", "other pairs", "other weights", "damaged"],
)
def test_scores_that_cannot_be_compared_are_refused(own, damage, message):
    damage(run_folder(own, FIRST))
    with pytest.raises(RunError, match=message):
        accuracies("simulated", folder=own)


def test_settings_may_differ_between_tokenizers(own):
    for folder in run_folders(own)[:4]:
        skip_unknown(folder)
        rewrite_config(folder, tokenizer__name="word")
    assert "(unk): score for txl_tiny, unigram; skip for lstm_tiny, word" in notes("simulated", folder=own)[0]
    assert len(accuracies("simulated", folder=own)) == 8 * 6


def test_runs_may_count_unigrams_in_their_own_samples_but_not_in_different_files(own):
    for number, folder in enumerate(run_folders(own)):
        rescore(folder, parameters={"unigrams": {"unseen": 1, "of": "sample", "digest": f"{number:064}"}})
    assert len(accuracies("simulated", folder=own)) == 8 * 6
    for number, folder in enumerate(run_folders(own)):
        rescore(folder, parameters={"unigrams": {"unseen": 1, "of": "text.txt", "digest": f"{number:064}"}})
    with pytest.raises(RunError, match=r"unigrams\.digest"):
        accuracies("simulated", folder=own)


# Pairs


def test_pairs_are_sentences_with_scores(written):
    table = pairs("simulated", folder=written)
    assert tuple(table.columns) == PAIR_COLUMNS
    counted = table.groupby(["run", "paradigm"])["correct"].sum()
    expected = accuracies("simulated", folder=written).set_index(["run", "paradigm"])["correct"]
    assert (counted == expected).all()
    scores, _ = read_scores(score_path(run_folder(written, FIRST).scores("blimp"), "lp"))
    some = table[table["run"] == FIRST].set_index(["paradigm", "pair_id"])
    for row in scores.itertuples():
        found = some.loc[(row.paradigm, row.pair_id)]
        assert (found["good_score"], found["bad_score"]) == (row.good, row.bad)
        assert (found["good"], found["bad"]) == ("A cat sleeps .", "A cat sleep .")
    assert pairs("simulated", runs=[FIRST], folder=written)["run"].unique().tolist() == [FIRST]


def test_own_columns_of_a_benchmark_are_in_the_table_of_pairs(own):
    extra = {"frequency": "3.5", "verb": "eat", "size": "long", "empty": None}
    for folder in run_folders(own):
        items, metadata = read_items(folder.scores("blimp"))
        write_items(folder.scores("blimp"), items.assign(**extra), **metadata["benchmark"])
    table = pairs("simulated", folder=own)
    assert list(table.columns) == [*PAIR_COLUMNS, "frequency", "verb", "item_size"]
    assert table["frequency"].unique().tolist() == [3.5]
    assert set(table["size"]) == {"125k", "1M"}


# Snapshots


def test_trajectories_have_the_words_that_a_snapshot_had_seen(own):
    none, final = trajectories("simulated", folder=own), accuracies("simulated", folder=own)
    first, second, *_ = run_folders(own)
    for folder in (first, second):
        swapped = lambda rows: rows.assign(good=rows["bad"], bad=rows["good"])  # noqa: E731
        rescore(folder, swapped, name="lp@7", moment="start", words_seen=1000, step=7)
        rescore(folder, name="lp@70", moment="end", words_seen=9000, step=70)
    table = trajectories("simulated", folder=own)
    assert none.empty
    assert list(none.columns) == list(table.columns) == [*final.columns, "moment"]
    pd.testing.assert_frame_equal(accuracies(read_studies(["simulated"], own)), final)
    assert set(table["unit"]) == {"words seen"}
    assert set(table["run"]) == {f"{folder.path.name}@{at}" for folder in (first, second) for at in ("end", "start")}
    assert len(accuracies("simulated", folder=own)) == len(final)
    assert table["sample_words"].equals(table["moment"].map({"start": 1000, "end": 9000}).astype("Int64"))
    keys = [table["run"].str.partition("@")[0], table["paradigm"]]
    at_end = final.set_index(["run", "paradigm"])["accuracy"].loc[pd.MultiIndex.from_arrays(keys)].to_numpy()
    expected = np.where(table["moment"] == "end", at_end, 1 - at_end)
    assert table["accuracy"].to_numpy() == pytest.approx(expected, abs=1e-12)
    rescore(first, name="lp@99", moment="later", step=99)
    with pytest.raises(RunError, match="lp@99"):  # no place on the axis of words
        trajectories("simulated", folder=own)
