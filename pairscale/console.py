"""Messages of commands on standard error."""

import sys


def say(text: str, label: str = "", style: str = "") -> None:
    """Print a line, whole and as it is (no markup), behind `label`, which has a `style` on a terminal."""
    from rich.console import Console  # here, as most modules that may say something are silent
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    with console.capture() as line:
        console.print(*([Text(label, style)] if label else []), Text(text), soft_wrap=True)
    # Not printed by `console`: a progress bar replaces sys.stderr, so that lines stand above it.
    print(line.get(), end="", file=sys.stderr, flush=True)
