"""Models without weights: their shapes, and what building them loads."""

import subprocess
import sys

import pytest

from pairscale.command.compose import compose
from tests.support import ROOT
from train.models.build import build_model, without_weights

MODELS = ["lstm_tiny", "txl_tiny", "gru", "gpt2"]


@pytest.mark.parametrize("name", MODELS)
def test_models_without_weights_have_the_shapes_of_others(name):
    config = compose("train", [f"model={name}"]).model
    with without_weights():
        empty = build_model(config, 100).state_dict()
    assert all(weight.is_meta for weight in empty.values())
    assert {name: weight.shape for name, weight in build_model(config, 100).state_dict().items()} == {
        name: weight.shape for name, weight in empty.items()
    }


def test_building_them_loads_no_compiler():
    code = """
import sys
from pairscale.command.compose import compose
from train.models.build import parameter_count
print([parameter_count(compose("train", [f"model={name}"]).model, 100) > 0 for name in sys.argv[1:]])
print("torch._dynamo" in sys.modules)
"""
    command = [sys.executable, "-c", code, *MODELS[:3]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == ["[True, True, True]", "False"]
