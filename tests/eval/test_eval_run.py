"""Scoring of runs and studies: missing scores are computed once; the command."""

import json
import shlex
import shutil

import numpy as np
import pandas as pd
import pytest

from eval import load_scorer
from eval.__main__ import run as run_command_line
from eval.benchmarks.load import drawn_pairs, load_benchmark, loaded_benchmark
from eval.config import of_each_benchmark
from eval.estimate import estimate_scoring
from eval.run import score_run, score_study
from eval.scorers import load
from eval.scores.files import TOKENS_FILE, read_items, read_scores, read_table, score_path
from eval.scores.schemas import TOKENS
from eval.scores.table import accuracy_table
from pairscale.command.compose import compose
from pairscale.command.line import Line
from pairscale.errors import InputError, RunError
from tests.support.random_models import LSTM, TXL, random_model, simulated_run
from tests.support.small_runs import study_overrides
from train.runs.model_folder import load_model

PAIRS = {
    ("subject_verb_agreement", "near"): [
        ("The cats sleep .", "The cats sleeps ."),
        ("The zebra sleeps .", "The zebra sleep ."),
        ("The dog barks .", "The dog barks ."),
    ],
    ("island_effects", "far"): [("Who saw the dog near a cat ?", "Who saw the gnu near a cat ?")],
}


@pytest.fixture
def configure(tmp_path):
    """Write a benchmark of four pairs; a function from overrides to the configuration of a run."""
    (tmp_path / "blimp").mkdir()
    for (phenomenon, paradigm), pairs in PAIRS.items():
        rows = [
            {"sentence_good": good, "sentence_bad": bad, "field": "syntax", "linguistics_term": phenomenon,
             "UID": paradigm, "pairID": str(index)}
            for index, (good, bad) in enumerate(pairs)
        ]  # fmt: skip
        (tmp_path / "blimp" / f"{paradigm}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    paths = study_overrides(tmp_path)

    def configure(*overrides):
        loaded_benchmark.cache_clear()
        return compose("eval", ["corpus=toy", "benchmark=blimp", "trainer.progress=false", *paths, *overrides])

    return configure


def scores_of(run, method="lp", label="blimp"):
    return read_scores(score_path(run.scores(label), method))


def test_all_methods_are_scored_in_one_pass(configure):
    config = configure()
    run = simulated_run(config, random_model(LSTM))
    score_run(run, config)
    rows, metadata = scores_of(run)
    assert rows[["paradigm", "pair_id"]].to_numpy().tolist() == [["far", "0"], *(["near", str(n)] for n in range(3))]
    assert (rows["good"] == rows["good_lp"]).all()
    assert rows["good_tokens"].tolist() == [9, 5, 5, 5]  # with <eos>, as of all models of words
    assert rows["good_words"].tolist() == [8, 4, 4, 4]
    assert rows["good_unk"].tolist() == [0, 0, 1, 0]
    assert rows["bad_unk"].tolist() == [1, 0, 1, 0]
    assert rows["crit_unk"].tolist() == [1, 0, 0, 0]
    assert rows["good"].iat[3] == rows["bad"].iat[3]
    assert (metadata["policy"]["score_eos"], metadata["reference"], metadata["step"]) == (True, "treebank", None)
    assert metadata["sample_words"] == 1000
    assert metadata["model"]["name"] == config.model.name
    mean, pen = scores_of(run, "mean_lp")[0], scores_of(run, "pen_lp")
    assert mean["bad"].to_numpy() == pytest.approx((rows["bad"] / rows["bad_tokens"]).to_numpy())
    assert pen[1]["parameters"] == {"alpha": 0.8}
    items, _ = read_items(run.scores("blimp"))
    assert items["good"].tolist() == [good for pairs in reversed(PAIRS.values()) for good, _ in pairs]


def test_tokens_add_up_to_scores(configure):
    config = configure("scoring.token_pairs=all")
    run = simulated_run(config, random_model(TXL))
    score_run(run, config)
    tokens, _ = read_table(run.scores("blimp") / TOKENS_FILE, TOKENS)
    sums = tokens.groupby(["paradigm", "pair_id", "side"])["logprob"].sum()
    for row in scores_of(run)[0].itertuples():
        assert sums[row.paradigm, row.pair_id, "good"] == pytest.approx(row.good)
        assert sums[row.paradigm, row.pair_id, "bad"] == pytest.approx(row.bad)
    first = tokens[tokens["position"] == 0]
    assert (first["end"] == 3).all()


def test_tokens_are_stored_for_a_sample_of_pairs_of_each_paradigm(configure):
    pairs = load_benchmark(configure().benchmark).pairs
    assert drawn_pairs(pairs, "all", 1).tolist() == [0, 1, 2, 3]
    indices = drawn_pairs(pairs, "2", 1)
    assert pairs["paradigm"].iloc[indices].value_counts().to_dict() == {"near": 2, "far": 1}
    assert np.array_equal(indices, drawn_pairs(pairs, "2", 1))
    assert len({tuple(drawn_pairs(pairs, "1", seed)) for seed in range(20)}) > 1
    assert len(drawn_pairs(pairs, "0", 1)) == 0


def test_existing_scores_are_not_computed_again(configure):
    config = configure("method=[lp]")
    run = simulated_run(config, random_model(LSTM))

    def modification_times():
        folder = run.scores("blimp")
        return {path.name: path.stat().st_mtime_ns for path in folder.glob("*lp*")}

    score_run(run, config)
    first = modification_times()
    score_run(run, config)
    assert modification_times() == first
    assert estimate_scoring(config, 1.5).tokens == 0
    # 7 different sentences as a tree after one <eos>: "The" with 5 words from "cats" on ("sleep", "sleeps" and two
    # ends), 5 from "zebra" on, 3 from "dog" on; "Who saw the", and 5 words twice
    assert estimate_scoring(configure("method=[pen_lp]"), 2.0).tokens == 2.0 * (1 + (1 + 5 + 5 + 3) + (3 + 5 + 5))
    score_run(run, configure())
    assert modification_times() | first == modification_times()  # lp.parquet as it was
    assert set(modification_times()) == {"lp.parquet", "mean_lp.parquet", "pen_lp.parquet"}
    before = modification_times()
    score_run(run, configure("method.pen_lp.alpha=0.5"))
    assert {name for name, at in modification_times().items() if at != before[name]} == {"pen_lp.parquet"}
    before = modification_times()
    simulated_run(config, random_model(LSTM, seed=1))
    score_run(run, configure())
    assert {name for name, at in modification_times().items() if at != before[name]} == set(before)


def test_each_policy_has_its_own_folder(configure):
    run = simulated_run(configure(), random_model(TXL))
    score_run(run, configure())
    score_run(run, configure("policy.context=eos", "policy.unk=skip"))
    score_run(run, configure("benchmark.pairs=1"))
    assert sorted(path.name for path in run.scores("blimp").parent.iterdir()) == [
        "blimp", "blimp+context-eos-32+unk-skip", "blimp+pairs-1",
    ]  # fmt: skip
    plain, other = scores_of(run)[0], scores_of(run, label="blimp+context-eos-32+unk-skip")[0]
    assert (plain["good_tokens"] - other["good_tokens"]).tolist() == [0, 0, 1, 0]
    assert (plain["good"] != other["good"]).all()


def test_scores_are_not_overwritten_by_those_of_other_pairs(configure, tmp_path):
    run = simulated_run(configure(), random_model(LSTM))
    overrides = [f"benchmark.path={tmp_path}/own.csv", "benchmark.name=own"]
    (tmp_path / "own.csv").write_text("good,bad\nThe cats sleep .,The cats sleeps .\n")
    score_run(run, configure("benchmark=local", *overrides))
    before = scores_of(run, label="own")
    (tmp_path / "own.csv").write_text("good,bad\nThe dogs sleep .,The dogs sleeps .\n")
    with pytest.raises(InputError, match=r"scores/own: the pairs of own have changed .*benchmark\.name=NAME"):
        score_run(run, configure("benchmark=local", *overrides))
    assert "scoring_failed" not in run.read_manifest()  # the scores that are there are as good as before
    assert scores_of(run, label="own")[0].equals(before[0])
    score_run(run, configure("benchmark=local", *overrides, "benchmark.name=new"))
    assert scores_of(run, label="new")[0]["good"].tolist() != before[0]["good"].tolist()


def test_a_study_is_scored_and_reports_runs_that_cannot_be(configure, capsys):
    runs = [simulated_run(configure(f"seed={seed}"), random_model(LSTM, seed=seed)) for seed in (1, 2)]
    unfinished = simulated_run(configure("seed=3"), random_model(LSTM), done=False)
    score_study(configure("dry_run=true"))
    printed = capsys.readouterr().out
    assert printed.count("would score lp, mean_lp, pen_lp on 4 pairs") == 2
    assert not runs[0].scores("blimp").exists()
    score_study(configure())
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{unfinished.path.name} was not scored. Its status: unfinished" in printed
    assert scores_of(runs[0])[0]["good"].tolist() != scores_of(runs[1])[0]["good"].tolist()
    assert not unfinished.scores("blimp").exists()
    runs[0].model.weights.write_bytes(runs[0].model.weights.read_bytes()[:-1])
    with pytest.raises(RunError, match=r"study=s: 1 of 2 runs could not be scored"):
        score_study(configure())
    assert "cut short or changed" in " ".join(capsys.readouterr().out.split())
    runs[1].manifest.write_text("[]")
    with pytest.raises(
        RunError, match=r"study=s: no run is finished, so none can be scored|2 of 2 runs could not be scored"
    ):
        score_study(configure())
    assert "manifest.json: $: expected object" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(RunError, match=r"'t'.* s"):
        score_study(configure("study=t"))


def typed_line(monkeypatch, *words):
    """Make `words` those of this process's command line, and return it."""
    line = Line.of(words, "eval")
    monkeypatch.setattr("pairscale.command.line._current", line)
    return line


def test_an_unfinished_run_is_not_scored_and_its_model_not_loaded(configure):
    run = simulated_run(configure(), random_model(LSTM))
    assert len(load_scorer(run.path).score(["The cat sleeps ."])[0].logprobs)
    run.update_manifest(status="unfinished")
    for use in (lambda: score_run(run, configure()), lambda: load_scorer(run.path)):
        with pytest.raises(RunError, match=r"not done \(status: unfinished\)\. Train it"):
            use()


@pytest.mark.parametrize(("overrides", "told"), [([], False), (["method=[lp,pll]"], True)])
def test_methods_that_are_asked_for_and_do_not_fit_the_model_are_named(configure, monkeypatch, capsys, overrides, told):
    config = configure(*overrides)
    run = simulated_run(config, random_model(LSTM))
    typed_line(monkeypatch, "study=s", "benchmark=blimp", *overrides)
    score_run(run, config)
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        f"{run.path.name} · blimp: This model isn't a masked model, so these methods are left out: pll" in printed
    ) == told
    assert "pll" not in (path.stem for path in run.scores("blimp").iterdir())


def test_the_table_has_accuracies_ties_and_published_numbers_of_the_same_paradigms_only(configure):
    config = configure()
    run = simulated_run(config, random_model(LSTM))
    score_run(run, config)
    rows = scores_of(run)[0].assign(good=[1.0, 1, 1, 1], bad=[0.0, 0, 2, 1])
    items, _ = read_items(run.scores("blimp"))

    def cells_of(rows, items, **options):
        table = accuracy_table("a run", "blimp", rows, items, "wrong", **options)
        cells = zip(*(map(str, column.cells) for column in table.columns), strict=True)
        return {name: rest for name, *rest in cells}, str(table.caption)

    cells, caption = cells_of(rows, items)
    # pairs, accuracy, interval, ties, without <unk>, how many pairs, people, LSTM, TXL, 5-gram, GPT-2
    assert cells["island_effects"][:2] == ["1", "100.0"]
    near = cells["subject_verb_agreement"]
    assert (near[0], near[1], near[3:6]) == ("3", "33.3", ["1", "50.0", "2"])
    assert (cells["overall"][1], cells["overall"][7]) == ("66.7", "69.8")
    assert "aren't comparable" in caption
    of_blimp = {"far": "wh_island", "near": "adjunct_island"}
    part = items.assign(paradigm=items["paradigm"].map(of_blimp), phenomenon="island_effects")
    cells, caption = cells_of(rows.assign(paradigm=rows["paradigm"].map(of_blimp)), part)
    assert cells["overall"][-4:] == ["57.0", "42.0", "52.0", "84.2"]
    assert "on the same paradigms" in caption
    _, caption = cells_of(rows.assign(good=[None, 1.0, 1, 1]), items, width=80)
    assert "no scored token: 1" in caption


def test_several_benchmarks_are_scored_with_one_load_of_each_model(configure, tmp_path, monkeypatch, capsys):
    (tmp_path / "conf" / "benchmark").mkdir(parents=True)
    (tmp_path / "conf" / "benchmark" / "far.yaml").write_text(f"name: far\npath: {tmp_path}/far.jsonl\nlanguage: en\n")
    shutil.copy(tmp_path / "blimp" / "far.jsonl", tmp_path)
    typed = ["--config-dir", f"{tmp_path}/conf", *study_overrides(tmp_path), "trainer.progress=false"]
    run = simulated_run(configure(), random_model(LSTM))
    for benchmark in ("blimp", "far"):
        score_run(run, compose("eval", Line.of([*typed, f"benchmark={benchmark}"])))
    alone = {path: pd.read_parquet(path) for path in run.scores("").rglob("*.parquet")}
    shutil.rmtree(run.scores(""))
    line = typed_line(monkeypatch, *typed, "benchmark=[blimp,far]")
    loads = []
    monkeypatch.setattr(load, "load_model", lambda folder: loads.append(folder) or load_model(folder))
    run_command_line(compose("eval", line))
    assert len(loads) == 1
    assert set(run.scores("").rglob("*.parquet")) == alone.keys()
    for path, rows in alone.items():
        pd.testing.assert_frame_equal(pd.read_parquet(path), rows)
    capsys.readouterr()
    (tmp_path / "far.jsonl").write_text("{")
    loaded_benchmark.cache_clear()
    with pytest.raises(RunError, match="scored on far"):
        score_run(run, of_each_benchmark(compose("eval", line), line)[::-1])
    assert "subject_verb_agreement" in capsys.readouterr().out, "the other one is scored"


def test_the_command_that_scored_or_failed_is_kept_as_it_was_typed(configure, tmp_path, monkeypatch):
    (tmp_path / "my conf").mkdir()
    config = configure()
    run = simulated_run(config, random_model(LSTM))
    words = ["--config-dir", str(tmp_path / "my conf"), "study=s", "benchmark=blimp"]
    typed_line(monkeypatch, *words)
    score_run(run, config)
    manifest = run.read_manifest()
    assert shlex.split(manifest["scoring_commands"]["blimp"]) == ["python", "-m", "eval", *words]
    score_run(run, config)  # nothing is left to score
    assert run.read_manifest() == manifest
    run.model.weights.write_bytes(b"cut short")
    typed_line(monkeypatch, *words, "benchmark.pairs=1")
    with pytest.raises(RunError):
        score_run(run, configure("benchmark.pairs=1"))
    assert "benchmark.pairs=1" in run.read_manifest()["scoring_commands"]["blimp+pairs-1"]
