"""The state of a training run: everything that an exact resume needs besides weights and optimiser."""

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from pairscale.errors import RunError
from train.loop.batches import Batches
from train.loop.perplexity import Perplexity
from train.loop.ranks import Ranks
from train.loop.snapshots import Snapshots
from train.models.base import State
from train.runs.folder import RunFolder
from train.runs.metrics import MetricsFile
from train.runs.provenance import cost


class TrainState:
    """The place of a run in its text, the state carried from step to step, and the files written so far.

    `state_dict` is the entry "run" of Lightning's checkpoint, which also has weights, optimiser with its learning rate
    and the place in `batches`. `metrics` and `snapshots` are files, which `resume_at` cuts back to a step. Wall time is
    in the manifest, so that runs with equal weights write equal checkpoints.
    """

    def __init__(self, folder: RunFolder, batches: Batches, snapshots: Snapshots, ranks: Ranks):
        self.folder = folder
        self.batches = batches
        self.snapshots = snapshots
        self.metrics = MetricsFile(folder.metrics)
        self.ranks = ranks
        self.device = torch.device("cpu")
        self.carried: State | None = None  # of the model, for this rank's columns
        self.best: float | None = None  # validation nats per word of the best weights so far
        self.last: Perplexity | None = None  # the latest validation of this attempt
        self.interval_loss = torch.zeros((), dtype=torch.float64)  # nats since the last log point
        self.interval_tokens = 0
        self.first_step = 0  # steps of earlier attempts
        self._generators: dict[str, Any] | None = None  # of the checkpoint, until training starts
        self.start_clock({}, "cpu", 1)

    def start_clock(self, earlier: Mapping[str, Any], device: str, threads: int) -> None:
        """Count time and cost from now on. `earlier`: the manifest of the attempts before, up to their checkpoints."""
        self._earlier, self._used = earlier, (device, self.ranks.size, threads)
        self._started = time.monotonic()

    @property
    def attempt_s(self) -> float:
        """Seconds of this attempt."""
        return time.monotonic() - self._started

    @property
    def spent(self) -> dict[str, Any]:
        """The seconds of all attempts, wall_s, and their cost, for the manifest."""
        seconds = self.attempt_s
        return {
            "wall_s": round(self._earlier.get("wall_s", 0) + seconds, 1),
            "cost": cost(self._earlier.get("cost", {}), seconds, *self._used),
        }

    def resume_at(self, step: int, device: torch.device) -> None:
        """Restore files, carried state and random generators as they were after `step`, on the model's device."""
        self.first_step, self.device = step, device
        self.metrics.forget_after(step)
        if self.ranks.first:
            self.snapshots.go_on_after(step)
        if self.carried is not None:
            self.carried = tuple(part.to(device) for part in self.carried)
        if self._generators is not None:
            torch.set_rng_state(self._generators["cpu"])
            if self._generators["cuda"] and device.type == "cuda":
                torch.cuda.set_rng_state(self._generators["cuda"][0], device)

    def add_loss(self, nats: Tensor, tokens: int) -> None:
        """Add the loss of a step on this rank, without reading it, which would make a GPU wait."""
        self.interval_loss = self.interval_loss.to(nats.device) + nats.detach().double()
        self.interval_tokens += tokens

    def take_loss(self) -> float:
        """Return the mean loss of all ranks since the last call, in nats per token."""
        tokens_of_rank = torch.full_like(self.interval_loss, self.interval_tokens)
        nats, tokens = self.ranks.summed(torch.stack([self.interval_loss, tokens_of_rank])).tolist()
        self.interval_loss, self.interval_tokens = torch.zeros_like(self.interval_loss), 0
        mean: float = nats / max(1.0, tokens)
        return mean

    def state_dict(self) -> dict[str, Any]:
        """Return this process's state or, with several ranks, {"ranks": [state of each]}; called on all of them."""
        # Only of this GPU, as the machine that resumes may have fewer.
        cuda = [torch.cuda.get_rng_state(self.device)] if self.device.type == "cuda" else []
        own = {
            "carried": self.carried,
            "best": self.best,
            "interval_loss": self.interval_loss,
            "interval_tokens": self.interval_tokens,
            "generators": {"cpu": torch.get_rng_state(), "cuda": cuda},
        }
        if self.ranks.size == 1:
            return own
        return {"ranks": self.ranks.gathered(tree_map_only(Tensor, Tensor.cpu, own))}  # exchanged through the CPU

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Read this rank's part of a `state_dict`; raises RunError if another number of devices wrote it."""
        states = saved.get("ranks", [saved])
        if len(states) != self.ranks.size:
            raise RunError(
                f"the checkpoint is of trainer.devices={len(states)}, this is trainer.devices={self.ranks.size}: "
                f"go on with {len(states)}, or remove the run's folder to start again"
            )
        own = states[self.ranks.rank]
        self.carried = own["carried"]
        self.best = own["best"]
        self.interval_loss = own["interval_loss"]
        self.interval_tokens = own["interval_tokens"]
        self._generators = own["generators"]
