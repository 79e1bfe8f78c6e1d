"""Benchmarks, scorers, judgement methods and score files. Never imports Lightning to score.

From Python: `from eval import judge, load_scorer` (eval/library.py).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eval.library import judge
    from eval.scorers.load import load_scorer

__all__ = ["judge", "load_scorer"]


_MODULES = {"judge": "eval.library", "load_scorer": "eval.scorers.load"}  # not loaded at once, as they need torch


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'eval' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)
