"""The interface of parsers, and their registry: a parser is a class, registered for its class of configuration.

@parser(MineConfig)
class Mine(Parser):
    packages = ("mine",)
    ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, TypeVar

from corpora.annotate.config import ParserConfig
from corpora.annotate.tree import Tree
from corpora.config import CorpusConfig
from pairscale.errors import ConfigError
from pairscale.plugins import load_members


class Parser(ABC):
    """A parser of one process."""

    packages: ClassVar[tuple[str, ...]] = ()  # distributions whose versions can change trees

    @abstractmethod
    def __init__(self, config: Any, corpus: CorpusConfig):
        """Load the parser. Raises InputError for a model that cannot be used."""

    @classmethod
    @abstractmethod
    def digest(cls, config: Any, corpus: CorpusConfig) -> str:
        """Return the digest of the model's files. Raises InputError if they are missing."""

    @abstractmethod
    def trees(self, sentences: Sequence[str], first: int) -> Iterator[Tree]:
        """Yield the tree of each sentence; `first`: index of the first in the text. Indices rise from call to call."""


_PARSERS: dict[type[ParserConfig], type[Parser]] = {}
T = TypeVar("T", bound=type[Parser])


def parser(config: type[ParserConfig]) -> Callable[[T], T]:
    """Register a class as the parser of a class of configuration."""

    def register(cls: T) -> T:
        _PARSERS[config] = cls
        return cls

    return register


def parser_of(config: ParserConfig) -> type[Parser]:
    """Return the class of a configured parser. Raises ConfigError if what it needs is not installed."""
    load_members(__name__.rpartition(".")[0])
    chosen = _PARSERS[type(config)]
    try:
        versions(chosen)
    except PackageNotFoundError as error:
        raise ConfigError(
            f"parser={config.name}: needs {error.name}, which is not installed; pip install {error.name}"
        ) from None
    return chosen


def versions(chosen: type[Parser]) -> dict[str, str]:
    """Return the versions of a parser's packages. Raises PackageNotFoundError."""
    return {name: version(name) for name in chosen.packages}
