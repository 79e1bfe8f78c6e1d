"""The state of each run of a study, from its lock, manifest, progress and score files. Loads no model and no pandas."""

import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from eval.grid import RequestedRun
from pairscale.errors import RunError
from pairscale.sizes import format_size, parse_size, written
from train.recipes import BudgetConfig
from train.runs.axes import flatten, labels
from train.runs.folder import DONE, RunFolder
from train.runs.folder import FAILED as TRAINING_FAILED

SCORED, TRAINED, UNSCORED, RUNNING = "scored", "trained", "scoring failed", "running"
STOPPED, FAILED, DAMAGED, MISSING = "stopped", "failed", "damaged", "missing"
PRETRAINED = "pretrained"  # in place of a size
_NO_SCORES = {"items", "tokens", "topk", "regions"}  # files next to scores


@dataclass
class RunState:
    """One run of a study: its name, its place in the table, and how far it is. None stands for unknown numbers.

    Attributes:
        name: what its sweep sets for it if it has no folder, else the same as `run`, the name of its folder.
        values: its configuration by dotted keys, as on the command line.
        scored_on: labels of the benchmarks that it has scores of.
        seen, words: words seen so far, and at the end of training. rate: words per second.
        wall, left: seconds of training so far, and to come.
        reason: the last line of the error that stopped it.
        again: commands that score it on the benchmarks that failed, by their labels.
    """

    run: str
    name: str
    label: str
    state: str = MISSING
    size: str = PRETRAINED
    seed: int = 0
    values: Mapping[str, str] = field(default_factory=dict)
    scored_on: tuple[str, ...] = ()
    seen: int | None = None
    words: float | None = None
    rate: float | None = None
    wall: float | None = None
    left: float | None = None
    device: str = ""
    reason: str = ""
    bytes: int = 0
    again: Mapping[str, str] = field(default_factory=dict)
    trained: bool = False


def run_states(folder: Path, requested: Mapping[str, RequestedRun]) -> list[RunState]:
    """Return the runs in a study's folder and those that its sweeps requested, with their states.

    A run counts as scored once it has scores of every benchmark that was requested for it. If it wasn't requested, the
    benchmarks of the study count, and if there are none, any.
    """
    folders = {path.parent.name: RunFolder(path.parent) for path in sorted(folder.glob("*/config.yaml"))}
    configs: dict[str, Mapping[str, Any]] = {name: one.config for name, one in requested.items()}
    damaged: dict[str, str] = {}
    for name, run in folders.items():
        try:
            configs[name] = run.read_config()
        except RunError as error:
            damaged[name] = str(error)
    come_trained = {name for name, of in configs.items() if not {"path", "checkpoint"}.isdisjoint(of["model"])}
    curves, _ = labels({name: of for name, of in configs.items() if name not in come_trained})
    of_study = frozenset[str]().union(*(one.benchmarks for one in requested.values()))
    states = []
    for name in dict.fromkeys([*configs, *damaged]):
        state, request = RunState(name, name, name), requested.get(name)
        if config := configs.get(name):
            state.label, state.words = curves.get(name, config["model"]["name"]), _words(config)
            state.values = {key: written(value) for key, value in flatten(config).items()}
            if name in curves:
                state.size, state.seed = format_size(parse_size(config["sample"]["size"])), int(config["seed"])
        if name in folders:
            try:
                _read(state, folders[name], of_study if request is None else request.benchmarks)
            except RunError as error:
                damaged.setdefault(name, str(error))
        elif request:
            state.name = request.point
        if name in damaged:
            state.state, state.reason = DAMAGED, damaged[name]
        states.append(state)
    _estimate(states)
    return states


def _read(state: RunState, run: RunFolder, benchmarks: Set[str]) -> None:
    """Read the state of a run from its folder. Raises RunError for damaged files."""
    files = run.scores("").glob("*/*.parquet")
    state.scored_on = tuple(sorted({path.parent.name for path in files if path.stem not in _NO_SCORES}))
    state.bytes = _bytes(run.path)
    manifest = run.read_manifest()
    state.trained, failures = manifest.get("status") == DONE, manifest.get("scoring_failed", {})
    state.wall, state.device = manifest.get("wall_s"), manifest.get("machine", {}).get("device", "")
    if state.trained:
        state.seen = state.words = manifest.get("words_seen")
        state.rate, state.left = manifest.get("words_per_s"), 0.0
    else:
        progress = run.read_progress()
        state.seen, state.rate, state.words = progress.words_seen, progress.words_per_s, progress.words or state.words
        if state.words and state.rate:
            state.left = max(0.0, state.words - (state.seen or 0)) / state.rate
    if run.in_use:
        state.state = RUNNING
    elif state.trained and failures:
        state.state = UNSCORED
        state.reason = "; ".join(f"scoring on {label}: {_last_line(why)}" for label, why in failures.items())
        commands, again = (
            manifest.get("scoring_commands", {}),
            f"python -m eval study={run.path.parent.name} benchmark=",
        )
        state.again = {label: commands.get(label, again + label.partition("+")[0]) for label in failures}
    elif state.trained:
        names = {label.partition("+")[0] for label in state.scored_on}
        state.state = SCORED if (benchmarks <= names if benchmarks else names) else TRAINED
    elif manifest.get("status") == TRAINING_FAILED:
        state.state, state.reason = FAILED, _last_line(manifest.get("reason") or "no reason was recorded")
    else:
        state.state = STOPPED


def _last_line(reason: str) -> str:
    return reason.strip().rpartition("\n")[2].strip()


def _words(config: Mapping[str, Any]) -> float | None:
    """Return the words that a run will have seen in the end, if its configuration determines them."""
    budget, sample = BudgetConfig(**config["recipe"]["budget"]), config["sample"]
    if budget.words is None and sample["count"] != "words":
        return None
    return budget.words_seen(parse_size(sample["size"]))


def _bytes(folder: Path) -> int:
    """Return the disk space of a folder in bytes; a file that was replaced meanwhile counts as 0."""
    total = 0
    for path, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total


def _estimate(states: Sequence[RunState]) -> None:
    """Estimate the remaining time of runs without a speed from the speed of their curve at the nearest size."""
    rates: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    trained_here = [one for one in states if one.size != PRETRAINED]
    for one in trained_here:
        if one.rate:
            rates[one.label][parse_size(one.size)].append(one.rate)
    for one in trained_here:
        if one.left is None and one.words is not None and (of_curve := rates.get(one.label)):
            size = parse_size(one.size)
            near = min(of_curve, key=lambda other: abs(math.log(other / size)))
            one.left = max(0.0, one.words - (one.seen or 0)) / median(of_curve[near])
