"""Turn a published checkpoint into a run folder without running its pickle (`python -m train.import_checkpoint`)."""

from pairscale.command.main import main
from train.config import RunConfig, run_id


def run(config: RunConfig) -> None:
    """Import the checkpoint in config.model or, with dry_run=true, only print the name of its run."""
    if config.dry_run:
        print(f"Would import {run_id(config)} into study={config.study}.")
        return
    from train.import_checkpoint.run import import_run

    import_run(config)


if __name__ == "__main__":
    main("import_checkpoint", run)
