"""Benchmarks, scorers, judgement methods and score files. Never imports Lightning to score.

From Python: `from eval import judge, load_scorer` (eval/library.py).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eval.library import judge
    from eval.scorers.load import load_scorer

__all__ = ["judge", "load_scorer"]


def __getattr__(name: str) -> Any:
    # Not at once: what only reads score files must not load torch.
    match name:
        case "judge":
            from eval.library import judge

            return judge
        case "load_scorer":
            from eval.scorers.load import load_scorer

            return load_scorer
        case _:
            raise AttributeError(f"module 'eval' has no attribute '{name}'")
