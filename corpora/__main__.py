"""`python -m corpora`: prepare a corpus and say what is in it."""

from corpora.config import CorporaConfig
from pairscale.command.main import main


def run(config: CorporaConfig) -> None:
    """Prepare the corpus that `config` describes."""
    from corpora.run import prepare_corpus  # here, so that --help starts at once

    prepare_corpus(config)


if __name__ == "__main__":
    main("corpora", run)
