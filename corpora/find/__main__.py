"""The find command: search an annotated corpus for a construction."""

from corpora.config import FindCommand
from pairscale.command.main import main


def run(config: FindCommand) -> None:
    """Search the corpus of a configuration for its filter."""
    from corpora.find.run import find  # deferred: --help starts at once

    find(config)


if __name__ == "__main__":
    main("find", run)
