"""Train one run or, with -m, a sweep of runs (`python -m train`)."""

from pairscale.command.line import current
from pairscale.command.main import main
from pairscale.progress import shown
from train.config import RunConfig
from train.plan import Plan
from train.sweeps import check_whole_sweep, run_grid


def run(config: RunConfig) -> None:
    """Train a run or, with dry_run=true, estimate its time, memory and disk space."""
    check_whole_sweep("train", current(), config)
    config.recipe.check_trains(config.model.name)
    if config.dry_run:
        from train.estimate import estimate

        planned.add(estimate(config))
    else:
        from train.run import corpus_of, run_title, say_summary, train_run

        with shown(run_title(config), config.trainer.progress):
            folder = train_run(config, corpus_of(config))
        say_summary(folder)


planned = Plan()

if __name__ == "__main__":
    main("train", run, planned.show, run_grid)
