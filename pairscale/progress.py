"""Progress of this process: what it does, how far it is, its rate and the time left; with_progress is all most need.

A terminal shows it in place, on standard error; elsewhere it is a line a minute.
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

if TYPE_CHECKING:  # rich is imported where something is shown, so that --help and silent commands start sooner
    from rich.console import Console, Group

T = TypeVar("T")

REPORTED_SECONDS = 10  # shorter work needs no line at its end
MEASURED_SECONDS = 5.0  # of work, from which on its rate tells the time left: first steps are slower, or faster
LINE_SECONDS = 60.0  # between lines where the output is no terminal
BAR_WIDTH = 24
CTRL_C = 2  # characters that a terminal echoes behind the last line, which must not break it


@dataclass(frozen=True)
class State:
    """What is done at a moment. share: 0 to 1; rate: units a second; left: seconds of this work; None: unknown."""

    what: str
    share: float | None = None
    completed: float = 0.0
    unit: str = ""
    rate: float | None = None
    left: float | None = None
    detail: str = ""

    def parts(self) -> list[str]:
        """Return what is known, in words: "45%", "12,300 words/s", "1 min 05 s left"."""
        count = f"{self.completed:,.0f} {self.unit}" if self.completed and self.share is None else ""
        return [part for part in (self.percent, count, self.speed, self.left and f"{clock(self.left)} left") if part]

    @property
    def percent(self) -> str:
        """The share, "" if unknown."""
        return f"{self.share:.0%}" if self.share is not None else ""

    @property
    def speed(self) -> str:
        """The rate with its unit, "" if unknown."""
        return f"{self.rate:,.{0 if self.rate >= 10 else 1}f} {self.unit}/s" if self.rate else ""


@dataclass(frozen=True)
class Result:
    """The result of a run. words: distinct ones that it trained on; accuracy: 0 to 1; perplexity: per word.

    new: False if the run was done already.
    """

    words: int | None = None
    accuracy: float | None = None
    perplexity: float | None = None
    note: str = ""
    new: bool = False

    def text(self) -> str:
        """Return it in words."""
        parts = [f"accuracy {100 * self.accuracy:.1f}%"] if self.accuracy is not None else []
        parts += [f"perplexity {self.perplexity:,.1f}"] if self.perplexity is not None else []
        return ", ".join([*parts, *filter(None, [self.note])])


class Activity:
    """Long work, shown as long as its block lasts. `completed` of `total` units are done, and may be set at any time.

    total: in units; None if it is unknown.
    """

    def __init__(self, what: str, total: float | None = None, unit: str = "", completed: float = 0.0):
        self.what, self.total, self.unit, self.completed = what, total, unit, completed
        self.detail = ""
        self._first = completed
        self._began = time.monotonic()
        self._stack = ExitStack()

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    @property
    def state(self) -> State:
        """What is known of it now."""
        done, seconds = self.completed - self._first, self.seconds
        rate = done / seconds if done > 0 and seconds > 0 else None
        total = self.total
        share = min(1.0, self.completed / total) if total else None
        measured = seconds >= MEASURED_SECONDS
        left = max(0.0, total - self.completed) / rate if measured and total and rate else None
        return State(self.what, share, self.completed, self.unit, rate, left, self.detail)

    def begin(self) -> None:
        """Show it from now on."""
        self._began = time.monotonic()
        _process.activities.append(self)
        self._stack.enter_context(shown())

    def end(self) -> None:
        """Show it no longer."""
        self._stack.close()
        _process.activities.remove(self)
        _process.idle = "preparing"

    def __enter__(self) -> Activity:
        self.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()


class _Process:
    """This process: what it is doing, innermost last, the result of the run that it is at, and what ends its view."""

    def __init__(self) -> None:
        self.activities: list[Activity] = []
        self.idle = "starting"
        self.result = Result()
        self.view: ExitStack | None = None


_process = _Process()


def state_now() -> State:
    """Return what this process is doing."""
    innermost = _process.activities[-1:]  # a copy: another thread looks
    return innermost[0].state if innermost else State(_process.idle)


def report_result(**values: Any) -> None:
    """Set fields of the result of the run that this process is at."""
    _process.result = replace(_process.result, **values)


def result_so_far() -> Result:
    """Return the result of the run that this process is at."""
    return _process.result


def take_result() -> Result:
    """Return the result of the run that this process was at, and begin with an empty one."""
    result, _process.result, _process.idle = _process.result, Result(), "starting"
    return result


@contextmanager
def shown(title: str = "", show: bool = True) -> Iterator[None]:
    """Show what this process does, under a title, until the block ends; do nothing within such a block.

    What is printed meanwhile stands above it.
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
    """End what is shown, also where a generator that an error has left still holds it open."""
    if _process.view is not None:
        _process.view.close()


def in_a_line(title: str, state: State) -> str:
    """Return what is done in a line: `training, 45%, 12,300 words/s`, after a title if there is one."""
    name = f"{title}: " if title else ""
    return name + ", ".join([state.what, *state.parts(), *filter(None, [state.detail])])


def drawing(title: str, width: int) -> Group:
    """Return what this process does as three lines for a terminal: title, bar, details.

    There are always three: as rich draws in a thread of its own, a view that grows could erase lines that are printed.
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
    """Return standard error as a terminal that can draw in place; None if it is another thing."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    return console if console.is_terminal and not console.is_dumb_terminal else None


def in_place(console: Console) -> dict[str, Any]:
    """Return the arguments of rich's Live and Progress with which they leave nothing, and spare output to files."""
    return {"console": console, "transient": True, "redirect_stdout": sys.stdout.isatty()}


@contextmanager
def every(seconds: float, action: Callable[[], None]) -> Iterator[None]:
    """Call `action` in a thread each time that `seconds` have passed, until the block ends."""
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
    """Yield the values of (advance, value) pairs, showing how far they are of `total`, the rate, and the time left."""
    with Activity(what, total, unit) as activity:
        for advance, value in steps:
            yield value
            activity.completed += advance


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show work without countable steps, and print how long it took if that was long."""
    with Activity(what) as activity:
        yield
    if activity.seconds > REPORTED_SECONDS:
        say(f"{what}: done in {clock(activity.seconds)}")
