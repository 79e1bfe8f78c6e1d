"""`python -m analysis.plan`: how many sizes, seeds and pairs find an effect, and what they cost."""

from analysis.config import PlanCommand
from pairscale.command.main import main


def run(config: PlanCommand) -> None:
    """Plan an experiment; raises as `analysis.plan.run.run`."""
    from analysis.plan.run import run  # here, so that --help starts at once

    run(config)


if __name__ == "__main__":
    main("plan", run)
