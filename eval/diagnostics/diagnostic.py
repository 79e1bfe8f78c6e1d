"""Register diagnostics. A diagnostic is a class that reads its questions and evaluates a model's answers.

    @diagnostic("mine")
    class Mine(Diagnostic): ...

This module doesn't import the configuration, because the configuration checks `benchmark.name` with this module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from pairscale.plugins import load_plugins

if TYPE_CHECKING:
    import pandas as pd

Question = dict[str, Any]  # values by column of eval.diagnostics.questions.QUESTIONS; empty columns can be left out


class Diagnostic(ABC):
    """The base class of diagnostics. Subclasses define the questions and the outcomes that papers report."""

    @abstractmethod
    def questions(self, config: Any) -> Iterator[Question]:
        """Yield the questions in `config.path` (a DiagnosticConfig). Raises InputError if a file is invalid."""

    @abstractmethod
    def outcomes(self, cloze: pd.DataFrame) -> pd.DataFrame:
        """Return the outcomes that the paper averages, in the paper's order, with the columns OUTCOMES (measures.py).

        `cloze` has the columns of eval.scores.schemas.CLOZE.
        """


D = TypeVar("D", bound=type[Diagnostic])

_DIAGNOSTICS: dict[str, Diagnostic] = {}


def diagnostic(name: str) -> Callable[[D], D]:
    """Register a class as the diagnostic `name`."""

    def register(cls: D) -> D:
        _DIAGNOSTICS[name] = cls()
        return cls

    return register


def diagnostics() -> Mapping[str, Diagnostic]:
    """Return all diagnostics by name, from ettinger.py and from plug-ins."""
    import_module("eval.diagnostics.ettinger")
    load_plugins()
    return _DIAGNOSTICS
