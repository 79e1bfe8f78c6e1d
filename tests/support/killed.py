"""Training that is killed after some checkpoints."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from pairscale.command.compose import compose
from tests.support.commands import Command
from tests.support.small_runs import for_training
from train.runs.folder import RunFolder


def train_and_kill(
    checkpoints: int, arguments: list[str], before: Callable[[Command], None] = lambda _: None
) -> RunFolder:
    """Start `python -m train`, kill it after so many checkpoints, return its run; `before` gets the living process."""
    folder = RunFolder.of(compose("train", arguments))
    process = Command("train", *for_training(arguments))
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
    """Return the process ids of the children."""
    return [int(child) for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
