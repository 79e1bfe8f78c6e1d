"""Threads, and memory that a process keeps, in a process of its own: both last as long as it does."""

import subprocess
import sys
from pathlib import Path

PAGES = """
import resource
from types import SimpleNamespace

import torch

from train.cpu import set_up_cpu


def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**26)  # 256 MB, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


given_back = sum(faults() for _ in range(4))
set_up_cpu(SimpleNamespace(threads=1))
for _ in range(16):  # until the memory is in one piece: each array is asked for with some bytes more, to be aligned
    faults()
print(torch.get_num_threads(), given_back, sum(faults() for _ in range(4)))
"""


def test_freed_memory_is_kept():
    """An array of 256 MB has 65,536 pages (fewer where the system takes large ones): few are asked for again."""
    done = subprocess.run(
        [sys.executable, "-c", PAGES], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    threads, given_back, kept = map(int, done.stdout.split())
    assert threads == 1
    assert kept < given_back / 2
