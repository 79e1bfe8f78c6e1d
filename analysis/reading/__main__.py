"""Test how well the surprisal of a study's runs predicts reading times (`python -m analysis.reading`)."""

from analysis.config import ReadingCommand
from pairscale.command.main import main


def run(config: ReadingCommand) -> None:
    """Analyse reading times. Raises the same errors as `analysis.reading.run.run`."""
    from analysis.reading.run import run  # imported here so that --help is fast

    run(config)


if __name__ == "__main__":
    main("reading", run)
