"""Show what this process is doing, how much is done, its rate and the time left. Most code only needs `with_progress`.

In a terminal, the display stays in place, on standard error. Elsewhere, one line per minute is printed.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pairscale.console import say
from pairscale.sizes import clock

if TYPE_CHECKING:  # functions import rich when they display something, so that --help starts sooner
    from rich.console import Console, Group

T = TypeVar("T")

REPORTED_SECONDS = 10  # work that took longer is reported when it ends
MEASURED_SECONDS = 5.0  # how long to measure before estimating the time left, because first steps vary
LINE_SECONDS = 60.0  # time between two lines if the output is not a terminal
BAR_WIDTH = 24
CTRL_C = 2  # width of the "^C" that a terminal adds to the last line


@dataclass(frozen=True)
class State:
    """The state of a process's work at one moment. Unknown values are None.

    `share` is from 0 to 1, `rate` in units per second, and `left` in seconds until this work is done.
    """

    what: str
    share: float | None = None
    completed: float = 0.0
    unit: str = ""
    rate: float | None = None
    left: float | None = None
    detail: str = ""

    def parts(self) -> list[str]:
        """Return the known values as texts, such as "45%", "12,300 words/s" and "1 min 05 s left"."""
        count = f"{self.completed:,.0f} {self.unit}" if self.completed and self.share is None else ""
        return [part for part in (self.percent, count, self.speed, self.left and f"{clock(self.left)} left") if part]

    @property
    def percent(self) -> str:
        """The share in percent, or "" if unknown."""
        return f"{self.share:.0%}" if self.share is not None else ""

    @property
    def speed(self) -> str:
        """The rate with its unit, or "" if unknown."""
        return f"{self.rate:,.{0 if self.rate >= 10 else 1}f} {self.unit}/s" if self.rate else ""


@dataclass(frozen=True)
class Result:
    """The result of a run: words of training text without repeats, accuracy (0 to 1), perplexity per word, and a note.

    `new` is False if the run was already done when the command started.
    """

    words: int | None = None
    accuracy: float | None = None
    perplexity: float | None = None
    note: str = ""
    new: bool = False

    def text(self) -> str:
        """Return the result in words, such as "accuracy 81.2%, perplexity 45.3"."""
        parts = [f"accuracy {100 * self.accuracy:.1f}%"] if self.accuracy is not None else []
        parts += [f"perplexity {self.perplexity:,.1f}"] if self.perplexity is not None else []
        return ", ".join([*parts, *filter(None, [self.note])])


class Activity:
    """A long piece of work that is displayed until its `with` block ends.

    Set `completed` to the number of finished units at any time. `total` is None if it is unknown.
    """

    def __init__(self, what: str, total: float | None = None, unit: str = "", completed: float = 0.0):
        self.what, self.total, self.unit, self.completed = what, total, unit, completed
        self.detail = ""
        self._first = completed
        self._began = time.monotonic()
        self._stack = ExitStack()

    @property
    def seconds(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self._began

    @property
    def state(self) -> State:
        """The current state of the work."""
        done, seconds = self.completed - self._first, self.seconds
        rate = done / seconds if done > 0 and seconds > 0 else None
        total = self.total
        share = min(1.0, self.completed / total) if total else None
        measured = seconds >= MEASURED_SECONDS
        left = max(0.0, total - self.completed) / rate if measured and total and rate else None
        return State(self.what, share, self.completed, self.unit, rate, left, self.detail)

    def begin(self) -> None:
        """Start displaying the work."""
        self._began = time.monotonic()
        _process.activities.append(self)
        self._stack.enter_context(shown())

    def end(self) -> None:
        """Stop displaying the work."""
        self._stack.close()
        _process.activities.remove(self)
        _process.idle = "preparing"

    def __enter__(self) -> Activity:
        self.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()


class _Process:
    """The activities of this process (innermost last), the result of its current run, and its open display."""

    def __init__(self) -> None:
        self.activities: list[Activity] = []
        self.idle = "starting"
        self.result = Result()
        self.view: ExitStack | None = None


_process = _Process()


def state_now() -> State:
    """Return what this process is doing."""
    innermost = _process.activities[-1:]  # a copy, because another thread calls this
    return innermost[0].state if innermost else State(_process.idle)


def report_result(**values: Any) -> None:
    """Set fields of the current run's result."""
    _process.result = replace(_process.result, **values)


def result_so_far() -> Result:
    """Return the current run's result."""
    return _process.result


def take_result() -> Result:
    """Return the result of the run that has ended, and start an empty one for the next run."""
    result, _process.result, _process.idle = _process.result, Result(), "starting"
    return result


@contextmanager
def shown(title: str = "", show: bool = True) -> Iterator[None]:
    """Display what this process does, under a title, until the block ends. Nested blocks have no effect.

    Anything printed meanwhile appears above the display.
    """
    if _process.view is not None or not show:
        yield
        return
    from rich.live import Live

    with ExitStack() as stack:
        _process.view = stack
        stack.callback(setattr, _process, "view", None)
        if console := terminal():
            width = console.width - CTRL_C
            stack.enter_context(Live(get_renderable=lambda: drawing(title, width), **in_place(console)))
        else:
            stack.enter_context(every(LINE_SECONDS, lambda: say(in_a_line(title, state_now()))))
        yield


def close_views() -> None:
    """Close the display, even if a generator that an error interrupted still keeps it open."""
    if _process.view is not None:
        _process.view.close()


def in_a_line(title: str, state: State) -> str:
    """Return a state in one line, such as `training, 45%, 12,300 words/s`, after an optional title."""
    name = f"{title}: " if title else ""
    return name + ", ".join([state.what, *state.parts(), *filter(None, [state.detail])])


def drawing(title: str, width: int) -> Group:
    """Draw what this process does as three lines for a terminal: title, bar and details.

    There are always three, because rich draws in its own thread, and a growing display could erase printed lines.
    """
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    state = state_now()
    row = Table.grid(padding=(0, 1, 0, 0))
    for wrap in (True, False, True):
        row.add_column(no_wrap=wrap, overflow="ellipsis")
    bar = ProgressBar(1.0, state.share or 0.0, width=min(BAR_WIDTH, width // 4), pulse=state.share is None)
    row.add_row(Text(state.what, "bold"), bar, Text(" · ".join(state.parts())))
    above, below = (Text(text, no_wrap=True, overflow="ellipsis") for text in (title, state.detail))
    return Group(above, row, below)


def terminal() -> Console | None:
    """Return a console for standard error, or None if it is not a terminal that can draw in place."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    return console if console.is_terminal and not console.is_dumb_terminal else None


def in_place(console: Console) -> dict[str, Any]:
    """Return arguments for rich's Live and Progress, so that they clean up and leave redirected output alone."""
    return {"console": console, "transient": True, "redirect_stdout": sys.stdout.isatty()}


@contextmanager
def every(seconds: float, action: Callable[[], None]) -> Iterator[None]:
    """Call `action` in a thread every `seconds` until the block ends."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            action()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def with_progress(steps: Iterable[tuple[int, T]], what: str, total: int, unit: str) -> Iterator[T]:
    """Yield the values of (advance, value) pairs, displaying the share of `total`, the rate and the time left."""
    with Activity(what, total, unit) as activity:
        for advance, value in steps:
            yield value
            activity.completed += advance


@contextmanager
def working(what: str) -> Iterator[None]:
    """Display work without countable steps. If it took long, print how long."""
    with Activity(what) as activity:
        yield
    if activity.seconds > REPORTED_SECONDS:
        say(f"{what}: done in {clock(activity.seconds)}")
