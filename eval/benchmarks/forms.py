"""Forms of benchmarks. A form yields tables, whose rows become pairs by their columns (eval/benchmarks/pairs.py).

    @form("mine", fields=("path",))
    def read(config: BenchmarkConfig) -> Iterable[Table]: ...

It is registered under the name that `benchmark.form` takes, here or in a plug-in. Files of pairs need no form of their
own: the form `pairs` reads them by the columns that a YAML names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from eval.benchmarks.files import Row, Table, file_rows, local_files, tables
from pairscale.errors import ConfigError
from pairscale.plugins import load_plugins

if TYPE_CHECKING:
    from eval.benchmarks.config import BenchmarkConfig


class Generated(NamedTuple):
    """Pairs that a form draws, already of the paradigms and the number that the configuration requests."""

    pairs: Mapping[str, list[dict[str, Any]]]  # BLiMP's JSON objects by paradigm
    unavailable: Mapping[str, str]  # paradigm -> why it has too few pairs
    origin: Mapping[str, Any]  # what score files record of their making


Read = Callable[["BenchmarkConfig"], Iterable[Table] | Generated]


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
    """Return all forms by name: those of this module, and those that plug-ins registered."""
    load_plugins()
    return _FORMS


_OF_FILES = ("path", "dataset", "revision", "subset", "split", "files", "delimiter", "header", "quotes")
form("pairs", (*_OF_FILES, "columns", "labels", "rename"))(tables)


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


@form("generated", ("seed", "vocabulary", "min_count", "balance"))
def generated(config: BenchmarkConfig) -> Generated:
    """Return the pairs of a language's paradigms, of the words of a vocabulary if there is one."""
    from eval.benchmarks.generated.making import generate

    return generate(config)
