"""The types of the configuration group `parser` (values: conf/parser/)."""

from dataclasses import dataclass

from pairscale.command.schemas import Texts, register_types
from pairscale.errors import check_name


@dataclass(kw_only=True)
class ParserConfig:
    """A parser; `name` is that of its layer in the store: annotation-NAME."""

    name: str  # of the layer in the store

    def __post_init__(self) -> None:
        check_name("parser.name", self.name)


@dataclass(kw_only=True)
class SpacyConfig(ParserConfig):
    """A pipeline of spaCy whose labels are those of Universal Dependencies."""

    model: str  # a folder, or the name of an installed package


@dataclass(kw_only=True)
class ConlluConfig(ParserConfig):
    """Trees that are there already: the sentences of CoNLL-U files, in order, are those of the text."""

    path: Texts = None  # a file, a folder, a glob, or a list of them; null: corpus.path of corpus=conllu


register_types(ParserConfig, spacy=SpacyConfig, conllu=ConlluConfig)
