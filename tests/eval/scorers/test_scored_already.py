"""Scores of Hugging Face models that can be kept, and changes after which they are computed again."""

import json

import pytest
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from eval.kinds.pairs import PairsWork
from eval.run import add_pretrained
from eval.scores.files import read_metadata, read_scores
from pairscale.command.compose import compose
from tests.support.small_pretrained import byte_level, gpt2, with_random_weights

CHAT = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"


def long_gpt2(vocabulary):
    return GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, n_embd=16, n_layer=1, n_head=2, n_positions=400))


@pytest.fixture
def folder(tmp_path):
    tokenizer = byte_level()
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    tokenizer.chat_template = CHAT
    with_random_weights(long_gpt2, tokenizer).save_pretrained(tmp_path / "gpt")
    tokenizer.save_pretrained(tmp_path / "gpt")
    return tmp_path / "gpt"


@pytest.fixture
def work(tmp_path, folder, monkeypatch):
    """A function from overrides to the work on the run of the model, which it loads again."""
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    fixed = ["study=s", "model=hf_causal", "benchmark=toy", "benchmark.per_paradigm=2", "trainer.accelerator=cpu"]
    fixed += [f"paths.runs={tmp_path}/runs", "trainer.progress=false", f"model.path={folder}"]

    def loaded(*overrides):
        config = compose("eval", [*fixed, *overrides])
        run, scorer = add_pretrained(config)
        return PairsWork(run, config, scorer)

    return loaded


def update_json(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.slow
def test_settings_that_change_scores_are_recorded_and_compared(work, folder):
    first = work("method=[lp,yes_no,vote_p]")
    assert first.missing == ["lp", "yes_no", "vote_p"]
    first.score()
    settings = read_metadata(first.path("lp"))["settings"]
    assert settings["begin"] == {"id": 0, "text": "<|endoftext|>"}
    assert settings["special_tokens"]["pad_token"] == {"id": 292, "text": "<pad>"}
    assert len(settings["config_digest"]) == 64
    assert "chat_template" in read_metadata(first.path("yes_no"))["settings"]
    assert work("method=[lp,yes_no,vote_p]").missing == []

    original = json.loads((folder / "config.json").read_text())
    update_json(folder / "config.json", transformers_version="4.1", use_cache=False, _name_or_path="elsewhere")
    assert work("method=[lp]").missing == []  # none of these changes a score
    update_json(folder / "config.json", scale_attn_by_inverse_layer_idx=True)
    assert work("method=[lp]").missing == ["lp"]
    (folder / "config.json").write_text(json.dumps(original))

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = CHAT.replace("\n", " ")
    tokenizer.save_pretrained(folder)
    assert work("method=[lp,yes_no]").missing == ["yes_no"]
    work("method=[yes_no]").score()
    assert work("method=[yes_no,vote_p]").missing == ["vote_p"]  # it counted the previous scores
    tokenizer.bos_token = "<pad>"
    tokenizer.save_pretrained(folder)
    before = read_scores(first.path("lp"))[0]
    second = work("method=[lp]")
    assert second.missing == ["lp"]
    second.score()
    assert (read_scores(second.path("lp"))[0]["good"] - before["good"]).abs().min() > 0


def test_the_folder_above_has_the_tokenizer_of_a_checkpoint(folder, work):
    gpt2(len(AutoTokenizer.from_pretrained(folder))).save_pretrained(folder / "checkpoint-1")
    scored = work("model.revision=checkpoint-1")
    assert scored.scorer.tokenizer_path == scored.run.read_manifest()["tokenizer_path"] == str(folder)
