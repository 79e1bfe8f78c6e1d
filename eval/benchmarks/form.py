"""What readers of benchmarks return, and the registry of forms, by which files become tables of pairs (load.py).

    @form("mine", fields=("path",))
    def read(config: BenchmarkConfig) -> Iterable[Table]: ...

It is registered under the name that `benchmark.form` takes, here or in a plug-in. Files of pairs need no form of their
own: the form `pairs` reads them by the columns that a YAML names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from eval.benchmarks.files import Row, Table, file_rows, local_files, tables
from pairscale.errors import ConfigError
from pairscale.plugins import load_plugins

if TYPE_CHECKING:
    import pandas as pd

    from eval.benchmarks.config import BenchmarkConfig

__all__ = ["OF_FILES", "Form", "Generated", "Items", "Row", "Table", "form", "forms"]


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

    rows: pd.DataFrame
    texts: list[str]
    digest: str
    contents: str
    notes: tuple[str, ...] = field(default=(), kw_only=True)


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
    """Return all forms by name: those below, and those that plug-ins registered."""
    load_plugins()
    return _FORMS


form("pairs", (*OF_FILES, "columns", "labels", "rename"))(tables)


@form("climp", ("path", "files", "columns"))
def climp(config: BenchmarkConfig) -> Iterator[Table]:
    """Yield CLiMP's files, of which that of ba_construction has nothing but sentences, good and bad by turns."""
    for file in local_files(config):
        rows = file_rows(file, header=not (bare := file.name.startswith("ba_construction")))
        if bare:
            named = {"0": "ba", "1": "ba_construction"}
            sentences = ((where, cells["0"]) for where, cells in rows)
            rows = (Row(at, named | {"2": text, "3": "10"[n % 2]}) for n, (at, text) in enumerate(sentences))
        yield Table(file.stem, str(file), rows)


# The modules of grammars are imported where they are needed, as a command starts sooner without them.


@form("toy", ("seed", "per_paradigm", "rename"))
def toy(config: BenchmarkConfig) -> Iterator[Table]:
    """Yield `per_paradigm` pairs of each paradigm of the built-in language, drawn from `seed`."""
    from eval.benchmarks.toy import pairs

    if config.seed is None or config.per_paradigm is None:
        raise ConfigError("benchmark=toy: benchmark.seed and benchmark.per_paradigm must be numbers")
    yield Table("toy", "toy", (Row("toy", pair) for pair in pairs(config.seed, config.per_paradigm)))


@form("generated", ("seed", "vocabulary", "min_count"))
def generated(config: BenchmarkConfig) -> Generated:
    """Return the pairs of a language's paradigms, of the words of a vocabulary if there is one."""
    from eval.benchmarks.generated import generate

    return generate(config)
