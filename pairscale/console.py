"""Messages of commands on standard error."""


def say(text: str, label: str = "", style: str = "") -> None:
    """Print a line, whole and as it is (no markup), behind `label`, which has a `style` on a terminal."""
    from rich.console import Console  # here, as most modules that may say something are silent
    from rich.text import Text

    line = [Text(label, style)] if label else []
    Console(stderr=True, highlight=False).print(*line, Text(text), soft_wrap=True)
