"""Run `python -m eval.export`, which exports the runs of a study as models for the transformers library.

This command is in eval/ rather than train/, because model cards contain accuracies from score files.
"""

from eval.config import ExportConfig
from pairscale.command.main import main


def run(config: ExportConfig) -> None:
    """Export the runs of a study. Raises the same errors as `eval.export.run.export`."""
    from pairscale.hub import import_transformers

    import_transformers()
    from eval.export.run import export

    export(config)


if __name__ == "__main__":
    main("export", run)
