"""Show the state, time and cost of a study's runs, or remove runs (`python -m analysis.status study=NAME`).

run_states.py reads the states. The command answers at once, because it neither loads models nor imports pandas.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import get_args

from rich.console import Console
from rich.table import Table

from analysis.config import StatusConfig
from analysis.run_states import MARKS, RunState, State, run_states
from pairscale import as_typed
from pairscale.command.main import main
from pairscale.errors import ConfigError, RunError, RunInUse, first_few
from pairscale.sizes import clock, format_size, parse_size, plural, readable_size, written
from train.runs.folder import GRID, RunFolder
from train.runs.labels import flatten, in_order
from train.sweeps import commands_of, forget_runs, read_grid, requested_runs

LISTED = 20  # maximum number of runs in a list


def run(config: StatusConfig) -> None:
    """Print the status of `config.study`, or remove the runs that `config.remove` selects.

    Raises ConfigError if no study is chosen, RunError if it has no runs, and the same errors as `select` and
    `remove_runs`.
    """
    if config.study is None:
        raise ConfigError("Which study? Add study=NAME.")
    folder = Path(config.paths.runs, config.study)
    states = run_states(folder, requested_runs(config.paths.runs, config.study))
    if not states:
        problem = "nothing has been trained or scored in this study, and no experiment has this name"
        others = ", ".join(sorted(path.name for path in folder.parent.glob("*/"))) or "none"
        raise RunError(f"study={config.study}: {problem}. Studies in {folder.parent}: {others}.")
    console = Console(highlight=False, markup=False, width=1000)  # wide enough not to wrap any line
    if config.remove is None:
        for part in report(folder, states):
            console.print(part)
        return
    chosen = select(states, config.remove if isinstance(config.remove, list) else [config.remove])
    disk = sum(one.mib for one in chosen)
    console.print("\n".join([f"Runs to remove from {folder}: {len(chosen)} ({disk:,.0f} MiB)", *_lines(chosen)]))
    if not config.yes and not sys.stdin.isatty():
        raise ConfigError("Removing runs needs your confirmation, but there is no terminal. Add yes=true to confirm.")
    if config.yes or input("Remove them? [y/N] ").strip().lower() in ("y", "yes"):
        remove_runs(folder, chosen)
        console.print("The runs were removed. The prepared text and the reports are still there.")
    else:
        console.print("Nothing was removed.")


def report(folder: Path, states: Sequence[RunState]) -> Iterator[str | Table]:
    """Yield the lines and the table that describe the study in `folder`."""
    by_state = {state: of for state in MARKS if (of := [one for one in states if one.state == state])}
    counts = [f"{len(of)} {state} ({MARKS[state]})" for state, of in by_state.items()]
    yield " · ".join([str(folder), f"runs: {len(states)}", *counts])
    if scores := Counter(label for one in states for label in one.scored_on):
        yield "scored on " + ", ".join(f"{name} ({plural(count, 'run')})" for name, count in sorted(scores.items()))
    if tuned := Counter(one for state in states for one in state.tuned):
        yield "fine-tuned on " + ", ".join(f"{task} ({count} {of})" for (task, of), count in sorted(tuned.items()))
    yield ""
    yield table(states)
    for state, of in by_state.items():
        if state != "scored":
            yield "\n".join(["", *_lines(of)])
    yield ""
    if total := _cost(states, sum):
        yield f"cost so far: {total}"
    for device in dict.fromkeys(one.device for one in states if one.wall):
        seconds = sum(one.wall for one in states if one.device == device)
        yield f"training time so far: {clock(seconds)} on {device or 'an unknown device'}"
    if left := [one.left for one in states if one.left != 0]:
        unknown = f", plus {plural(left.count(None), 'run')} of unknown length" if None in left else ""
        yield f"time left: {clock(sum(filter(None, left)))} of training in one process{unknown}"
    yield f"disk: {sum(one.mib for one in states):,.0f} MiB"
    requests = [(one.request, one.state) for one in states if one.request]
    incomplete = [of for of, state in requests if state != "scored" and (of.benchmarks or state != "trained")]
    yield from [f"to continue: {as_typed(command)}" for command in commands_of(incomplete)]
    again = dict.fromkeys(command for one in states for command in one.commands)
    yield from [f"to score again, without training: {as_typed(command)}" for command in again]


def table(states: Sequence[RunState]) -> Table:
    """Return a table with one row per curve and size.

    A row has one mark per seed, the mean time, cost and disk space, and the median speed.
    """
    headings = ("curve", "size", "runs", "time per run", "cost per run", "words/s", "device", "disk per run")
    columns = Table(*headings, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    seeds = sorted({one.seed for one in states})
    for label, size in product(in_order(one.label for one in states), sorted({one.size for one in states})):
        if of := [one for one in states if (one.label, one.size) == (label, size)]:
            marks = "".join("".join(MARKS[one.state] for one in of if one.seed == seed) or " " for seed in seeds)
            walls = [one.wall for one in of if one.wall and one.left == 0]
            rates, disk = [one.rate for one in of if one.rate], [one.mib for one in of if one.state != "missing"]
            columns.add_row(
                label,
                readable_size(format_size(size)) if size else "pretrained",
                marks.strip(),
                clock(fmean(walls)) if walls else "",
                _cost([one for one in of if one.left == 0], fmean),
                f"{median(rates):,.0f}" if rates else "",
                ", ".join(dict.fromkeys(one.device for one in of if one.device)),
                f"{fmean(disk):,.0f} MiB" if disk else "",
            )
    return columns


def _cost(states: Sequence[RunState], summary: Callable[[list[float]], float]) -> str:
    """Summarise the cost of runs in words, such as "1.5 GPU hours"."""
    units = {"gpu_hours": "GPU hours", "core_hours": "core hours"}
    hours = {unit: [one.cost[unit] for one in states if unit in one.cost] for unit in units}
    means = {units[unit]: summary(of) for unit, of in hours.items() if of}
    return ", ".join(f"{of:,.0f} {unit}" if of >= 10 else f"{of:.2g} {unit}" for unit, of in means.items())


def _lines(runs: Sequence[RunState]) -> list[str]:
    """Return one line per run with its state, name and scores, and its progress or the reason why it stopped."""
    lines = []
    for one in runs[:LISTED]:
        about = [one.name, *(f"scored on {label}" for label in one.scored_on), one.reason]
        if one.state in ("running", "stopped") and one.left != 0:
            about.append(f"{one.seen:,} of {f'{one.words:,.0f}' if one.words else '?'} words")
            about.append(f"{one.rate:,.0f} words/s, {clock(one.left)} left" if one.rate and one.left else "")
            about.append(one.early)
        lines.append(f"{one.state}: {' · '.join(filter(None, about))}")
    more = len(runs) - LISTED
    return [*lines, f"and {more} more"] if more > 0 else lines


def select(states: Sequence[RunState], wanted: Sequence[str]) -> list[RunState]:
    """Return the runs that the values of `remove=` select.

    A value is a run's name or its last 8 digits, a pattern such as `*-s2-*`, a setting such as `seed=2`, a state such
    as `failed`, or `study` (all runs). Raises ConfigError if a value doesn't match any run.
    """
    for value in wanted:
        if not any(_is_named(one, str(value)) for one in states):
            remedy = (
                "Use a run's name or its last 8 digits, a pattern such as '*-s2-*', a setting such as seed=2, a state "
                "such as failed or missing, or study for all runs."
            )
            if close := get_close_matches(str(value), {*get_args(State), *(one.run for one in states), "study"}, 1):
                remedy = f"Did you mean '{close[0]}'?"
            raise ConfigError(f"remove={value}: this doesn't match any run of the study. {remedy}")
    return [one for one in states if any(_is_named(one, str(value)) for value in wanted)]


def _is_named(one: RunState, value: str) -> bool:
    """Return True if a value of `remove=` selects a run."""
    if value in ("study", one.state, one.name, one.run.rpartition("-")[2]) or fnmatchcase(one.run, value):
        return True
    key, is_key, wanted = value.partition("=")
    values = flatten(one.config)
    keys = [name for name in values if name in (key, f"{key}.name")]
    keys = keys or [name for name in values if name.endswith(f".{key}")]
    if is_key and keys == ["sample.size"]:  # 1/8M and 125k are the same size
        return one.size == parse_size(wanted, "remove=sample.size")
    return bool(is_key) and len(keys) == 1 and written(values[keys[0]]) == wanted


def remove_runs(folder: Path, runs: Sequence[RunState]) -> None:
    """Remove runs and their lines in the study's grid. Removing the last run also removes the grid and the logs.

    Raises RunInUse if a process is working on a run. Raises ConfigError if a run has no folder and is only listed in an
    experiment, unless all folders are removed. In both cases, nothing is removed.
    """
    if busy := [one.run for one in runs if one.state == "running"]:
        raise RunInUse(f"{folder}: a process is using {first_few(busy)}. Nothing was removed. Stop the process first.")
    missing, names = [one.name for one in runs if one.state == "missing"], {one.run for one in runs}
    is_part = names.isdisjoint(there := {path.parent.name for path in folder.glob("*/config.yaml")}) or there - names
    if missing and is_part and not read_grid(folder):
        raise ConfigError(
            f"remove={missing[0]}: this run hasn't been started, so there is no folder to remove. It is only listed "
            f"in experiment={folder.name}. Leave it out."
        )
    for one in runs:
        path = folder / one.run
        if path.is_symlink():
            path.unlink()
        elif one.state != "missing":
            with RunFolder(path).locked():
                RunFolder(path).discard()
    forget_runs(folder, names)
    if not read_grid(folder) and not any(folder.glob("*/config.yaml")):
        for path in (folder / name for name in (GRID, "local", "slurm", "multirun.yaml")):
            shutil.rmtree(path, ignore_errors=True)  # this ignores links and files
            path.unlink(missing_ok=True)
        with suppress(OSError):  # the folder contains other files
            folder.rmdir()


if __name__ == "__main__":
    main("status", run)
