"""The long table of a study, against counts made from its files by plain loops."""

import doctest
import re
import shutil

import pandas as pd
import pyarrow.parquet as pq
import pytest

from analysis import accuracies, pairs, runs
from analysis.table import ACCURACY_COLUMNS, PAIR_COLUMNS, RUN_COLUMNS
from eval.scores.files import read_scores, score_path, write_scores
from pairscale.errors import ConfigError, RunError
from tests.support import ROOT
from tests.support.commands import run_command
from tests.support.simulated_study import SimulatedStudy, as_hub_model, as_revisions, rewrite_config
from train.runs.folder import RunFolder

STUDY = SimulatedStudy(sizes=("125k", "1M"), pairs=20, unk_share=0.3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    STUDY.write(folder)
    return folder


@pytest.fixture
def own(folder, tmp_path):
    """A copy of the study that a test may change."""
    shutil.copytree(folder, tmp_path / "runs")
    return tmp_path / "runs"


def rescore(folder, run, change, **metadata):
    """Change the score file of a run, by the function `change` of its rows, or copy it as another method."""
    scores = folder / "simulated" / run / "scores" / "blimp"
    rows, about = read_scores(score_path(scores, "lp"))
    about |= metadata
    write_scores(score_path(scores, about["method"]), change(rows), about)


def test_accuracies_are_the_counts_of_the_score_files(folder):
    table = accuracies("simulated", folder=folder)
    assert tuple(table.columns) == ACCURACY_COLUMNS
    assert len(table) == 2 * 2 * 2 * 6  # models, sizes, seeds, paradigms
    for path in folder.glob("simulated/*/scores/blimp/lp.parquet"):
        counts = {}
        for row in pq.read_table(path).to_pylist():
            count = counts.setdefault(row["paradigm"], [0, 0, 0])
            count[0] += 1
            count[1] += row["good"] > row["bad"]
            count[2] += row["good_unk"] + row["bad_unk"] > 0
        of_run = table[table["run"] == path.parents[2].name].set_index("paradigm")
        for paradigm, (number, right, unknown) in counts.items():
            row = of_run.loc[paradigm]
            assert (row["pairs"], row["correct"], row["pairs_with_unk"]) == (number, right, unknown)
            assert row["accuracy"] == right / number
            assert row["phenomenon"] == paradigm.rpartition("_")[0]
    assert table["pairs_with_unk"].sum() > 0


def test_runs_have_the_values_of_their_files(folder):
    table = runs("simulated", folder=folder).set_index("run")
    assert tuple(table.reset_index()[list(RUN_COLUMNS)].columns) == RUN_COLUMNS
    row = table.loc["lstm_tiny-english-unigram-1M-s2"]
    assert (row["study"], row["model"], row["curve"], row["size"]) == ("simulated", "lstm_tiny", "lstm_tiny", "1M")
    assert (row["sample_words"], row["words_seen"], row["seed"], row["sample"]) == (10**6, 3 * 10**6, 2, "02" * 32)
    metrics = pd.read_csv(folder / "simulated" / row.name / "metrics.csv")
    assert row["valid_ppl"] == metrics["valid_ppl"].min()  # the recipe exports the best model


def test_pairs_are_sentences_with_scores(folder):
    table = pairs("simulated", folder=folder)
    assert tuple(table.columns) == PAIR_COLUMNS
    counted = table.groupby(["run", "paradigm"])["correct"].sum()
    expected = accuracies("simulated", folder=folder).set_index(["run", "paradigm"])["correct"]
    assert (counted == expected).all()
    assert set(table["good"]) == {"A cat sleeps ."}
    assert set(table["bad"]) == {"A cat sleep ."}


@pytest.mark.parametrize(("ties", "worth"), [("wrong", 0), ("half", 0.5), ("right", 1)])
def test_ties_count_as_asked(own, ties, worth):
    run = "txl_tiny-english-unigram-125k-s1"
    rescore(own, run, lambda rows: rows.assign(bad=rows["good"].where(rows["pair_id"] == "3", rows["bad"])))
    table = accuracies("simulated", ties=ties, folder=own).set_index(["run", "paradigm"]).loc[run]
    decided = accuracies("simulated", folder=own).set_index(["run", "paradigm"]).loc[run]["correct"]
    assert (table["ties"] == 1).all()
    assert (table["correct"] == decided + worth).all()


def test_a_pair_counts_once_however_many_templates_judge_it(own):
    run = "lstm_tiny-english-unigram-125k-s1"

    def in_templates(rows):
        against = rows.assign(good=rows["bad"], bad=rows["good"])
        return pd.concat([rows.assign(template="one"), rows.assign(template="two"), against.assign(template="three")])

    rescore(own, run, in_templates, method="in_template_lp")
    table = accuracies("simulated", folder=own).set_index(["run", "method", "paradigm"]).loc[run]
    alone, templates = table.loc["lp"], table.loc["in_template_lp"]
    assert (templates["pairs"] == alone["pairs"]).all()
    expected = (2 * alone["accuracy"] + (1 - alone["accuracy"])) / 3
    assert templates["accuracy"].to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-12)
    assert len(pairs("simulated", method="in_template_lp", folder=own)) == 3 * 6 * 20
    assert set(accuracies("simulated", method="lp", folder=own)["method"]) == {"lp"}


def test_curves_are_named_by_what_differs(own):
    for seed in (1, 2):
        rewrite_config(_folder(own, f"txl_tiny-english-unigram-1M-s{seed}"), model__layers=3)
    curves = runs("simulated", folder=own).set_index("run")["curve"]
    assert curves["txl_tiny-english-unigram-1M-s1"] == "txl_tiny, layers=3"
    assert curves["txl_tiny-english-unigram-125k-s1"] == "txl_tiny, layers=2"


def test_models_that_come_trained_have_a_row(own):
    as_hub_model(_folder(own, "txl_tiny-english-unigram-1M-s1"))
    table = runs("simulated", folder=own).set_index("run")
    row = table.loc["txl_tiny-english-unigram-1M-s1"]
    assert (row["model"], row["curve"]) == ("bert", "bert")
    assert row[["sample_words", "words_seen", "seed"]].isna().all()
    assert (table["seed"].dropna() == [1, 2, 1, 2, 1, 2, 2]).all()
    assert table["seed"].dtype == "Int64"
    for rows in (accuracies("simulated", folder=own), pairs("simulated", folder=own)):
        of_model = rows[rows["run"] == row.name]
        assert set(of_model["curve"]) == {"bert"}
        assert of_model["seed"].isna().all()
        assert len(of_model) * 8 == len(rows)


def test_a_model_that_comes_trained_never_shares_a_curve_with_one_trained_here(own):
    as_hub_model(_folder(own, "txl_tiny-english-unigram-1M-s1"), path="models/lstm_tiny")
    curves = runs("simulated", folder=own).set_index("run")["curve"]
    assert curves["txl_tiny-english-unigram-1M-s1"] != curves["lstm_tiny-english-unigram-1M-s1"]


def test_checkpoints_of_one_training_are_one_curve(own):
    names = [f"txl_tiny-english-unigram-{size}-s{seed}" for size in ("125k", "1M") for seed in (1, 2)]
    as_revisions([_folder(own, name) for name in names])
    table = runs("simulated", folder=own).set_index("run").loc[names]
    assert list(table["tokens"].fillna(0)) == [1000, 2000, 3000, 0]
    assert table["curve"].iloc[:3].nunique() == 1
    assert table["curve"].iloc[3] != table["curve"].iloc[0]
    assert len(accuracies("simulated", folder=own)) == 8 * 6


def test_unfinished_runs_are_left_out_and_several_studies_joined(own):
    _folder(own, "txl_tiny-english-unigram-1M-s1").update_manifest(status="unfinished")
    shutil.copytree(own / "simulated", own / "other")
    table = accuracies("simulated", "other", folder=own)
    assert set(table["study"]) == {"simulated", "other"}
    assert table.groupby("study")["run"].nunique().to_dict() == {"simulated": 7, "other": 7}


def test_bad_requests_are_refused(folder):
    with pytest.raises(ConfigError, match="at least one study"):
        accuracies(folder=folder)
    with pytest.raises(RunError, match="simulate: no folder"):
        runs("simulate", folder=folder)
    with pytest.raises(ConfigError, match="ties"):
        accuracies("simulated", ties="left", folder=folder)
    assert accuracies("simulated", benchmark="climp", folder=folder).empty


def test_the_examples_of_the_guide_run(tmp_path, monkeypatch):
    SimulatedStudy(name="mine", sizes=("125k",), pairs=2).write(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "guides" / "table.md"
    results = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert results.attempted
    assert not results.failed


def test_the_guide_explains_every_column():
    named = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "guides" / "table.md").read_text(encoding="utf-8")))
    assert named >= {*RUN_COLUMNS, *ACCURACY_COLUMNS, *PAIR_COLUMNS}


@pytest.mark.slow
@pytest.mark.parametrize("what", ["accuracies", "pairs", "runs"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_writes_the_same_tables(folder, tmp_path, what, ending):
    output = tmp_path / f"table.{ending}"
    done = run_command("analysis.table", "study=simulated", f"what={what}", f"output={output}", f"paths.runs={folder}")
    assert done.returncode == 0, done.stderr
    read = pd.read_csv(output) if ending == "csv" else pd.read_parquet(output)
    expected = {"accuracies": accuracies, "pairs": pairs, "runs": runs}[what]("simulated", folder=folder)
    assert list(read.columns) == list(expected.columns)
    assert len(read) == len(expected)
    assert read["run"].tolist() == expected["run"].tolist()


def _folder(own, run):
    return RunFolder(own / "simulated" / run)
