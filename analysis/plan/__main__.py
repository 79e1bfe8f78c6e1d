"""`python -m analysis.plan`: plan how many sizes, seeds and pairs a study needs to find an effect, and their cost."""

from analysis.config import PlanCommand
from pairscale.command.main import main


def run(config: PlanCommand) -> None:
    """Plan an experiment. Raises as `analysis.plan.run.run` does."""
    from analysis.plan.run import run  # here, so that --help starts at once

    run(config)


if __name__ == "__main__":
    main("plan", run)
