"""Helpers that the tests of several rooms share: simulated studies and models, damaged files, commands, a browser."""

from pathlib import Path

ROOT = Path(__file__).parents[2]  # root of the checkout
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]  # pages of the documentation
