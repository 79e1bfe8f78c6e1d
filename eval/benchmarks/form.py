"""What readers of benchmarks return, and the registry of forms, by which files become tables of pairs (load.py).

    @form("mine", fields=("path",))
    def read(config: BenchmarkConfig) -> Iterable[Table]: ...

It is registered under the name that `benchmark.form` takes, in forms.py or in a plug-in. Files of pairs need no form of
their own: the form `pairs` reads them by the columns that a YAML names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from pairscale.plugins import load_plugins

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Items:
    """Items that are no pairs: questions of a diagnostic, SyntaxGym's suites, rated sentences.

    Attributes:
        rows: what models are asked; their answers add columns.
        texts: the different texts that a model reads.
        digest: SHA-256 over all that can change a score.
        contents: how many there are: "8 contexts of 3 items".
        notes: sentences on what is odd about them.
    """

    rows: "pd.DataFrame"
    texts: list[str]
    digest: str
    contents: str
    notes: tuple[str, ...] = field(default=(), kw_only=True)


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


# Fields of BenchmarkConfig by which files and data sets of the hub are found and read.
OF_FILES = ("path", "dataset", "revision", "subset", "split", "files", "delimiter", "header", "quotes")

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
