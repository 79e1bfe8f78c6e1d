"""The registry of forms of benchmarks. A form yields tables, whose rows become pairs by their columns (load.py).

    @form("mine", fields=("path",))
    def read(config: BenchmarkConfig) -> Iterable[Table]: ...

It is registered under the name that `benchmark.form` takes, in forms.py or in a plug-in. Files of pairs need no form of
their own: the form `pairs` reads them by the columns that a YAML names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from pairscale.plugins import load_plugins


class Row(NamedTuple):
    """The cells of one row by column, and where it stands: file and line, or data set, subset and row."""

    where: str
    cells: Mapping[str, Any]


class Table(NamedTuple):
    """The rows of one file, or of one subset of a data set."""

    name: str  # the file's without its endings, or the subset's
    source: str  # for errors
    rows: Iterator[Row]


class Generated(NamedTuple):
    """Pairs that a form draws, already of the paradigms and the number that the configuration requests."""

    pairs: Mapping[str, list[dict[str, Any]]]  # BLiMP's JSON objects by paradigm
    unavailable: Mapping[str, str]  # paradigm -> why it has too few pairs
    origin: Mapping[str, Any]  # what score files record of their making


Read = Callable[[Any], Iterable[Table] | Generated]  # of a BenchmarkConfig


class Form(NamedTuple):
    """A reader of tables, and the fields of BenchmarkConfig that it reads; others must keep their defaults."""

    read: Read
    fields: tuple[str, ...]


_FORMS: dict[str, Form] = {}


def form(name: str, fields: tuple[str, ...]) -> Callable[[Read], Read]:
    """Register a function as the form `name`; `fields` as in Form. Raises ValueError for a name in use."""

    def register(read: Read) -> Read:
        if name in _FORMS:
            raise ValueError(f"form {name}: registered by {_FORMS[name].read.__module__} already")
        _FORMS[name] = Form(read, fields)
        return read

    return register


def forms() -> Mapping[str, Form]:
    """Return all forms by name: those of forms.py, and those that plug-ins registered."""
    import_module("eval.benchmarks.forms")
    load_plugins()
    return _FORMS
