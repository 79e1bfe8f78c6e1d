"""Progress of this process: what it does, how far it is, its rate and the time left; with_progress is all most need."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from pairscale.console import say
from pairscale.live import every, is_shown, shown
from pairscale.sizes import clock

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")

PROGRESS_FILE = "PAIRSCALE_PROGRESS"  # environment variable: the file in which a launcher follows this process
FILE_SECONDS = 1.0  # between versions of that file
REPORTED_SECONDS = 10  # shorter work needs no line at its end
MEASURED_SECONDS = 5.0  # of work, from which on its rate tells the time left: first steps are slower, or faster
BAR_WIDTH = 24


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
        share = f"{self.share:.0%}" if self.share is not None else ""
        count = f"{self.completed:,.0f} {self.unit}" if self.completed and self.share is None else ""
        return [part for part in (share, count, self.speed, self.left and f"{clock(self.left)} left") if part]

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


class Share:
    """Share of an input read so far, 0 to 1, if its size is known only in bytes; its reader calls it."""

    value = 0.0

    def __call__(self, value: float) -> None:
        self.value = value


class Activity:
    """Long work, shown as long as its block lasts. `completed` of `total` units are done, and may be set at any time.

    total: in units, or the share of the input read so far, from which it is estimated; None: unknown.
    """

    def __init__(self, what: str, total: float | Share | None = None, unit: str = "", completed: float = 0.0):
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
        if isinstance(total, Share):
            total = self.completed / total.value if total.value else None
        share = min(1.0, self.completed / total) if total else None
        measured = seconds >= MEASURED_SECONDS
        left = max(0.0, total - self.completed) / rate if measured and total and rate else None
        return State(self.what, share, self.completed, self.unit, rate, left, self.detail)

    def begin(self) -> None:
        """Show it from now on."""
        self._began = time.monotonic()
        _process.activities.append(self)
        self._stack.enter_context(shown(ProcessView("")))

    def end(self) -> None:
        """Show it no longer."""
        self._stack.close()
        _process.activities.remove(self)
        _process.idle = "preparing"

    def __enter__(self) -> Activity:
        self.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()


class _Process:
    """This process: what it is doing, innermost last, and the result of the run that it is at."""

    def __init__(self) -> None:
        self.activities: list[Activity] = []
        self.idle = "starting"
        self.result = Result()


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
    result, _process.result = _process.result, Result()
    return result


class ProcessView:
    """This process in two or three lines, under a title."""

    def __init__(self, title: str):
        self.title = title

    def drawing(self, width: int) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        state = state_now()
        bar = ProgressBar(1.0, state.share or 0.0, width=min(BAR_WIDTH, width // 4), pulse=state.share is None)
        what, rest = Text(state.what, "bold"), Text(" · ".join(state.parts()))
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_column(no_wrap=True, overflow="ellipsis")
        row.add_column()
        row.add_column(no_wrap=True, overflow="ellipsis")
        row.add_row(what, bar, rest)
        lines = [Text(text, no_wrap=True, overflow="ellipsis") for text in (self.title, state.detail) if text]
        return Group(*lines[:1], row, *lines[1:]) if self.title else Group(row, *lines)

    def line(self) -> str:
        state = state_now()
        name = f"{self.title}: " if self.title else ""
        return name + ", ".join([state.what, *state.parts(), *filter(None, [state.detail])])


@contextmanager
def run_shown(title: str, show: bool = True) -> Iterator[bool]:
    """Show the work on a run, unless a sweep that this process is at shows it; write it for a launcher that asks.

    Yield True if there is no such sweep, which would print the results as well.
    """
    path = os.environ.pop(PROGRESS_FILE, None)  # not for the processes that this one starts
    alone = not is_shown()
    with ExitStack() as stack:
        if path is not None:
            stack.callback(_write, Path(path))
            stack.enter_context(every(FILE_SECONDS, lambda: _write(Path(path))))
        if show:
            stack.enter_context(shown(ProcessView(title)))
        yield alone


def _write(path: Path) -> None:
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_text(json.dumps({"state": asdict(state_now()), "result": asdict(_process.result)}), "utf-8")
        temporary.replace(path)
    except OSError:  # a full disk: the run itself says so where it matters; here only the display stands still
        return


def read_progress(path: Path) -> tuple[State, Result]:
    """Return what a process that was started with PROGRESS_FILE is doing, and its result so far."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:  # it has just been started
        return State("starting"), Result()
    return State(**content["state"]), Result(**content["result"])


def with_progress(steps: Iterable[tuple[int, T]], what: str, total: int | Share, unit: str) -> Iterator[T]:
    """Yield the values of (advance, value) pairs, showing how far they are, the rate, and the time left.

    total: in `unit`s, or the share of the input read so far, from which it is estimated.
    """
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
