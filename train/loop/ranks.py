"""One run on several devices: a process for each, its *rank*, and Lightning's DDP between them.

The columns of a step are divided evenly: each rank reads its own and carries their state, and DDP averages the
gradients, so that a step has the same words as on one device. Rank 0 is the process that the user started; it
validates, exports and writes all files while the others wait. They end when it does, however that happens.
"""

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
END_SECONDS = 60  # for the other ranks to end after rank 0


@dataclass(frozen=True)
class Ranks:
    """This process among those of its run; alone, everything here is the identity."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """True on the rank that writes files."""
        return self.rank == 0

    def from_first(self, compute: Callable[[], T]) -> T:
        """Return on all ranks what `compute` returns on rank 0; the others do not call it."""
        if self.size == 1:
            return compute()
        values: list[Any] = [compute() if self.first else None]
        distributed.broadcast_object_list(values)
        value: T = values[0]
        return value

    def gathered(self, value: T) -> list[T]:
        """Return the values of all ranks, by rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return values

    def summed(self, value: Tensor) -> Tensor:
        """Return the sum over all ranks."""
        total = value.clone()
        if self.size > 1:
            distributed.all_reduce(total)
        return total


@contextmanager
def other_ranks(config: RunConfig) -> Iterator[Ranks]:
    """Start ranks 1 to N-1 on this machine, by its environment as Lightning would; end them with the block."""
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
                started_by("train.rank"), stdin=subprocess.PIPE, env=environment() | meeting | {"LOCAL_RANK": str(rank)}
            )
            started.append(process)
            assert process.stdin is not None
            pickle.dump(config, process.stdin)
            process.stdin.flush()  # left open: the other rank ends when it closes
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
