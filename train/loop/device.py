"""Set up a run's device, threads, precision and memory, and its processes if it uses several devices.

On several devices, a run has one process per device (a *rank*), and Lightning's DDP connects them. The columns of a
step are divided evenly. Each rank reads its own columns and carries their state. DDP averages the gradients, so a
step reads the same words as on one device. Rank 0 is the process that the user started. It validates, exports and
writes all files while the others wait. They end when it ends, however that happens.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pairscale import environment, started_by
from pairscale.errors import ConfigError, RunError
from pairscale.machine import available_cores, granted_threads, idle_cores
from train.config import RunConfig, TrainerConfig

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
END_SECONDS = 60  # how long the other ranks may take to end after rank 0

PARAMETERS_PER_THREAD = 10_000_000  # smaller models have steps too short to divide (docs/benchmarks.md)
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # mallopt(3)


def device_of(trainer: TrainerConfig, needed: int = 1) -> str:
    """Return "cuda" or "cpu". Other devices lack float64, which sums need.

    Raises ConfigError if a GPU is requested and there is none, or if several are needed and there are too few.
    """
    if trainer.accelerator == "cpu":
        return "cpu"
    import torch

    gpus = torch.cuda.device_count()
    if needed > 1 and gpus < needed:
        raise ConfigError(
            f"trainer.devices={needed}: this needs {needed} GPUs, but the machine has {gpus}. To use {needed} "
            "processes on the CPU instead, add trainer.accelerator=cpu."
        )
    if trainer.accelerator == "gpu" and not gpus:
        raise ConfigError("trainer.accelerator=gpu: no CUDA GPU is available. Use trainer.accelerator=auto or cpu.")
    return "cuda" if gpus else "cpu"


def takes_gpu(config: RunConfig) -> bool:
    """Return True if a run uses a GPU when there is one."""
    return config.trainer.accelerator != "cpu" and not config.model.counted


def threads_for(trainer: TrainerConfig, parameters: int | None, recorded: int | None = None, processes: int = 1) -> int:
    """Return the number of threads to compute with.

    This is `trainer.threads` if it is set. Otherwise, a resumed run uses its `recorded` number, on which its exact
    results depend. A new run uses one thread per PARAMETERS_PER_THREAD `parameters` (None: no limit), within the idle
    cores and OMP_NUM_THREADS. Several `processes` of a run divide all cores.

    Threads wait for each other in every step, so one that shares its core delays all of them. If another
    process is busy, a small model with two threads nearly stops. With one thread, it loses a fifth of its speed.
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
    """Set the number of threads (see `threads_for`), and keep freed memory.

    glibc would return freed arrays of hundreds of MB at once, and each step would wait for the same pages to be zeroed.
    """
    import torch

    torch.set_num_threads(threads_for(trainer, parameters, recorded, processes))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "gnu_get_libc_version"):
            if not libc.mallopt(M_MMAP_THRESHOLD, 2**31 - 1):  # older versions of glibc accept at most 32 MB
                libc.mallopt(M_MMAP_MAX, 0)
            libc.mallopt(M_TRIM_THRESHOLD, -1)  # never


def set_up_gpu(bf16: bool) -> None:
    """Make cuDNN's layers (LSTMs) compute in float32, or in TF32 with `bf16`, and make cuBLAS reproducible.

    Call this before cuBLAS is used.
    """
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.allow_tf32 = bf16


def bf16_warning(config: RunConfig) -> str:
    """Return a warning if a run uses bf16 on a CPU without instructions for it, else ""."""
    if config.precision != "bf16" or config.model.counted or device_of(config.trainer) != "cpu":
        return ""
    from train.models.base import cpu_has_bf16

    if cpu_has_bf16():
        return ""
    return (
        "precision=bf16: this CPU has no bf16 instructions, so training takes many times as long as with "
        "precision=fp32, which would be a different run."
    )


@contextmanager
def without_gradients(device: torch.device, bf16: bool) -> Iterator[None]:
    """Turn gradients off and set the precision of products for the block, and restore `set_up_gpu` afterwards."""
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
    """Raise a one-line RunError if a GPU runs out of memory. The message ends with the remedy `otherwise`."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"The GPU ran out of memory ({reason.rstrip('.')}); {otherwise}.") from error


@dataclass(frozen=True)
class Ranks:
    """The rank of this process among the `size` processes of its run. A single process is rank 0 of 1."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """True for the rank that writes files."""
        return self.rank == 0

    def gathered(self, value: T) -> list[T]:
        """Return the values of all ranks, in order. All ranks have to call it."""
        if self.size == 1:
            return [value]
        from torch import distributed

        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return values


@contextmanager
def other_ranks(config: RunConfig, checkpoint: Path | None) -> Iterator[Ranks]:
    """Start ranks 1 to N-1 on this machine, as Lightning would, and end them at the end of the block.

    All ranks resume from `checkpoint`, if there is one.
    """
    size = config.trainer.devices
    if size == 1:
        yield Ranks()
        return
    from torch import distributed

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
            pickle.dump((config, checkpoint), process.stdin)
            process.stdin.flush()  # left open, because the other rank ends when it closes
        os.environ.update(meeting | {"LOCAL_RANK": "0"})
        yield Ranks(0, size)
    finally:
        os.environ.clear()
        os.environ.update(before)
        if distributed.is_initialized():
            distributed.destroy_process_group()  # the next run of a sweep creates its own
        for process in started:
            assert process.stdin is not None
            process.stdin.close()
        for process in started:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
