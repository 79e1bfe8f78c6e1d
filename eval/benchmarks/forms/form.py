"""The registry of forms. A form reads a benchmark's pairs; it is registered by the name that `benchmark.form` takes.

    @form("mine", fields=("path",))
    def read(config: BenchmarkConfig) -> Iterable[Found]: ...

Imports no configuration, which checks `benchmark.form` against the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pairscale.plugins import load_members

Pair = dict[str, Any]  # columns of eval.scores.files.ITEMS
Found = tuple[str, Pair]  # the place of a pair, for errors, and the pair
Read = Callable[[Any], "Iterable[Found] | GeneratedPairs"]  # from an eval.config.BenchmarkConfig

FLAGS = ("lexically_identical", "one_prefix_method", "two_prefix_method")
PREFIXES = {
    "one_prefix_method": ("one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad"),
    "two_prefix_method": ("two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word"),
}
PREFIX_FIELDS = tuple(name for names in PREFIXES.values() for name in names)


@dataclass(frozen=True)
class GeneratedPairs:
    """Pairs that a form makes as the configuration asks, paradigms and number included."""

    pairs: list[Found]
    made: Mapping[str, Any] = field(default_factory=dict)  # what score files keep of how they are made
    unavailable: Mapping[str, str] = field(default_factory=dict)  # paradigm -> why it has no pairs


@dataclass(frozen=True)
class Form:
    """A reader of pairs, and the fields of BenchmarkConfig that it reads; others must keep their defaults."""

    read: Read
    fields: tuple[str, ...]


_FORMS: dict[str, Form] = {}


def form(name: str, fields: tuple[str, ...]) -> Callable[[Read], Read]:
    """Register a function as the form `name`, which reads these fields. Raises ValueError for a name in use."""

    def register(read: Read) -> Read:
        if name in _FORMS and _FORMS[name].read.__module__ != read.__module__:
            raise ValueError(f"form {name}: registered by {_FORMS[name].read.__module__} already")
        _FORMS[name] = Form(read, fields)
        return read

    return register


def forms() -> Mapping[str, Form]:
    """Return all forms by name: those of this folder, and those that plug-ins registered."""
    load_members(__name__.rpartition(".")[0])
    return _FORMS
