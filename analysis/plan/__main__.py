"""Plan how many sizes, seeds and pairs a study needs to detect an effect, and what they cost (analysis.plan)."""

from analysis.config import PlanCommand
from pairscale.command.main import main


def run(config: PlanCommand) -> None:
    """Plan an experiment. Raises the same errors as `analysis.plan.run.run`."""
    from analysis.plan.run import run  # imported here so that --help is fast

    run(config)


if __name__ == "__main__":
    main("plan", run)
