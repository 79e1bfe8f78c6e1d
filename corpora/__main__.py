"""Run the command `python -m corpora`, which prepares a corpus and prints its sizes."""

from corpora.config import CorporaConfig
from pairscale.command.main import main


def run(config: CorporaConfig) -> None:
    """Prepare the corpus of a configuration."""
    from corpora.run import prepare_corpus  # imported here, so that --help starts at once

    prepare_corpus(config)


if __name__ == "__main__":
    main("corpora", run)
