"""The jobs of a sweep, as launchers see them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


def _unknown() -> None:
    return None


@dataclass(frozen=True)
class Work:
    """The training of a job of `words`, with repeats; `kind` is equal for jobs of the same speed.

    trained: returns the seconds that training took, once the job has ended; None if unknown.
    """

    kind: str = ""
    words: float = 0.0
    trained: Callable[[], float | None] = _unknown


@dataclass(frozen=True)
class Job:
    """One point of a sweep.

    config: None if refused (its process reports why). folder: of its run, or of a study scored as a whole, for one
    process at a time. on_gpu: True if it uses a GPU when there is one. devices: GPUs, or processes, that it takes.
    preloads: True if it spends seconds on importing what `preload` of pairscale.command.rooms.Runs imports.
    """

    index: int
    overrides: list[str]
    config: Any = None
    folder: Path | None = None
    on_gpu: bool = True
    devices: int = 1
    work: Work = Work()
    preloads: bool = False


def distinct(jobs: Sequence[Job]) -> list[Job]:
    """Keep one job of each folder and configuration, numbered again: a sweep may name a run more than once."""
    kept: dict[Path | int, list[Job]] = {}
    for job in jobs:
        of = kept.setdefault(job.folder or job.index, [])
        if all(job.config != other.config for other in of):
            of.append(job)
    chosen = sorted((job for of in kept.values() for job in of), key=lambda job: job.index)
    return [replace(job, index=number) for number, job in enumerate(chosen)]
