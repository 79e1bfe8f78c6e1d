"""Provide helpers that several test folders share, such as simulated studies, small models, commands and a browser."""

import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]  # root of the checkout
# The documentation's pages that are written by hand. docs/reference.py generates the others.
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "reference")]


def wrapped(text: str, indent: str = "") -> str:
    """Wrap a paragraph of a page into lines of at most 124 characters."""
    return textwrap.fill(text, 124, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
