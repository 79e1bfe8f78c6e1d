"""Methods, forms and diagnostics registered by a plug-in work like built-in ones."""

from dataclasses import dataclass

import numpy as np
import pytest

import eval.benchmarks.form as form_registry
import eval.diagnostics.diagnostic as diagnostic_registry
import eval.methods.method as method_registry
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.form import Row, Table
from eval.benchmarks.load import load_benchmark
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.measures import accuracy_outcomes, measures
from eval.diagnostics.questions import load_questions
from eval.methods.method import NoParameters, fitting, method, methods
from pairscale.command.compose import compose
from pairscale.command.errors import describe
from pairscale.errors import ConfigError


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(method_registry, "_METHODS", dict(methods()))
    monkeypatch.setattr(form_registry, "_FORMS", dict(form_registry.forms()))
    monkeypatch.setattr(diagnostic_registry, "_DIAGNOSTICS", dict(diagnostic_registry.diagnostics()))


def test_a_method_can_be_registered_by_a_plug_in():
    @dataclass
    class Shortest:
        least: int = 1

    @method_registry.method("shortest", Shortest())
    def shortest(side, other, parameters):
        return -np.maximum(side.tokens, parameters.least).astype(np.float64)

    config = compose("eval", ["method=[lp,shortest]", "method.shortest.least=3"])
    assert config.method == {"lp": NoParameters(), "shortest": Shortest(3)}
    assert list(fitting(config.method, masked=False)) == ["lp", "shortest"]
    with pytest.raises(ConfigError, match="methods for it: pll"):
        fitting(config.method, masked=True)
    with pytest.raises(ConfigError) as caught:
        compose("eval", ["method=[shortest]", "method.shortest.last=3"])
    assert describe(caught.value) == "method.shortest.last: no such key; did you mean least?"


def test_a_form_can_be_registered_by_a_plug_in():
    @form_registry.form("two_lines", ("path",))
    def two_lines(config):
        cells = {"pair_id": "0", "paradigm": "p", "phenomenon": "q", "good": "a b", "bad": config.path}
        yield Table("mine", config.path, [Row("line 1", cells)])

    benchmark = load_benchmark(BenchmarkConfig(name="mine", form="two_lines", path="b a"))
    assert benchmark.pairs[["good", "bad"]].to_numpy().tolist() == [["a b", "b a"]]
    with pytest.raises(ConfigError, match=r"benchmark\.seed=3: form=two_lines has no use for it"):
        BenchmarkConfig(name="mine", form="two_lines", seed=3)
    with pytest.raises(ValueError, match=r"form climp: registered by eval\.benchmarks\.forms already"):
        form_registry.form("climp", ())(two_lines)


def test_a_diagnostic_can_be_registered_by_a_plug_in():
    @diagnostic_registry.diagnostic("mine")
    class Mine(diagnostic_registry.Diagnostic):
        fields = ("path",)

        def questions(self, config):
            yield {"item": "1", "condition": "original", "context": "a", "candidate": config.path, "role": "expected"}

        def outcomes(self, cloze):
            return accuracy_outcomes(cloze, cloze["condition"])

    config = DiagnosticConfig(name="mine", path="b", quote_marks="as_published", top_words=1)
    (row,) = load_questions(config).rows.to_dict("records")
    assert (row["candidate"], row["context"]) == ("b", "a")
    cloze = load_questions(config).rows.assign(prob=0.5, rank=2, n_tokens=1, expressible=True)
    assert measures("mine", cloze)[["level", "accuracy"]].to_numpy().tolist() == [["accuracy@1", 0], ["accuracy@5", 1]]
    with pytest.raises(ConfigError, match=r"benchmark\.seed=3: form=mine has no use for it"):
        DiagnosticConfig(name="mine", path="b", quote_marks="as_published", top_words=1, seed=3)


def test_a_method_cannot_take_the_name_of_another():
    with pytest.raises(ValueError, match=r"method lp: registered by eval\.methods\.builtin\.sums already"):
        method("lp")(lambda side, other, parameters: side.logprobs)
