"""Helpers that the tests of several rooms share: simulated studies and models, damaged files, commands, a browser."""

import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]  # root of the checkout
# Pages of the documentation that somebody writes; docs/reference.py makes the others.
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "reference")]


def wrapped(text: str, indent: str = "") -> str:
    """Return a paragraph of a page in lines of 124 characters."""
    return textwrap.fill(text, 124, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
