"""Messages of commands on standard error, and results on standard output."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # rich is imported where something is printed, so that --help and silent commands start sooner
    from rich.console import Console


def replace_unprintable() -> None:
    """Print "?" for characters that the encoding of standard output or error lacks, where Python would raise."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # others, such as a notebook's, have no encoding
            stream.reconfigure(errors="replace")


def print_text(console: Console, text: str, label: str = "", style: str = "") -> None:
    """Print `text` as it is, after a label in a style if one is given.

    A terminal breaks it between words, never inside a number; words, such as paths, and lines in a file stay whole.
    """
    from rich.text import Text

    parts = [*([Text(label, style)] if label else []), Text(text, "" if label else style)]
    console.print(*parts, soft_wrap=not console.is_terminal, overflow="ignore", crop=False)


def say(text: str, label: str = "", style: str = "") -> None:
    """Print a message to standard error, `label` before it in `style`."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with console.capture() as line:
        print_text(console, text, label, style)
    # Not printed by `console`: a view of progress replaces sys.stderr, so that lines stand above it.
    print(line.get(), end="", file=sys.stderr, flush=True)
