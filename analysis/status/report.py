"""The status of a study as lines of text: a grid of runs, failures with their reasons, and the work left."""

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
LISTED = 10  # runs of each state, or of each reason of failure; running ones are all listed
LABEL_WIDTH = 30  # a longer label has a line of its own


def report(
    folder: Path, states: Sequence[RunState], width: int, commands: Mapping[str, Sequence[str]] | None = None
) -> list[Text]:
    """Return the lines to print of the study in `folder`; `commands`: run id -> the sweeps that score it again."""
    runs = {name: [state for state in states if state.state == name] for name in STATES}
    head = Text(f"{folder.name}: {_runs(len(states))}", style="bold")
    for name in STATES:
        if runs[name]:
            head.append(" · ", style="not bold").append(f"{len(runs[name])} {name}", style=STYLES[name])
    lines = [head, Text(f"in {folder}" if folder.is_dir() else f"in {folder}: no such folder yet")]
    benchmarks = Counter(label for state in states for label in state.scored_on)
    if benchmarks:
        lines.append(Text("scored on " + ", ".join(f"{name} {count}" for name, count in sorted(benchmarks.items()))))
    lines += [Text(), *grid(states, width), Text(), _legend([name for name in STATES if runs[name]])]
    lines += _part(BROKEN, _failures(folder.name, runs[BROKEN]))
    lines += _part(UNSCORED, _unscored(runs[UNSCORED], commands or {}), "trained, but scoring failed")
    lines += _part(RUNNING, [Text(f"  {_in_progress(state)}") for state in runs[RUNNING]])
    lines += _part(STOPPED, _first([_in_progress(state) for state in runs[STOPPED]]))
    lines += _part(TRAINED, _first([state.name for state in runs[TRAINED]]), "trained, not scored yet")
    if len(runs[MISSING]) < len(states):
        lines += _part(MISSING, _first([state.name for state in runs[MISSING]]))
    return [*lines, Text(), *_left(states)]


def grid(states: Sequence[RunState], width: int) -> list[Text]:
    """Return rows of labels, columns of sizes, a mark for each seed, in as many blocks of columns as needed."""
    sizes = sorted({state.size for state in states if state.size != PRETRAINED}, key=parse_size)
    sizes += [PRETRAINED] if any(state.size == PRETRAINED for state in states) else []
    seeds = sorted({state.seed for state in states if state.size != PRETRAINED})
    runs: dict[tuple[str, str], list[RunState]] = {}
    for state in states:
        runs.setdefault((state.label, state.size), []).append(state)
    rows = in_order(state.label for state in states)
    cells = {(row, size): _marks(runs.get((row, size), []), seeds) for row in rows for size in sizes}
    widths = {size: max(len(readable_size(size)), *(len(cells[row, size]) for row in rows)) for size in sizes}
    first = min(LABEL_WIDTH, max(map(len, rows)))
    blocks: list[list[str]] = [[]]
    for size in sizes:
        if blocks[-1] and first + sum(2 + widths[one] for one in [*blocks[-1], size]) > width:
            blocks.append([])
        blocks[-1].append(size)
    lines: list[Text] = []
    for block in blocks:
        lines += [Text()] if lines else []
        head = " " * first + "".join(f"  {readable_size(size):<{widths[size]}}" for size in block)
        lines.append(Text(head.rstrip(), style="bold"))
        for row in rows:
            line = Text(f"{row:<{first}}")
            if len(row) > first:
                lines.append(line)
                line = Text(" " * first)
            for size in block:
                line.append("  ").append(cells[row, size]).append(" " * (widths[size] - len(cells[row, size])))
            line.rstrip()
            lines.append(line)
    return lines


def _marks(cell: Sequence[RunState], seeds: Sequence[int]) -> Text:
    """Return a mark for each seed; runs of one seed that the labels do not distinguish follow one another."""
    text = Text()
    for seed in [0] if any(state.size == PRETRAINED for state in cell) else seeds:
        of_seed = [state for state in cell if state.seed == seed]
        for state in of_seed:
            text.append(MARKS[state.state], style=STYLES[state.state])
        if not of_seed:
            text.append(" ")
    return text


def _legend(names: Sequence[str]) -> Text:
    marks = [Text(f"{MARKS[name]} {name}", style=STYLES[name]) for name in names]
    return Text("   ").join([*marks, Text("(one mark per seed)")])


def _part(name: str, lines: Sequence[Text], title: str = "") -> list[Text]:
    return [Text(), Text(title or name, style=STYLES[name]), *lines] if lines else []


def _first(texts: Sequence[str], indent: str = "  ") -> list[Text]:
    """Return the first texts as lines, and the number of further ones."""
    more = len(texts) - LISTED
    return [Text(indent + text) for text in [*texts[:LISTED], *([f"and {more} more"] if more > 0 else [])]]


def _in_progress(state: RunState) -> str:
    if state.doing == "scoring":
        return f"{state.name}  scoring"
    if state.seen is None:
        return f"{state.name}  {'begun' if state.state == STOPPED else 'starting'}"
    seen = f"{state.seen / state.words:.0%} of {state.words:,.0f} words" if state.words else f"{state.seen:,} words"
    running = state.state == RUNNING and state.rate
    return f"{state.name}  {seen}" + (f", {state.rate:,.0f} words/s, {clock(state.left or 0)} left" if running else "")


def _failures(study: str, runs: Sequence[RunState]) -> list[Text]:
    """List each reason once, with the runs that it stopped, and what to do about those that are not trained."""
    lines = _by_reason(runs)
    if any(state.left != 0 for state in runs):
        remove = f"python -m analysis.status study={study} remove=failed (or remove=RUN)"
        lines += [Text("  to try again: repeat the command that started them; to remove them from the study:")]
        lines += [Text(as_typed(f"  {remove}"))]
    return lines


def _unscored(runs: Sequence[RunState], commands: Mapping[str, Sequence[str]]) -> list[Text]:
    """List each reason once, with the runs that were not scored, and the commands that score them again."""
    again = dict.fromkeys(
        command for run in runs for _, own in run.failed_on for command in commands.get(run.run, [own])
    )
    return [*_by_reason(runs), *_first([f"to score again, without training: {as_typed(command)}" for command in again])]


def _by_reason(runs: Sequence[RunState]) -> list[Text]:
    lines = []
    for reason in dict.fromkeys(run.reason for run in runs):
        names = [run.name for run in runs if run.reason == reason]
        lines += [Text(f"  {reason}"), *_first(names, indent="    ")]
    return lines


def _left(states: Sequence[RunState]) -> list[Text]:
    """Return the speed of each row, the training that is left, and the disk space."""
    lines = []
    speeds: dict[str, list[float]] = {}
    for state in states:
        if state.rate:
            speeds.setdefault(state.label, []).append(state.rate)
    for label in in_order(speeds):
        ends = dict.fromkeys(f"{speed:,.0f}" for speed in (min(speeds[label]), max(speeds[label])))
        lines.append(f"speed: {label} {' to '.join(ends)} words/s")
    todo = [state for state in states if state.state in (RUNNING, STOPPED, MISSING) and state.doing != "scoring"]
    todo = [state for state in todo if state.left != 0]
    if todo:
        known = [state.left for state in todo if state.left is not None]
        running = sum(state.state == RUNNING for state in states)
        text = f"left: {clock(sum(known))} of training in one process" if known else "left: training of unknown length"
        if known and running > 1:
            text += f", about {clock(sum(known) / running)} in the {running} running"
        unknown = len(todo) - len(known)
        failed = sum(state.state == BROKEN and state.left != 0 for state in states)
        text += f"; not counted: {_runs(unknown)} of unknown speed" if known and unknown else ""
        text += f"; not counted: {_runs(failed)} that failed" if failed else ""
        lines.append(text)
    disk = sum(state.bytes for state in states)
    return [*map(Text, lines), Text(f"disk: {disk / 2**20:,.0f} MiB")]


def _runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"
