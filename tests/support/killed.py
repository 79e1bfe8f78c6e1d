"""Training in a process of its own that is killed once it has written so many checkpoints."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from pairscale.command.compose import compose
from tests.support.commands import Command
from train.runs.folder import RunFolder


def train_and_kill(
    checkpoints: int, arguments: list[str], before: Callable[[Command], None] = lambda _: None
) -> RunFolder:
    """The run of `python -m train` with `arguments`, after its SIGKILL; `before` sees the process while it lives."""
    folder = RunFolder.of(compose("train", arguments))
    process = Command("train", *arguments)
    seen: set[Path] = set()
    while process.code is None and len(seen) < checkpoints:
        seen |= set(folder.checkpoints)
        time.sleep(0.001)
    before(process)
    process.kill(signal.SIGKILL)
    process.wait()
    assert not folder.done, "the run ended before it could be killed"
    return folder


def children_of(process: Command) -> list[int]:
    """Process ids."""
    return [int(child) for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
