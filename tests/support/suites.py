"""Suites of SyntaxGym in miniature, scores of their sentences, and the reference that reads the same formulas."""

import importlib.util
import json
import sys
import types
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from eval.scorers.base import TokenScores

AGREEMENT = {
    "meta": {"name": "number_mini", "metric": "sum"},
    "region_meta": {"1": "intro", "2": "noun", "3": "verb", "4": "rest"},
    "predictions": [
        {"type": "formula", "formula": "[(3;%sing%) < (3;%sing_bad%)] & [(3;%plural%) < (3;%plural_bad%)]"},
    ],
    "items": [
        {
            "item_number": number,
            "conditions": [
                {
                    "condition_name": name,
                    "regions": [
                        {"region_number": at, "content": content}
                        for at, content in enumerate(("The", noun, verb, "quietly ."), start=1)
                    ],
                }
                for name, noun, verb in (
                    ("sing", one, "sleeps"),
                    ("sing_bad", one, "sleep"),
                    ("plural", several, "sleep"),
                    ("plural_bad", several, "sleeps"),
                )
            ],
        }
        for number, (one, several) in enumerate((("cat", "cats"), ("dog", "dogs"), ("quokka", "quokkas")), start=1)
    ],
}
GAPS = {
    "meta": {"name": "cleft_mini", "metric": "sum"},
    "region_meta": {"1": "intro", "2": "comma", "3": "end"},
    "predictions": [
        {"type": "formula", "formula": "[(3;%bad%)-(3;%good%)]+[(*;%bad%)-(*;%good%)]>0"},
        {"type": "formula", "formula": "(1;%good%) = (1;%bad%)"},
    ],
    "items": [
        {
            "item_number": number,
            "conditions": [
                {
                    "condition_name": name,
                    "regions": [
                        {"region_number": 1, "content": " What he did"},
                        {"region_number": 2, "content": comma},
                        {"region_number": 3, "content": f"was {end} ."},
                    ],
                }
                for name, comma, end in (("good", "", "sleep"), ("bad", ",", "cats"))
            ],
        }
        for number in (1, 2)
    ],
}
SUITES = {"number_mini": AGREEMENT, "cleft_mini": GAPS}


def write_suites(folder: Path) -> Path:
    """Write both suites as JSON files; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, suite in SUITES.items():
        (folder / f"{name}.json").write_text(json.dumps(suite), encoding="utf-8")
    return folder


def scores(*tokens):
    """Return scores of tokens (start, end, bits, <unk>)."""
    spans = np.array([token[:2] for token in tokens], np.int32).reshape(-1, 2)
    logprobs = -np.log(2) * np.array([token[2] for token in tokens], float)
    return TokenScores(logprobs, spans, np.array([len(token) > 3 for token in tokens], bool))


def simulated(suites, seed=0):
    """Return scores of all sentences by text: a token for each word, one in ten <unk>."""
    rng = np.random.default_rng(seed)
    return {
        text: scores(*((start, end, rng.gamma(2, 3), *(["unk"] * (rng.random() < 0.1))) for start, end in words(text)))
        for text in suites.texts
    }


def words(text):
    start = 0
    for word in text.split(" "):
        yield start, start + len(word)
        start += len(word) + 1


def reference_formula(text: str):
    """Return syntaxgym's own reading of a formula; skips without the package (`make peers`).

    Its other modules want Docker, so this one is loaded alone. It knows round brackets only, as the suites of
    syntaxgym.org have.
    """
    spec = importlib.util.find_spec("syntaxgym")
    if spec is None or importlib.util.find_spec("pyparsing") is None:
        pytest.skip("syntaxgym and pyparsing are not installed (make peers)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyparsing renamed the functions that it calls
        return _reference(spec.submodule_search_locations[0]).Prediction(0, _round(text), "sum").formula


@cache
def _reference(folder: str) -> types.ModuleType:
    own = importlib.util.spec_from_file_location("syntaxgym_prediction", Path(folder) / "prediction.py")
    module = importlib.util.module_from_spec(own)
    stub = types.ModuleType("syntaxgym.utils")
    stub.METRICS = {"sum": sum}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "syntaxgym", types.ModuleType("syntaxgym"))
        patch.setitem(sys.modules, "syntaxgym.utils", stub)
        own.loader.exec_module(module)
    return module


def _round(text: str) -> str:
    return text.replace("[", "(").replace("]", ")")
