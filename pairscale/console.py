"""Messages of commands on standard error, and results on standard output."""

import sys


def say(text: str, label: str = "", style: str = "") -> None:
    """Print a line, whole and as it is (no markup), behind `label`, which has a `style` on a terminal."""
    from rich.console import Console  # here, as most modules that may say something are silent
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    with console.capture() as line:
        parts = [*([Text(label, style)] if label else []), Text(text)]
        # A terminal breaks lines between words; words, such as paths, and lines in a file stay whole.
        console.print(*parts, soft_wrap=not console.is_terminal, overflow="ignore", crop=False)
    # Not printed by `console`: a view of progress replaces sys.stderr, so that lines stand above it.
    print(line.get(), end="", file=sys.stderr, flush=True)
