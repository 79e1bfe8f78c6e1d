"""The state of each run of a study, from its lock, manifest, progress and score files. Loads no model."""

import math
import os
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from eval.grid import RequestedRun
from pairscale.errors import RunError
from pairscale.sizes import format_size, parse_size
from train.recipes import BudgetConfig
from train.runs.axes import labels
from train.runs.folder import DONE, FAILED, RunFolder
from train.runs.schemas import TrainingState

SCORED, TRAINED, RUNNING, STOPPED, BROKEN, MISSING = "scored", "trained", "running", "stopped", "failed", "missing"
UNSCORED = "scoring failed"  # of a trained run
STATES = (SCORED, TRAINED, UNSCORED, RUNNING, STOPPED, BROKEN, MISSING)
PRETRAINED = "pretrained"  # in the place of a size
NO_SCORES = {"items", "tokens", "topk", "regions"}  # files beside scores


@dataclass(frozen=True)
class RunState:
    """One run of a study; numbers are None where unknown.

    run: its id. name: the same, or the point of the grid where it has no folder. label, size, seed: its cell.
    benchmarks: that it is scored on; scored_on: the labels of its score files, which distinguish parts of a benchmark.
    seen, words: words seen so far, and at the end. rate: words/s. left: seconds of training. reason: the last line of
    why it failed. doing: training or scoring, of a running one. failed_on: labels of benchmarks whose scoring failed,
    each with the command that tried it. trained: True if training is done.
    """

    run: str
    name: str
    state: str
    label: str
    size: str
    seed: int
    benchmarks: tuple[str, ...] = ()
    scored_on: tuple[str, ...] = ()
    seen: int | None = None
    words: float | None = None
    rate: float | None = None
    left: float | None = None
    reason: str = ""
    doing: str = ""
    bytes: int = 0
    failed_on: tuple[tuple[str, str], ...] = ()
    trained: bool = False


def run_states(folder: Path, requested: Mapping[str, RequestedRun]) -> list[RunState]:
    """Return all runs in a study's `folder` and those `requested`, by run id.

    A run is scored once it is on all benchmarks requested of it, of the study where it was not requested itself, or on
    any where there are none. A run with damaged files has failed.
    """
    folders = {path.parent.name: RunFolder(path.parent) for path in sorted(folder.glob("*/config.yaml"))}
    existing, damaged = {}, {}
    for name, run in folders.items():
        try:
            existing[name] = run.read_config()
        except RunError as error:
            damaged[name] = str(error)
    configs = {name: one.config for name, one in requested.items()} | existing
    benchmarks = frozenset[str]().union(*(one.benchmarks for one in requested.values()))
    pretrained = {
        name for name, config in configs.items() if "path" in config["model"] or "checkpoint" in config["model"]
    }
    names, _ = labels({name: config for name, config in configs.items() if name not in pretrained})
    states = []
    for name, config in configs.items():
        if name in pretrained:
            cell = (config["model"]["name"], PRETRAINED, 0)
        else:
            cell = (names[name], format_size(parse_size(config["sample"]["size"])), int(config["seed"]))
        if name in existing:
            of_run = requested[name].benchmarks if name in requested else benchmarks
            try:
                states.append(_state(folders[name], cell, config, of_run))
            except RunError as error:
                states.append(RunState(name, name, BROKEN, *cell, reason=str(error)))
        elif name in damaged:
            states.append(RunState(name, name, BROKEN, *cell, reason=damaged.pop(name)))
        else:
            states.append(RunState(name, requested[name].point, MISSING, *cell, words=_words(config)))
    states += [RunState(name, name, BROKEN, name, PRETRAINED, 0, reason=reason) for name, reason in damaged.items()]
    return _estimated(states)


def _state(run: RunFolder, cell: tuple[str, str, int], config: Mapping[str, Any], benchmarks: Set[str]) -> RunState:
    manifest = run.read_manifest()
    labels_scored = scored_on(run)
    scored = tuple(sorted({label.partition("+")[0] for label in labels_scored}))
    status = manifest.get("status")
    done = status == DONE
    progress = TrainingState() if done else run.read_progress()
    seen, rate = progress.words_seen, progress.words_per_s
    words = manifest.get("words_seen") if done else progress.words or _words(config)
    failures = dict(manifest.get("scoring_failed") or {})
    reason = doing = ""
    if run.in_use:
        state, doing = RUNNING, "scoring" if done else "training"
    elif done:
        state = SCORED if (benchmarks <= set(scored) if benchmarks else scored) else TRAINED
        if failures:
            state = UNSCORED
            reason = "; ".join(f"scoring on {name}: {_last_line(why)}" for name, why in failures.items())
    elif status == FAILED:
        state, reason = BROKEN, _last_line(manifest.get("reason") or "no reason noted")
    else:
        state = STOPPED
    left = None if done or not (words and rate) else max(0.0, words - (seen or 0)) / rate
    return RunState(
        run.path.name, run.path.name, state, *cell, benchmarks=scored, scored_on=labels_scored,
        seen=manifest.get("words_seen") if done else seen, words=words,
        rate=manifest.get("words_per_s") if done else rate, left=0.0 if done else left, reason=reason, doing=doing,
        bytes=_bytes(run.path), failed_on=tuple((label, _again(run, manifest, label)) for label in failures),
        trained=done,
    )  # fmt: skip


def scored_on(run: RunFolder) -> tuple[str, ...]:
    """Return the labels of benchmarks, sorted, of which a run has score files."""
    files = run.scores("").glob("*/*.parquet")
    return tuple(sorted({path.parent.name for path in files if path.stem not in NO_SCORES}))


def _again(run: RunFolder, manifest: Mapping[str, Any], label: str) -> str:
    """Return the command that scores a benchmark again: that of the manifest, else one for the whole study."""
    study = f"python -m eval study={run.path.parent.name} benchmark={label.partition('+')[0]}"
    return str(manifest.get("scoring_commands", {}).get(label, study))


def _last_line(reason: str) -> str:
    return next((line.strip() for line in reversed(reason.splitlines()) if line.strip()), "")


def _words(config: Mapping[str, Any]) -> float | None:
    """Return the words that a run will have seen at its end, where its configuration determines them."""
    budget, sample = BudgetConfig(**config["recipe"]["budget"]), config["sample"]
    if budget.words is None and sample["count"] != "words":
        return None
    return budget.words_seen(parse_size(sample["size"]))


def _bytes(folder: Path) -> int:
    """Return the disk space of a folder in bytes; files replaced meanwhile count as 0."""
    total = 0
    for path, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def _estimated(states: Iterable[RunState]) -> list[RunState]:
    """Estimate the time left of runs without a speed, by that of their row at the nearest size."""
    states = list(states)
    rates: dict[str, dict[str, list[float]]] = {}
    for run in states:
        if run.rate and run.size != PRETRAINED:
            rates.setdefault(run.label, {}).setdefault(run.size, []).append(run.rate)

    def known(run: RunState) -> RunState:
        row = rates.get(run.label)
        if run.left is not None or not row or run.words is None or run.size == PRETRAINED:
            return run
        near = min(row, key=lambda size: abs(math.log(parse_size(size) / parse_size(run.size))))
        rate = median(row[near])
        return replace(run, left=max(0.0, run.words - (run.seen or 0)) / rate)

    return [known(run) for run in states]
