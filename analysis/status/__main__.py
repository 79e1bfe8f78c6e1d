"""The status command: `python -m analysis.status study=NAME`, with remove=... to remove runs."""

from pathlib import Path

from rich.console import Console

from analysis.config import AnalysisConfig
from analysis.status.removal import STUDY, confirmed, described, remove_runs, selected
from analysis.status.report import report
from analysis.status.states import SCORED, TRAINED, RunState, run_states
from eval.grid import RequestedRun
from eval.sweeps import commands_of, requested_runs
from pairscale import as_typed
from pairscale.command.main import main
from pairscale.errors import ConfigError, RunError


def run(config: AnalysisConfig) -> None:
    """Print the status of `config.study`, or remove the runs that `config.remove` names.

    Raises ConfigError without a study, RunError for one without runs, and the errors of `remove_runs`.
    """
    runs = Path(config.paths.runs)
    if config.study is None:
        known = sorted(path.name for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []
        raise ConfigError(f"study=null: name a study; available in {runs}: {', '.join(known) or 'none'}")
    requested = requested_runs(runs, config.study)
    states = run_states(runs / config.study, requested)
    if not states:
        raise RunError(f"study={config.study}: no such experiment, and no run in {runs / config.study}")
    console = Console(highlight=False)
    if config.remove is not None:
        chosen = selected(runs / config.study, states, config.remove)
        for text in described(runs / config.study, chosen, config.remove):
            console.print(text, soft_wrap=True, markup=False)
        if confirmed(config.yes):
            remove_runs(runs / config.study, chosen, config.remove == STUDY)
            console.print("removed; the store and reports remain")
        else:
            console.print("nothing removed")
        return
    again = {state.run: sweeps for state in states if (sweeps := _scored_by(state, requested.get(state.run)))}
    for line in report(runs / config.study, states, console.width, again):
        console.print(line, soft_wrap=True)
    both = [(state, requested[state.run]) for state in states if state.run in requested]
    for command in commands_of([one for state, one in both if not _is_complete(state, one)]):
        console.print(f"to continue: {as_typed(command)}", soft_wrap=True, markup=False)


def _is_complete(state: RunState, requested: RequestedRun) -> bool:
    return state.state == SCORED or (state.state == TRAINED and not requested.benchmarks)


def _scored_by(state: RunState, requested: RequestedRun | None) -> list[str]:
    """Return the sweeps that score a run again on the benchmarks that failed, if sweeps requested them all."""
    failed = {label.partition("+")[0] for label, _ in state.failed_on}
    if requested is None or not failed <= requested.benchmarks:
        return []
    return [command for command in requested.commands if not command.startswith("python -m train ")]


if __name__ == "__main__":
    main("status", run)
