"""Checkpoints: everything that resuming needs, each in a file whose name holds its digest.

    checkpoints/<step>-<16 hex digits of its SHA-256>.ckpt

torch.load does not compare the checksums of its format, so a flipped bit would be a wrong weight and no error. A
checkpoint is removed only when two newer ones are on the disk; if the newest is damaged, the one before it is used.
Reading one executes nothing (`weights_only`).
"""

import hashlib
import io
import pickle
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins.io import CheckpointIO

from pairscale.console import say
from pairscale.files import sha256_file, write_bytes
from train.runs.folder import RunFolder
from train.trackers.tracker import Tracker

KEPT = 2
UNREADABLE = (EOFError, RuntimeError, KeyError, ValueError, pickle.UnpicklingError)  # what torch.load raises


class CheckpointFiles(CheckpointIO):
    """The files of Lightning's Trainer: it may pass any path, the folder knows its own. `tracker` keeps a copy."""

    def __init__(self, folder: RunFolder, tracker: Tracker | None = None):
        self.folder = folder
        self.tracker = tracker

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write a checkpoint in one move, then remove those that two are newer than. Raises WriteError."""
        buffer = io.BytesIO()  # not the file, as torch hides from its caller that a disk is full
        torch.save(checkpoint, buffer)
        data = buffer.getbuffer()
        write_bytes(self.folder.checkpoint(checkpoint["global_step"], hashlib.sha256(data).hexdigest()), data)
        for older in self.folder.checkpoints[KEPT:]:
            self.remove_checkpoint(older)
        if self.tracker is not None:
            self.tracker.artifact(f"{self.folder.path.name}-checkpoint", "checkpoint", self.folder.checkpoints[:1])

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """Read a checkpoint as data onto the CPU, whatever the arguments say."""
        loaded: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return loaded

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)


def newest_checkpoint(folder: RunFolder, tell: bool = True) -> Path | None:
    """Return the newest undamaged checkpoint of a run; None if there is none.

    Damaged ones are renamed to *.damaged and reported, in the manifest too; without `tell` (all ranks but one) only
    skipped. Raises OSError for a disk that cannot be read, as its files may be undamaged.
    """
    damaged = []
    for path in folder.checkpoints:
        reason = _damage(path)
        if reason is None:
            break
        if tell:
            path.rename(path.with_suffix(".damaged"))
        damaged.append(f"{path.name}: {reason}")
    else:
        path = None
    if damaged and tell:
        earlier = folder.read_manifest().get("damaged_checkpoints", [])
        folder.update_manifest(damaged_checkpoints=[*earlier, *damaged])
        then = f"going on from {path.name}" if path else "none is left that is whole: starting again from the beginning"
        message = f"{folder.path}: damaged checkpoint {'; '.join(damaged)} (kept as *.damaged); {then}"
        say(message, "warning", "yellow")
    return path


def _damage(path: Path) -> str | None:
    """Return what is wrong with the bytes of a checkpoint; None if nothing."""
    expected = path.stem.partition("-")[2]
    try:
        digest = sha256_file(path)
    except FileNotFoundError:
        return "renamed, as damaged, by another process of this run"
    return None if digest.startswith(expected) else f"its SHA-256 begins with {digest[: len(expected)]}"
