"""The registry of diagnostics. One is a class that reads its questions and measures a model's answers.

    @diagnostic("mine")
    class Mine(Diagnostic): ...

Imports no configuration, which checks `benchmark.name` against the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from pairscale.plugins import load_plugins

if TYPE_CHECKING:
    import pandas as pd

Question = dict[str, Any]  # columns of eval.diagnostics.questions.QUESTIONS; those without a value may be left out


class Diagnostic(ABC):
    """The questions of a diagnostic, and what its paper reports of the answers."""

    @abstractmethod
    def questions(self, config: Any) -> Iterator[Question]:
        """Yield the questions in `config.path` (a DiagnosticConfig). Raises InputError, with file and line."""

    @abstractmethod
    def outcomes(self, cloze: pd.DataFrame) -> pd.DataFrame:
        """Return OUTCOMES (measures.py) that the paper averages, in its order; `cloze` has columns CLOZE (files.py)."""


D = TypeVar("D", bound=type[Diagnostic])

_DIAGNOSTICS: dict[str, Diagnostic] = {}


def diagnostic(name: str) -> Callable[[D], D]:
    """Register a class as the diagnostic `name`."""

    def register(cls: D) -> D:
        _DIAGNOSTICS[name] = cls()
        return cls

    return register


def diagnostics() -> Mapping[str, Diagnostic]:
    """Return all diagnostics by name: those of ettinger.py, and those that plug-ins registered."""
    import_module("eval.diagnostics.ettinger")
    load_plugins()
    return _DIAGNOSTICS
