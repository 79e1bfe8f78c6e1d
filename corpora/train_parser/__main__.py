"""The train_parser command: train a parser on a treebank, and print its scores beside published ones."""

from corpora.train_parser.config import TrainParserConfig
from pairscale.command.main import main


def run(config: TrainParserConfig) -> None:
    """Train the parser of a configuration, unless that is done."""
    from corpora.train_parser.run import train_parser  # deferred: --help starts at once

    train_parser(config)


if __name__ == "__main__":
    main("train_parser", run)
