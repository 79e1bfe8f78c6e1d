"""Helpers that the tests of several rooms share: simulated studies and models, damaged files, commands, a browser."""

from pathlib import Path

ROOT = Path(__file__).parents[2]  # root of the checkout
# Pages of the documentation that somebody writes; docs/reference.py makes the others.
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "reference")]
