"""The state, time and cost of a study's runs, and their removal: `python -m analysis.status study=NAME`.

run_states.py reads the states. No model is loaded, and no pandas, so that the command answers at once.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean, median

from rich.console import Console
from rich.table import Table

from analysis.config import AnalysisConfig
from analysis.run_states import (
    DAMAGED,
    FAILED,
    MARKS,
    MISSING,
    PRETRAINED,
    RUNNING,
    SCORED,
    STOPPED,
    TRAINED,
    RunState,
    run_states,
)
from eval.grid import RequestedRun, forget_runs, read_grid
from eval.sweeps import commands_of, requested_runs
from pairscale import as_typed
from pairscale.command.main import main
from pairscale.errors import ConfigError, RunError, RunInUse, first_few
from pairscale.sizes import clock, format_size, parse_size, readable_size
from train.runs.axes import in_order
from train.runs.folder import GRID, RunFolder

STUDY = "study"  # remove=study: all of it
LEFT_BY_COMMANDS = (GRID, "local", "slurm", "multirun.yaml")  # in a study's folder, next to its runs
LISTED = 20  # runs per list


def run(config: AnalysisConfig) -> None:
    """Print the status of `config.study`, or remove the runs that `config.remove` names.

    Raises ConfigError without a study, RunError for one without runs, and the errors of `select` and `remove_runs`.
    """
    if config.study is None:
        raise ConfigError("Which study? Give study=NAME.")
    folder, requested = Path(config.paths.runs, config.study), requested_runs(config.paths.runs, config.study)
    states = run_states(folder, requested)
    if not states:
        raise RunError(f"study={config.study}: there are no runs in {folder}, and no experiment has this name")
    console = Console(highlight=False, markup=False, width=1000)  # no line is cut, wherever it is printed
    if config.remove is None:
        for part in report(folder, states, requested):
            console.print(part)
        return
    wanted = [str(one) for one in (config.remove if isinstance(config.remove, list) else [config.remove])]
    chosen = select(config.study, states, wanted)
    console.print(removal(folder, chosen, STUDY in wanted))
    if is_confirmed(config.yes):
        remove_runs(folder, chosen, whole_study=STUDY in wanted)
        console.print("Removed. The prepared text and reports are kept.")
    else:
        console.print("Nothing was removed.")


def report(folder: Path, states: Sequence[RunState], requested: Mapping[str, RequestedRun]) -> Iterator[str | Table]:
    """Yield what to print of the study in `folder`."""
    runs = {name: of for name in MARKS if (of := [one for one in states if one.state == name])}
    counts = [f"{len(of)} {name} ({MARKS[name]})" for name, of in runs.items()]
    yield " · ".join([f"{folder.name}: {_counted(len(states))}", *counts])
    yield f"in {folder}" + ("" if folder.is_dir() else ": this folder does not exist yet")
    if scores := Counter(label for one in states for label in one.scored_on):
        yield "scored on " + ", ".join(f"{name} {count}" for name, count in sorted(scores.items()))
    yield ""
    yield table(states)
    for name, of in runs.items():
        if name == SCORED:
            continue
        yield f"\n{name}"
        for reason in dict.fromkeys(one.reason for one in of):
            lines = _listed([_progress(one) for one in of if one.reason == reason])
            yield from [f"  {text}" for text in ([reason, *[f"  {line}" for line in lines]] if reason else lines)]
        again = [f"To score them again, without training: {command}" for one in of for command in one.again]
        if name in (FAILED, DAMAGED):
            remove = f"python -m analysis.status study={folder.name} remove={'failed' if name == FAILED else 'RUN'}"
            again = [f"Run the command that started them again to retry. To remove them from the study: {remove}"]
        yield from [f"  {as_typed(text)}" for text in dict.fromkeys(again)]
    yield ""
    for device in dict.fromkeys(one.device for one in states if one.wall):
        seconds = sum(one.wall or 0 for one in states if one.device == device)
        yield f"training so far: {clock(seconds)} on {device or 'an unknown device'}"
    if left := [one.left for one in states if one.state in (RUNNING, STOPPED, MISSING) and one.left != 0]:
        unknown = f"; {_counted(left.count(None))} of unknown length not counted" if None in left else ""
        yield f"left: {clock(sum(filter(None, left)))} of training in one process{unknown}"
    yield f"disk: {sum(one.mib for one in states):,.0f} MiB"
    wanting = [(one, requested[one.run]) for one in states if one.state != SCORED and one.run in requested]
    incomplete = [request for one, request in wanting if one.state != TRAINED or request.benchmarks]
    yield from [f"to continue: {as_typed(command)}" for command in commands_of(incomplete)]


def table(states: Sequence[RunState]) -> Table:
    """Return a row per curve and size: a mark per seed, and the mean time, speed, device and disk space of a run."""
    headings = ("curve", "size", "runs", "time per run", "words/s", "device", "disk per run")
    columns = Table(*headings, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    sizes = sorted({one.size for one in states if one.size != PRETRAINED}, key=parse_size)
    seeds = sorted({one.seed for one in states})
    for label in in_order(one.label for one in states):
        for size in [*sizes, PRETRAINED]:
            of = [one for one in states if (one.label, one.size) == (label, size)]
            if not of:
                continue
            marks = "".join("".join(MARKS[one.state] for one in of if one.seed == seed) or " " for seed in seeds)
            walls, rates = [one.wall for one in of if one.wall], [one.rate for one in of if one.rate]
            time, rate = clock(fmean(walls)) if walls else "", f"{median(rates):,.0f}" if rates else ""
            devices = ", ".join(dict.fromkeys(one.device for one in of if one.device))
            disk = f"{fmean(one.mib for one in of):,.0f} MiB"
            columns.add_row(label, readable_size(size), marks.strip(), time, rate, devices, disk)
    return columns


def _progress(one: RunState) -> str:
    """Return a run's name and, if it is running or stopped, how far it is."""
    if one.state not in (RUNNING, STOPPED):
        return one.name
    if one.trained:
        return f"{one.name}  scoring"
    speed = f", {one.rate:,.0f} words/s, {clock(one.left or 0)} left" if one.state == RUNNING and one.rate else ""
    return f"{one.name}  {one.seen:,} of {f'{one.words:,.0f}' if one.words else '?'} words{speed}"


def _listed(lines: Sequence[str]) -> list[str]:
    more = len(lines) - LISTED
    return [*lines[:LISTED], *([f"and {more} more"] if more > 0 else [])]


def _counted(number: int) -> str:
    return f"{number} run" if number == 1 else f"{number} runs"


def select(study: str, states: Sequence[RunState], wanted: Sequence[str]) -> list[RunState]:
    """Return the runs that the values of `remove=` name.

    A value is the name of a run or the 8 digits at its end, a pattern such as `*-s2-*`, a key and its value such as
    `seed=2`, or failed, missing or study. Raises ConfigError for a value that names no run.
    """
    chosen: set[str] = set()
    for value in wanted:
        runs = {
            one.run
            for one in states
            if value == STUDY
            or value == one.state in (FAILED, MISSING)
            or value in (one.name, one.run.rpartition("-")[2])
            or fnmatchcase(one.run, value)
            or _has_value(one, *value.split("=", 1))
        }
        if not runs:
            raise ConfigError(
                f"remove={value}: no run of study={study} matches. Give a run's name or its last 8 digits, a pattern "
                "such as '*-s2-*', a key such as seed=2, or failed, missing or study."
            )
        chosen |= runs
    return [one for one in states if one.run in chosen]


def _has_value(one: RunState, key: str, value: str | None = None) -> bool:
    """Return True for a run with this value of a key: a whole one, that of a name (model), or the last part of one."""
    ends = [name for name in one.values if name.rpartition(".")[2] == key]
    keys = [name for name in (key, f"{key}.name") if name in one.values][:1] or ends
    if value is not None and keys == ["sample.size"]:  # 1/8M and 125k are one size
        return one.size == format_size(parse_size(value, "remove=sample.size"))
    return len(keys) == 1 and one.values[keys[0]] == value


def removal(folder: Path, runs: Sequence[RunState], whole_study: bool) -> str:
    """Return lines that describe what would be removed."""
    study = f"all of study={folder.name}, " if whole_study else ""
    size = sum(one.mib for one in runs)
    lines = [f"  {one.name} ({one.state}): {', '.join(one.scored_on) or 'no scores'}" for one in runs]
    return "\n".join([f"This removes {study}{_counted(len(runs))} ({size:,.0f} MiB) from {folder}:", *_listed(lines)])


def is_confirmed(yes: bool) -> bool:
    """Return True if the user agrees. Raises ConfigError without `yes` if there is no terminal to ask in."""
    if not yes and not sys.stdin.isatty():
        raise ConfigError("remove needs your confirmation, but there is no terminal to ask in. Add yes=true.")
    return yes or input("Remove them? [y/N] ").strip().lower() in ("y", "yes")


def remove_runs(folder: Path, runs: Sequence[RunState], whole_study: bool = False) -> None:
    """Remove runs and their lines in the grid; with `whole_study`, what commands left next to them, too.

    Raises RunInUse, before anything is removed, if a process works on one of them, and ConfigError for a run that only
    an experiment requests.
    """
    if busy := [one.run for one in runs if one.state == RUNNING]:
        raise RunInUse(f"{folder}: a process works on {first_few(busy)}. Stop it first; nothing was removed.")
    missing = [one.name for one in runs if one.state == MISSING]
    if missing and not whole_study and not read_grid(folder):
        raise ConfigError(f"remove={missing[0]}: it has no folder; only experiment={folder.name} requests it.")
    for one in runs:
        path = folder / one.run
        if path.is_symlink():
            path.unlink()
        elif one.state != MISSING:
            with RunFolder(path).locked():
                RunFolder(path).discard()
    forget_runs(folder, {one.run for one in runs})
    if whole_study:
        for path in (folder / name for name in LEFT_BY_COMMANDS):
            shutil.rmtree(path, ignore_errors=True)  # a folder, but not a link or file
            path.unlink(missing_ok=True)
        with suppress(OSError):  # there are other files, too
            folder.rmdir()


if __name__ == "__main__":
    main("status", run)
