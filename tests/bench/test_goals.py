"""Goals of speed for handwritten files of the benchmarks (tests/bench/goals.py)."""

import json
import subprocess
import sys

import pytest

from tests.bench.goals import of_peers, of_speed
from tests.support import ROOT

SCRIPT = ROOT / "tests" / "bench" / "goals.py"
SPEED = {
    "training_and_scoring": [
        {"name": "train lstm", "ratio": {"limit": 0.8, "plain": 1.2}, "goals": {"limit": 0.85, "reference": 1.9}},
        {"name": "score lstm", "ratio": {"plain": 5.0}, "goals": {}},
    ],
    "commands": [
        {"name": "--help", "unit": "s", "values": [9.0, 1.0, 1.5], "goal": 1.5},
        {"name": "eval --help", "unit": "s", "values": [2.0], "goal": None},
    ],
}


def test_only_measured_figures_have_a_line():
    """A share must be reached and a time not exceeded, by their medians."""
    assert [(goal.name, goal.figure, goal.met) for goal in of_speed(SPEED)] == [
        ("train lstm", 0.8, False),
        ("--help", 1.5, True),
    ]


def test_goals_compare_our_rates_with_those_of_peers():
    """With nothing shared the ratio is 2 and the bound 1.8: (2 - 1) / (1.8 - 1) of the possible gain."""
    results = {
        "lp": {
            "ours": {"rate": 6.0, "ratio": 1.0},
            "ours in bf16": {"rate": 12.0, "ratio": 0.5},
            "ours, nothing shared": {"rate": 3.0, "ratio": 2.0, "bound": 1.8},
            "minicons": {"rate": 2.0, "ratio": 3.0},
            "lm-evaluation-harness": {"rate": 5.0, "ratio": 1.2},
        }
    }
    goals = list(of_peers(results))
    assert [goal.figure for goal in goals] == pytest.approx([3.0, 1.2, 6.0, 2.4, 1.25])
    assert [goal.met for goal in goals] == [True, False, True, False, True]


def test_the_command_reads_all_files_of_a_folder(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(SPEED))
    done = subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in done.stdout.splitlines() if "at " in line] == ["missed", "met"]
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run([sys.executable, str(SCRIPT), str(empty)], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no .json file" in done.stderr
