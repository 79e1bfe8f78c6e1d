"""A page in headless Chromium: what it became, and what it complained of."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Opened:
    """The page's HTML after its scripts ran, and the messages of its console."""

    html: str
    console: list[str]

    @property
    def charts(self) -> int:
        """Charts that were drawn."""
        return len(re.findall(r'<svg[^>]*class="marks"', self.html))


def open_page(chromium: str, path: Path, profile: Path, width: int = 1280) -> Opened:
    """Open a file; `profile`: a folder for the browser, so that two at once do not meet."""
    command = [
        chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom",
        "--virtual-time-budget=20000", f"--window-size={width},2000", f"--user-data-dir={profile}", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    return Opened(done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line])
