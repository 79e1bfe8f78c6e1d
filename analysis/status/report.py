"""The status of a study as lines of text: a grid of runs, failures with their reasons, and what is left to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from analysis.status.states import (
    BROKEN,
    MISSING,
    PRETRAINED,
    RUNNING,
    SCORED,
    STATES,
    STOPPED,
    TRAINED,
    UNSCORED,
    RunState,
)
from pairscale import as_typed
from pairscale.sizes import clock, parse_size, readable_size
from train.runs.axes import in_order

# One character a run: letters that differ on any terminal, and colours where there are any.
MARKS = {SCORED: "#", TRAINED: "t", UNSCORED: "!", RUNNING: ">", STOPPED: "~", BROKEN: "x", MISSING: "."}
STYLES = {
    SCORED: "green",
    TRAINED: "cyan",
    UNSCORED: "bold red",
    RUNNING: "bold blue",
    STOPPED: "yellow",
    BROKEN: "bold red",
    MISSING: "dim",
}
ABSENT = " "  # no such run is wanted
LISTED = 10  # of each kind, or of each reason to fail; those that run are all listed
LABEL_WIDTH = 30  # a longer label has a line of its own


def report(
    folder: Path, states: Sequence[RunState], width: int, commands: Mapping[str, Sequence[str]] | None = None
) -> list[Text]:
    """Return the lines to print of the study in `folder`; `commands`: run id -> the sweeps that score it again."""
    counts = Counter(state.state for state in states)
    study = folder.name
    head = Text(f"{study}: {_runs(len(states))}", style="bold")
    for name in STATES:
        if counts[name]:
            head.append(" · ", style="not bold").append(f"{counts[name]} {name}", style=STYLES[name])
    benchmarks = Counter(label for state in states for label in state.scored_on)
    lines = [head, Text(f"in {folder}" if folder.is_dir() else f"in {folder}: no such folder yet")]
    if benchmarks:
        lines.append(Text("scored on " + ", ".join(f"{name} {count}" for name, count in sorted(benchmarks.items()))))
    lines += [Text(), *grid(states, width), Text(), _legend(counts)]
    lines += _failures(study, [state for state in states if state.state == BROKEN])
    lines += _unscored([state for state in states if state.state == UNSCORED], commands or {})
    for name, describe in ((RUNNING, _in_progress), (STOPPED, _in_progress), (TRAINED, _named)):
        chosen = [state for state in states if state.state == name]
        shown = chosen if name == RUNNING else chosen[:LISTED]
        if chosen:
            title = "trained, not scored yet" if name == TRAINED else name
            lines += [Text(), Text(title, style=STYLES[name]), *(describe(state) for state in shown)]
            lines += _more(len(chosen) - len(shown))
    missing = [state.name for state in states if state.state == MISSING]
    if missing and len(missing) < len(states):
        lines += [Text(), Text(MISSING, style=STYLES[MISSING]), *(Text(f"  {name}") for name in missing[:LISTED])]
        lines += _more(len(missing) - LISTED)
    return [*lines, Text(), *_left(states)]


def grid(states: Sequence[RunState], width: int) -> list[Text]:
    """Return rows of labels, columns of sizes, a mark for each seed, in as many blocks of columns as needed."""
    sizes = sorted({state.size for state in states if state.size != PRETRAINED}, key=parse_size)
    sizes += [PRETRAINED] if any(state.size == PRETRAINED for state in states) else []
    cells: dict[tuple[str, str], list[RunState]] = {}
    for state in states:
        cells.setdefault((state.label, state.size), []).append(state)
    rows = in_order(state.label for state in states)
    seeds = sorted({state.seed for state in states if state.size != PRETRAINED})
    wide = {
        size: max(len(readable_size(size)), *(len(_marks(cells.get((row, size), []), seeds)) for row in rows))
        for size in sizes
    }
    first = min(LABEL_WIDTH, max(map(len, rows)))
    lines: list[Text] = []
    block: list[str] = []
    for size in [*sizes, None]:
        if not block or (size is not None and first + sum(2 + wide[one] for one in [*block, size]) <= width):
            block.append(str(size))
            continue
        lines += [Text()] if lines else []
        lines.append(
            Text(
                (" " * first + "".join(f"  {readable_size(one):<{wide[one]}}" for one in block)).rstrip(), style="bold"
            )
        )
        for row in rows:
            line = Text(f"{row:<{first}}")
            if len(row) > first:
                lines.append(line)
                line = Text(" " * first)
            for one in block:
                marks = _marks(cells.get((row, one), []), seeds)
                line.append("  ").append(marks).append(" " * (wide[one] - len(marks)))
            line.rstrip()
            lines.append(line)
        block = [] if size is None else [size]
    return lines


def _marks(cell: Sequence[RunState], seeds: Sequence[int]) -> Text:
    """Return a mark for each seed; runs of one seed that the labels do not distinguish follow one another."""
    text = Text()
    pretrained = [state for state in cell if state.size == PRETRAINED]
    for seed in seeds if not pretrained else [0]:
        at = [state for state in cell if state.seed == seed]
        for state in at:
            text.append(MARKS[state.state], style=STYLES[state.state])
        if not at:
            text.append(ABSENT)
    return text


def _legend(counts: Counter[str]) -> Text:
    text = Text()
    for name in STATES:
        if counts[name]:
            text.append("   " if text else "").append(f"{MARKS[name]} {name}", style=STYLES[name])
    return text.append("   (a mark for each seed)")


def _in_progress(state: RunState) -> Text:
    text = Text(f"  {state.name}  ")
    if state.doing == "scoring":
        return text.append("scoring")
    if state.seen is None:
        return text.append("begun" if state.state == STOPPED else "starting")
    text.append(
        f"{state.seen / state.words:.0%} of {state.words:,.0f} words" if state.words else f"{state.seen:,} words"
    )
    if state.state == RUNNING and state.rate:
        text.append(f", {state.rate:,.0f} words/s, {clock(state.left or 0)} left")
    return text


def _failures(study: str, failed: Sequence[RunState]) -> list[Text]:
    """List each reason once, with the runs that it stopped, and what to do about those that are not trained."""
    lines = [Text(), Text(BROKEN, style=STYLES[BROKEN])] if failed else []
    lines += _by_reason(failed)
    if any(state.left != 0 for state in failed):
        again = "  the command that asked for them tries them again; to take them out of the study, grid and all:"
        remove = f"  python -m analysis.status study={study} remove=failed (or remove=RUN)"
        lines += [Text(again), Text(as_typed(remove))]
    return lines


def _unscored(runs: Sequence[RunState], commands: Mapping[str, Sequence[str]]) -> list[Text]:
    """List each reason once, with the runs that were not scored, and the commands that score them again."""
    lines = [Text(), Text("trained, but scoring failed", style=STYLES[UNSCORED])] if runs else []
    lines += _by_reason(runs)
    again = dict.fromkeys(
        command for run in runs for _, own in run.failed_on for command in commands.get(run.run, [own])
    )
    lines += [Text(f"  to score again, without training: {as_typed(command)}") for command in list(again)[:LISTED]]
    return lines + [Text(f"  {line}") for line in _more(len(again) - LISTED)]


def _by_reason(runs: Sequence[RunState]) -> list[Text]:
    lines = []
    for reason in dict.fromkeys(run.reason for run in runs):
        names = [run.name for run in runs if run.reason == reason]
        lines += [Text(f"  {reason}"), *(Text(f"    {name}") for name in names[:LISTED])]
        lines += [Text(f"  {line}") for line in _more(len(names) - LISTED)]
    return lines


def _named(state: RunState) -> Text:
    return Text(f"  {state.name}")


def _more(count: int) -> list[Text]:
    return [Text(f"  and {count} more")] if count > 0 else []


def _left(states: Sequence[RunState]) -> list[Text]:
    """Return the speed of each row, the training that is left, and the disk space."""
    lines = []
    speeds: dict[str, list[float]] = {}
    for state in states:
        if state.rate:
            speeds.setdefault(state.label, []).append(state.rate)
    for label in in_order(speeds):
        low, high = min(speeds[label]), max(speeds[label])
        text = f"{low:,.0f} words/s" if round(low) == round(high) else f"{low:,.0f} to {high:,.0f} words/s"
        lines.append(Text(f"speed: {label} {text}"))
    todo = [state for state in states if state.state in (RUNNING, STOPPED, MISSING) and state.doing != "scoring"]
    todo = [state for state in todo if state.left != 0]
    failed = sum(state.state == BROKEN and state.left != 0 for state in states)
    if todo:
        known = [state.left for state in todo if state.left is not None]
        running = sum(state.state == RUNNING for state in states)
        text = f"left: {clock(sum(known))} of training in one process" if known else "left: training of unknown length"
        text += f", about {clock(sum(known) / running)} in the {running} that run" if known and running > 1 else ""
        unknown = len(todo) - len(known)
        text += f"; not counted: {_runs(unknown)} of unknown speed" if known and unknown else ""
        text += f"; not counted: {_runs(failed)} that failed" if failed else ""
        lines.append(Text(text))
    disk = sum(state.bytes for state in states)
    lines.append(Text(f"disk: {disk / 2**20:,.0f} MiB"))
    return lines


def _runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"
