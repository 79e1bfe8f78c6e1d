"""Small models that train side by side, as a sweep starts them, compared with one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import SimpleNamespace

import torch

from tests.bench.training import PRECISIONS, step
from tests.bench.turns import OURS, Case, repeated
from train.loop.device import set_up_cpu

ALONE = "one at a time"
PER_GPU = (3, 6)


def packed_cases(models: Mapping[str, int | None], vocabulary: int) -> Iterator[Case]:
    """Yield a case for each model, precision and number of runs: PER_GPU on a GPU, else one on each core."""
    cores = len(os.sched_getaffinity(0))
    for model, batch in models.items():
        for precision in PRECISIONS:
            for runs in PER_GPU if torch.cuda.is_available() else (cores,):
                ways = {
                    OURS: SideBySide(runs, max(1, cores // runs), (model, vocabulary, batch, precision == "bf16")),
                    ALONE: SideBySide(1, cores, (model, vocabulary, batch, precision == "bf16")),
                }
                yield Case(f"train {runs} {model} side by side, {precision}", "tokens", ways)


class SideBySide:
    """A way (tests/bench/turns.py): `runs` processes train at once; units are tokens of all of them."""

    def __init__(self, runs: int, threads: int, training: tuple[str, int, int | None, bool]):
        """Start the processes; `training` are arguments of tests.bench.training.step."""
        context = get_context("spawn")
        pipes = [context.Pipe() for _ in range(runs)]
        self.connections = [end for end, _ in pipes]
        self.processes = [
            context.Process(target=_train, args=(other_end, threads, training), daemon=True) for _, other_end in pipes
        ]
        for process, (_, other_end) in zip(self.processes, pipes, strict=True):
            process.start()
            other_end.close()  # so that a dead process gives EOFError instead of endless waiting

    def __call__(self, seconds: float) -> tuple[float, float]:
        """Return the tokens of all in a second; each works for about `seconds`."""
        for connection in self.connections:
            connection.send(seconds)
        done = [connection.recv() for connection in self.connections]
        return sum(tokens / spent for tokens, spent in done), 1.0

    def close(self) -> None:
        for connection, process in zip(self.connections, self.processes, strict=True):
            connection.close()
            process.join()


def _train(connection: Connection, threads: int, training: tuple[str, int, int | None, bool]) -> None:
    set_up_cpu(SimpleNamespace(threads=threads))  # type: ignore[arg-type]
    way = repeated(step(*training))
    try:
        while True:
            connection.send(way(connection.recv()))
    except EOFError:  # the other end has closed
        return
