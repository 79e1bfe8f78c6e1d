"""Work in progress on standard error: redrawn in place on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pairscale.console import say

if TYPE_CHECKING:  # rich is imported where something is shown, so that --help and silent commands start sooner
    from rich.console import Console, RenderableType
    from rich.file_proxy import FileProxy

REDRAWS = 4  # a second, at most
LINE_SECONDS = 60.0  # between lines where the output is no terminal
CTRL_C = 2  # characters that a terminal echoes behind the last line, which must not break it


class View(Protocol):
    """Something to look at while it changes."""

    def drawing(self, width: int) -> RenderableType:
        """Return what a terminal of `width` characters shows now."""

    def line(self) -> str:
        """Return the same in a line."""


class _Drawn:
    """A view as rich asks for it: drawn anew each time."""

    def __init__(self, view: View, console: Console):
        self.view, self.console = view, console

    def __rich__(self) -> RenderableType:
        return self.view.drawing(self.console.width - CTRL_C)


class _Above(io.TextIOBase):
    """A stream whose text stands above the view, and is written while no other thread draws (`lock`).

    rich takes where the cursor stands when it begins to print, before it draws the view again and writes both. A view
    that another thread redraws in between, with more or fewer lines, leaves the cursor elsewhere: lines are erased.
    """

    def __init__(self, proxy: FileProxy, lock: threading.RLock) -> None:
        self._proxy, self._lock = proxy, lock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proxy, name)

    def write(self, text: str) -> int:
        """Write `text`; return the number of its characters."""
        with self._lock:
            self._proxy.write(text)
        return len(text)

    def flush(self) -> None:
        with self._lock:
            self._proxy.flush()

    def fileno(self) -> int:
        return self._proxy.fileno()

    def isatty(self) -> bool:
        return self._proxy.isatty()


@dataclass
class _Shown:
    """A view that is shown: what ends it, and True if it is redrawn in place."""

    stack: ExitStack
    redrawn: bool


_open: list[_Shown] = []  # one at most


def is_shown() -> bool:
    """Return True while a view is shown."""
    return bool(_open)


def is_redrawn() -> bool:
    """Return True while a view is redrawn in place, which shows the latest of all."""
    return any(one.redrawn for one in _open)


def close_views() -> None:
    """End what is shown, also where a generator that an error has left still holds it open."""
    for one in list(_open):
        one.stack.close()


@contextmanager
def shown(view: View) -> Iterator[None]:
    """Show `view` until the block ends; inside such a block, which shows the whole, do nothing.

    What is printed meanwhile, and what loggers write, stands above the view, whole.
    """
    if _open:
        yield
        return
    from rich.console import Console
    from rich.file_proxy import FileProxy
    from rich.live import Live

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    with ExitStack() as stack:
        redrawn = console.is_terminal and not console.is_dumb_terminal
        _open.append(_Shown(stack, redrawn))
        stack.callback(_open.clear)
        if redrawn:
            handlers = _stream_handlers()
            lock = threading.RLock()  # a signal handler may print while its own thread prints

            def redraw() -> None:
                with lock:
                    live.refresh()

            live = Live(
                _Drawn(view, console),
                console=console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            stack.enter_context(live)
            if sys.stdout.isatty():  # else it goes to a file, not above the view
                stack.enter_context(redirect_stdout(_Above(FileProxy(console, sys.stdout), lock)))
            stack.enter_context(redirect_stderr(_Above(FileProxy(console, sys.stderr), lock)))
            redraw()
            stack.enter_context(every(1 / REDRAWS, redraw))
            for handler, name in handlers:
                stack.callback(handler.setStream, handler.stream)
                handler.setStream(getattr(sys, name))
        else:
            stack.enter_context(every(LINE_SECONDS, lambda: say(view.line())))
        yield


def _stream_handlers() -> list[tuple[logging.StreamHandler[Any], str]]:
    """Return the handlers of loggers that write to standard output or error, and the name of their stream in `sys`."""
    known = [one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)]
    handlers = {handler for logger in (logging.root, *known) for handler in logger.handlers}
    streams = [handler for handler in handlers if isinstance(handler, logging.StreamHandler)]
    return [(one, name) for one in streams for name in ("stderr", "stdout") if one.stream is getattr(sys, name)]


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
