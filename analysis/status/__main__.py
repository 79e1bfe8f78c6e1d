"""`python -m analysis.status study=NAME`: how far a study is. It only reads, and may be asked at any time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from rich.console import Console

import conf
from analysis.config import AnalysisConfig
from analysis.status.report import report
from analysis.status.states import SCORED, run_states
from corpora.errors import ConfigError, RunError
from train.runs import run_id


def run(config: AnalysisConfig) -> None:
    """Print how far `config.study` is. Raises ConfigError without a study, RunError where there is nothing of it."""
    runs = Path(config.paths.runs)
    if config.study is None:
        known = sorted(path.name for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []
        raise ConfigError(f"study=null: give the name of a study; in {runs} there are: {', '.join(known) or 'none'}")
    expected, benchmark = {}, None
    experiment = (conf.FOLDER / "experiment" / f"{config.study}.yaml").exists()
    if experiment:
        for point, asked in conf.expected_points(config.study):
            expected[run_id(asked)] = point, dataclasses.asdict(asked)
            benchmark = asked.benchmark.name
    states = run_states(runs / config.study, expected, benchmark)
    if not states:
        raise RunError(f"study={config.study}: no experiment of that name, and no run in {runs / config.study}")
    console = Console(highlight=False)
    for line in report(config.study, states, console.width):
        console.print(line, soft_wrap=True)
    if experiment and any(state.state != SCORED for state in states):
        console.print(f"to go on: python -m eval -m experiment={config.study}", soft_wrap=True, markup=False)


if __name__ == "__main__":
    conf.main("status", run)
