"""Exported models: read back unchanged, or refused in a message of one line."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from corpora.config import TokenizerConfig
from corpora.tokenizers import fit_tokenizer
from pairscale.errors import RunError
from pairscale.files import sha256_file
from tests.support.random_models import LSTM, TXL
from train.models.build import build_model
from train.runs.folder import RunFolder
from train.runs.model_folder import load_model, save_model

CONFIGS = {
    "lstm": LSTM,
    "lstm_tied": dataclasses.replace(LSTM, hidden=8, tied=True),
    "txl": dataclasses.replace(TXL, memory=5, same_length=True, clamp_len=3),
}


@pytest.fixture(scope="module")
def tokenizer():
    config = TokenizerConfig(
        name="word", kind="word", vocab_size=None, fit_on="train", fit_sentences=10, character_coverage=1.0
    )
    sentences = ["the cat sleeps .", "the cats sleep ."]
    return fit_tokenizer(config, sentences, len(sentences))


def saved(tmp_path: Path, tokenizer, name: str = "lstm"):
    folder = RunFolder(tmp_path / "run")
    torch.manual_seed(1)
    model = build_model(CONFIGS[name], len(tokenizer))
    save_model(folder.model, model, CONFIGS[name], tokenizer, {"sample_words": 8})
    return folder, model


@pytest.mark.parametrize("name", CONFIGS)
def test_a_saved_model_is_read_back_unchanged(tmp_path, tokenizer, name):
    folder, model = saved(tmp_path, tokenizer, name)
    generator = torch.get_rng_state()
    loaded = load_model(folder.model)
    assert torch.equal(generator, torch.get_rng_state()), "reading a model draws no random numbers"
    assert loaded.config == CONFIGS[name]
    assert loaded.info == {"sample_words": 8}
    assert loaded.digest == sha256_file(folder.model.weights)
    assert not loaded.model.training
    assert loaded.tokenizer.encode("the cat sleeps .") == tokenizer.encode("the cat sleeps .")
    tokens = torch.randint(len(tokenizer), (2, 7))
    model.eval()
    state, read_state = model.initial_state(2), loaded.model.initial_state(2)
    for _ in range(2):
        hidden, state = model(tokens, state)
        read, read_state = loaded.model(tokens, read_state)
        assert torch.equal(hidden, read)
    assert torch.equal(model.output_weight, loaded.model.output_weight)
    assert all(parameter.requires_grad for parameter in loaded.model.parameters())
    stored = sum(tensor.numel() for tensor in load_file(folder.model.weights).values())
    assert stored == sum(parameter.numel() for parameter in model.parameters())  # tied weights once


def foreign_weights(folder):
    save_file({"other": torch.zeros(3)}, folder.model.weights)
    change(folder, digest=sha256_file(folder.model.weights))


def no_safetensors(folder):
    folder.model.weights.write_bytes(b"x" * 100)
    change(folder, digest=sha256_file(folder.model.weights))


def change(folder, **values):
    folder.model.description.write_text(json.dumps({**json.loads(folder.model.description.read_text()), **values}))


# Damage of other kinds: tests/pairscale/test_bad_input.py.
DAMAGE = {
    "model.safetensors: these weights don't fit": foreign_weights,
    "model.safetensors: this file can't be read as safetensors": no_safetensors,
    "model.safetensors: this file does not exist": lambda folder: folder.model.weights.unlink(),
    "pairscale.json: this file does not exist": lambda folder: folder.model.description.unlink(),
    "pairscale.json: this file has version 99": lambda folder: change(folder, version=99),
    "pairscale.json: there is no architecture 'mgu'": lambda folder: change(folder, kind="mgu"),
    "missing: name": lambda folder: change(folder, config={"hidden": 8, "wings": 2}),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_a_damaged_model_is_a_message_of_one_line(tmp_path, tokenizer, message):
    folder, _ = saved(tmp_path, tokenizer)
    DAMAGE[message](folder)
    with pytest.raises(RunError) as caught:
        load_model(folder.model)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
