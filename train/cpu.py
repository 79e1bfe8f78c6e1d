"""How a process uses the CPU and its memory: threads, and freed memory that is kept for the next step."""

from __future__ import annotations

import ctypes
import sys

from train.config import TrainerConfig

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # mallopt(3)


def set_up_cpu(trainer: TrainerConfig) -> None:
    """Compute in `trainer.threads` threads, and keep freed memory.

    A training step allocates arrays of hundreds of MB and frees them again. glibc gives such arrays back to the system
    at once, and the next step then waits for the same pages to be zeroed: with a vocabulary of 50,000 words and bf16 a
    quarter of the step. Other C libraries do as they do.
    """
    import torch

    if trainer.threads:
        torch.set_num_threads(trainer.threads)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "gnu_get_libc_version"):
            if not libc.mallopt(M_MMAP_THRESHOLD, 2**31 - 1):  # of an older glibc: 32 MB at most
                libc.mallopt(M_MMAP_MAX, 0)
            libc.mallopt(M_TRIM_THRESHOLD, -1)  # never
