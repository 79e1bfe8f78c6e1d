"""Count the cores and the memory that this process may use, given its affinity, control groups and other processes."""

import math
import os
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

LOOK_SECONDS = 0.5  # how long to count idle cores
CGROUP = Path("/sys/fs/cgroup")
PROC_CGROUP = Path("/proc/self/cgroup")
PROC_MEMINFO = Path("/proc/meminfo")
PROC_STAT = Path("/proc/stat")


def available_cores() -> int:
    """Return the number of cores in this process's affinity, or fewer if its control group has a quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # macOS
    return int(max(1, min(cores, math.ceil(min(cores, *map(_group_quota, _control_groups("cpu")))))))


def _group_quota(group: Path) -> float:
    """Return the quota of a control group (version 2, otherwise 1) in cores, or infinity if it has none."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        except OSError:
            return math.inf
    return int(quota) / int(period) if quota.strip() not in ("max", "-1") else math.inf


def _control_groups(controller: str) -> list[Path]:
    """Return the folders of this process's control group and its ancestors, whose limits all apply (cgroups(7))."""
    roots = {"": CGROUP, controller: CGROUP / controller}
    groups = [*roots.values()]
    try:
        lines = PROC_CGROUP.read_text(errors="surrogateescape").splitlines()  # names of folders, in any encoding
    except OSError:
        lines = []
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        for name in roots.keys() & set(controllers.split(",")):
            below = Path(path.lstrip("/"))
            groups += [roots[name] / part for part in (below, *below.parents)]
    return list(dict.fromkeys(groups))


def available_memory() -> float:
    """Return the free memory in bytes, limited by machine and control groups, or infinity if neither is known."""
    free = math.inf
    with suppress(OSError, ValueError, StopIteration):
        line = next(line for line in PROC_MEMINFO.read_text().splitlines() if line.startswith("MemAvailable:"))
        free = int(line.split()[1]) * 1024
    return max(0.0, min(free, *map(_group_memory, _control_groups("memory"))))


def _group_memory(group: Path) -> float:
    """Return the free bytes of a control group, including file cache that can be dropped, or infinity if unknown."""
    for most, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        with suppress(OSError, ValueError):  # ValueError for "max"
            left = int((group / most).read_text()) - int((group / used).read_text())
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            return left + int(stat.get("inactive_file", 0))
    return math.inf


def fit_memory(count: int, each: float) -> int:
    """Return how many of `count` processes that need `each` bytes fit into the free memory, at least 1."""
    return int(max(1, min(count, available_memory() / max(1, each))))


def peak_memory(children: bool = False) -> int:
    """Return the peak memory in bytes of this process or, with `children`, of its largest child that has ended."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF).ru_maxrss


def granted_threads() -> int | None:
    """Return the first number in OMP_NUM_THREADS (others are for nested regions), or None if there is none."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return (int(first) or None) if first.isdecimal() else None


def idle_cores() -> int:
    """Return the number of available cores that were idle for LOOK_SECONDS, at least 1.

    Return all cores if their counters are missing (macOS), constant (gVisor) or other cores' (LXC).
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
    """Return the idle ticks and all ticks by core. Raises ValueError or IndexError if /proc/stat has another format."""
    lines = [line.split() for line in PROC_STAT.read_text().splitlines() if line.startswith("cpu")]
    ticks = {int(name[3:]): [int(number) for number in rest[:8]] for name, *rest in lines if name != "cpu"}
    return {core: (numbers[3] + numbers[4], sum(numbers)) for core, numbers in ticks.items()}
