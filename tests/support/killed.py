"""Train runs, and kill them after some checkpoints."""

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
    """Run `python -m train`, call `before` with its process after some checkpoints, kill it, and return its run."""
    folder = RunFolder.of(compose("train", arguments))
    process = Command("train", *for_training(arguments))
    seen: set[Path] = set()
    while process.code is None and len(seen) < checkpoints:
        seen |= set(folder.checkpoints)
        time.sleep(0.001)
    before(process)
    process.kill(signal.SIGKILL)
    process.wait()
    assert not folder.done, "The run ended before it could be killed."
    return folder


def children_of(process: Command) -> list[int]:
    """Return the ids of a process's children."""
    return [int(child) for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
