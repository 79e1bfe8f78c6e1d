"""One run on several devices: a process for each of them, its *rank*, and Lightning's DDP between them.

A step's columns are shared out evenly: each rank reads its own and carries their state, DDP averages the gradients, and
so the words of a step are those of one device. Rank 0 is the process that was started; it validates, exports and writes
all files, and the others wait. They end when it does, however that happens.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import Tensor, distributed

from pairscale import environment, started_by
from train.config import RunConfig

T = TypeVar("T")
END_SECONDS = 60  # that the other ranks get to end after rank 0


@dataclass(frozen=True)
class Ranks:
    """This process among those of its run; alone, everything here is the identity."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes files."""
        return self.rank == 0

    def from_first(self, compute: Callable[[], T]) -> T:
        """What `compute` returns on rank 0, on all ranks; the others do not call it."""
        if self.size == 1:
            return compute()
        values: list[Any] = [compute() if self.first else None]
        distributed.broadcast_object_list(values)
        found: T = values[0]
        return found

    def gathered(self, value: T) -> list[T]:
        """The values of all ranks, by rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return values

    def summed(self, value: Tensor) -> Tensor:
        """The sum over all ranks."""
        total = value.clone()
        if self.size > 1:
            distributed.all_reduce(total)
        return total


@contextmanager
def other_ranks(config: RunConfig) -> Iterator[Ranks]:
    """Start ranks 1 to N-1 of a run on this machine, and end them with the block; nothing to do for one device.

    Lightning finds in the environment that it need not start them itself: it would start the whole command again.
    """
    size = config.trainer.devices
    if size == 1:
        yield Ranks()
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size), "NODE_RANK": "0"}
    before = dict(os.environ)
    started = []
    try:
        for rank in range(1, size):
            process = subprocess.Popen(
                started_by("train.rank"),
                stdin=subprocess.PIPE,
                env=environment() | meeting | {"LOCAL_RANK": str(rank)},
            )
            started.append(process)
            assert process.stdin is not None
            pickle.dump(config, process.stdin)
            process.stdin.flush()  # left open: that it is closed tells the other that we are gone
        os.environ.update(meeting | {"LOCAL_RANK": "0"})
        yield Ranks(0, size)
    finally:
        os.environ.clear()
        os.environ.update(before)
        if distributed.is_initialized():
            distributed.destroy_process_group()  # the next run of a sweep makes its own
        for process in started:
            assert process.stdin is not None
            process.stdin.close()
        for process in started:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
