"""The files that travel with weights import torch, transformers and each other, nothing else."""

import ast
import sys

import pytest

from tests.support.random_models import LSTM, TXL
from train.models.build import build_model
from train.models.travel import of_transformers, write_code


@pytest.mark.parametrize(("config", "file"), [(LSTM, "recurrent"), (TXL, "txl")], ids=["lstm", "txl"])
def test_a_folder_has_all_that_its_code_imports(config, file, tmp_path):
    write_code(tmp_path, of_transformers(build_model(config, 20), config))
    written = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()}
    assert set(written) == {"modeling", file, "base", "adaptive", "loss"}
    for tree in written.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.module in written
            elif isinstance(node, ast.ImportFrom | ast.Import):
                names = [node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                allowed = {*sys.stdlib_module_names, "torch", "transformers"}
                assert {str(name).partition(".")[0] for name in names} <= allowed
