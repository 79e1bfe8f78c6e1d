"""Scoring runs on the diagnostics: what lacks is scored, once; the command; the analysis of such runs."""

import numpy as np
import pytest

from eval.diagnostics.files import read_cloze, read_topk
from eval.estimate import estimate_scoring
from eval.run import add_pretrained, score_run, score_study
from eval.scorers.load import load_scorer
from pairscale.command.compose import compose
from pairscale.errors import RunError
from tests.support.commands import run_command
from tests.support.diagnostics import write_files
from tests.support.random_models import LSTM, TXL, random_model, simulated_run
from tests.support.small_pretrained import MASKED, MODELS, byte_level, with_random_weights

NAMES = ["cprag", "role", "neg"]


@pytest.fixture
def configured(tmp_path):
    """The diagnostics' files, and the configuration of a run with overrides."""
    write_files(tmp_path / "lm_diagnostics")
    paths = [f"paths.data={tmp_path}", f"paths.runs={tmp_path}/runs", "trainer.accelerator=cpu", "study=s"]
    return lambda *overrides: compose("eval", ["trainer.progress=false", "corpus=toy", *paths, *overrides])


@pytest.mark.parametrize("model", [LSTM, TXL], ids=["lstm", "txl"])
@pytest.mark.parametrize("name", NAMES)
def test_a_run_of_ours(configured, name, model, capsys):
    config = configured(f"benchmark={name}", "method=[]")
    run = simulated_run(config, random_model(model))
    score_run(run, config)
    told = capsys.readouterr().out
    assert "accuracy@5" in told
    assert "not expressible" in told  # its words are those of a few sentences
    cloze, metadata = read_cloze(run.scores(name))
    assert metadata["benchmark"]["name"] == name
    assert metadata["policy"] == {"context": "none", "context_tokens": 32, "precision": "fp32"}
    assert metadata["sample_words"] == 1000
    assert not cloze["expressible"].all()
    assert cloze["prob"].isna().equals(~cloze["expressible"])
    assert cloze["rank"].isna().equals(~cloze["expressible"])
    assert set(read_topk(run.scores(name))["place"]) == {1, 2, 3, 4, 5}


def test_shuffles_are_read_but_have_no_top_words(configured):
    config = configured("benchmark=cprag", "benchmark.shuffles=7")
    run = simulated_run(config, random_model(LSTM))
    score_run(run, config)
    cloze, _ = read_cloze(run.scores("cprag+shuffles-7"))
    assert cloze.groupby("condition").size().to_dict() == {
        "original": 6, "truncated": 2, "shuffled": 14, "shuffled_truncated": 14,
    }  # fmt: skip
    assert set(read_topk(run.scores("cprag+shuffles-7"))["condition"]) == {"original", "truncated"}


def test_what_is_scored_is_left_alone(configured, capsys):
    config = configured("benchmark=neg")
    run = simulated_run(config, random_model(LSTM))
    # Two contexts of an item; four where its two words have different articles: of 4, 5, 4, 4, 5, 5, 7 and 8 words.
    assert estimate_scoring(config, 1.5).tokens == 42 * 1.5 + 8
    score_study(configured("benchmark=neg", "dry_run=true"))
    assert "neg: would score 8 contexts of 3 items" in capsys.readouterr().out

    def written():
        return {path.name: path.stat().st_mtime_ns for path in run.scores("neg").iterdir()}

    score_run(run, config)
    first = written()
    assert set(first) == {"cloze.parquet", "topk.parquet"}
    score_run(run, configured("benchmark=neg", "benchmark.show=0", "method=[lp]"))
    assert written() == first
    assert estimate_scoring(config, 1.5).tokens == 0
    assert "(scored already)" in capsys.readouterr().out
    score_run(run, configured("benchmark=neg", "benchmark.top_words=7"))
    assert all(at != first[name] for name, at in written().items())
    again = written()
    simulated_run(config, random_model(LSTM, seed=1))
    score_run(run, config)
    assert all(at != again[name] for name, at in written().items())
    (run.scores("neg") / "cloze.parquet").write_bytes(b"")
    with pytest.raises(RunError, match=r"cloze\.parquet: damaged"):
        score_run(run, config)


@pytest.mark.parametrize("kind", ["causal", "masked"])
@pytest.mark.parametrize("name", NAMES)
def test_models_of_the_hub(configured, tmp_path, name, kind):
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
    config = configured(f"model=hf_{kind}", f"model.path={tmp_path}/{kind}", f"benchmark={name}")
    run, config, scorer = add_pretrained(config)
    score_run(run, config, scorer)
    cloze, metadata = read_cloze(run.scores(name))
    assert cloze["expressible"].all()
    assert (cloze["n_tokens"] > 1).any()
    assert cloze["prob"].between(0, 1).all()
    assert (cloze["rank"] >= 1).all()
    assert metadata["model"]["name"] == f"{tmp_path}/{kind}"
    assert np.isfinite(read_topk(run.scores(name))["prob"]).all()


def test_answers_of_a_time_without_settings_are_said_to_be_taken_as_they_are(configured, capsys):
    config = configured("benchmark=neg")
    run = simulated_run(config, random_model(LSTM))
    score_run(run, config)
    scorer = load_scorer(run)
    scorer.settings = {"begin": {"id": 0, "text": "<eos>"}}  # as a Hugging Face model's, which older files lack
    capsys.readouterr()
    score_run(run, config, scorer)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("scored by a version that did not record the begin symbol") == 1
    assert "(scored already)" in printed


@pytest.mark.slow
def test_the_command(configured, tmp_path):
    simulated_run(configured(), random_model(LSTM))
    arguments = ["study=s", "benchmark=role", f"paths.runs={tmp_path}/runs", f"paths.data={tmp_path}"]
    done = run_command("eval", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "generic object" in done.stdout
