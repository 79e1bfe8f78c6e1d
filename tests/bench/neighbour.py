"""Training speed beside a busy process, by number of threads and waiting policy.

    python tests/bench/neighbour.py --models txl_tiny lstm_tiny lstm --rounds 5

Each way is a process of its own, and the ways take turns, as the load of a machine changes by the minute. The neighbour
is one process that never waits, with nice 10. "side by side" is one run with one thread for each core, as a sweep
starts them; its figure is the sum over the runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.packed import SideBySide
from tests.bench.training import PUBLISHED, TINY_VOCABULARY, VOCABULARY

SECONDS = 4.0
POLICIES = {"active": {"OMP_WAIT_POLICY": "ACTIVE"}, "default": {}, "passive": {"OMP_WAIT_POLICY": "PASSIVE"}}


@contextmanager
def neighbour() -> Iterator[None]:
    """Run one busy process during the block."""
    process = subprocess.Popen(["nice", "-n", "10", sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def way(model: str, runs: int, threads: int, policy: str) -> SideBySide:
    """Return processes that train; they read the policy when they import torch."""
    vocabulary = VOCABULARY if model in PUBLISHED else TINY_VOCABULARY
    before = dict(os.environ)
    os.environ.pop("OMP_WAIT_POLICY", None)
    os.environ.pop("OMP_NUM_THREADS", None)
    os.environ.update(POLICIES[policy])
    try:
        return SideBySide(runs, threads, (model, vocabulary, 8 if model in PUBLISHED else None, False))
    finally:
        os.environ.clear()
        os.environ.update(before)


def main() -> None:
    """Print a row for each way: median tokens per second alone and beside the neighbour, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["txl_tiny", "lstm_tiny"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--policies", nargs="+", default=["default", "passive"], choices=POLICIES)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    for model in arguments.models:
        ways = {"1 run, 1 thread": way(model, 1, 1, "default"), "side by side": way(model, cores, 1, "default")}
        for policy in arguments.policies:
            ways[f"1 run, {cores} threads, {policy}"] = way(model, 1, cores, policy)
        rates: dict[tuple[str, bool], list[float]] = {}
        for _ in range(arguments.rounds):
            for name, train in ways.items():
                rates.setdefault((name, False), []).append(train(SECONDS)[0])
                with neighbour():
                    rates.setdefault((name, True), []).append(train(SECONDS)[0])
        print(f"{model:<28}{'alone':>10}{'beside':>10}{'ratio':>8}   tokens/s, load {os.getloadavg()[0]:.1f}")
        for name, train in ways.items():
            alone, beside = median(rates[name, False]), median(rates[name, True])
            print(f"  {name:<26}{alone:>10,.0f}{beside:>10,.0f}{beside / alone:>8.2f}", flush=True)
            train.close()


if __name__ == "__main__":
    main()
