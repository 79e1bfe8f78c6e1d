"""Score models on benchmarks, with scorers and judgement methods, and write score files. Lightning is never imported.

From Python, use `from eval import judge, load_scorer, surprisals` (eval/library.py).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eval.library import judge, surprisals
    from eval.scorers.load import load_scorer

__all__ = ["judge", "load_scorer", "surprisals"]


# Imported on first use, because they need torch.
_MODULES = {"judge": "eval.library", "surprisals": "eval.library", "load_scorer": "eval.scorers.load"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'eval' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)
