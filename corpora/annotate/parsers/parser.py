"""Define the interface of parsers. A parser's configuration class names the parser (corpora/config.py)."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, cast

from corpora.annotate.tree import Tree
from corpora.config import CorpusConfig, ParserConfig
from pairscale.errors import ConfigError


class Parser(ABC):
    """The base class of parsers. Each process has its own parser."""

    packages: ClassVar[tuple[str, ...]] = ()  # installed packages whose versions can affect trees

    @abstractmethod
    def __init__(self, config: Any, corpus: CorpusConfig):
        """Load the parser. Raises InputError if its model cannot be used."""

    @classmethod
    @abstractmethod
    def digest(cls, config: Any, corpus: CorpusConfig) -> str:
        """Return a digest of the model's files. Raises InputError if they are missing."""

    @abstractmethod
    def trees(self, sentences: Sequence[str], first: int) -> Iterator[Tree]:
        """Yield the tree of each sentence.

        `first` is the index of the first sentence in the text, which increases from call to call.
        """


def parser_of(config: ParserConfig) -> type[Parser]:
    """Return the class of a configured parser. Raises ConfigError if a package that it needs is not installed."""
    module, _, name = config.parser.partition(":")
    try:
        chosen = cast(type[Parser], getattr(import_module(module), name))
        versions(chosen)
    except (PackageNotFoundError, ModuleNotFoundError) as error:
        raise ConfigError(
            f"parser={config.name}: this parser needs {error.name}, which is not installed. Install it: "
            f"pip install {error.name}"
        ) from None
    return chosen


def versions(chosen: type[Parser]) -> dict[str, str]:
    """Return the versions of a parser's packages. Raises PackageNotFoundError if one is not installed."""
    return {name: version(name) for name in chosen.packages}
