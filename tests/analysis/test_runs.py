"""The runs of a study: their curves, baselines, interventions and checkpoints, and runs of several studies."""

import shutil

import pandas as pd
import pytest

from analysis.study.long_table import accuracies, notes, problems, runs
from analysis.study.run_folders import FURTHER_COLUMNS, RUN_COLUMNS
from tests.support.copied_study import FIRST, LAST, run_folder, table_of_runs
from tests.support.scored_runs import run_folders
from tests.support.simulated_study import SimulatedStudy, as_hub_model, as_revisions, rewrite_config

SHUFFLED = "txl_tiny-english-unigram-125k-s1"


def test_runs_have_the_values_of_their_files(written):
    table = runs("simulated", folder=written)
    assert tuple(table.columns) == (*RUN_COLUMNS, *FURTHER_COLUMNS)
    row = table.set_index("run").loc["lstm_tiny-english-unigram-1M-s2"]
    assert (row["study"], row["model"], row["curve"], row["size"]) == ("simulated", "lstm_tiny", "lstm_tiny", "1M")
    assert (row["sample_words"], row["words_seen"], row["seed"], row["sample"]) == (10**6, 3 * 10**6, 2, "02" * 32)
    assert (row["construction"], row["action"], row["dose"], row["base"]) == ("", "none", "1", "lstm_tiny")
    metrics = pd.read_csv(written / "simulated" / row.name / "metrics.csv")
    assert row["valid_ppl"] == metrics["valid_ppl"].min()  # the recipe exports the best model


@pytest.mark.parametrize(
    ("what", "fit_on", "curves"), [("text", "train", 2), ("tokenizer", "train", 2), ("tokenizer", "sample", 1)]
)
def test_runs_on_another_text_have_their_own_curve(own, what, fit_on, curves):
    for folder in run_folders(own):
        rewrite_config(folder, tokenizer__fit_on=fit_on)
    folder = run_folder(own, FIRST)
    folder.update_manifest(corpus=folder.read_manifest()["corpus"] | {what: "cd" * 32})
    assert table_of_runs(own).groupby("model")["curve"].nunique().to_dict() == {"lstm_tiny": curves, "txl_tiny": 1}


def test_an_intervention_is_in_the_curve_and_not_in_its_base(own):
    for folder in run_folders(own)[:2]:
        rewrite_config(folder, filter={"name": "npi"}, ablate={"action": "remove", "dose": "0"})
    assert table_of_runs(own).loc[FIRST, ["curve", "construction", "action", "dose", "base"]].tolist() == [
        "lstm_tiny, npi removed", "npi", "remove", "0", "lstm_tiny",
    ]  # fmt: skip


def test_baselines_and_models_that_come_trained_are_told_apart(own):
    run_folder(own, FIRST).update_manifest(words_seen=0)
    rewrite_config(run_folder(own, SHUFFLED), sample__shuffle="sentence")
    as_hub_model(run_folder(own, LAST), path="models/lstm_tiny")
    row = table_of_runs(own).loc[LAST]
    # Never the curve of a model that was trained here.
    assert (row["model"], row["curve"]) == ("lstm_tiny", "lstm_tiny, pretrained")
    assert row[["sample_words", "seed", "size", "unit"]].isna().all()
    table = accuracies("simulated", folder=own)
    assert (table["run"] == LAST).sum() == 6
    baselines = table[table["baseline"] != ""].drop_duplicates("run").set_index("run")[["baseline", "curve"]]
    found = baselines.loc[[FIRST, SHUFFLED]].to_numpy().tolist()
    assert found == [["untrained", "lstm_tiny"], ["sentence", "txl_tiny"]]
    assert len(baselines) == 2


def test_checkpoints_of_one_training_are_one_curve_over_tokens(own):
    folders = run_folders(own)[:4]
    as_revisions(folders)
    table = table_of_runs(own).loc[[folder.path.name for folder in folders]]
    known = table.iloc[:3]
    assert known["sample_words"].tolist() == [1000, 2000, 3000]
    assert known["size"].tolist() == ["1k tokens", "2k tokens", "3k tokens"]
    assert (set(known["unit"]), set(known["curve"])) == ({"tokens"}, {"gpt"})
    assert table["curve"].iloc[3] != "gpt"
    assert any("one training" in note for note in notes("simulated", folder=own))


def test_equal_weights_under_two_names_count_once(own):
    """EleutherAI/pythia, issue 203: several revisions on the hub hold the same file."""
    folders = run_folders(own)[:3]
    as_revisions(folders)
    folders[1].update_manifest(digest=folders[0].read_manifest()["digest"])
    first, second = (folder.path.name for folder in folders[:2])
    assert second not in set(table_of_runs(own).index)
    table = problems("simulated", folder=own)
    assert table[["run", "status", "reason"]].to_numpy().tolist() == [
        [second, "shared", f"the same model as simulated/{first}"]
    ]


# Several studies


def test_studies_are_joined_and_told_apart(tmp_path):
    for number, name in enumerate("ab"):
        study = SimulatedStudy(pairs=5, name=name, models=("lstm_tiny",), sizes=("125k", "1M"))
        for folder in study.write(tmp_path, seed=number):
            folder.update_manifest(started=f"{name} {folder.path.name}")
    both = accuracies("a+b", folder=tmp_path)
    assert both.groupby("study")["curve"].agg(set).to_dict() == {"a": {"lstm_tiny, a"}, "b": {"lstm_tiny, b"}}
    assert both.equals(accuracies("a", "b", folder=tmp_path))


def test_a_run_in_two_studies_counts_once(tmp_path):
    SimulatedStudy(pairs=5, name="a", models=("lstm_tiny",), seeds=(1,)).write(tmp_path)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    for folder in SimulatedStudy(pairs=5, name="c", models=("lstm_tiny",), seeds=(2,)).write(tmp_path):
        folder.path.rename(tmp_path / "b" / folder.path.name)
    table = runs("a+b", folder=tmp_path)
    assert table["curve"].unique().tolist() == ["lstm_tiny"]
    assert table["study"].tolist() == ["a"] * 4 + ["b"] * 4
    assert problems("a+b", folder=tmp_path)["status"].tolist() == ["shared"] * 4
