"""From score files to curves, tables, figures and the report. Never loads a model.

From Python: `from analysis import accuracies, pairs, runs` (table.py), a study as tidy DataFrames.

run.py is the command: study/ collects judgements, curves/ and measures/ compute, sections/ turn results into exhibits/
(tables, figures, sentences), report/ writes the page from the templates in page/. papers/ does the same with the
papers' published accuracies (published/), status/ says how far a study is. results/ holds committed tables of studies.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.table import accuracies, pairs, runs

__all__ = ["accuracies", "pairs", "runs"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'analysis' has no attribute '{name}'")
    return getattr(import_module("analysis.table"), name)  # not loaded at once, as it needs pandas
