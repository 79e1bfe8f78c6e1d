"""The ground floor: the console script `pairscale COMMAND ...`, and how one command starts another."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

COMMANDS = {
    "corpora": "corpora",
    "train": "train",
    "eval": "eval",
    "analysis": "analysis",
    "status": "analysis.status",
    "generate": "eval.generate",
    "questionnaire": "eval.questionnaire",
    "import_checkpoint": "train.import_checkpoint",
    "lmplz": "train.lmplz",
    "tasks": "conf.tasks",
}  # command -> the module that runs it: `pairscale status` is `python -m analysis.status`


def started_by(*words: str) -> list[str]:
    """The command line that starts `python -m WORDS` from any folder: with `environment`, no file there is imported."""
    return [sys.executable, "-P", "-m", *words]


def environment() -> dict[str, str]:
    """The environment of this process, with this checkout before all else that Python imports from."""
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != str(ROOT)]
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *others])}
