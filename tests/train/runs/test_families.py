"""Runs of Hugging Face architectures: compiled, read in parts, scored as the library scores them."""

from functools import partial

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from eval import judge, load_scorer
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support.small_runs import overrides, trained
from train.estimate import estimate
from train.loop.device import Ranks
from train.loop.training import TrainingData
from train.run import corpus_of
from train.runs.model_folder import load_model

pytestmark = pytest.mark.usefixtures("small_text")


@pytest.mark.parametrize(("model", "field"), [("gpt2", "n_positions=20"), ("roberta", "max_position_embeddings=21")])
def test_blocks_may_be_as_long_as_the_network_reads(tmp_path, model, field):
    more = [f"model.config.{field}", "recipe.budget.epochs=1", "recipe.validation_words=100"]
    assert trained(compose("train", overrides(tmp_path, model, "runs", *more))).done
    message = rf"^recipe\.context=21: model={model}_tiny can read at most 20 tokens\. Use recipe\.context=20"
    longer = compose("train", overrides(tmp_path, model, "runs", *more, "recipe.context=21"))
    for work in (trained, estimate):
        with pytest.raises(ConfigError, match=message):
            work(longer)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gpt2", "roberta", "gpt_bert"])
def test_a_compiled_run_has_the_weights_of_one_that_is_not(tmp_path, model, monkeypatch):
    """Traced, but without generating code, whose dropout masks are its own (and which takes a minute)."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    weights = []
    for compiled in ("false", "true"):
        more = ["recipe.batch=8", "recipe.validation_words=100", "sample.size=2k"]
        arguments = overrides(tmp_path, model, compiled, *more, f"trainer.compile={compiled}")
        weights.append(load_file(trained(compose("train", arguments)).model.weights))
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.slow
def test_parts_of_a_step_give_the_weights_of_the_whole(tmp_path):
    more = ["recipe.batch=8", "recipe.lr=1e-3", "model.config.resid_pdrop=0", "model.config.embd_pdrop=0",
            "model.config.attn_pdrop=0"]  # fmt: skip
    whole = trained(compose("train", overrides(tmp_path, "gpt2", "whole", *more)))
    parts = trained(compose("train", overrides(tmp_path, "gpt2", "parts", *more, "recipe.accumulate=3")))
    left, right = load_file(whole.model.weights), load_file(parts.model.weights)
    for name in left:
        torch.testing.assert_close(left[name], right[name], rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_a_decoder_learns_and_its_scores_are_those_of_the_library(tmp_path):
    folder = trained(compose("train", overrides(tmp_path, "gpt2", "runs", "recipe.batch=8")))
    first, *_, last = pd.read_csv(folder.metrics).valid_ppl.dropna()
    assert last < first < 400
    manifest = folder.read_manifest()
    assert (manifest["status"], manifest["words_seen"]) == ("done", 36_000)
    loaded = load_model(folder.model)
    assert loaded.model.network.config.n_embd == 24
    pairs = [("w1 w3 w9 .", "w9 w3 w1 ."), ("w2 w6", "w2 unheard")]
    rows = judge(load_scorer(folder.path), pairs, ["lp"])
    for (good, bad), row in zip(pairs, rows.itertuples(), strict=True):
        for sentence, score in ((good, row.good_score), (bad, row.bad_score)):
            ids = torch.tensor([[0, *loaded.tokenizer.encode(sentence), 0]])  # a word-level model's <eos> counts
            with torch.no_grad():
                logprobs = loaded.model.network(input_ids=ids[:, :-1]).logits[0].log_softmax(-1)
            assert score == pytest.approx(logprobs.gather(1, ids[0, 1:, None]).sum().item(), abs=1e-4)


def test_a_text_with_the_symbol_of_masked_models_is_refused_before_training(tmp_path):
    """Its tokenizer could not be saved with the model when the run ends."""
    text = tmp_path / "text.txt"
    text.write_text(text.read_text() + "\n\n" + "w1 <mask> w3 .\n" * 500)
    config = compose("train", overrides(tmp_path, "bert", "runs", "recipe.packing=sentences", "tokenizer=whitespace"))
    with pytest.raises(ConfigError, match="<mask> is a token of the text already"):
        TrainingData.prepare(config, corpus_of(config), Ranks())


@pytest.mark.parametrize(
    "objective", ["mlm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mntp", "hybrid"))]
)
def test_a_masked_model_trains_and_is_scored_by_pseudo_log_likelihood(tmp_path, objective):
    more = ["recipe.batch=8", "recipe.packing=sentences", "recipe.validation_words=100", f"model.objective={objective}"]
    folder = trained(compose("train", overrides(tmp_path, "bert", "runs", *more)))
    metrics = pd.read_csv(folder.metrics)
    assert metrics.valid_ppl.isna().all()
    assert metrics.valid_pseudo_ppl.notna().any()
    assert "valid_pseudo_ppl" in folder.read_manifest()["last"]

    loaded = load_model(folder.model)
    (row,) = judge(load_scorer(folder.path), [("w1 w3 w9 .", "w9 w3 w1 .")], ["pll"]).itertuples()
    ids = [2, *(2 + index for index in loaded.tokenizer.encode("w1 w3 w9 .")), 2]
    shift, expected = int(objective != "mlm"), 0.0
    for place in range(1, len(ids) - 1):
        read = torch.tensor([[*ids[:place], 1, *ids[place + 1 :]]])
        with torch.no_grad():
            logprobs = loaded.model.network(input_ids=read).logits[0, place - shift].log_softmax(-1)
        expected += logprobs[ids[place]].item()
    assert row.good_score == pytest.approx(expected, abs=1e-4)
