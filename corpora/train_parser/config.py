"""The configuration of `python -m corpora.train_parser` (values: conf/train_parser.yaml)."""

from dataclasses import dataclass

from omegaconf import MISSING

from pairscale.command.schemas import Texts, store_schemas
from pairscale.errors import ConfigError, check_between, check_name, check_seed


@dataclass
class StoreConfig:
    """Where the parser is written."""

    store: str = MISSING  # prepared corpora; parsers are in parsers/


@dataclass
class TrainParserConfig:
    """A parser to be trained."""

    treebank: Texts = MISSING  # a folder with *-train.conllu, *-dev.conllu and *-test.conllu, or a list of the three
    name: str | None = None  # of the parser in the store; null: how the training file's begins
    language: str | None = None  # spaCy's code of its tokenizer; null: as that name begins, en of en_ewt-ud
    steps: int = MISSING  # of training
    seed: int = MISSING  # of initial weights and order
    paths: StoreConfig = MISSING  # folders

    def __post_init__(self) -> None:
        paths = [self.treebank] if isinstance(self.treebank, str) else self.treebank
        if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
            raise ConfigError(f"treebank={self.treebank}: must be a folder, or a list of three files")
        self.treebank = paths
        if self.name is not None:
            check_name("name", self.name)
        check_between("steps", self.steps, 1, 10**6)
        check_seed("seed", self.seed)


store_schemas(None, train_parser_schema=TrainParserConfig)
