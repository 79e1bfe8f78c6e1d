"""Scoring of runs on the diagnostics: missing scores are computed once; the command."""

import numpy as np
import pytest

from eval.estimate import estimate_scoring
from eval.run import add_pretrained, score_run, score_study
from eval.scores.files import read_answer_file
from pairscale.command.compose import compose
from pairscale.errors import RunError
from tests.support.commands import run_command
from tests.support.diagnostics import write_files
from tests.support.random_models import LSTM, TXL, random_model, simulated_run
from tests.support.small_pretrained import MASKED, MODELS, byte_level, with_random_weights
from tests.support.small_runs import study_overrides

NAMES = ["cprag", "role", "neg"]


@pytest.fixture
def configure(tmp_path):
    """Write the files of the diagnostics; a function from overrides to the configuration of a run."""
    write_files(tmp_path / "lm_diagnostics")
    paths = study_overrides(tmp_path)
    return lambda *overrides: compose("eval", ["trainer.progress=false", "corpus=toy", *paths, *overrides])


@pytest.mark.parametrize("model", [LSTM, TXL], ids=["lstm", "txl"])
@pytest.mark.parametrize("name", NAMES)
def test_a_trained_run_is_scored(configure, name, model, capsys):
    config = configure(f"benchmark={name}", "method=[]")
    run = simulated_run(config, random_model(model))
    score_run(run, config)
    printed = capsys.readouterr().out
    assert "accuracy@5" in printed
    assert "not expressible" in printed  # it was trained on a few sentences
    cloze, metadata = read_answer_file(run.scores(name), "cloze")
    assert metadata["benchmark"]["name"] == name
    assert metadata["policy"] == {"context": "none", "context_tokens": 32, "precision": "fp32"}
    assert metadata["sample_words"] == 1000
    assert not cloze["expressible"].all()
    assert cloze["prob"].isna().equals(~cloze["expressible"])
    assert cloze["rank"].isna().equals(~cloze["expressible"])
    assert set(read_answer_file(run.scores(name), "topk")[0]["place"]) == {1, 2, 3, 4, 5}


def test_shuffled_contexts_are_scored_without_top_words(configure):
    config = configure("benchmark=cprag", "benchmark.shuffles=7")
    run = simulated_run(config, random_model(LSTM))
    score_run(run, config)
    cloze, _ = read_answer_file(run.scores("cprag+shuffles-7"), "cloze")
    assert cloze.groupby("condition").size().to_dict() == {
        "original": 6, "truncated": 2, "shuffled": 14, "shuffled_truncated": 14,
    }  # fmt: skip
    assert set(read_answer_file(run.scores("cprag+shuffles-7"), "topk")[0]["condition"]) == {"original", "truncated"}


def test_existing_scores_are_not_computed_again(configure, capsys):
    config = configure("benchmark=neg")
    run = simulated_run(config, random_model(LSTM))
    # Two contexts an item, four if its words have different articles: of 4, 5, 4, 4, 5, 5, 7 and 8 words.
    assert estimate_scoring(config, 1.5).tokens == 42 * 1.5 + 8
    score_study(configure("benchmark=neg", "dry_run=true"))
    assert "neg: would score 8 contexts of 3 items" in capsys.readouterr().out

    def modification_times():
        return {path.name: path.stat().st_mtime_ns for path in run.scores("neg").iterdir()}

    score_run(run, config)
    first = modification_times()
    assert set(first) == {"cloze.parquet", "topk.parquet"}
    score_run(run, configure("benchmark=neg", "method=[lp]"))
    assert modification_times() == first
    assert estimate_scoring(config, 1.5).tokens == 0
    assert "(scored already)" in capsys.readouterr().out
    score_run(run, configure("benchmark=neg", "benchmark.top_words=7"))
    assert all(at != first[name] for name, at in modification_times().items())
    second = modification_times()
    simulated_run(config, random_model(LSTM, seed=1))
    score_run(run, config)
    assert all(at != second[name] for name, at in modification_times().items())
    (run.scores("neg") / "cloze.parquet").write_bytes(b"")
    with pytest.raises(RunError, match=r"cloze\.parquet: damaged"):
        score_run(run, config)


@pytest.mark.parametrize("kind", ["causal", "masked"])
@pytest.mark.parametrize("name", NAMES)
def test_pretrained_models_are_scored(configure, tmp_path, name, kind):
    network, tokenizer = (MODELS["gpt2"], byte_level) if kind == "causal" else MASKED["roberta"]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    if kind == "causal":  # texts of bytes are long
        network.config.n_positions = 400
        network.transformer.wpe.weight.data = network.transformer.wpe.weight.data.repeat(5, 1)
    else:
        network.config.max_position_embeddings = 402
        embeddings = network.roberta.embeddings
        embeddings.position_embeddings.weight.data = embeddings.position_embeddings.weight.data.repeat(6, 1)[:402]
        for buffer in ("position_ids", "token_type_ids"):
            delattr(embeddings, buffer)
    network.save_pretrained(tmp_path / kind)
    tokenizer.save_pretrained(tmp_path / kind)
    config = configure(f"model=hf_{kind}", f"model.path={tmp_path}/{kind}", f"benchmark={name}")
    run, scorer = add_pretrained(config)
    score_run(run, config, scorer)
    cloze, metadata = read_answer_file(run.scores(name), "cloze")
    assert cloze["expressible"].all()
    assert (cloze["n_tokens"] > 1).any()
    assert cloze["prob"].between(0, 1).all()
    assert (cloze["rank"] >= 1).all()
    assert metadata["model"]["name"] == f"{tmp_path}/{kind}"
    assert np.isfinite(read_answer_file(run.scores(name), "topk")[0]["prob"]).all()


@pytest.mark.slow
def test_the_command_scores_a_diagnostic(configure, tmp_path):
    simulated_run(configure(), random_model(LSTM))
    arguments = ["study=s", "benchmark=role", f"paths.runs={tmp_path}/runs", f"paths.data={tmp_path}"]
    done = run_command("eval", *arguments)
    assert done.returncode == 0
    assert [line.partition(": ")[2][:13] for line in done.stderr.splitlines()] == ["blanks around"]  # in the file
    assert "generic object" in done.stdout
