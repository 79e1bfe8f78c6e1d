"""Scoring of runs on suites: missing scores are computed once; the command."""

import numpy as np
import pytest

from eval.estimate import estimate_scoring
from eval.run import add_pretrained, score_run, score_study
from eval.scorers.load import load_scorer
from eval.scores.files import read_answer_file
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError
from tests.support.random_models import LSTM, TXL, random_model, simulated_run
from tests.support.small_pretrained import MASKED, MODELS, byte_level, with_random_weights
from tests.support.small_runs import study_overrides
from tests.support.suites import write_suites


@pytest.fixture
def configure(tmp_path):
    """Write the suites; a function from overrides to the configuration of a run."""
    write_suites(tmp_path / "syntaxgym")
    paths = [*study_overrides(tmp_path), "benchmark=syntaxgym"]
    return lambda *overrides: compose("eval", ["trainer.progress=false", "corpus=toy", *paths, *overrides])


@pytest.mark.parametrize("model", [LSTM, TXL], ids=["lstm", "txl"])
def test_a_trained_run_is_scored(configure, model, capsys):
    config = configure()
    run = simulated_run(config, random_model(model))
    score_run(run, config)
    printed = capsys.readouterr().out
    for text in ("SG score", "Agreement", "number_mini", "Long-Distance Dependencies"):
        assert text in printed
    regions, metadata = read_answer_file(run.scores("syntaxgym"), "regions")
    assert metadata["benchmark"]["name"] == "syntaxgym"
    assert metadata["policy"]["score_eos"] is True
    assert metadata["sample_words"] == 1000
    text = "The cat sleep quietly ."
    (scores,) = load_scorer(run).score([text], config.policy)
    rows = regions[(regions["item"] == 1) & (regions["condition"] == "sing_bad")]
    assert rows["surprisal"].sum() == pytest.approx(-scores.logprobs.sum() / np.log(2))
    assert rows["tokens"].tolist() == [1, 1, 1, 3]  # <eos> too
    assert rows["content"].tolist() == ["The", "cat", "sleep", "quietly ."]


def test_existing_scores_are_not_computed_again(configure, capsys):
    config = configure()
    run = simulated_run(config, random_model(LSTM))
    # 5 words in each of four sentences of three items, and the 6 and 7 of two, each after a begin symbol.
    assert estimate_scoring(config, 1.5).tokens == (12 * 5 + 6 + 7) * 1.5 + 14
    score_study(configure("dry_run=true"))
    assert "syntaxgym: would score 5 items of 2 suites" in capsys.readouterr().out

    def modification_times():
        return {path.name: path.stat().st_mtime_ns for path in run.scores("syntaxgym").iterdir()}

    score_run(run, config)
    first = modification_times()
    assert set(first) == {"success.parquet", "regions.parquet"}
    score_run(run, configure("method=[lp]"))
    assert modification_times() == first
    assert estimate_scoring(config, 1.5).tokens == 0
    assert "(scored already)" in capsys.readouterr().out
    write_suites(run.path.parents[2] / "syntaxgym")
    (run.scores("syntaxgym") / "success.parquet").write_bytes(b"")
    with pytest.raises(RunError, match=r"success\.parquet: damaged"):
        score_run(run, config)


def test_some_suites_have_a_folder_of_their_own(configure):
    config = configure("benchmark.suites=[cleft_mini]", "policy.unk=skip")
    run = simulated_run(config, random_model(LSTM))
    score_run(run, config)
    (folder,) = run.scores("").iterdir()
    assert folder.name.startswith("syntaxgym+suites-")
    assert folder.name.endswith("+unk-skip")
    regions = read_answer_file(folder, "regions")[0]
    assert set(regions["suite"]) == {"cleft_mini"}
    unknown = regions[(regions["unk"] == regions["tokens"])]
    assert not unknown["surprisal"].any()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("benchmark.pairs=3", r"benchmark\.pairs, \.paradigms: syntaxgym has no pairs"),
        ("benchmark.suites=[]", r"benchmark\.suites=\[\]: must name at least one"),
        ("benchmark.name=mine", r"benchmark\.name=mine: must be one of syntaxgym"),
        ("scoring.snapshots=true", r"scoring\.snapshots=true with benchmark=syntaxgym: trajectories are of pairs"),
    ],
)
def test_other_values_are_refused(configure, override, message):
    with pytest.raises((ConfigError, InputError), match=message):
        configure(override)


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_pretrained_models_read_from_left_to_right(configure, tmp_path, kind):
    network, tokenizer = (MODELS["gpt2"], byte_level) if kind == "causal" else MASKED["roberta"]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    network.save_pretrained(tmp_path / kind)
    tokenizer.save_pretrained(tmp_path / kind)
    config = configure(f"model=hf_{kind}", f"model.path={tmp_path}/{kind}")
    run, scorer = add_pretrained(config)
    if kind == "masked":
        with pytest.raises(InputError, match=r"is a masked model"):
            score_run(run, config, scorer)
        return
    score_run(run, config, scorer)
    regions = read_answer_file(run.scores("syntaxgym"), "regions")[0]
    assert np.isfinite(regions["surprisal"]).all()
    assert (regions["tokens"] > 0).equals(regions["content"] != "")
