"""`python -m analysis`: learning curves, tables, figures and a report of a study's scores."""

import gc

from analysis.config import AnalysisConfig
from pairscale.command.main import main


def run(config: AnalysisConfig) -> None:
    """Analyse a study."""
    from analysis.run import analyse  # here, so that --help starts at once

    gc.freeze()  # statsmodels looks for garbage after each correction, among all that has been imported
    analyse(config)


if __name__ == "__main__":
    main("analysis", run)
