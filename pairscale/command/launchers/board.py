"""The runs of a sweep in the terminal: a live table, a line for each that ends, and a table of all at the end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig

from pairscale.command.launchers.jobs import Job, Work
from pairscale.command.launchers.remaining import Remaining
from pairscale.console import say
from pairscale.errors import START_AGAIN
from pairscale.live import is_redrawn, shown
from pairscale.progress import Result, State, state_now, take_result
from pairscale.sizes import clock
from pairscale.tables import filled_table, print_table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

MOST_ROWS = 40  # of the table at the end
RATE_WIDTH, LEFT_WIDTH = 70, 54  # narrower terminals show no rate, or no time left of the run
DONE_ALREADY = "done already"


@dataclass(frozen=True)
class Ended:
    """A run that has ended. code: exit code; reason: its last line and its log, if that is not 0."""

    run: int
    code: int
    seconds: float
    result: Result = field(default_factory=Result)
    reason: str = ""

    @property
    def state(self) -> str:
        """What became of the run, in a word or two."""
        if self.code:
            return "UNFINISHED" if self.code == START_AGAIN else "FAILED"
        return "done" if self.result.new else DONE_ALREADY


class Board:
    """The runs of a sweep, `at_a_time` side by side; `names` and `works` are those of all runs, in order."""

    def __init__(self, names: Sequence[str], works: Sequence[Work], at_a_time: int):
        self.names = list(names)
        self.ended: list[Ended] = []
        self._states: dict[int, Callable[[], State]] = {}  # of the runs that are at work
        self._remaining = Remaining(works, at_a_time)
        self._guard = threading.Lock()
        self._began = time.monotonic()

    def begin(self, run: int, state: Callable[[], State]) -> None:
        """Show a run, and from now on what `state` says that it does."""
        with self._guard:
            self._states[run] = state
        self._remaining.begins(run)

    def end(self, ended: Ended) -> None:
        """Print the line of a run that has ended."""
        with self._guard:
            self._states.pop(ended.run, None)
            self.ended.append(ended)
        self._remaining.ends(ended.run, ended.seconds if ended.state == "done" else None)
        line = f"[{len(self.ended)}/{len(self.names)}] {ended.state} {self.names[ended.run]}"
        line += f" in {clock(ended.seconds)}" if ended.state != DONE_ALREADY else ""
        line += f": {text}" if (text := ended.result.text()) else ""
        left = "" if is_redrawn() else self._left()  # which the view shows
        say("; ".join(filter(None, [line, left])))

    def run_here(self, run: int, work: Callable[[], tuple[str, int] | None]) -> tuple[str, int] | None:
        """Show a run while `work` does it in this process; it returns the line of an error and its exit code."""
        take_result()
        began = time.monotonic()
        self.begin(run, state_now)
        error = work()
        code = error[1] if error else 0  # the run has printed the reason
        self.end(Ended(run, code, time.monotonic() - began, take_result()))
        return error

    def _left(self) -> str:
        for run, state in self._running():
            if state.what == "training" and state.rate and state.left is not None:
                self._remaining.observes(run, state.rate, state.left)
        left = self._remaining.left()
        return f"about {clock(left)} left" if left else ""

    def _running(self) -> list[tuple[int, State]]:
        with self._guard:
            states = list(self._states.items())
        return [(run, state()) for run, state in sorted(states, key=lambda one: one[0])]

    def _summary(self) -> str:
        failed = sum(one.code != 0 for one in self.ended)
        done = f"{len(self.ended) - failed} of {len(self.names)} runs done"
        failures = f"{failed} failed" if failed else ""
        return " · ".join(filter(None, [done, failures, clock(time.monotonic() - self._began), self._left()]))

    def drawing(self, width: int) -> RenderableType:
        """Return a summary, and a row for each run at work."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, expand=True, width=min(width, 110))
        table.add_column("run", no_wrap=True)
        table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column("now", no_wrap=True, overflow="ellipsis", min_width=8)
        table.add_column("share", justify="right", no_wrap=True, min_width=5)
        if width >= RATE_WIDTH:
            table.add_column("speed", justify="right", no_wrap=True, min_width=14)
        if width >= LEFT_WIDTH:
            table.add_column("left", justify="right", no_wrap=True, min_width=10)
        for run, state in self._running():
            share = f"{state.share:.0%}" if state.share is not None else ""
            cells = [f"{run + 1} of {len(self.names)}", self.names[run], state.what, share, state.speed]
            cells.append(clock(state.left) if state.left is not None else "")
            if width < RATE_WIDTH:
                cells.pop(4)
            table.add_row(*map(Text, cells[: len(table.columns)]))
        return Group(Text(self._summary(), "bold", no_wrap=True, overflow="ellipsis"), table)

    def line(self) -> str:
        """Return the runs at work and the summary in a line."""
        runs = [f"{self.names[run]}: {', '.join([state.what, *state.parts()])}" for run, state in self._running()]
        return "; ".join([*runs, self._summary()])

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the runs at work until the block ends, and then the table of all, if there are several."""
        from rich.console import Console
        from rich.text import Text

        with shown(self):
            yield
        if len(self.names) > 1:
            console = Console(highlight=False, width=None if sys.stdout.isatty() else 80)
            if any(one.code == 0 for one in self.ended):
                print_table(console, self.table(), ("words", "perplexity", "time"))
            for one in self.ended:
                if one.code:
                    console.print(Text(f"{one.state}: {self.names[one.run]}"))  # its reason stands above

    def table(self) -> Table:
        """Return the runs that are done: by accuracy, or else by perplexity; those without either come last."""
        from rich.text import Text

        done = sorted((one for one in self.ended if not one.code), key=_by_result)
        rest = len(done) - MOST_ROWS
        rows = []
        for one in done[:MOST_ROWS]:
            words, accuracy, perplexity = one.result.words, one.result.accuracy, one.result.perplexity
            rows.append([
                self.names[one.run],
                f"{words:,}" if words is not None else "",
                f"{100 * accuracy:.1f}%" if accuracy is not None else "",
                f"{perplexity:,.1f}" if perplexity is not None else "",
                clock(one.seconds) if one.result.new else "",
            ])  # fmt: skip
        table = filled_table(("run", "words", "accuracy", "perplexity", "time"), rows, names=("run",))
        table.caption = Text(f"and {rest:,} runs more; python -m analysis shows all") if rest > 0 else None
        return table


def _by_result(ended: Ended) -> tuple[float, float, int]:
    accuracy, perplexity = ended.result.accuracy, ended.result.perplexity
    inf = float("inf")
    return inf if accuracy is None else -accuracy, inf if perplexity is None else perplexity, ended.run


_OF_ONE = ("model", "corpus", "sample.size", "seed")  # keys that name the run of a sweep that has no other


def run_names(jobs: Sequence[Job]) -> list[str]:
    """Return the runs of a sweep in words: the values in which they differ."""
    alike = set.intersection(*(set(job.overrides) for job in jobs)) if len(jobs) > 1 else set()
    parse = OverridesParser.create().parse_override
    names = []
    for job in jobs:
        values = [parse(override) for override in job.overrides if override not in alike]
        if len(jobs) == 1:
            values = [value for value in values if value.key_or_group in _OF_ONE]
        names.append(", ".join(_in_words(value, job) for value in values) or f"run {job.index + 1}")
    return names


def _in_words(override: Override, job: Job) -> str:
    key, value = override.key_or_group, str(override.get_value_element_as_str())
    if key == "sample.size":
        return f"{value} {job.config.sample.count if job.config else 'words'}"
    if key == "seed":
        return f"seed {value}"
    return f"{key.rpartition('.')[2]}={value}" if "." in key else value


def shows_board(config: DictConfig) -> bool:
    """Return True if a sweep of the configuration `config` shows a board, not what each of its runs prints."""
    return bool(config.trainer.progress) and not config.verbose
