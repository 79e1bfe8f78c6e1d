"""Provide miniature SyntaxGym suites, scores of their sentences, and the reference implementation of their formulas."""

import importlib.util
import json
import shutil
import sys
import types
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from eval.scorers.base import TokenScores
from tests.support import ROOT

FOLDER = ROOT / "tests" / "golden" / "inputs" / "suites"
AGREEMENT, GAPS = (json.loads((FOLDER / f"{name}.json").read_text()) for name in ("number_mini", "cleft_mini"))


def write_suites(folder: Path) -> Path:
    """Write both suites as JSON files. Return the folder."""
    return Path(shutil.copytree(FOLDER, folder, dirs_exist_ok=True))


def scores(*tokens):
    """Return scores of tokens, which are tuples (start, end, bits) or (start, end, bits, "unk")."""
    spans = np.array([token[:2] for token in tokens], np.int32).reshape(-1, 2)
    logprobs = -np.log(2) * np.array([token[2] for token in tokens], float)
    return TokenScores(logprobs, spans, np.array([len(token) > 3 for token in tokens], bool))


def simulated(suites, seed=0):
    """Return random scores of all sentences by text. Each word is a token, and one in ten is <unk>."""
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
    """Parse a formula with syntaxgym's own code. Skip the test if the package (`make peers`) is not installed.

    The package's other modules need Docker, so this one is loaded alone. It supports only round brackets, like the
    suites of syntaxgym.org.
    """
    spec = importlib.util.find_spec("syntaxgym")
    if spec is None or importlib.util.find_spec("pyparsing") is None:
        pytest.skip("This test needs syntaxgym and pyparsing. Install them with `make peers`.")
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
