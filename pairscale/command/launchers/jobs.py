"""The jobs of a sweep, as launchers see them."""

from collections.abc import Callable
from dataclasses import dataclass
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
