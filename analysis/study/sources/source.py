"""The registry of sources, by the names that `source` takes.

    @source("mine", judge=my_judgements, keys=("path",))
    def collect(config: AnalysisConfig) -> list[Study]: ...

Imports no configuration, which checks `source` against the registry.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pairscale.errors import ConfigError, check_choice
from pairscale.plugins import load_members
from pairscale.sizes import written

if TYPE_CHECKING:
    from analysis.study.collect import Study
    from analysis.study.judgements import Judgements

FILES, WANDB = "files", "wandb"
Collect = Callable[[Any], "list[Study]"]  # from an analysis.config.AnalysisConfig
Judge = Callable[["Study", str, str, str], "Judgements"]  # of (study, label, method, ties), as study.judgements
_PLAIN = re.compile(r"[\w./+:@-]+", re.ASCII)  # what Hydra reads without quotes
_OF_SOURCES = ("project", "path", "columns", "results")  # keys of the configuration that not all sources read


@dataclass(frozen=True)
class Source:
    """Where studies come from. collect: several are put side by side. keys: of the configuration that it reads.

    unread: values below a key that it does not read all the same, such as results.metric.
    """

    collect: Collect
    judge: Judge
    keys: tuple[str, ...]
    unread: tuple[str, ...] = ()

    def reads(self, name: str) -> bool:
        """True if it reads a value such as path or results.n."""
        return name.partition(".")[0] in self.keys and name not in self.unread


_SOURCES: dict[str, Source] = {}


def source(
    name: str, judge: Judge, keys: tuple[str, ...] = (), unread: tuple[str, ...] = ()
) -> Callable[[Collect], Collect]:
    """Register a function that collects studies as the source `name`. Raises ValueError for a name in use."""

    def register(collect: Collect) -> Collect:
        if name in _SOURCES and _SOURCES[name].collect.__module__ != collect.__module__:
            raise ValueError(f"source {name}: registered by {_SOURCES[name].collect.__module__} already")
        _SOURCES[name] = Source(collect, judge, keys, unread)
        return collect

    return register


def sources() -> Mapping[str, Source]:
    """Return all sources by name: those of this folder, and those that plug-ins registered."""
    load_members(__name__.rpartition(".")[0])
    return _SOURCES


def requested_source(config: Any) -> Source:
    """Return `config.source`. Raises ConfigError for another name, and for values that the source does not read.

    Not checked with the rest of the configuration: sources import pandas, which other commands start without.
    """
    check_choice("source", config.source, sources())
    found = sources()[config.source]
    for value in overrides(config, _OF_SOURCES):
        name = value.partition("=")[0]
        if not found.reads(name):
            reading = "|".join(sorted(other for other, of in sources().items() if of.reads(name)))
            raise ConfigError(f"{value}: of source={reading}, but source={config.source}")
    return found


def overrides(config: Any, keys: tuple[str, ...]) -> list[str]:
    """Return the values of `keys` that are not the defaults, as they are written on the command line."""
    words = []
    for key in keys:
        value = getattr(config, key)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            usual = type(value)()
            changed = {name: of for name, of in vars(value).items() if of != getattr(usual, name)}
            words += [f"{key}.{name}={_quoted(of)}" for name, of in changed.items()]
        elif value not in (None, []):
            words.append(f"{key}={_quoted(value)}")
    return words


def _quoted(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_quoted, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(key)}:{_quoted(of)}" for key, of in value.items()) + "}"
    text = written(value)
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "\\'") + "'"
