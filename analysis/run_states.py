"""Read the state of each run of a study from its lock, manifest, progress and score files.

`python -m analysis.status` answers at once, because this module neither loads models nor imports pandas, except for
the accuracies of runs whose snapshots are scored while they are trained.
"""

import os
from collections.abc import Collection, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal, get_args

from pairscale.errors import RunError
from pairscale.sizes import parse_size
from train.recipes import BudgetConfig
from train.runs.folder import DONE, FAILED, RunFolder
from train.runs.labels import name_curves
from train.sweeps import RequestedRun

State = Literal["scored", "trained", "scoring failed", "running", "stopped", "failed", "damaged", "missing"]
MARKS: dict[State, str] = dict(zip(get_args(State), "#t!>~x?.", strict=True))
EARLY = 8  # most snapshots whose accuracies are shown while a run trains
_NO_SCORES = {"items", "tokens", "topk", "regions"}  # files in folders of scores that don't contain scores


@dataclass
class RunState:
    """A run of a study, with its place in the table and its progress. Unknown numbers are None."""

    run: str  # name of its folder
    name: str  # same as `run`, or the settings of its sweep if it has no folder
    request: RequestedRun | None
    config: Mapping[str, Any]  # {} if it is damaged
    state: State = "missing"
    label: str = ""  # name of its curve
    size: int = 0  # words of its sample; 0 for a pretrained model
    seed: int = 0
    scored_on: tuple[str, ...] = ()  # labels of benchmarks
    tuned: tuple[tuple[str, str], ...] = ()  # for each fine-tuning, the name of its task, and "done" or "unfinished"
    reason: str = ""  # last lines of the errors that stopped it
    commands: tuple[str, ...] = ()  # commands that repeat the scoring that failed
    seen: int = 0  # words read so far
    early: str = ""  # accuracies at the latest snapshots that were scored, while it is trained
    words: float | None = None  # words read by the end of training
    rate: float | None = None  # words per second
    wall: float = 0.0  # seconds of training so far
    cost: Mapping[str, float] = field(default_factory=dict)  # hours of training so far, by unit
    left: float | None = 0.0  # seconds of training left
    device: str = ""
    mib: float = 0.0


def run_states(folder: Path, requested: Mapping[str, RequestedRun]) -> list[RunState]:
    """Return the runs in a study's folder and the runs that its sweeps requested, with their states.

    A run is scored if it has scores on every benchmark that was requested for it. A run that wasn't requested needs
    scores on every benchmark of the study, or on any benchmark if the study has none.
    """
    folders = {path.parent.name: RunFolder(path.parent) for path in sorted(folder.glob("*/config.yaml"))}
    of_study = frozenset[str]().union(*(one.benchmarks for one in requested.values()))
    states = [RunState(run, one.point, one, one.config) for run, one in requested.items()]
    states += [RunState(run, run, None, {}) for run in folders if run not in requested]
    for one in states:
        if one.run in folders:
            one.name = one.run
            try:
                _read(one, folders[one.run], one.request.benchmarks if one.request else of_study)
            except RunError as error:
                one.state, one.reason = "damaged", str(error)
    read = {one.run: one.config for one in states if one.config}
    ours = {run: config for run, config in read.items() if {"path", "checkpoint"}.isdisjoint(config["model"])}
    curves = name_curves(ours).names
    for one in states:
        one.label = curves.get(one.run) or (one.config["model"]["name"] if one.config else one.run)
        if one.run in ours:
            budget, sample = BudgetConfig(**one.config["recipe"]["budget"]), one.config["sample"]
            one.size, one.seed = parse_size(sample["size"]), int(one.config["seed"])
            if one.words is None and (budget.words or sample["count"] == "words"):
                one.words = budget.words_seen(one.size)
    for one in states:
        if one.state in ("running", "stopped", "missing") and one.size:
            rates = [one.rate] if one.rate else [of.rate for of in states if of.label == one.label and of.rate]
            one.left = max(0.0, one.words - one.seen) / median(rates) if one.words is not None and rates else None
    return states


def _read(one: RunState, run: RunFolder, benchmarks: Set[str]) -> None:
    """Read the state of a run from its folder. Raises RunError if files are damaged."""
    files = [path for path in run.scores("").glob("*/*.parquet") if path.stem not in _NO_SCORES]
    one.scored_on = tuple(sorted({path.parent.name for path in files if "@" not in path.stem}))  # "@": of a snapshot
    one.tuned = tuple((path.parent.name, _tuned(path)) for path in sorted(run.path.glob("finetuned/*/seed-*")))
    one.mib = _mib(run.path)
    one.config = run.read_config()
    manifest = run.read_manifest()
    one.wall, one.device = manifest.get("wall_s", 0.0), manifest.get("machine", {}).get("device", "")
    one.cost = manifest.get("cost", {})
    failures, commands = manifest.get("scoring_failed", {}), manifest.get("scoring_commands", {})
    has_failed = manifest.get("status") == FAILED
    reasons = {"training": manifest.get("reason") or "no reason was recorded"} if has_failed else {}
    reasons |= {f"scoring on {label}": why for label, why in failures.items()}
    one.reason = "; ".join(f"{of}: {why.strip().rpartition(chr(10))[2].strip()}" for of, why in reasons.items())
    if is_trained := manifest.get("status") == DONE:
        one.seen = one.words = manifest.get("words_seen", 0)
        one.rate = manifest.get("words_per_s")
    else:
        progress = run.read_progress()
        one.seen, one.words, one.rate = progress.words_seen or 0, progress.words, progress.words_per_s
    if run.in_use:
        one.state = "running"
        one.reason = "scoring" if is_trained else ""
        if not is_trained and (steps := [int(path.stem.rpartition("@")[2]) for path in files if "@" in path.stem]):
            one.early = _early(run, {*steps})
    elif is_trained:
        names = {label.partition("+")[0] for label in one.scored_on}
        is_complete = benchmarks <= names if benchmarks else bool(names)
        one.state = "scoring failed" if failures else "scored" if is_complete else "trained"
        usual = f"python -m eval study={run.path.parent.name} benchmark="
        one.commands = tuple(commands.get(label, usual + label.partition("+")[0]) for label in failures)
    else:
        one.state = "failed" if has_failed else "stopped"


def _early(run: RunFolder, steps: Collection[int]) -> str:
    """Describe the overall accuracy at the latest snapshots with scores, by benchmark and method.

    Raises RunError if a file is damaged.
    """
    from eval.scores.accuracy import snapshot_point  # imports pandas, which most studies don't need

    points = [point for step in sorted(steps)[-EARLY:] if (point := snapshot_point(run, step))]
    words = ", ".join(f"{point['words_seen']:,}" for point in points)
    curves = []
    for key in sorted({key for point in points for key in point if key.endswith("/overall")}):
        _, benchmark, method, _ = key.split("/")
        shares = ", ".join(f"{100 * point[key]:.1f}" if key in point else "?" for point in points)
        curves.append(f"{benchmark} {shares}% ({method})")
    return f"correct after {words} words: {'; '.join(curves)}" if curves else ""


def _tuned(path: Path) -> str:
    """Return "done" or "unfinished" for the folder of a fine-tuning. It is unfinished if its manifest is damaged."""
    with suppress(RunError):
        return DONE if RunFolder(path).done else "unfinished"
    return "unfinished"


def _mib(folder: Path) -> float:
    """Return the disk space of a folder in MiB. A file that disappears in the meantime counts as 0."""
    blocks = 0
    for path, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):
                blocks += os.lstat(os.path.join(path, name)).st_blocks
    return blocks / 2**11
