"""The state of each run of a study, from its lock, manifest, progress and score files. Loads no model and no pandas."""

import os
from collections.abc import Mapping, Set
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
MARKS = dict(zip((SCORED, TRAINED, UNSCORED, RUNNING, STOPPED, FAILED, DAMAGED, MISSING), "#t!>~x?.", strict=True))
PRETRAINED = "pretrained"  # in place of a size
_NO_SCORES = {"items", "tokens", "topk", "regions"}  # files next to scores


@dataclass
class RunState:
    """One run of a study: its place in the table, and how far it is. None stands for unknown numbers."""

    run: str
    name: str  # what its sweep sets for it if it has no folder, else the same as `run`, the name of its folder
    label: str
    state: str = MISSING
    size: str = PRETRAINED
    seed: int = 0
    values: Mapping[str, str] = field(default_factory=dict)  # its configuration by dotted keys, as on the command line
    scored_on: tuple[str, ...] = ()  # labels of benchmarks
    seen: int = 0  # words so far
    words: float | None = None  # at the end of training
    rate: float | None = None  # words per second
    wall: float | None = None  # seconds of training so far
    device: str = ""
    reason: str = ""  # the last line of the error that stopped it
    mib: float = 0.0
    again: tuple[str, ...] = ()  # commands that score it on the benchmarks that failed
    left: float | None = None  # seconds of training to come
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
    for one in states:
        rates = [one.rate] if one.rate else [other.rate for other in states if other.label == one.label and other.rate]
        if one.trained or one.size == PRETRAINED:
            one.left = 0.0
        elif one.words and rates:  # without a speed of its own, that of its curve
            one.left = max(0.0, one.words - one.seen) / median(rates)
    return states


def _read(state: RunState, run: RunFolder, benchmarks: Set[str]) -> None:
    """Read the state of a run from its folder. Raises RunError for damaged files."""
    files = run.scores("").glob("*/*.parquet")
    state.scored_on = tuple(sorted({path.parent.name for path in files if path.stem not in _NO_SCORES}))
    state.mib = _mib(run.path)
    manifest = run.read_manifest()
    state.trained, failures = manifest.get("status") == DONE, manifest.get("scoring_failed", {})
    state.wall, state.device = manifest.get("wall_s"), manifest.get("machine", {}).get("device", "")
    if state.trained:
        state.rate = manifest.get("words_per_s")
    else:
        progress = run.read_progress()
        state.seen, state.rate = progress.words_seen or 0, progress.words_per_s
        state.words = progress.words or state.words
    if run.in_use:
        state.state = RUNNING
    elif state.trained and failures:
        state.state = UNSCORED
        state.reason = "; ".join(f"scoring on {label}: {_last_line(why)}" for label, why in failures.items())
        commands, again = manifest.get("scoring_commands", {}), f"python -m eval study={run.path.parent.name}"
        state.again = tuple(commands.get(one, f"{again} benchmark={one.partition('+')[0]}") for one in failures)
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


def _mib(folder: Path) -> float:
    """Return the disk space of a folder; a file that was replaced meanwhile counts as 0."""
    blocks = 0
    for path, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):
                blocks += os.lstat(os.path.join(path, name)).st_blocks
    return blocks / 2**11
