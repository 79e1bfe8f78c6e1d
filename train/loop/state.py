"""The state of a training run, and the checkpoints that contain it.

    checkpoints/<step>-<16 hex digits of its SHA-256>.ckpt

The digest is in the name because torch.load does not compare the checksums of its format: a flipped bit would be a
wrong weight and no error. A checkpoint is removed only when two newer ones are on the disk; if the newest is damaged,
the one before it is used. Reading one executes nothing (`weights_only`).
"""

import hashlib
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils._pytree import tree_map_only

from pairscale.console import say
from pairscale.errors import RunError
from pairscale.files import sha256_file, write_bytes
from train.loop.device import Ranks
from train.models.base import LanguageModel, State
from train.runs.folder import RunFolder

KEPT = 2


class TrainState:
    """All that changes from step to step: what an exact resume needs, and what a checkpoint contains.

    The place in the text follows from `step`. Each rank has its own carried state, loss and random numbers. The files
    written so far (metrics.csv, snapshots) are cut back to `step`; wall time is in the manifest, so that runs with
    equal weights write equal checkpoints.
    """

    def __init__(self, model: LanguageModel, ranks: Ranks):
        self.model = model
        self.ranks = ranks
        self.optimizer: Optimizer  # set when Lightning has moved the model to its device
        self.step = 0  # steps done
        self.best: float | None = None  # validation nats per word of the best weights so far
        self.carried: State | None = None  # of the model, for this rank's columns
        self.nats = torch.zeros((), dtype=torch.float64)  # loss since the last log point
        self.tokens = 0  # since the last log point
        self._read: tuple[Path, dict[str, Any]] | None = None  # a checkpoint of which only the step is restored

    @property
    def rate(self) -> float:
        """The learning rate, the same for all groups of weights."""
        rate: float = self.optimizer.param_groups[0]["lr"]
        return rate

    @rate.setter
    def rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def add_loss(self, nats: Tensor, tokens: int) -> None:
        """Add the loss of a step on this rank, without reading it, which would make a GPU wait."""
        self.nats = self.nats.to(nats.device) + nats.detach().double()
        self.tokens += tokens

    def take_loss(self) -> float:
        """Return the mean loss of all ranks since the last call, in nats per token."""
        totals = self.ranks.gathered((self.nats.item(), self.tokens))
        self.nats, self.tokens = torch.zeros_like(self.nats), 0
        return sum(nats for nats, _ in totals) / max(1, sum(tokens for _, tokens in totals))

    def state_dict(self) -> dict[str, Any]:
        """Return the contents of a checkpoint. All ranks call it, because each adds its own part."""
        gpu = self.nats.device if self.nats.is_cuda else None
        own = {
            "carried": self.carried,
            "nats": self.nats,
            "tokens": self.tokens,
            "random": torch.get_rng_state(),
            # Only of this GPU, because the machine that resumes may have fewer.
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
        """Read a checkpoint. Raises RunError if another number of devices or other code wrote it."""
        with _written_by_this_code(path):
            saved = torch.load(path, map_location="cpu", weights_only=True)
            self.step, devices = saved["step"], len(saved["ranks"])
        if devices != self.ranks.size:
            raise RunError(
                f"the checkpoint is of trainer.devices={devices}, this is trainer.devices={self.ranks.size}: go on "
                f"with {devices}, or remove the run's folder to start again"
            )
        self._read = path, saved

    def restore(self, device: torch.device) -> None:
        """Set everything as in the checkpoint that was read, if any. Called when the model is on its device."""
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
    """Raise RunError if an undamaged checkpoint does not have what this code expects."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (EOFError, RuntimeError, KeyError, TypeError, ValueError, pickle.UnpicklingError) as error:
        reason = " ".join(str(error).split())[:300]
        raise RunError(
            f"{path}: whole, but this code cannot resume from it ({reason}); resume with the versions in "
            f"manifest.json, or remove {path.parent} to start again"
        ) from error


def write_checkpoint(folder: RunFolder, contents: dict[str, Any]) -> None:
    """Write the contents of a checkpoint in one move, then remove those that are too old. Raises WriteError."""
    buffer = io.BytesIO()  # not the file, as torch hides from its caller that a disk is full
    torch.save(contents, buffer)
    data = buffer.getbuffer()
    write_bytes(folder.checkpoint(contents["step"], hashlib.sha256(data).hexdigest()), data)
    for older in folder.checkpoints[KEPT:]:
        older.unlink(missing_ok=True)


def newest_checkpoint(folder: RunFolder) -> Path | None:
    """Return the newest undamaged checkpoint of a run; None if there is none.

    Damaged ones are renamed to *.damaged and reported, in the manifest too. Raises OSError for a disk that cannot be
    read, as its files may be undamaged.
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
        then = f"going on from {path.name}" if path else "none is left that is whole: starting again from the beginning"
        message = f"{folder.path}: damaged checkpoint {'; '.join(damaged)} (kept as *.damaged); {then}"
        say(message, "warning", "yellow")
    return path
