"""Progress of long work on standard error: a bar on a terminal, a line every half minute elsewhere."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pairscale.sizes import clock

T = TypeVar("T")

BAR_SECONDS = 0.2
PLAIN_SECONDS = 30  # between lines where the output is no terminal
REPORTED_SECONDS = 10  # shorter work needs no line at its end


class Share:
    """Share of an input read so far, 0 to 1, if its size is known only in bytes; its reader calls it."""

    value = 0.0

    def __call__(self, value: float) -> None:
        self.value = value


def with_progress(steps: Iterable[tuple[int, T]], what: str, total: int | Share, unit: str) -> Iterator[T]:
    """Yield the values of (advance, value) pairs, showing how far they are, the rate, and the time left.

    total: in `unit`s, or the share of the input read so far, from which it is estimated.
    """
    console = Console(stderr=True, highlight=False, markup=False)
    on_terminal = console.is_terminal
    started = printed = time.monotonic()
    done = 0
    bar = Progress(
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,.0f} {task.fields[unit]} · {task.fields[rate]}/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not on_terminal,
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=None, unit=unit, rate="")
        for advance, value in steps:
            yield value
            done += advance
            now = time.monotonic()
            if now - printed < (BAR_SECONDS if on_terminal else PLAIN_SECONDS):
                continue
            printed = now
            rate = done / max(now - started, 1e-9)
            expected = total if isinstance(total, int) else done / total.value if total.value else None
            bar.update(task, completed=done, total=expected, rate=f"{rate:,.0f}")
            if not on_terminal:
                left = f", {(expected - done) / rate:,.0f} s left" if expected else ""
                console.print(f"{what}: {done:,} {unit}, {rate:,.0f}/s{left}", soft_wrap=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a line for work without countable steps, the time it took and, on a terminal, a clock beside it."""
    console = Console(stderr=True, highlight=False, markup=False)
    started = time.monotonic()
    if not console.is_terminal:
        console.print(f"{what} ...", soft_wrap=True)
    columns = SpinnerColumn(), TextColumn("{task.description}", style="bold", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as spinner:
        spinner.add_task(what, total=None)
        yield
    if time.monotonic() - started > REPORTED_SECONDS:
        console.print(f"{what}: done in {clock(time.monotonic() - started)}", soft_wrap=True)
