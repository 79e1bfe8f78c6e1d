"""Run the command `python -m corpora.annotate`, which parses a corpus and writes the trees next to its text."""

from corpora.config import AnnotateConfig
from pairscale.command.main import main


def run(config: AnnotateConfig) -> None:
    """Annotate the corpus of a configuration."""
    from corpora.annotate.run import annotate  # imported here, so that --help starts at once

    annotate(config)


if __name__ == "__main__":
    main("annotate", run)
