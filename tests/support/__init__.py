"""What the tests of several rooms share: simulated studies and models, damaged files, commands and where they run."""

from pathlib import Path

ROOT = Path(__file__).parents[2]  # of the checkout
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]  # of the documentation
