"""Snapshots: the weights of a run at chosen numbers of words seen or of steps, for trajectories over its training.

    snapshots/<step>-<16 hex digits of its SHA-256>.safetensors

Runs resume from checkpoints (train/loop/state.py), never from snapshots. A snapshot is written before the
checkpoint of its step, so a run that resumes from a checkpoint has all snapshots up to it; later ones are removed, as
the run writes them again with the same weights. Imports no Lightning.
"""

import hashlib
from typing import Any, TypedDict, cast

from safetensors import SafetensorError, safe_open

from pairscale.console import say
from pairscale.errors import RunError
from pairscale.files import sha256_file, write_bytes
from pairscale.schema import Count, parse_json
from pairscale.sizes import format_size, parse_size
from train.loop.batches import Batches
from train.models.base import LanguageModel
from train.models.config import architectures
from train.runs.folder import RunFolder
from train.runs.model_folder import ABOUT, LoadedModel, described_model, read_description, snapshot_bytes

END = "end"
# Words seen at which the BabyLM challenge asks for models: to 10M by 1M, to 100M by 10M, to 1B by 100M.
BABYLM = [unit * k for unit in (10**6, 10**7, 10**8) for k in range(1, 10)] + [10**9]
_REMOVE = "remove the file, and the trajectory goes without it, or the run's folder to train it again"


class _About(TypedDict):
    """Schema of the header of a snapshot."""

    step: Count
    words_seen: Count
    moment: str


def moments(requested: Any, batches: Batches) -> dict[int, str]:
    """Return the moment of each step with a snapshot, in order, for `trainer.snapshots`; {} for null.

    The end of the run is always a moment. A number requests so many moments, each at half the words seen of the next
    one: "end", "1/2", "1/4"; a list requests words seen ("10k") within the run, and "babylm" those of BABYLM. Such a
    moment is the first step by which its words are seen; runs of other seeds reach it at other steps, as their words
    have more or fewer tokens. A step of several moments has the last of them. "log2" requests steps: the untrained
    model as "step 0", then "step 1", "step 2", "step 4". A run without steps has no moments.
    """
    steps = len(batches)
    if requested is None or not steps:
        return {}
    if requested == "log2":
        powers = [0, *(2**k for k in range(steps.bit_length()))]
        return {step: f"step {step}" for step in powers if step < steps} | {steps: END}
    total = batches.words_seen(steps)
    if requested == "babylm" or isinstance(requested, list):
        listed = BABYLM if requested == "babylm" else requested
        sizes = (parse_size(str(size), "trainer.snapshots") for size in listed)
        words = {format_size(size): size for size in sizes}
    else:
        words = {f"1/{2**k}": -(-total // 2**k) for k in range(1, requested)}
    by_step = {steps: END}
    for moment, seen in sorted(words.items(), key=lambda item: -item[1]):
        if seen < total:
            by_step.setdefault(batches.steps_for(seen), moment)
    return dict(sorted(by_step.items()))


class Snapshots:
    """The snapshots that a run writes; `requested` is `trainer.snapshots`."""

    def __init__(self, folder: RunFolder, requested: Any, batches: Batches):
        self.folder = folder
        self.moments = moments(requested, batches)
        self.batches = batches

    def go_on_after(self, step: int) -> None:
        """Remove snapshots after `step`, which are written again; warn of those before it that are missing.

        A run that starts (0 steps) writes that of step 0 again, too.
        """
        last = step or -1
        existing = {at for at, _ in self.folder.snapshot_files}
        for at, path in self.folder.snapshot_files:
            if at > last:
                path.unlink()
        if missing := [moment for at, moment in self.moments.items() if at <= last and at not in existing]:
            say(
                f"{self.folder.path.name}: goes on at {self.batches.words_seen(step):,} words seen; earlier snapshots, "
                f"which were not requested then, are missing ({', '.join(missing)})",
                "warning",
                "yellow",
            )

    def write(self, model: LanguageModel, step: int) -> None:
        """Write the snapshot of the moment after `step` steps. Raises WriteError."""
        about = {"step": step, "words_seen": self.batches.words_seen(step), "moment": self.moments[step]}
        data = snapshot_bytes(model, about)
        write_bytes(self.folder.snapshot(step, hashlib.sha256(data).hexdigest()), data)


def load_snapshot(folder: RunFolder, step: int) -> LoadedModel:
    """Return the model after `step` steps; info: step, words_seen, moment; RunError if it is missing or damaged."""
    path = folder.snapshots.get(step)
    if path is None:
        steps = ", ".join(map(str, folder.snapshots)) or "none; trainer.snapshots=N keeps N of them while a run trains"
        raise RunError(f"{folder.path}: no snapshot after {step} steps; available: {steps}")
    digest = sha256_file(path)
    if not path.stem.endswith(f"-{digest[:16]}"):
        raise RunError(f"{path}: its SHA-256 begins with {digest[:16]}: cut short or changed since; {_REMOVE}")
    try:
        with safe_open(path, "pt") as file:
            about = (file.metadata() or {}).get(ABOUT, "")
    except SafetensorError as error:
        raise RunError(f"{path}: cannot be read as safetensors ({error}); {_REMOVE}") from None
    info = cast(dict[str, Any], parse_json(about, _About, path, RunError, _REMOVE))
    description = read_description(folder.model, architectures())
    return described_model(folder.model, description, path, digest, info)
