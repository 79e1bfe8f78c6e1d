"""The configuration of `python -m corpora.train_parser` (values: conf/train_parser.yaml)."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from pairscale.command.schemas import Seed, Texts
from pairscale.errors import ConfigError, check_name


@dataclass(kw_only=True)
class StoreConfig:
    """Where the parser is written."""

    store: str  # prepared corpora; parsers are in parsers/


@dataclass(kw_only=True)
class TrainParserConfig:
    """A parser to be trained."""

    treebank: Texts  # a folder with *-train.conllu, *-dev.conllu and *-test.conllu, or a list of the three
    name: str | None = None  # of the parser in the store; null: how the training file's begins
    language: str | None = None  # spaCy's code of its tokenizer; null: as that name begins, en of en_ewt-ud
    steps: Annotated[int, Meta(ge=1, le=10**6)]  # of training
    seed: Seed  # of initial weights and order
    paths: StoreConfig  # folders

    def __post_init__(self) -> None:
        if not self.treebank:
            raise ConfigError("treebank=null: must be a folder, or a list of three files")
        if self.name is not None:
            check_name("name", self.name)
