"""`python -m analysis.reading`: how much the surprisal of a study's runs says about how long people read each word."""

from analysis.config import ReadingCommand
from pairscale.command.main import main


def run(config: ReadingCommand) -> None:
    """Analyse reading times; raises as `analysis.reading.run.run` does."""
    from analysis.reading.run import run  # here, so that --help starts at once

    run(config)


if __name__ == "__main__":
    main("reading", run)
