"""The files that travel with weights import torch, transformers and each other, nothing else."""

import ast
import dataclasses
import sys

import pytest
import torch
from transformers import AutoModelForCausalLM

from pairscale.errors import ConfigError
from tests.support.random_models import LSTM, TXL, random_model, saved
from train.models.build import build_model
from train.models.travel import write_description_and_code


@pytest.mark.parametrize(("config", "file"), [(LSTM, "recurrent"), (TXL, "txl")], ids=["lstm", "txl"])
def test_a_folder_has_all_that_its_code_imports(config, file, tmp_path):
    write_description_and_code(tmp_path, build_model(config, 20), config)
    written = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*.py")}
    assert set(written) == {"modeling", file, "base", "loss"}
    for tree in written.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.module in written
            elif isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                allowed = {*sys.stdlib_module_names, "torch", "transformers"}
                assert {str(name).partition(".")[0] for name in names} <= allowed


PLUGIN = """
from torch import nn

from train.models.recurrent import LstmLanguageModel


class NormedLstm(LstmLanguageModel):
    def __init__(self, config, vocabulary):
        super().__init__(config, vocabulary)
        self.norm = nn.LayerNorm(config.hidden)

    def forward(self, tokens, state):
        hidden, state = super().forward(tokens, state)
        return self.norm(hidden), state
"""


def model_of_plugin(folder, monkeypatch, name):
    (folder / f"{name}.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return __import__(name).NormedLstm(LSTM, 19).eval()


@torch.no_grad()
def test_a_model_of_a_plug_in_travels_with_its_own_file(tmp_path, monkeypatch):
    model = model_of_plugin(tmp_path, monkeypatch, "normed_lstm")
    loaded = random_model(LSTM)
    saved(tmp_path / "model", dataclasses.replace(loaded, model=model))
    read = AutoModelForCausalLM.from_pretrained(tmp_path / "model", trust_remote_code=True).eval()
    tokens = torch.tensor([[0, 3, 4, 5]])
    hidden, _ = model(tokens, model.initial_state(1))
    torch.testing.assert_close(read(tokens).logits, hidden @ model.output_weight.T + model.output_bias)
    assert type(read.model).__name__ == "NormedLstm"


def test_a_file_with_the_name_of_ours_is_refused_before_training(tmp_path, monkeypatch):
    model = model_of_plugin(tmp_path, monkeypatch, "loss")
    monkeypatch.setattr("train.models.build._class_of", lambda config: lambda config, vocabulary: model)
    with pytest.raises(ConfigError, match="rename this file"):
        build_model(LSTM, 20)
