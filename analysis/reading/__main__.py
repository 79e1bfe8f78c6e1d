"""`python -m analysis.reading`: what surprisal says about reading times."""

from analysis.config import AnalysisConfig
from pairscale.command.main import main


def run(config: AnalysisConfig) -> None:
    """Analyse reading times; raises as `analysis.reading.run.run`."""
    from analysis.reading.run import run  # here, so that --help starts at once

    run(config)


if __name__ == "__main__":
    main("reading", run)
