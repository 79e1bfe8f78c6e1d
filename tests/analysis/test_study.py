"""The long table of a study, against counts made from its files by plain loops."""

import shutil

import pandas as pd
import pyarrow.parquet as pq
import pytest

from analysis.study.long_table import ACCURACY_COLUMNS, accuracies, notes, pairs, problems, runs
from analysis.study.run_folders import FURTHER_COLUMNS, RUN_COLUMNS
from eval.scores.files import read_items, read_scores, score_path, write_items, write_scores
from pairscale.errors import ConfigError, RunError
from tests.support.scored_runs import rescore, run_folders
from tests.support.simulated_study import SimulatedStudy, as_hub_model, as_revisions, rewrite_config
from train.runs.folder import RunFolder

STUDY = SimulatedStudy(sizes=("125k", "1M"), pairs=20, unk_share=0.3)
FIRST = "lstm_tiny-english-unigram-125k-s1"
LAST = "txl_tiny-english-unigram-1M-s2"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    STUDY.write(folder)
    return folder


@pytest.fixture
def own(written, tmp_path):
    """A copy of the study that a test may change."""
    shutil.copytree(written, tmp_path / "runs")
    return tmp_path / "runs"


def run_folder(own, run, study="simulated"):
    return RunFolder(own / study / run)


def of_run(table, run):
    return table[table["run"] == run].set_index("paradigm")


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
    assert set(table["unit"]) == {"words"}
    assert set(table["baseline"]) == {""}


def test_the_order_of_a_file_does_not_matter(own):
    before = accuracies("simulated", folder=own)
    rescore(run_folder(own, FIRST), lambda rows: rows.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(accuracies("simulated", folder=own), before)


@pytest.mark.parametrize(("ties", "worth"), [("wrong", 0), ("half", 0.5), ("right", 1)])
def test_ties_count_as_asked(own, ties, worth):
    rescore(
        run_folder(own, FIRST), lambda rows: rows.assign(bad=rows["good"].where(rows["pair_id"] == "3", rows["bad"]))
    )
    table = of_run(accuracies("simulated", ties=ties, folder=own), FIRST)
    decided = of_run(accuracies("simulated", folder=own), FIRST)["correct"]
    assert (table["ties"] == 1).all()
    assert (table["correct"] == decided + worth).all()


def test_a_pair_counts_once_however_many_templates_judge_it(own):
    def in_templates(rows):
        against = rows.assign(good=rows["bad"], bad=rows["good"])
        return pd.concat([rows.assign(template="one"), rows.assign(template="two"), against.assign(template="three")])

    rescore(run_folder(own, FIRST), in_templates, method="in_template_lp")
    alone, templates = (
        of_run(accuracies("simulated", method=method, folder=own), FIRST) for method in ("lp", "in_template_lp")
    )
    assert (templates["pairs"] == alone["pairs"]).all()
    expected = (2 * alone["accuracy"] + (1 - alone["accuracy"])) / 3
    assert templates["accuracy"].to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-12)
    assert len(pairs("simulated", method="in_template_lp", folder=own)) == 3 * 6 * 20
    assert len(accuracies("simulated", folder=own)) == 9 * 6


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


def test_masked_models_are_judged_by_pll_instead_of_lp(own):
    for folder in run_folders(own)[4:]:
        rescore(folder, method="pll")
        score_path(folder.scores("blimp"), "lp").unlink()
    table = accuracies("simulated", method="lp", folder=own)
    assert table.groupby("model")["method"].agg(set).to_dict() == {"lstm_tiny": {"lp"}, "txl_tiny": {"pll"}}
    (note,) = notes("simulated", method="lp", folder=own)
    assert "lp for lstm_tiny; pll for txl_tiny" in note
    assert problems("simulated", folder=own).empty


def test_known_faulty_pairs_are_counted_or_left_out(own, monkeypatch):
    known = pd.DataFrame({"benchmark": "blimp", "paradigm": "npi_licensing_1", "pair_id": list("0127")})
    monkeypatch.setattr("eval.benchmarks.known_items._table", lambda name: known.assign(reason="misspelt"))
    judged = pairs("simulated", folder=own)
    faulty = (judged["paradigm"] == "npi_licensing_1") & judged["pair_id"].isin(list("0127"))
    assert (judged["faulty"] != "").equals(faulty)
    for handling, counted in (("count", judged), ("leave_out", judged[~faulty])):
        table = accuracies("simulated", faulty_pairs=handling, folder=own).set_index(["run", "paradigm"])
        expected = counted.groupby(["run", "paradigm"])["correct"].agg(["size", "sum"]).loc[table.index]
        assert (table["pairs"] == expected["size"]).all()
        assert (table["correct"] == expected["sum"]).all()
    assert any("4 of 120 pairs" in note for note in notes("simulated", folder=own))


def test_generated_pairs_of_own_words_have_the_shared_paradigms(own):
    label = "blimp+run-k2"
    for number, folder in enumerate(run_folders(own)):
        folder.scores("blimp").rename(folder.scores(label))
        items, _ = read_items(folder.scores(label))
        kept = items[items["paradigm"] != f"island_effects_{1 + number % 2}"]
        digest = f"{number:02d}" * 32
        write_items(folder.scores(label), kept, "blimp", digest)
        rows, about = read_scores(score_path(folder.scores(label), "lp"))
        rows = rows[rows["paradigm"].isin(kept["paradigm"])]
        about["benchmark"]["digest"] = digest
        write_scores(score_path(folder.scores(label), "lp"), rows, about)
    table = accuracies("simulated", folder=own)
    assert set(table["paradigm"]) == {
        "anaphor_agreement_1", "anaphor_agreement_2", "island_effects_3", "npi_licensing_1",
    }  # fmt: skip
    assert any("by paradigm" in note for note in notes("simulated", folder=own))


# Runs and curves


def test_runs_have_the_values_of_their_files(written):
    table = runs("simulated", folder=written).set_index("run")
    assert tuple(table.reset_index()[[*RUN_COLUMNS, *FURTHER_COLUMNS]].columns) == (*RUN_COLUMNS, *FURTHER_COLUMNS)
    row = table.loc["lstm_tiny-english-unigram-1M-s2"]
    assert (row["study"], row["model"], row["curve"], row["size"]) == ("simulated", "lstm_tiny", "lstm_tiny", "1M")
    assert (row["sample_words"], row["words_seen"], row["seed"], row["sample"]) == (10**6, 3 * 10**6, 2, "02" * 32)
    assert (row["construction"], row["action"], row["dose"], row["base"]) == ("", "none", "1", "lstm_tiny")
    metrics = pd.read_csv(written / "simulated" / row.name / "metrics.csv")
    assert row["valid_ppl"] == metrics["valid_ppl"].min()  # the recipe exports the best model


def test_curves_are_named_by_what_differs(own):
    for seed in (1, 2):
        rewrite_config(run_folder(own, f"txl_tiny-english-unigram-1M-s{seed}"), model__layers=3)
    curves = runs("simulated", folder=own).set_index("run")["curve"]
    assert curves[LAST] == "txl_tiny, layers=3"
    assert curves["txl_tiny-english-unigram-125k-s1"] == "txl_tiny, layers=2"
    assert curves[FIRST] == "lstm_tiny"


@pytest.mark.parametrize(
    ("what", "fit_on", "curves"), [("text", "train", 2), ("tokenizer", "train", 2), ("tokenizer", "sample", 1)]
)
def test_runs_on_another_text_have_their_own_curve(own, what, fit_on, curves):
    for folder in run_folders(own):
        rewrite_config(folder, tokenizer__fit_on=fit_on)
    folder = run_folder(own, FIRST)
    folder.update_manifest(corpus=folder.read_manifest()["corpus"] | {what: "cd" * 32})
    table = runs("simulated", folder=own)
    assert table.groupby("model")["curve"].nunique().to_dict() == {"lstm_tiny": curves, "txl_tiny": 1}
    assert len([note for note in notes("simulated", folder=own) if f"different {what}" in note]) == curves - 1


def test_an_intervention_is_in_the_curve_and_not_in_its_base(own):
    for folder in run_folders(own)[:2]:
        rewrite_config(folder, filter={"name": "npi"}, ablate={"action": "remove", "dose": "0"})
    table = runs("simulated", folder=own).set_index("run").loc[FIRST]
    assert table[["curve", "construction", "action", "dose", "base"]].tolist() == [
        "lstm_tiny, npi removed", "npi", "remove", "0", "lstm_tiny",
    ]  # fmt: skip


def test_baselines_carry_the_curve_that_they_belong_to(own):
    run_folder(own, FIRST).update_manifest(words_seen=0)
    rewrite_config(run_folder(own, LAST), sample__shuffle="sentence")
    table = accuracies("simulated", folder=own).drop_duplicates("run").set_index("run")
    assert table.loc[FIRST, ["baseline", "curve"]].tolist() == ["untrained", "lstm_tiny"]
    assert table.loc[LAST, ["baseline", "curve"]].tolist() == ["sentence", "txl_tiny"]
    assert (table["baseline"] != "").sum() == 2


def test_models_that_come_trained_have_rows_without_a_place(own):
    as_hub_model(run_folder(own, LAST), path="models/lstm_tiny")
    row = runs("simulated", folder=own).set_index("run").loc[LAST]
    assert row["model"] == "lstm_tiny"
    assert row["curve"] == "lstm_tiny, pretrained"  # never the curve of a model that was trained here
    assert row[["sample_words", "seed", "size", "unit"]].isna().all()
    assert len(of_run(accuracies("simulated", folder=own), LAST)) == 6


def test_checkpoints_of_one_training_are_one_curve_over_tokens(own):
    names = [f"txl_tiny-english-unigram-{size}-s{seed}" for size in ("125k", "1M") for seed in (1, 2)]
    as_revisions([run_folder(own, name) for name in names])
    table = runs("simulated", folder=own).set_index("run").loc[names]
    assert table["sample_words"].tolist()[:3] == [1000, 2000, 3000]
    assert table["size"].tolist()[:3] == ["1k tokens", "2k tokens", "3k tokens"]
    assert table["unit"].tolist()[:3] == ["tokens"] * 3
    assert table["curve"].iloc[:3].unique().tolist() == ["gpt"]
    assert table["curve"].iloc[3] != "gpt"
    assert any("one training" in note for note in notes("simulated", folder=own))


def test_equal_weights_under_two_names_are_an_error(own):
    """EleutherAI/pythia, issue 203: several revisions on the hub hold the same file."""
    folders = run_folders(own)[:3]
    as_revisions(folders)
    folders[1].update_manifest(digest=folders[0].read_manifest()["digest"])
    with pytest.raises(RunError, match="models/gpt at revision step1 and models/gpt at revision step2 have the same"):
        runs("simulated", folder=own)


def test_other_values_that_differ_are_noted(own):
    for folder in run_folders(own):
        if "125k" in folder.path.name:
            rewrite_config(folder, recipe={"name": "r", "export": "best", "budget": {"epochs": 20.0, "words": None}})
        else:
            rewrite_config(folder, recipe={"name": "r", "export": "best", "budget": {"epochs": 3.0, "words": None}})
    assert any("recipe.budget.epochs differs between sizes" in note for note in notes("simulated", folder=own))


# Several studies


def test_studies_are_joined_and_told_apart(tmp_path):
    for number, name in enumerate("ab"):
        study = SimulatedStudy(pairs=5, name=name, models=("lstm_tiny",), sizes=("125k", "1M"))
        for folder in study.write(tmp_path, seed=number):
            folder.update_manifest(started=f"{name} {folder.path.name}")
    both = accuracies("a+b", folder=tmp_path)
    assert both.groupby("study")["curve"].agg(set).to_dict() == {"a": {"lstm_tiny, a"}, "b": {"lstm_tiny, b"}}
    assert both.equals(accuracies("a", "b", folder=tmp_path))
    for wrong in (["a", "a"], ["a+"]):
        with pytest.raises(ConfigError, match="names a study twice"):
            accuracies(*wrong, folder=tmp_path)


def test_a_run_in_two_studies_counts_once(tmp_path):
    SimulatedStudy(pairs=5, name="a", models=("lstm_tiny",), seeds=(1,)).write(tmp_path)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with pytest.raises(RunError, match="study=b: each of its runs is also a run of a"):
        runs("a+b", folder=tmp_path)
    for folder in SimulatedStudy(pairs=5, name="c", models=("lstm_tiny",), seeds=(2,)).write(tmp_path):
        folder.path.rename(tmp_path / "b" / folder.path.name)
    table = runs("a+b", folder=tmp_path)
    assert table["curve"].unique().tolist() == ["lstm_tiny"]
    assert table["study"].tolist() == ["a"] * 4 + ["b"] * 4
    assert problems("a+b", folder=tmp_path)["status"].tolist() == ["shared"] * 4
