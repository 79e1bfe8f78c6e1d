"""The jobs of a sweep, as far as a launcher has to know them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def _unknown() -> None:
    return None


@dataclass(frozen=True)
class Work:
    """What a job has to train.

    kind: what jobs of one speed have in common. words: to be trained, with repeats. trained: seconds that the job, once
    it has ended, took to train them; None where nothing says it.
    """

    kind: str = ""
    words: float = 0.0
    trained: Callable[[], float | None] = _unknown


@dataclass(frozen=True)
class Job:
    """One point of a sweep: its overrides, and its configuration, None where that is refused (its process says why).

    folder: of the run that it works on, or of the study that it scores as a whole; a lock lets one process in. on_gpu:
    True if it computes on a GPU where there is one. devices: GPUs, or processes, that it takes.
    """

    index: int
    overrides: list[str]
    config: Any = None
    folder: Path | None = None
    on_gpu: bool = True
    devices: int = 1
    work: Work = Work()
