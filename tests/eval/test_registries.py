"""Methods, forms and diagnostics registered by a plug-in work like built-in ones."""

import numpy as np
import pytest

import eval.benchmarks.forms.form as form_registry
import eval.diagnostics.diagnostic as diagnostic_registry
import eval.methods.method as method_registry
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.load import load_benchmark
from eval.config import MethodConfig
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.measures import accuracy_outcomes, measures
from eval.diagnostics.questions import load_questions
from eval.methods.method import fitting, methods
from pairscale.errors import ConfigError


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(method_registry, "_METHODS", dict(methods()))
    monkeypatch.setattr(form_registry, "_FORMS", dict(form_registry.forms()))
    monkeypatch.setattr(diagnostic_registry, "_DIAGNOSTICS", dict(diagnostic_registry.diagnostics()))


def test_a_method_can_be_registered_by_a_plug_in():
    @method_registry.method("shortest")
    def shortest(side, other, config):
        return -side.tokens.astype(np.float64)

    assert list(fitting({"shortest": MethodConfig()}, masked=False)) == ["shortest"]
    assert methods()["shortest"].score is shortest
    with pytest.raises(ConfigError, match="methods for it: pll"):
        fitting({"shortest": MethodConfig()}, masked=True)


def test_a_form_can_be_registered_by_a_plug_in():
    @form_registry.form("two_lines", ("path",))
    def two_lines(config):
        yield "line 1", {"pair_id": "0", "paradigm": "p", "phenomenon": "q", "good": "a b", "bad": config.path}

    benchmark = load_benchmark(BenchmarkConfig(name="mine", form="two_lines", path="b a"))
    assert benchmark.pairs[["good", "bad"]].to_numpy().tolist() == [["a b", "b a"]]
    with pytest.raises(ConfigError, match=r"benchmark\.seed=3: form=two_lines has no use for it"):
        BenchmarkConfig(name="mine", form="two_lines", seed=3)
    with pytest.raises(ValueError, match=r"form climp: registered by eval\.benchmarks\.forms\.climp already"):
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
