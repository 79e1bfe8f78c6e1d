"""The state, time and cost of a study's runs, and their removal: `python -m analysis.status study=NAME`.

run_states.py reads the states. No model is loaded, and no pandas, so that the command answers at once.
"""

import difflib
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.text import Text

from analysis.config import AnalysisConfig
from analysis.run_states import (
    DAMAGED,
    FAILED,
    MISSING,
    PRETRAINED,
    RUNNING,
    SCORED,
    STOPPED,
    TRAINED,
    UNSCORED,
    RunState,
    run_states,
)  # fmt: skip
from eval.grid import RequestedRun, forget_runs, read_grid
from eval.sweeps import commands_of, requested_runs
from pairscale import as_typed
from pairscale.command.main import main
from pairscale.errors import ConfigError, RunError, RunInUse
from pairscale.sizes import clock, format_size, parse_size, readable_size
from train.runs.axes import in_order
from train.runs.folder import GRID, RunFolder

MARKS = {
    SCORED: ("#", "green"), TRAINED: ("t", "cyan"), UNSCORED: ("!", "bold red"), RUNNING: (">", "bold blue"),
    STOPPED: ("~", "yellow"), FAILED: ("x", "bold red"), DAMAGED: ("?", "bold red"), MISSING: (".", "dim"),
}  # fmt: skip
TITLES = {TRAINED: "trained, not scored yet", UNSCORED: "trained, but scoring failed"}
STUDY = "study"  # remove=study: all of it
LEFT_BY_COMMANDS = (GRID, "local", "slurm", "multirun.yaml")  # in a study's folder, next to its runs
LISTED = 10  # runs per list


def run(config: AnalysisConfig) -> None:
    """Print the status of `config.study`, or remove the runs that `config.remove` names.

    Raises ConfigError without a study, RunError for one without runs, and the errors of `select` and `remove_runs`.
    """
    runs = Path(config.paths.runs)
    if config.study is None:
        known = sorted(path.name for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []
        there = f"Studies in {runs}: {', '.join(known)}." if known else f"There are none in {runs}."
        raise ConfigError(f"Which study? Add study=NAME. {there}")
    folder, requested = runs / config.study, requested_runs(runs, config.study)
    states = run_states(folder, requested)
    if not states:
        raise RunError(f"study={config.study}: there are no runs in {folder}, and no experiment has this name")
    console = Console(highlight=False)
    if config.remove is None:
        for line in report(folder, states, requested):
            console.print(line, soft_wrap=True)
        return
    wanted = [str(one) for one in (config.remove if isinstance(config.remove, list) else [config.remove])]
    chosen = select(config.study, states, wanted)
    for text in removal(folder, chosen, STUDY in wanted):
        console.print(text, soft_wrap=True, markup=False)
    if is_confirmed(config.yes):
        remove_runs(folder, chosen, whole_study=STUDY in wanted)
        console.print("Removed. The prepared text and reports are kept.")
    else:
        console.print("Nothing was removed.")


def report(folder: Path, states: Sequence[RunState], requested: Mapping[str, RequestedRun]) -> list[Text]:
    """Return the lines to print of the study in `folder`."""
    runs = {name: of for name in MARKS if (of := [one for one in states if one.state == name])}
    head = Text(f"{folder.name}: {_counted(len(states), 'run')}", style="bold")
    for name, of in runs.items():
        head.append(" · ", style="not bold").append(f"{len(of)} {name}", style=MARKS[name][1])
    lines = [head, Text(f"in {folder}" if folder.is_dir() else f"in {folder}: this folder does not exist yet")]
    if scores := Counter(label for one in states for label in one.scored_on):
        lines.append(Text("scored on " + ", ".join(f"{name} {count}" for name, count in sorted(scores.items()))))
    legend = [Text(f"{MARKS[name][0]} {name}", style=MARKS[name][1]) for name in runs]
    lines += [Text(), *table(states), Text(), Text("   ").join([*legend, Text("(one mark per seed)")])]
    for name, of in runs.items():
        if name == SCORED or (name == MISSING and len(of) == len(states)):
            continue
        lines += [Text(), Text(TITLES.get(name, name), style=MARKS[name][1])]
        for reason in dict.fromkeys(one.reason for one in of):
            listed = [_progress(one) for one in of if one.reason == reason]
            more = [f"and {len(listed) - LISTED} more"] if len(listed) > LISTED and name != RUNNING else []
            shown = listed[:LISTED] if more else listed
            lines += [Text(f"  {reason}")] if reason else []
            lines += [Text(f"{'    ' if reason else '  '}{text}") for text in shown + more]
        lines += [Text(f"  {text}") for text in _remedies(folder.name, name, of, requested)]
    unfinished = [requested[one.run] for one in states if one.run in requested and not _is_complete(one, requested)]
    commands = [Text(f"to continue: {as_typed(command)}") for command in commands_of(unfinished)]
    return [*lines, Text(), *map(Text, _totals(states)), *commands]


def table(states: Sequence[RunState]) -> list[Text]:
    """Return a row per curve and size: a mark per seed, and the mean time, speed, device and disk space of a run."""
    sizes = [*sorted({one.size for one in states if one.size != PRETRAINED}, key=parse_size), PRETRAINED]
    seeds = sorted({one.seed for one in states if one.size != PRETRAINED})
    cells: dict[tuple[str, str], list[RunState]] = {}
    for label in in_order(one.label for one in states):
        for size in sizes:
            cells[label, size] = [one for one in states if (one.label, one.size) == (label, size)]
    rows: list[tuple[str | Text, ...]] = [
        ("curve", "size", "runs", "time per run", "words/s", "device", "disk per run")
    ]
    for (label, size), of in cells.items():
        if not of:
            continue
        walls, rates = ([value for one in of if (value := getattr(one, name))] for name in ("wall", "rate"))
        time, rate = clock(sum(walls) / len(walls)) if walls else "", f"{median(rates):,.0f}" if rates else ""
        disk = f"{sum(one.bytes for one in of) / len(of) / 2**20:,.0f} MiB" if any(one.bytes for one in of) else ""
        devices = ", ".join(dict.fromkeys(one.device for one in of if one.device))
        rows.append((label, readable_size(size), _marks(of, seeds), time, rate, devices, disk))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for number, row in enumerate(rows):
        line = Text(style="bold" if number == 0 else "")
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - len(cell))
            line.append("  " if column else "")
            line.append(space if column > 2 else "").append(cell).append("" if column > 2 else space)
        line.rstrip()
        lines.append(line)
    return lines


def _marks(cell: Sequence[RunState], seeds: Sequence[int]) -> Text:
    """Return a mark per seed, or a space; runs of one seed that the labels don't tell apart follow each other."""
    text = Text()
    for seed in [0] if cell[0].size == PRETRAINED else seeds:
        of_seed = [one for one in cell if one.seed == seed]
        for one in of_seed:
            text.append(*MARKS[one.state])
        text.append("" if of_seed else " ")
    text.rstrip()
    return text


def _progress(one: RunState) -> str:
    """Return a run's name and, if it is running or stopped, how far it is."""
    if one.state not in (RUNNING, STOPPED):
        return one.name
    if one.trained:
        return f"{one.name}  scoring"
    if one.seen is None:
        return f"{one.name}  {'begun' if one.state == STOPPED else 'starting'}"
    seen = f"{one.seen / one.words:.0%} of {one.words:,.0f} words" if one.words else f"{one.seen:,} words"
    speed = f", {one.rate:,.0f} words/s, {clock(one.left or 0)} left" if one.state == RUNNING and one.rate else ""
    return f"{one.name}  {seen}{speed}"


def _remedies(study: str, state: str, runs: Sequence[RunState], requested: Mapping[str, RequestedRun]) -> list[str]:
    """Return what to do about runs that failed."""
    if state in (FAILED, DAMAGED):
        remove = as_typed(f"python -m analysis.status study={study} remove={'failed' if state == FAILED else 'RUN'}")
        return [f"Run the command that started them again to retry. To remove them from the study: {remove}"]
    if state != UNSCORED:
        return []
    again: list[str] = []
    for one in runs:
        failed = {label.partition("+")[0] for label in one.again}
        sweeps = requested[one.run].commands if one.run in requested else ()
        of_all = [text for text in sweeps if not text.startswith("python -m train ")]
        again += of_all if of_all and failed <= requested[one.run].benchmarks else one.again.values()
    return [f"To score them again, without training: {as_typed(text)}" for text in dict.fromkeys(again)]


def _totals(states: Sequence[RunState]) -> list[str]:
    """Return the time that training took and will take, and the disk space."""
    lines = []
    spent: dict[str, float] = {}
    for one in states:
        device = one.device or "an unknown device"
        spent[device] = spent.get(device, 0) + (one.wall or 0)
    if any(spent.values()):
        times = (f"{clock(seconds)} on {device}" for device, seconds in spent.items() if seconds)
        lines.append(f"training so far: {', '.join(times)}")
    todo = [one for one in states if one.state in (RUNNING, STOPPED, MISSING) and not one.trained and one.left != 0]
    known = [one.left for one in todo if one.left is not None]
    if todo:
        running = sum(one.state == RUNNING for one in todo)
        text = f"left: {clock(sum(known))} of training in one process" if known else "left: training of unknown length"
        text += f", about {clock(sum(known) / running)} in the {running} running" if known and running > 1 else ""
        unknown = len(todo) - len(known)
        lines.append(text + (f"; {_counted(unknown, 'run')} of unknown speed not counted" if known and unknown else ""))
    return [*lines, f"disk: {sum(one.bytes for one in states) / 2**20:,.0f} MiB"]


def _is_complete(one: RunState, requested: Mapping[str, RequestedRun]) -> bool:
    return one.state == SCORED or (one.state == TRAINED and not requested[one.run].benchmarks)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def select(study: str, states: Sequence[RunState], wanted: Sequence[str]) -> list[RunState]:
    """Return the runs that the values of `remove=` name.

    A value is the name of a run or the 8 digits at its end, a pattern such as `*-s2-*`, a key and its value such as
    `seed=2`, or failed, missing or study. Raises ConfigError for a value that names no run.
    """
    chosen: set[str] = set()
    for value in wanted:
        runs = {one.run for one in states if value == STUDY or value == one.state in (FAILED, MISSING)}
        runs |= {one.run for one in states if value in (one.run, one.name, one.run.rpartition("-")[2])}
        runs |= {one.run for one in states if set(value) & set("*?[") and fnmatchcase(one.run, value)}
        if not runs and "=" in value:
            runs = _by_key(value, states)
        if not runs:
            unscored = sum(one.state == UNSCORED for one in states) if value == FAILED else 0
            hint = (
                "Give a run's name or its last 8 digits, a pattern such as '*-s2-*', a key such as seed=2, or failed, "
                "missing or study."
            )
            if unscored:
                hint = f"No training failed; {_counted(unscored, 'trained run')} could not be scored (remove=RUN)."
            raise ConfigError(f"remove={value}: no run of study={study} matches. {hint}")
        chosen |= runs
    return [one for one in states if one.run in chosen]


def _by_key(value: str, states: Sequence[RunState]) -> set[str]:
    """Return the runs with a value such as `seed=2`, `model=lstm_tiny` or `model.dropout=0.2`.

    A key may be the whole one, that of a `name` (model.name), or the last part of one.
    """
    key, _, text = value.partition("=")
    known = list(dict.fromkeys(name for one in states for name in one.values))
    ends = [name for name in known if name.rpartition(".")[2] == key]
    full = next((name for name in (key, f"{key}.name") if name in known), ends[0] if len(ends) == 1 else None)
    if full is None and ends:
        raise ConfigError(f"remove={value}: several keys end in '{key}'. Give one of them: {', '.join(ends)}.")
    if full is None:
        near = difflib.get_close_matches(key, {name.removesuffix(".name") for name in known}, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise ConfigError(f"remove={value}: the runs of this study have no key '{key}'.{hint}")
    if full == "sample.size":  # 1/8M and 125k are one size
        return {one.run for one in states if one.size == format_size(parse_size(text, "remove=sample.size"))}
    return {one.run for one in states if one.values.get(full) == text}


def removal(folder: Path, runs: Sequence[RunState], whole_study: bool) -> list[str]:
    """Return lines that describe what would be removed."""
    study = f"all of study={folder.name}, " if whole_study else ""
    size = sum(one.bytes for one in runs) / 2**20
    lines = [f"This removes {study}{_counted(len(runs), 'run')} ({size:,.0f} MiB) from {folder}:"]
    for one in runs[:20]:
        scores = f"scores on {', '.join(one.scored_on)}" if one.scored_on else "no scores"
        files = f"{one.bytes / 2**20:,.0f} MiB, {scores}" if one.state != MISSING else "only its line of the grid"
        lines.append(f"  {one.name} ({one.state}): {files}")
    return lines + ([f"  and {len(runs) - 20} more"] if len(runs) > 20 else [])


def is_confirmed(yes: bool, ask: Callable[[str], str] = input) -> bool:
    """Return True if the user agrees. Raises ConfigError without `yes` if there is no terminal to ask in."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError("remove needs your confirmation, but there is no terminal to ask in. Add yes=true.")
    return ask("Remove them? [y/N] ").strip().lower() in ("y", "yes")


def remove_runs(folder: Path, runs: Sequence[RunState], whole_study: bool = False) -> None:
    """Remove runs and their lines in the grid; with `whole_study`, everything else in the study's folder, too.

    Raises RunInUse, before anything is removed, if a process works on one of them, and ConfigError for a run that only
    an experiment requests.
    """
    busy = [one.run for one in runs if one.state == RUNNING]
    if busy:
        raise RunInUse(f"{folder}: a process works on {', '.join(busy[:3])}. Stop it first; nothing was removed.")
    missing = [one.name for one in runs if one.state == MISSING]
    if missing and not whole_study and not read_grid(folder):
        raise ConfigError(f"remove={missing[0]}: it has no folder; only experiment={folder.name} requests it.")
    for one in runs:
        if one.state != MISSING:
            _remove(RunFolder(folder / one.run))
    forget_runs(folder, {one.run for one in runs})
    if whole_study:
        for path in (folder / name for name in LEFT_BY_COMMANDS):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def _remove(run: RunFolder) -> None:
    """Remove a run's folder under its lock."""
    if run.path.is_symlink():
        run.path.unlink()
        return
    with run.locked():
        run.discard()


if __name__ == "__main__":
    main("status", run)
