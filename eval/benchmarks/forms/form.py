"""The registry of forms. A form reads a benchmark's pairs; it is registered by the name that `benchmark.form` takes.

    @form("mine", fields=("path",))
    def read(config: BenchmarkConfig) -> Iterable[PlacedPair]: ...

Tables need no form of their own: the form `pairs` reads them by the columns that a YAML names. Imports no
configuration, which checks `benchmark.form` against the registry.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pairscale.plugins import load_members

Pair = dict[str, Any]  # columns of eval.scores.schemas.ITEMS, and OWN
OWN = "own"  # a pair's cells in the user's own columns, by column
PlacedPair = tuple[str, Pair]  # the place of a pair, for errors, and the pair


class GeneratedPairs(NamedTuple):
    """Pairs that a form draws, already of the paradigms and the number that the configuration requests."""

    pairs: list[PlacedPair]
    origin: Mapping[str, Any]  # what score files record of their making
    unavailable: Mapping[str, str]  # paradigm -> why it has no pairs


Read = Callable[[Any], Iterable[PlacedPair] | GeneratedPairs]  # from an eval.benchmarks.config.BenchmarkConfig


@dataclass(frozen=True)
class Form:
    """A reader of pairs, and what the configuration may ask of it.

    fields: of BenchmarkConfig that it reads; others must keep their defaults. check: raises ConfigError for values that
    do not fit each other. label: parts of the names of score folders. usual_pairs: value of benchmark.pairs that these
    names leave out.
    """

    read: Read
    fields: tuple[str, ...]
    check: Callable[[Any], None] = lambda config: None
    label: Callable[[Any], list[str]] = lambda config: []
    usual_pairs: int | None = None


_FORMS: dict[str, Form] = {}


def form(name: str, fields: tuple[str, ...], **more: Any) -> Callable[[Read], Read]:
    """Register a function as the form `name`; `fields` and `more` as in Form. Raises ValueError for a name in use."""

    def register(read: Read) -> Read:
        if name in _FORMS and _FORMS[name].read.__module__ != read.__module__:
            raise ValueError(f"form {name}: registered by {_FORMS[name].read.__module__} already")
        _FORMS[name] = Form(read, fields, **more)
        return read

    return register


def forms() -> Mapping[str, Form]:
    """Return all forms by name: those of this folder, and those that plug-ins registered."""
    load_members(__name__.rpartition(".")[0])
    return _FORMS
