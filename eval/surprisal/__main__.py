"""The command `python -m eval.surprisal`: compute the surprisal of each word of a text."""

from eval.config import SurprisalCommand
from pairscale.command.main import main


def run(config: SurprisalCommand) -> None:
    """Write surprisals. Raises the errors of `eval.surprisal.run.run`."""
    from eval.surprisal.run import run

    run(config)


if __name__ == "__main__":
    main("surprisal", run)
