"""A stream whose text stands above a view of rich that is redrawn in place."""

import threading
from typing import IO

from rich.console import Console
from rich.file_proxy import FileProxy


class Above(FileProxy):
    """`file`, written above the view of `console` while no other thread draws (`lock`).

    rich takes where the cursor stands when it begins to print, before it draws the view again and writes both. A view
    that another thread redraws in between, with more or fewer lines, leaves the cursor elsewhere: lines are erased.
    """

    def __init__(self, console: Console, file: IO[str], lock: threading.RLock) -> None:
        super().__init__(console, file)
        self._lock = lock

    def write(self, text: str) -> int:
        """Write `text`; return the number of its characters."""
        with self._lock:
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with self._lock:
            super().flush()
