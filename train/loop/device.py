"""Where a process computes, in how many threads and with numbers of how many bits; freed memory that it keeps."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pairscale.errors import ConfigError, RunError
from pairscale.machine import available_cores, granted_threads, idle_cores
from train.config import RunConfig, TrainerConfig

if TYPE_CHECKING:
    import torch

PARAMETERS_PER_THREAD = 10_000_000  # a smaller model's steps are too short to be shared out (tests/bench/neighbour.py)
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # mallopt(3)


def device_of(trainer: TrainerConfig, needed: int = 1) -> str:
    """ "cuda" or "cpu"; no other device has the double precision that sums are made in.

    Raises ConfigError where GPUs are asked for and there are fewer than `needed`.
    """
    if trainer.accelerator == "cpu":
        return "cpu"
    import torch

    gpus = torch.cuda.device_count()
    if needed > 1 and gpus < needed:
        raise ConfigError(
            f"trainer.devices={needed}: there are {gpus} GPUs here; trainer.accelerator=cpu takes processes instead"
        )
    if trainer.accelerator == "gpu" and not gpus:
        raise ConfigError("trainer.accelerator=gpu: there is no CUDA GPU here; auto or cpu takes the CPU then")
    return "cuda" if gpus else "cpu"


def takes_gpu(config: RunConfig) -> bool:
    """True if a run computes on a GPU where there is one."""
    return config.trainer.accelerator != "cpu" and not config.model.counted


def threads_for(trainer: TrainerConfig, parameters: int | None, recorded: int | None = None, processes: int = 1) -> int:
    """Threads to compute in: `trainer.threads`; else those `recorded` of a run that goes on, whose bits they make.

    Else one for each PARAMETERS_PER_THREAD of the model (None: unknown, as many as there may be), of the cores that are
    idle and of what OMP_NUM_THREADS grants. Threads wait for each other in every step, so that one which has to share
    its core holds up all of them: in two threads a small model nearly stands still beside a busy process, in one it
    loses a fifth. `processes` that share the work (train/loop/ranks.py) come to one number without looking: they share
    all cores.
    """
    if trainer.threads or recorded:
        return int(trainer.threads or recorded or 1)
    most = granted_threads() or available_cores()
    if parameters is not None:
        most = min(most, max(1, parameters // PARAMETERS_PER_THREAD))
    if most == 1:
        return 1
    return min(most, max(1, available_cores() // processes) if processes > 1 else idle_cores())


def set_up_cpu(
    trainer: TrainerConfig, parameters: int | None = None, recorded: int | None = None, processes: int = 1
) -> None:
    """Compute in as many threads as `threads_for` says, and keep freed memory.

    A training step allocates arrays of hundreds of MB and frees them again. glibc gives such arrays back to the system
    at once, and the next step then waits for the same pages to be zeroed: with a vocabulary of 50,000 words and bf16 a
    quarter of the step. Other C libraries do as they do.
    """
    import torch

    torch.set_num_threads(threads_for(trainer, parameters, recorded, processes))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "gnu_get_libc_version"):
            if not libc.mallopt(M_MMAP_THRESHOLD, 2**31 - 1):  # of an older glibc: 32 MB at most
                libc.mallopt(M_MMAP_MAX, 0)
            libc.mallopt(M_TRIM_THRESHOLD, -1)  # never


def set_up_gpu(bf16: bool) -> None:
    """On a GPU, layers of cuDNN (LSTMs) take float32 as it is, or in TF32's ten bits where `bf16` is asked for.

    They also give the same numbers each time: cuBLAS does, given a workspace before it is first used.
    """
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.allow_tf32 = bf16


@contextmanager
def without_gradients(device: torch.device, bf16: bool) -> Iterator[None]:
    """To score: no gradients, products of bfloat16 or of float32. What `set_up_gpu` chose is there again afterwards."""
    import torch

    before = torch.backends.cudnn.allow_tf32
    set_up_gpu(bf16)
    try:
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


@contextmanager
def enough_memory(otherwise: str) -> Iterator[None]:
    """Raises RunError, in one line that says what to do `otherwise`, where a GPU has not enough memory."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        told = " ".join(str(error).split())[:200]
        raise RunError(f"the GPU has not enough memory ({told}); {otherwise}") from error
