"""Methods and forms that a plug-in registers are known like those of the checkout."""

import numpy as np
import pytest

import eval.benchmarks.forms.form as form_registry
import eval.methods.method as method_registry
from eval.benchmarks.load import load_benchmark
from eval.config import BenchmarkConfig
from eval.methods.method import check_method, methods
from pairscale.errors import ConfigError


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(method_registry, "_METHODS", dict(methods()))
    monkeypatch.setattr(form_registry, "_FORMS", dict(form_registry.forms()))


def test_a_method_from_outside():
    @method_registry.method("shortest")
    def shortest(side, other, config):
        return -side.tokens.astype(np.float64)

    check_method("shortest", masked=False)
    assert methods()["shortest"].score is shortest
    with pytest.raises(ConfigError, match="methods for it: pll"):
        check_method("shortest", masked=True)


def test_a_form_from_outside():
    @form_registry.form("two_lines", ("path",))
    def two_lines(config):
        yield "line 1", {"pair_id": "0", "paradigm": "p", "phenomenon": "q", "good": "a b", "bad": config.path}

    benchmark = load_benchmark(BenchmarkConfig(name="mine", form="two_lines", path="b a"))
    assert benchmark.pairs[["good", "bad"]].to_numpy().tolist() == [["a b", "b a"]]
    with pytest.raises(ConfigError, match=r"benchmark\.seed=3: form=two_lines has no use for it"):
        BenchmarkConfig(name="mine", form="two_lines", seed=3)
    with pytest.raises(ValueError, match=r"form blimp: registered by eval\.benchmarks\.forms\.blimp already"):
        form_registry.form("blimp", ())(two_lines)
