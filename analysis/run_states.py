"""The state of each run of a study, from its lock, manifest, progress and score files. Loads no model and no pandas."""

import math
import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True)
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
    state: str
    label: str
    size: str
    seed: int
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
    for name, one in folders.items():
        try:
            configs[name] = one.read_config()
        except RunError as error:
            damaged[name] = str(error)
    of_study = frozenset[str]().union(*(one.benchmarks for one in requested.values()))
    states = []
    for name, start in _unread(configs).items():
        state = replace(start, name=requested[name].point if name in requested else name, words=_words(configs[name]))
        if name in folders and name not in damaged:
            benchmarks = requested[name].benchmarks if name in requested else of_study
            try:
                state = _read(replace(start, name=name), folders[name], configs[name], benchmarks)
            except RunError as error:
                damaged[name] = str(error)
        states.append(state if name not in damaged else _damaged(start, folders[name], damaged.pop(name)))
    for name, reason in damaged.items():  # whose configuration cannot be read
        states.append(_damaged(RunState(name, name, DAMAGED, name, PRETRAINED, 0), folders[name], reason))
    return _with_estimates(states)


def _damaged(start: RunState, run: RunFolder, reason: str) -> RunState:
    return replace(start, state=DAMAGED, reason=reason, bytes=_bytes(run.path), scored_on=_scored_on(run))


def _unread(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, RunState]:
    """Return each run with its place in the table, as if it hadn't begun."""
    pretrained = {name for name, of in configs.items() if "path" in of["model"] or "checkpoint" in of["model"]}
    names, _ = labels({name: of for name, of in configs.items() if name not in pretrained})
    states = {}
    for name, of in configs.items():
        place = (of["model"]["name"], PRETRAINED, 0)
        if name not in pretrained:
            place = (names[name], format_size(parse_size(of["sample"]["size"])), int(of["seed"]))
        values = {key: written(value) for key, value in flatten(of).items()}
        states[name] = RunState(name, name, MISSING, *place, values=values)
    return states


def _read(start: RunState, run: RunFolder, config: Mapping[str, Any], benchmarks: Set[str]) -> RunState:
    """Return the state of a run that has a folder. Raises RunError for damaged files."""
    manifest, scored = run.read_manifest(), _scored_on(run)
    status, done = manifest.get("status"), manifest.get("status") == DONE
    seen, rate, words = manifest.get("words_seen"), manifest.get("words_per_s"), manifest.get("words_seen")
    if not done:
        progress = run.read_progress()
        seen, rate, words = progress.words_seen, progress.words_per_s, progress.words or _words(config)
    failures = manifest.get("scoring_failed") or {}
    names = {label.partition("+")[0] for label in scored}
    state, reason = STOPPED, ""
    if run.in_use:
        state = RUNNING
    elif done and failures:
        state = UNSCORED
        reason = "; ".join(f"scoring on {name}: {_last_line(why)}" for name, why in failures.items())
    elif done:
        state = SCORED if (benchmarks <= names if benchmarks else names) else TRAINED
    elif status == TRAINING_FAILED:
        state, reason = FAILED, _last_line(manifest.get("reason") or "no reason was recorded")
    left = max(0.0, words - (seen or 0)) / rate if words and rate else None
    again = {
        label: f"python -m eval study={run.path.parent.name} benchmark={label.partition('+')[0]}" for label in failures
    }
    return replace(
        start, state=state, scored_on=scored, seen=seen, words=words, rate=rate, wall=manifest.get("wall_s"),
        left=0.0 if done else left, device=manifest.get("machine", {}).get("device", ""), reason=reason,
        bytes=_bytes(run.path), again=again | manifest.get("scoring_commands", {}), trained=done,
    )  # fmt: skip


def _scored_on(run: RunFolder) -> tuple[str, ...]:
    files = run.scores("").glob("*/*.parquet")
    return tuple(sorted({path.parent.name for path in files if path.stem not in _NO_SCORES}))


def _last_line(reason: str) -> str:
    return next((line.strip() for line in reversed(reason.splitlines()) if line.strip()), "")


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
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def _with_estimates(states: Sequence[RunState]) -> list[RunState]:
    """Estimate the remaining time of runs without a speed from the speed of their curve at the nearest size."""
    rates: dict[str, dict[str, list[float]]] = {}
    for one in states:
        if one.rate and one.size != PRETRAINED:
            rates.setdefault(one.label, {}).setdefault(one.size, []).append(one.rate)
    estimated = []
    for one in states:
        row = rates.get(one.label)
        if one.left is None and row and one.words is not None and one.size != PRETRAINED:
            size = parse_size(one.size)
            near = min(row, key=lambda other: abs(math.log(parse_size(other) / size)))
            one = replace(one, left=max(0.0, one.words - (one.seen or 0)) / median(row[near]))
        estimated.append(one)
    return estimated
