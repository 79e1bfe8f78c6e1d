"""`python -m train`: train one run, or with -m a grid of them."""

from pairscale.command.main import main
from pairscale.progress import run_shown
from train.config import RunConfig
from train.plan import Plan


def run(config: RunConfig) -> None:
    """Train the run that `config` describes, or say what that would take."""
    config.recipe.check_trains(config.model.name)
    if config.dry_run:
        from train.estimate import estimate

        planned.add(estimate(config))
    else:
        from train.run import run_title, say_summary, train_run

        with run_shown(run_title(config), config.trainer.progress) as alone:
            folder = train_run(config, command=True)
        if alone:
            say_summary(folder)


planned = Plan()

if __name__ == "__main__":
    main("train", run, planned.show)
