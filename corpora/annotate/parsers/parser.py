"""The interface and the registry of parsers. A parser is a class, registered for its class of configuration.

@parser(MineConfig)
class Mine(ModelParser):
    packages = ("mine",)
    def parse(self, texts: list[str]) -> Iterator[Tree]: ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from corpora.annotate.alignment import collapsed, uncollapsed
from corpora.annotate.config import ParserConfig
from corpora.annotate.tree import Tree
from corpora.config import CorpusConfig
from pairscale.errors import ConfigError, InputError
from pairscale.files import sha256_file, sha256_json
from pairscale.plugins import load_members


class Parser(ABC):
    """A parser of one process."""

    packages: ClassVar[tuple[str, ...]] = ()  # distributions whose versions can change trees
    extra: ClassVar[str] = "syntax"  # pip install "pairscale[...]" that brings them

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


class ModelParser(Parser):
    """A parser that needs no more than the sentences."""

    @classmethod
    def digest(cls, config: Any, corpus: CorpusConfig) -> str:
        return files_digest(Path(config.model).expanduser())

    def trees(self, sentences: Sequence[str], first: int) -> Iterator[Tree]:
        texts = list(map(collapsed, sentences))
        for sentence, text, tree in zip(sentences, texts, self.parse(texts), strict=True):
            yield tree if text == sentence else _moved(tree, sentence)

    @abstractmethod
    def parse(self, texts: list[str]) -> Iterator[Tree]:
        """Yield the tree of each text, a sentence without white space but single spaces inside it."""


def _moved(tree: Tree, sentence: str) -> Tree:
    """Return the tree of a collapsed sentence as that of the sentence."""
    spans = uncollapsed(sentence, tree.sentence, zip(tree.starts, tree.ends, strict=True))
    return replace(tree, sentence=sentence, starts=[start for start, _ in spans], ends=[end for _, end in spans])


def one_root(heads: list[int], relations: list[str]) -> None:
    """Make one tree of several, in place: roots after the first become its dependents, by the relation parataxis.

    A sentence of the text is one sentence, also where a parser would see several: list items, quotations.
    """
    roots = [index for index, head in enumerate(heads) if head == index]
    for index in roots[1:]:
        heads[index], relations[index] = roots[0], "parataxis"
    for index in roots[:1]:
        relations[index] = "root"


def files_digest(path: Path) -> str:
    """Return the digest of a file, or of the names and contents of all files in a folder. Raises InputError."""
    if path.is_file():
        return sha256_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    if not files:
        raise InputError(f"parser.model: no file or folder {path}")
    return sha256_json({file.relative_to(path).as_posix(): sha256_file(file) for file in files})


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
            f'parser={config.name}: needs {error.name}, which is not installed; pip install "pairscale[{chosen.extra}]"'
        ) from None
    return chosen


def versions(chosen: type[Parser]) -> dict[str, str]:
    """Return the versions of a parser's packages. Raises PackageNotFoundError."""
    return {name: version(name) for name in chosen.packages}
