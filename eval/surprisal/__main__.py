"""Run `python -m eval.surprisal`, which computes the surprisal of each word of a text."""

from eval.config import SurprisalCommand
from pairscale.command.main import main


def run(config: SurprisalCommand) -> None:
    """Compute and write surprisals. Raises the same errors as `eval.surprisal.run.run`."""
    from eval.surprisal.run import run

    run(config)


if __name__ == "__main__":
    main("surprisal", run)
