"""Runs of Hugging Face architectures: compiled, read in parts, scored as the library scores them."""

from functools import partial

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support.small_runs import overrides, trained
from train.estimate import estimate
from train.loop.device import Ranks
from train.loop.training import TrainingData
from train.run import corpus_of

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


def test_a_text_with_the_symbol_of_masked_models_is_refused_before_training(tmp_path):
    """Its tokenizer could not be saved with the model when the run ends."""
    text = tmp_path / "text.txt"
    text.write_text(text.read_text() + "\n\n" + "w1 <mask> w3 .\n" * 500)
    config = compose("train", overrides(tmp_path, "bert", "runs", "recipe.packing=sentences", "tokenizer=whitespace"))
    with pytest.raises(ConfigError, match="the text contains <mask>"):
        TrainingData.prepare(config, corpus_of(config), Ranks())


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["causal", "mlm", "mntp", "hybrid"])
def test_a_network_learns_and_masked_ones_have_a_pseudo_perplexity(tmp_path, objective):
    """tests/eval/export/test_elsewhere.py compares the scores of each with the library's."""
    masked = ["recipe.packing=sentences", "recipe.validation_words=100", f"model.objective={objective}"]
    model, more, measure = ("gpt2", [], "ppl") if objective == "causal" else ("bert", masked, "pseudo_ppl")
    folder = trained(compose("train", overrides(tmp_path, model, "runs", "recipe.batch=8", *more)))
    metrics = pd.read_csv(folder.metrics)
    first, *_, last = metrics[f"valid_{measure}"].dropna()
    assert last < first
    assert metrics["valid_ppl"].isna().all() == (measure == "pseudo_ppl")
    manifest = folder.read_manifest()
    assert f"valid_{measure}" in manifest["last"]
    assert (manifest["status"], manifest["words_seen"]) == ("done", 36_000)
