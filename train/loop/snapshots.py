"""Save a run's weights during training (snapshots), after chosen numbers of words or steps, for trajectories.

    snapshots/<step>-<16 hex digits of its SHA-256>.safetensors

Runs resume from checkpoints (train/loop/state.py), never from snapshots. A snapshot is written before the checkpoint of
its step, so a run that resumes from a checkpoint has all earlier snapshots. Later ones are removed, because the run
writes them again with the same weights. This module does not import Lightning.
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
# Words seen at which the BabyLM challenge asks for models: every 1M to 10M, every 10M to 100M, every 100M to 1B.
BABYLM = [unit * k for unit in (10**6, 10**7, 10**8) for k in range(1, 10)] + [10**9]
_REMOVE = "Remove this file to continue without it, or remove the run's folder to train it again"


class _About(TypedDict):
    """The schema of a snapshot's header."""

    step: Count
    words_seen: Count
    moment: str


def moments(requested: Any, batches: Batches) -> dict[int, str]:
    """Name the moments at which a run writes snapshots, by step and in order.

    The end of the run ("end") is always a moment. A number of words means the first step by which they have
    been seen. This step differs between seeds, because their words have more or fewer tokens. If several moments fall
    on one step, it gets the name of the last.

    Args:
        requested: the value of `trainer.snapshots`. A number N requests N moments, each at half the words of the next:
            "end", "1/2", "1/4". A list requests numbers of words, such as "10k". "babylm" requests those in BABYLM.
            "log2" requests steps: "step 0" (the untrained model), "step 1", "step 2", "step 4" and so on.
        batches: the batches of the run.

    Returns:
        The name of each moment by step; {} if `requested` is None or the run has no steps.
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
    """The writer of a run's snapshots. `requested` is the value of `trainer.snapshots`."""

    def __init__(self, folder: RunFolder, requested: Any, batches: Batches):
        self.folder = folder
        self.moments = moments(requested, batches)
        self.batches = batches

    def go_on_after(self, step: int) -> None:
        """Remove snapshots after `step`, which will be written again, and warn about earlier ones that are missing.

        If the run starts from the beginning, the snapshot of step 0 is written again, too.
        """
        last = step or -1
        existing = {at for at, _ in self.folder.snapshot_files}
        for at, path in self.folder.snapshot_files:
            if at > last:
                path.unlink()
        if missing := [moment for at, moment in self.moments.items() if at <= last and at not in existing]:
            say(
                f"{self.folder.path.name}: some snapshots are missing ({', '.join(missing)}), because they were not "
                f"requested while the run was trained on its first {self.batches.words_seen(step):,} words.",
                "warning",
                "yellow",
            )

    def write(self, model: LanguageModel, step: int) -> None:
        """Write the snapshot for the moment after `step` steps. Raises WriteError if it can't be written."""
        about = {"step": step, "words_seen": self.batches.words_seen(step), "moment": self.moments[step]}
        data = snapshot_bytes(model, about)
        write_bytes(self.folder.snapshot(step, hashlib.sha256(data).hexdigest()), data)


def load_snapshot(folder: RunFolder, step: int) -> LoadedModel:
    """Load the model after `step` steps, with step, words_seen and moment as its info.

    Raises RunError if the snapshot is missing or damaged.
    """
    path = folder.snapshots.get(step)
    if path is None:
        steps = ", ".join(map(str, folder.snapshots))
        remedy = f"It has snapshots after these: {steps}." if steps else "To save N, train it with trainer.snapshots=N."
        raise RunError(f"{folder.path}: this run has no snapshot after {step} steps. {remedy}")
    digest = sha256_file(path)
    if not path.stem.endswith(f"-{digest[:16]}"):
        raise RunError(
            f"{path}: this file was cut short or changed (its SHA-256 begins with {digest[:16]}). {_REMOVE}."
        )
    try:
        with safe_open(path, "pt") as file:
            about = (file.metadata() or {}).get(ABOUT, "")
    except SafetensorError as error:
        raise RunError(f"{path}: this file can't be read as safetensors ({error}). {_REMOVE}.") from None
    info = cast(dict[str, Any], parse_json(about, _About, path, RunError, _REMOVE))
    description = read_description(folder.model, architectures())
    return described_model(folder.model, description, path, digest, info)
