"""List the runs of an experiment's grid by run id."""

from collections.abc import Sequence

from train.config import run_id
from train.sweeps import expected_points


def expected_runs(experiment: str, overrides: Sequence[str] = ()) -> dict[str, str]:
    """Return the grid's points by run id. Arguments and errors are the same as in `train.sweeps.expected_points`."""
    return {run_id(one.config): one.written for one in expected_points(experiment, overrides)}
