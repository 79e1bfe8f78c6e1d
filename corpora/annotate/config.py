"""The types of the configuration group `parser` (values: conf/parser/)."""

from dataclasses import dataclass

from omegaconf import MISSING

from pairscale.command.schemas import Texts, store_schemas
from pairscale.errors import check_name


@dataclass
class ParserConfig:
    """A parser; `name` is that of its layer in the store: annotation-NAME."""

    name: str = MISSING  # of the layer in the store

    def __post_init__(self) -> None:
        check_name("parser.name", self.name)


@dataclass
class SpacyConfig(ParserConfig):
    """A pipeline of spaCy whose labels are those of Universal Dependencies, as corpora.train_parser trains them."""

    model: str = MISSING  # a folder, or the name of an installed package


@dataclass
class UdpipeConfig(ParserConfig):
    """A model of UDPipe 1."""

    model: str = MISSING  # a .udpipe file


@dataclass
class StanzaConfig(ParserConfig):
    """A pipeline of Stanza, of models that were downloaded before."""

    model: str = MISSING  # Stanza's folder: with resources.json, and a folder for each language
    language: str = MISSING  # as Stanza names it


@dataclass
class ConlluConfig(ParserConfig):
    """Trees that are there already: the sentences of CoNLL-U files, in order, are those of the text."""

    path: Texts = None  # a file, a folder, a glob, or a list of them; null: corpus.path of corpus=conllu


store_schemas(
    "parser",
    spacy_schema=SpacyConfig,
    udpipe_schema=UdpipeConfig,
    stanza_schema=StanzaConfig,
    conllu_schema=ConlluConfig,
)
