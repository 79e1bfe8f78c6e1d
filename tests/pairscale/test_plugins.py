"""Plugins of other distributions: registered architectures, and errors of their imports."""

import importlib
import sys

import pytest

from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from pairscale.plugins import load_plugins
from train.models import config as models

PLUGIN = '''
from dataclasses import dataclass
from train.models.config import LstmConfig, register_architecture

@dataclass
class WideConfig(LstmConfig):
    """An LSTM under another name."""

register_architecture("wide", WideConfig, "train.models.lstm:LstmLanguageModel")
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


def test_an_architecture_of_another_distribution_is_registered_and_built(tmp_path, monkeypatch):
    from train.models.build import build_model
    from train.models.lstm import LstmLanguageModel

    install(tmp_path, monkeypatch, PLUGIN)
    assert "wide" not in models._ARCHITECTURES
    config = models.architectures()["wide"].config(name="wide", embedding=4, hidden=4, layers=1, dropout=0.0, tied=True)
    assert models.kind_of(config) == "wide"
    assert isinstance(build_model(config, 9), LstmLanguageModel)


def test_a_plugin_that_cannot_be_imported_is_a_message_of_one_line(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "import no_such_module")
    with pytest.raises(ConfigError, match=r"plugin wide = pairscale_wide of wide: cannot be imported \(ModuleNotFound"):
        compose("train", [])
