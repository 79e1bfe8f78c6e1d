"""`python -m analysis`: make learning curves, tables, figures and a report from a study's scores."""

from analysis.config import AnalysisConfig
from pairscale.command.main import main


def run(config: AnalysisConfig) -> None:
    """Analyse a study, or check the papers' statements (published=true)."""
    if config.published:
        from analysis.statements import write_statements  # here, so that --help starts at once

        write_statements(config)
        return
    from analysis.run import analyse

    analyse(config)


if __name__ == "__main__":
    main("analysis", run)
