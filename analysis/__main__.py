"""Make learning curves, tables, figures and a report from a study's scores (`python -m analysis`)."""

from analysis.config import AnalysisConfig
from pairscale.command.main import main


def run(config: AnalysisConfig) -> None:
    """Analyse a study, or check statements in papers against the published results (published=true)."""
    if config.published:
        from analysis.statements import write_statements  # imported here so that --help is fast

        write_statements(config)
        return
    from analysis.run import analyse

    analyse(config)


if __name__ == "__main__":
    main("analysis", run)
