"""What an experiment's grid holds, by run id."""

from collections.abc import Sequence

from eval.sweeps import expected_points
from train.runs.identity import run_id


def expected_runs(experiment: str, overrides: Sequence[str] = ()) -> dict[str, str]:
    """Run id -> what the command line would say of it. Overrides and errors as of pairscale.command.sweeps.grid."""
    return {run_id(config): point for point, config in expected_points(experiment, overrides)}
