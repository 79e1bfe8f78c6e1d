"""Plugins of other distributions: registered architectures, and errors of their imports."""

import importlib
import sys

import pytest

from pairscale.command.compose import compose
from pairscale.command.errors import outcome
from pairscale.errors import ConfigError
from pairscale.plugins import load_plugins
from train.models import config as models
from train.models.build import build_model
from train.models.recurrent import LstmLanguageModel

PLUGIN = '''
from dataclasses import dataclass
from train.models.config import LstmConfig, register_architecture

@dataclass
class WideConfig(LstmConfig):
    """An LSTM under another name."""

register_architecture("wide", WideConfig, "train.models.recurrent:LstmLanguageModel")
'''


def install(folder, monkeypatch, code):
    """Install a distribution in `folder` whose entry point names the module pairscale_wide."""
    (folder / "pairscale_wide.py").write_text(code)
    (folder / "wide-1.dist-info").mkdir()
    (folder / "wide-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: wide\nVersion: 1\n")
    (folder / "wide-1.dist-info" / "entry_points.txt").write_text("[pairscale.plugins]\nwide = pairscale_wide\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(models, "_ARCHITECTURES", dict(models._ARCHITECTURES))
    monkeypatch.delitem(sys.modules, "pairscale_wide", raising=False)
    importlib.invalidate_caches()
    load_plugins.cache_clear()


def wide():
    return models.architectures()["wide"].config(name="w", embedding=4, hidden=4, layers=1, dropout=0.0, tied=True)


def test_an_architecture_of_another_distribution_is_registered_and_built(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, PLUGIN)
    assert "wide" not in models._ARCHITECTURES
    assert models.kind_of(wide()) == "wide"
    assert isinstance(build_model(wide(), 9), LstmLanguageModel)


def test_a_plugin_that_cannot_be_imported_is_a_message_of_one_line(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "import no_such_module")
    with pytest.raises(ConfigError, match=r"plug-in wide = pairscale_wide of wide cannot be imported \(ModuleNotFound"):
        compose("train", [])


MODELS = """
from train.models.base import LanguageModel

class Half(LanguageModel):
    def initial_state(self, batch):
        return ()
"""


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("Half", MODELS, "own_models:Half must define forward"),
        ("None_", MODELS, "own_models:None_ can.t be imported .*no attribute 'None_'"),
        ("Half", "import no_such_module", "own_models:Half can.t be imported .*no_such_module"),
    ],
)
def test_a_class_of_a_plugin_that_is_no_model_is_an_error_that_names_it(tmp_path, monkeypatch, name, code, reason):
    (tmp_path / "own_models.py").write_text(code)
    monkeypatch.delitem(sys.modules, "own_models", raising=False)
    install(tmp_path, monkeypatch, PLUGIN.replace("train.models.recurrent:LstmLanguageModel", f"own_models:{name}"))
    with pytest.raises(ConfigError, match=reason):
        build_model(wide(), 9)


PACKAGE = """
def fail():
    return [][1]

def call(function):
    return function()
"""


@pytest.mark.parametrize("packaged", [False, True])
def test_a_fault_in_the_code_of_a_plugin_is_said_to_be_its_own(tmp_path, monkeypatch, packaged):
    if packaged:
        (tmp_path / "pairscale_wide").mkdir()
        (tmp_path / "pairscale_wide" / "part.py").write_text(PACKAGE)
        install(tmp_path, monkeypatch, "")
        (tmp_path / "pairscale_wide.py").rename(tmp_path / "pairscale_wide" / "__init__.py")
    else:
        install(tmp_path, monkeypatch, PACKAGE)
    module = importlib.import_module("pairscale_wide.part" if packaged else "pairscale_wide")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for work in (module.fail, lambda: module.call(lambda: [][1])):
        with pytest.raises(IndexError) as raised:
            work()
        line, code = outcome(raised.value)
        assert code == 1
        assert f"a bug in the plug-in, in {module.__file__}, line {3 if work is module.fail else 6}." in line
        assert "bug in pairscale" not in line


def test_any_other_fault_may_be_that_of_an_installed_plugin(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert "bug in pairscale or the plug-in pairscale_wide. " in outcome(IndexError("too few"))[0]
