"""The W&B sweep file: its grid, and the command of its agents."""

import itertools

import pytest
import yaml

from pairscale.command.compose import axes_of, compose
from pairscale.command.line import Line
from tests.support import ROOT
from tests.support.expected_runs import expected_runs
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
    assert values == axes_of("eval", Line.of([f"experiment={EXPERIMENT}"])).swept


@pytest.mark.slow
def test_an_agents_command_runs_one_point_of_the_experiment():
    expected = expected_runs(EXPERIMENT)
    keys = SWEEP["parameters"]
    points = [dict(zip(keys, point, strict=True)) for point in itertools.product(*(v["values"] for v in keys.values()))]
    assert len(points) == len(expected) == 100
    for point in (points[0], points[57], points[-1]):
        words = command(point)
        assert words[:4] == ["/usr/bin/env", "python", "-m", "eval"]
        config = compose("eval", words[4:])
        assert config.logger.name == "wandb"
        assert config.study == EXPERIMENT
        assert run_id(config) in expected
        assert f"seed={point['seed']}" in expected[run_id(config)]
