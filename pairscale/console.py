"""Print messages to standard error, without interpreting their text as markup."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # functions import rich when they print, so that --help starts sooner
    from rich.console import Console


def replace_unprintable() -> None:
    """Print "?" for characters that standard output or error cannot encode, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # other streams, such as a notebook's, have no encoding
            stream.reconfigure(errors="replace")


def print_text(console: Console, text: str, label: str = "", style: str = "") -> None:
    """Print `text` as it is, after an optional label in a style.

    Long lines are broken between words in a terminal, and not at all in a file.
    """
    from rich.text import Text

    parts = [*([Text(label, style)] if label else []), Text(text, "" if label else style)]
    console.print(*parts, soft_wrap=not console.is_terminal, overflow="ignore", crop=False)


def say(text: str, label: str = "", style: str = "") -> None:
    """Print a message to standard error, after an optional label in a style."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with console.capture() as line:
        print_text(console, text, label, style)
    # `console` does not print it itself, because a progress display replaces sys.stderr to keep lines above itself.
    print(line.get(), end="", file=sys.stderr, flush=True)
