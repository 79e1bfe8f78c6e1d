"""Where a process computes, in how many threads and with numbers of how many bits; freed memory that it keeps."""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.errors import ConfigError, RunError
from train.config import NgramConfig, RunConfig, TrainerConfig

if TYPE_CHECKING:
    import torch

PARAMETERS_PER_THREAD = 10_000_000  # a smaller model's steps are too short to be shared out (tests/bench/neighbour.py)
LOOK_SECONDS = 0.5  # over which cores are seen to be idle
CGROUP = Path("/sys/fs/cgroup")
PROC_CGROUP = Path("/proc/self/cgroup")
PROC_MEMINFO = Path("/proc/meminfo")
PROC_STAT = Path("/proc/stat")
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
    return config.trainer.accelerator != "cpu" and not isinstance(config.model, NgramConfig)


def available_cores() -> int:
    """Cores that this process may use: those of its affinity, or fewer where its control group has a quota."""
    # macOS has no set of cores that a process may use.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(max(1, min(cores, math.ceil(min(cores, _quota())))))


def _quota() -> float:
    """Cores' worth of time that the control groups grant (version 2, then 1); infinity where there is no limit."""
    return min(map(_group_quota, _control_groups("cpu")))


def _group_quota(group: Path) -> float:
    try:
        quota, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        except OSError:
            return math.inf
    return int(quota) / int(period) if quota.strip() not in ("max", "-1") else math.inf


def _control_groups(controller: str) -> list[Path]:
    """Folders of the control group of this process and of those above it: all of their limits hold.

    A container sees its own group as the root; a job of systemd or SLURM is somewhere below it (cgroups(7)).
    """
    roots = {"": CGROUP, controller: CGROUP / controller}
    groups = [*roots.values()]
    try:
        lines = PROC_CGROUP.read_text().splitlines()
    except OSError:
        lines = []
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        for name in roots.keys() & set(controllers.split(",")):
            below = Path(path.lstrip("/"))
            groups += [roots[name] / part for part in (below, *below.parents)]
    return list(dict.fromkeys(groups))


def available_memory() -> float:
    """Bytes that new processes may take, of the machine's and of the control groups'; infinity where nothing tells."""
    free = math.inf
    with suppress(OSError, ValueError, StopIteration):
        line = next(line for line in PROC_MEMINFO.read_text().splitlines() if line.startswith("MemAvailable:"))
        free = int(line.split()[1]) * 1024
    return max(0.0, min(free, *map(_group_memory, _control_groups("memory"))))


def _group_memory(group: Path) -> float:
    """Bytes that a control group has left; of what it uses, files that were read and can be dropped count as free."""
    for most, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        with suppress(OSError, ValueError):  # "max"
            left = int((group / most).read_text()) - int((group / used).read_text())
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            return left + int(stat.get("inactive_file", 0))
    return math.inf


def fit_memory(count: int, each: float) -> int:
    """As many of `count` processes that take `each` bytes as the free memory holds, at least 1."""
    return int(max(1, min(count, available_memory() / max(1, each))))


def granted_threads() -> int | None:
    """Threads that OMP_NUM_THREADS grants, of a list (which is for nested regions) the first; None: not set."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return (int(first) or None) if first.isdecimal() else None


def idle_cores() -> int:
    """Cores that this process may use and nobody does, over LOOK_SECONDS; at least 1.

    Not the load average, which takes minutes to forget a process that has ended. All cores count as idle where the
    system has no usable counters: none (macOS), still ones (gVisor), or those of renumbered cores (LXC).
    """
    cores = available_cores()
    try:
        before = _ticks()
        time.sleep(LOOK_SECONDS)
        after = _ticks()
    except (OSError, ValueError, IndexError):
        return cores
    mine = os.sched_getaffinity(0)
    if any(core not in before or core not in after or after[core][1] <= before[core][1] for core in mine):
        return cores
    shares = [(after[core][0] - before[core][0]) / (after[core][1] - before[core][1]) for core in mine]
    return max(1, min(cores, round(sum(shares))))


def _ticks() -> dict[int, tuple[int, int]]:
    """Core -> ticks that it was idle, and in all. Raises ValueError or IndexError for lines of another form."""
    lines = [line.split() for line in PROC_STAT.read_text().splitlines() if line.startswith("cpu")]
    ticks = {int(name[3:]): [int(number) for number in rest[:8]] for name, *rest in lines if name != "cpu"}
    return {core: (of[3] + of[4], sum(of)) for core, of in ticks.items()}


def threads_for(trainer: TrainerConfig, parameters: int | None, recorded: int | None = None, processes: int = 1) -> int:
    """Threads to compute in: `trainer.threads`; else those `recorded` of a run that goes on, whose bits they make.

    Else one for each PARAMETERS_PER_THREAD of the model (None: unknown, as many as there may be), of the cores that are
    idle and of what OMP_NUM_THREADS grants. Threads wait for each other in every step, so that one which has to share
    its core holds up all of them: in two threads a small model nearly stands still beside a busy process, in one it
    loses a fifth. `processes` that share the work (train/ranks.py) come to one number without looking: they share all
    cores.
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
