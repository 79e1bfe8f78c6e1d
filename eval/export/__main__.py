"""`python -m eval.export`: the runs of a study as models of the transformers library.

It is a command of this room, not of train/, as model cards hold the accuracies of score files.
"""

from eval.config import ExportConfig
from pairscale.command.main import main


def run(config: ExportConfig) -> None:
    """Export the runs of a study; raises as `eval.export.run.export`."""
    from pairscale.hub import import_transformers

    import_transformers()
    from eval.export.run import export

    export(config)


if __name__ == "__main__":
    main("export", run)
