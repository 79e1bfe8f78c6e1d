"""Device, threads and precision of a process, and the memory that it keeps."""

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
    """Return "cuda" or "cpu" (no other has float64, for sums). Raises ConfigError if fewer than `needed` GPUs exist."""
    if trainer.accelerator == "cpu":
        return "cpu"
    import torch

    gpus = torch.cuda.device_count()
    if needed > 1 and gpus < needed:
        raise ConfigError(
            f"trainer.devices={needed}: {gpus} GPUs are available; trainer.accelerator=cpu takes processes instead"
        )
    if trainer.accelerator == "gpu" and not gpus:
        raise ConfigError("trainer.accelerator=gpu: no CUDA GPU is available; auto and cpu take the CPU")
    return "cuda" if gpus else "cpu"


def takes_gpu(config: RunConfig) -> bool:
    """Return True if a run computes on a GPU where there is one."""
    return config.trainer.accelerator != "cpu" and not config.model.counted


def threads_for(trainer: TrainerConfig, parameters: int | None, recorded: int | None = None, processes: int = 1) -> int:
    """Return the number of threads to compute in.

    It is `trainer.threads`, else that `recorded` of a resumed run, whose bits depend on it, else one for each
    PARAMETERS_PER_THREAD of the model (None: no limit), within the idle cores and OMP_NUM_THREADS. Threads wait for
    each other in every step, so one that shares its core delays all: beside a busy process a small model in two
    threads nearly stands still, in one it loses a fifth. Several `processes` (train/loop/ranks.py) divide all cores.
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
    """Compute in the number of threads of `threads_for`, and keep freed memory.

    glibc would return arrays of hundreds of MB at once, and each step wait for the same pages to be zeroed again.
    """
    import torch

    torch.set_num_threads(threads_for(trainer, parameters, recorded, processes))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "gnu_get_libc_version"):
            if not libc.mallopt(M_MMAP_THRESHOLD, 2**31 - 1):  # an older glibc takes 32 MB at most
                libc.mallopt(M_MMAP_MAX, 0)
            libc.mallopt(M_TRIM_THRESHOLD, -1)  # never


def set_up_gpu(bf16: bool) -> None:
    """Compute cuDNN's layers (LSTMs) in float32, or with `bf16` in TF32, reproducibly; call before cuBLAS is used."""
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.allow_tf32 = bf16


def bf16_warning(config: RunConfig) -> str:
    """Return a warning if a run computes in bf16 on a CPU that has no instructions for it; "" otherwise."""
    if config.precision != "bf16" or config.model.counted or device_of(config.trainer) != "cpu":
        return ""
    from train.models.base import cpu_has_bf16

    if cpu_has_bf16():
        return ""
    return (
        "precision=bf16: this CPU has no instructions for it, and takes many times as long as with precision=fp32, "
        "which is another run"
    )


@contextmanager
def without_gradients(device: torch.device, bf16: bool) -> Iterator[None]:
    """Compute without gradients, products in bfloat16 or float32; afterwards `set_up_gpu` is as before."""
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
    """Raise RunError if a GPU has not enough memory, in one line that ends with the remedy `otherwise`."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"the GPU has not enough memory ({reason}); {otherwise}") from error
