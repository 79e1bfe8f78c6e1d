"""Methods and forms registered by a plug-in work like built-in ones (tests/test_extending.py has diagnostics, too)."""

from dataclasses import dataclass

import numpy as np
import pytest

import eval.benchmarks.config as form_registry
import eval.methods.method as method_registry
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.form import Row, Table
from eval.benchmarks.load import load_benchmark
from eval.methods.method import NoParameters, fitting, method, methods
from pairscale.command.compose import compose
from pairscale.command.errors import describe
from pairscale.errors import ConfigError


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(method_registry, "_METHODS", dict(methods()))
    monkeypatch.setattr(form_registry, "_FORMS", dict(form_registry.forms()))


def test_a_method_can_be_registered_by_a_plug_in():
    @dataclass
    class Shortest:
        least: int = 1

    @method("shortest", Shortest())
    def shortest(side, other, parameters):
        return -np.maximum(side.tokens, parameters.least).astype(np.float64)

    config = compose("eval", ["method=[lp,shortest]", "method.shortest.least=3"])
    assert config.method == {"lp": NoParameters(), "shortest": Shortest(3)}
    assert list(fitting(config.method, masked=False)) == ["lp", "shortest"]
    with pytest.raises(ConfigError) as caught:
        compose("eval", ["method=[shortest]", "method.shortest.last=3"])
    assert describe(caught.value) == "Unknown key 'method.shortest.last'. Did you mean 'method.shortest.least'?"


def test_a_form_can_be_registered_by_a_plug_in_but_not_under_the_name_of_another():
    @form_registry.form("two_lines", ("path",))
    def two_lines(config):
        cells = {"pair_id": "0", "paradigm": "p", "phenomenon": "q", "good": "a b", "bad": config.path}
        yield Table("mine", config.path, [Row("line 1", cells)])

    benchmark = load_benchmark(BenchmarkConfig(name="mine", form="two_lines", path="b a"))
    assert benchmark.pairs[["good", "bad"]].to_numpy().tolist() == [["a b", "b a"]]
    with pytest.raises(ConfigError, match=r"benchmark\.seed=3: form=two_lines doesn't use this key"):
        BenchmarkConfig(name="mine", form="two_lines", seed=3)
    with pytest.raises(ValueError, match=r"form climp .*eval\.benchmarks\.form"):
        form_registry.form("climp", ())(two_lines)
    with pytest.raises(ValueError, match=r"method lp .*eval\.methods\.builtin\.sums"):
        method("lp")(lambda side, other, parameters: side.logprobs)
