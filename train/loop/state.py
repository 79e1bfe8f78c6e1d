"""Save and restore the state of a training run in checkpoints.

    checkpoints/<step>-<16 hex digits of its SHA-256>.ckpt

The digest is in the name because torch.load ignores the checksums of its format. A flipped bit would cause a wrong
weight and no error. A checkpoint is removed only when two newer ones exist. If the newest is damaged, the one before it
is used. Reading a checkpoint doesn't execute code (`weights_only`).
"""

import hashlib
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._pytree import tree_map_only

from pairscale.console import say
from pairscale.errors import RunError
from pairscale.files import sha256_file, write_bytes
from train.loop.device import Ranks
from train.models.base import State
from train.runs.folder import RunFolder

KEPT = 2  # number of checkpoints to keep


class TrainState:
    """Everything that changes from step to step. A checkpoint contains it, and an exact resume needs it.

    `step` determines the place in the text. Each rank has its own carried state, loss and random numbers. When a run
    resumes, the files written so far (metrics.csv, snapshots) are cut back to `step`. Wall time is in the manifest
    instead, so that runs with equal weights write equal checkpoints.
    """

    def __init__(self, model: nn.Module, ranks: Ranks):
        self.model = model
        self.ranks = ranks
        self.optimizer: Optimizer  # set when Lightning has moved the model to its device
        self.step = 0  # number of finished steps
        self.best: float | None = None  # best validation loss so far, in nats per word
        self.carried: State | None = None  # the model's state for this rank's columns
        self.nats = torch.zeros((), dtype=torch.float64)  # total loss since the last log point
        self.tokens = 0  # number of tokens since the last log point
        self._read: tuple[Path, dict[str, Any]] | None = None  # a checkpoint that was read but not yet restored

    @property
    def rate(self) -> float:
        """The learning rate, which is the same for all groups of weights."""
        rate: float = self.optimizer.param_groups[0]["lr"]
        return rate

    @rate.setter
    def rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def add_loss(self, nats: Tensor, tokens: int) -> None:
        """Add the loss of a step on this rank. Its value is not read, because that would make a GPU wait."""
        self.nats = self.nats.to(nats.device) + nats.detach().double()
        self.tokens += tokens

    def take_loss(self) -> float:
        """Return the mean loss over all ranks since the last call, in nats per token."""
        totals = self.ranks.gathered((self.nats.item(), self.tokens))
        self.nats, self.tokens = torch.zeros_like(self.nats), 0
        return sum(nats for nats, _ in totals) / max(1, sum(tokens for _, tokens in totals))

    def state_dict(self) -> dict[str, Any]:
        """Return the contents of a checkpoint. All ranks have to call it, because each adds its own part."""
        gpu = self.nats.device if self.nats.is_cuda else None
        own = {
            "carried": self.carried,
            "nats": self.nats,
            "tokens": self.tokens,
            "random": torch.get_rng_state(),
            # Only this GPU's state, because the machine that resumes may have fewer GPUs.
            "random_gpu": None if gpu is None else torch.cuda.get_rng_state(gpu),
        }
        return {
            "step": self.step,
            "best": self.best,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "ranks": self.ranks.gathered(tree_map_only(Tensor, Tensor.cpu, own)),
        }

    def read(self, path: Path) -> None:
        """Read a checkpoint. Raises RunError if it was written with another number of devices or by other code."""
        with _written_by_this_code(path):
            saved = torch.load(path, map_location="cpu", weights_only=True)
            self.step, devices = saved["step"], len(saved["ranks"])
        if devices != self.ranks.size:
            raise RunError(
                f"trainer.devices={self.ranks.size}: this run's checkpoint was written with trainer.devices={devices}. "
                f"Continue with trainer.devices={devices}, or remove the run's folder to start again."
            )
        self._read = path, saved

    def restore(self, device: torch.device) -> None:
        """Restore the checkpoint that was read, if any. Call this when the model is on its device."""
        if self._read is None:
            return
        (path, saved), self._read = self._read, None
        with _written_by_this_code(path):
            self.best = saved["best"]
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            own = saved["ranks"][self.ranks.rank]
            self.carried = None if own["carried"] is None else tuple(part.to(device) for part in own["carried"])
            self.nats, self.tokens = own["nats"].to(device), own["tokens"]
            torch.set_rng_state(own["random"])
            if own["random_gpu"] is not None and device.type == "cuda":
                torch.cuda.set_rng_state(own["random_gpu"], device)


@contextmanager
def _written_by_this_code(path: Path) -> Iterator[None]:
    """Turn errors within the block into a RunError, because other code must have written the undamaged checkpoint."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (EOFError, RuntimeError, KeyError, TypeError, ValueError, pickle.UnpicklingError) as error:
        reason = " ".join(str(error).split())[:300]
        raise RunError(
            f"{path}: this checkpoint is undamaged, but this version of the code can't resume from it ({reason}). Use "
            f"the versions listed in manifest.json, or remove {path.parent} to start again."
        ) from error


def write_checkpoint(folder: RunFolder, contents: dict[str, Any]) -> None:
    """Write a checkpoint atomically, then remove old ones. Raises WriteError if it can't be written."""
    buffer = io.BytesIO()  # not the file, because torch does not report a full disk
    torch.save(contents, buffer)
    data = buffer.getbuffer()
    write_bytes(folder.checkpoint(contents["step"], hashlib.sha256(data).hexdigest()), data)
    for older in folder.checkpoints[KEPT:]:
        older.unlink(missing_ok=True)


def newest_checkpoint(folder: RunFolder) -> Path | None:
    """Return the newest undamaged checkpoint of a run, or None if there is none.

    Damaged checkpoints are renamed to *.damaged and reported, also in the manifest. Raises OSError if the disk can't be
    read, because the files may be undamaged.
    """
    damaged = []
    for path in folder.checkpoints:
        expected, digest = path.stem.partition("-")[2], sha256_file(path)
        if digest.startswith(expected):
            break
        path.rename(path.with_suffix(".damaged"))
        damaged.append(f"{path.name}: its SHA-256 begins with {digest[: len(expected)]}")
    else:
        path = None
    if damaged:
        earlier = folder.read_manifest().get("damaged_checkpoints", [])
        folder.update_manifest(damaged_checkpoints=[*earlier, *damaged])
        then = f"Resuming from {path.name}." if path else "No other checkpoint is left, so training starts again."
        message = f"{folder.path}: found a damaged checkpoint, {'; '.join(damaged)} (kept as *.damaged). {then}"
        say(message, "warning", "yellow")
    return path
