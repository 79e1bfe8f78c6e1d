"""The W&B sweep file: its grid, and the command of its agents."""

import pytest
import yaml

from pairscale.command.compose import axes_of, compose
from pairscale.command.line import Line
from tests.support import ROOT
from train.config import run_id

SWEEP = yaml.safe_load((ROOT / "slurm" / "wandb_sweep.yaml").read_text())
EXPERIMENT = "blimp_learning_curves"


@pytest.fixture(autouse=True)
def _some_data(monkeypatch):
    monkeypatch.setenv("PAIRSCALE_DATA", "/data")


def command(point):
    """Return the command that `wandb agent` starts for one point, built by its own functions."""
    from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args  # seconds to import

    filled = create_sweep_command_args({"args": {key: {"value": value} for key, value in point.items()}})
    filled |= {"env": ["/usr/bin/env"], "interpreter": ["python"]}
    return [part for word in create_sweep_command(SWEEP["command"]) for part in filled.get(word.strip("${}"), [word])]


def test_the_sweep_spans_the_grid_of_the_experiment():
    assert SWEEP["method"] == "grid"
    values = {key: [str(value) for value in axis["values"]] for key, axis in SWEEP["parameters"].items()}
    assert values == axes_of("eval", Line.of([f"experiment={EXPERIMENT}"]))


@pytest.mark.parametrize("place", [0, -1])
def test_an_agents_command_runs_one_point_of_the_experiment(place):
    point = {key: axis["values"][place] for key, axis in SWEEP["parameters"].items()}
    words = command(point)
    assert words[:4] == ["/usr/bin/env", "python", "-m", "eval"]
    config = compose("eval", words[4:])
    assert (config.logger.name, config.study) == ("wandb", EXPERIMENT)
    expected = [f"experiment={EXPERIMENT}", *(f"{key}={value}" for key, value in point.items())]
    assert run_id(config) == run_id(compose("eval", expected))
