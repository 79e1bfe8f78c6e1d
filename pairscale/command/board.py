"""Show what the runs of a sweep are doing, print a line when a run ends, and print a table at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pairscale.command.line import key_of
from pairscale.console import say
from pairscale.errors import START_AGAIN
from pairscale.progress import LINE_SECONDS, Result, State, in_a_line, in_place, terminal
from pairscale.sizes import clock
from pairscale.tables import filled_table, print_table

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.table import Table

MOST_ROWS = 40  # largest number of rows in the table at the end
LEFT_WIDTH, RATE_WIDTH = 54, 70  # narrower terminals don't show a run's time left, or its rate
MEASURED_SECONDS = 20.0  # how long to measure before estimating the time left, unless a run ends earlier
DONE_BEFORE = "already done"


@dataclass(frozen=True)
class Ended:
    """A run that has ended, with its number, exit code, duration in seconds, and result or reason of failure."""

    run: int
    code: int
    seconds: float
    result: Result = field(default_factory=Result)
    reason: str = ""
    log: str = ""

    @property
    def state(self) -> str:
        """The state of the run: done, already done, FAILED or UNFINISHED."""
        if self.code:
            return "UNFINISHED" if self.code == START_AGAIN else "FAILED"
        return "done" if self.result.new else DONE_BEFORE


class Board:
    """The display of the runs of a sweep.

    Args:
        names: one per run
        words: words that each run trains on, counting repeats. Without them, all runs are assumed to take equally long
    """

    def __init__(self, names: Sequence[str], words: Sequence[float] = ()):
        self.names = list(names)
        self.ended: list[Ended] = []
        self._words = list(words) if any(words) else [1.0] * len(self.names)
        self._reasons: dict[str, int] = {}  # reason of a failure -> position of the first run that failed for it
        self._states: dict[int, State] = {}  # states of the active runs
        self._first: dict[int, float] = {}  # share done when a run starts training; above 0 if it resumes
        self._is_shown = False
        self._live: Live | None = None  # only in a terminal
        self._began = self._line = time.monotonic()
        self._trains: float | None = None  # when training began; before that, one run prepared the corpus for all

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the active runs until the block ends. Then print the table if there are several runs."""
        from rich.live import Live

        if console := terminal():
            width = console.width
            # Only `refresh` draws the display. If a thread drew it while it grows, it could erase printed lines.
            self._live = Live(get_renderable=lambda: self._drawing(width), auto_refresh=False, **in_place(console))
        self._is_shown = True
        with self._live or nullcontext():
            yield
        self._is_shown, self._live = False, None
        self.print_table()

    def observe(self, run: int, state: State) -> None:
        """Note what a run is doing now."""
        self._states[run] = state
        if state.what == "training" and state.share is not None:
            self._first.setdefault(run, state.share)
            self._trains = time.monotonic() if self._trains is None else self._trains

    def end(self, ended: Ended) -> None:
        """Print a line for a run that has ended and, if it failed, the reason, in full only once."""
        self._states.pop(ended.run, None)
        self.ended.append(ended)
        line = f"[{len(self.ended)}/{len(self.names)}] {ended.state} {self.names[ended.run]}"
        line += f" in {clock(ended.seconds)}" if ended.state != DONE_BEFORE else ""
        line += f": {text}" if (text := ended.result.text()) else ""
        say(line if self._live else "; ".join(filter(None, [line, self._left_in_words()])))
        if ended.reason:
            first = self._reasons.setdefault(ended.reason, len(self.ended))
            reason = ended.reason if first == len(self.ended) else f"the same error as [{first}/{len(self.names)}]"
            say(f"    {reason} ({ended.log})")

    def refresh(self) -> None:
        """Redraw the runs or, if this is not a terminal, print a line if a minute has passed."""
        if self._live:
            self._live.refresh()
        elif self._is_shown and time.monotonic() - self._line >= LINE_SECONDS:
            self._line = time.monotonic()
            say("; ".join([*(in_a_line(self.names[run], state) for run, state in self._at_work()), self._summary()]))

    def left(self) -> float | None:
        """Estimate the seconds until all runs have ended from the rate so far, or return None if it is too early."""
        elapsed = time.monotonic() - (self._began if self._trains is None else self._trains)
        first, ended = self._first, {one.run: one.state for one in self.ended}
        shares = {run: state.share or first[run] for run, state in self._states.items() if run in first}
        shares |= {run: 1.0 for run, state in ended.items() if state == "done"}
        done = sum(self._words[run] * (share - first.get(run, 0.0)) for run, share in shares.items())
        if not done or ("done" not in ended.values() and elapsed < MEASURED_SECONDS):
            return None
        rest = [words * (1 - shares.get(run, 0.0)) for run, words in enumerate(self._words) if run not in ended]
        return max([sum(rest) * elapsed / done, *(state.left or 0.0 for state in self._states.values())])

    def _left_in_words(self) -> str:
        left = self.left()
        return f"about {clock(left)} left" if left else ""

    def _at_work(self) -> list[tuple[int, State]]:
        return sorted(self._states.items(), key=lambda one: one[0])

    def _summary(self) -> str:
        failed = sum(one.code != 0 for one in self.ended)
        done = f"{len(self.ended) - failed} of {len(self.names)} runs done"
        elapsed = clock(time.monotonic() - self._began)
        failures = f"{failed} failed" if failed else ""
        return " · ".join(filter(None, [done, failures, elapsed, self._left_in_words()]))

    def _drawing(self, width: int) -> Group:
        """Return a summary and one row per active run."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        rows = Table.grid(expand=True, padding=(0, 1, 0, 0))
        rows.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        shown = 2 + (width >= LEFT_WIDTH) + (width >= RATE_WIDTH)
        for justify in ("left", "right", "right", "right")[:shown]:
            rows.add_column(justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
        for run, state in self._at_work():
            known = (state.what, state.percent, clock(state.left) if state.left is not None else "", state.speed)
            rows.add_row(*map(Text, (self.names[run], *known[:shown])))
        return Group(Text(self._summary(), "bold", no_wrap=True, overflow="ellipsis"), rows)

    def print_table(self) -> None:
        """If there are several runs, print their table and the names of the failed ones."""
        from rich.console import Console
        from rich.text import Text

        if len(self.names) < 2:
            return
        console = Console(highlight=False, width=None if sys.stdout.isatty() else 80)
        if any(one.code == 0 for one in self.ended):
            print_table(console, self.table(), ("words", "perplexity", "time"))
        for one in self.ended:
            if one.code:
                console.print(Text(f"{one.state}: {self.names[one.run]}"))  # the reason was printed above

    def table(self) -> Table:
        """Return a table of the finished runs, sorted by accuracy and then by perplexity, best first."""
        from rich.text import Text

        done = sorted((one for one in self.ended if not one.code), key=_by_result)
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
        if len(done) > MOST_ROWS:
            table.caption = Text(f"and {len(done) - MOST_ROWS:,} more runs. To see all, run python -m analysis.")
        return table


def _by_result(ended: Ended) -> tuple[float, float, int]:
    accuracy, perplexity = ended.result.accuracy, ended.result.perplexity
    inf = float("inf")
    return inf if accuracy is None else -accuracy, inf if perplexity is None else perplexity, ended.run


_SINGLE = ("model", "corpus", "sample.size", "seed")  # keys whose values name the only run of a sweep


def run_names(points: Sequence[Sequence[str]], units: Sequence[str]) -> list[str]:
    """Name the runs of a sweep after the overrides in which they differ.

    Args:
        points: the overrides of each run
        units: what sample.size counts in each run, such as "words"
    """
    alike = set.intersection(*map(set, points)) if len(points) > 1 else set()
    names = []
    for number, (point, unit) in enumerate(zip(points, units, strict=True)):
        named = [one for one in point if one not in alike and (len(points) > 1 or key_of(one) in _SINGLE)]
        names.append(", ".join(_in_words(one, unit) for one in named) or f"run {number + 1}")
    return names


def _in_words(override: str, unit: str) -> str:
    key, value = key_of(override), override.partition("=")[2].strip("'\"")
    if key == "sample.size":
        return f"{value} {unit}"
    if key == "seed":
        return f"seed {value}"
    return f"{key.rpartition('.')[2]}={value}" if "." in key else value
