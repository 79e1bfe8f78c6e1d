"""Removal of a study's runs: one, those whose training failed, those that never began, or all of the study.

A run is removed with its line in the grid, so that nothing counts it as missing afterwards. Nothing outside of the
study's folder is touched: corpora in the store and reports stay.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from analysis.status.states import BROKEN, MISSING, RUNNING, STOPPED, UNSCORED, RunState, scored_on
from eval.grid import forget_runs, read_grid
from pairscale.errors import ConfigError, RunError, RunInUse
from train.runs.folder import FAILED, GRID, RunFolder

ALL_FAILED, ALL_MISSING, STUDY = "failed", "missing", "study"
OTHERS = (GRID, "local", "slurm", "multirun.yaml")  # what commands leave in a study's folder beside runs


def selected(folder: Path, states: Sequence[RunState], remove: str) -> list[RunState]:
    """Return the runs that `remove` names: a run, its digest, or failed, missing or study.

    Raises ConfigError where it names none.
    """
    if remove == STUDY:
        return list(states)
    if remove == ALL_MISSING:
        runs = [state for state in states if state.state == MISSING]
    elif remove == ALL_FAILED:
        runs = [state for state in states if state.state == BROKEN and training_failed(folder / state.run)]
    else:
        runs = [state for state in states if remove in (state.run, state.name, state.run.rpartition("-")[2])]
    if remove == ALL_FAILED and not runs and (unscored := sum(state.state == UNSCORED for state in states)):
        raise ConfigError(
            f"remove={remove}: training failed in no run of study={folder.name}; {unscored} that are trained, and "
            "whose scoring failed, are not removed so (remove=RUN removes one, with its weights)"
        )
    if not runs:
        raise ConfigError(
            f"remove={remove}: names no run of study={folder.name}; must be a run's name, the 8 digits at its end, "
            f"{ALL_FAILED}, {ALL_MISSING} or {STUDY}"
        )
    return runs


def training_failed(run: Path) -> bool:
    """True if a run's training ended with an error; not where its files are damaged, or only its scoring failed."""
    try:
        return RunFolder(run).read_manifest().get("status") == FAILED
    except RunError:
        return False


def described(folder: Path, runs: Sequence[RunState], remove: str) -> list[str]:
    """Return lines that describe what would be removed."""
    size = sum(run.bytes for run in runs) / 2**20
    what = f"all of study={folder.name}, " if remove == STUDY else ""
    lines = [f"remove {what}{len(runs)} run{'s' if len(runs) > 1 else ''}, {size:,.0f} MiB, from {folder}:"]
    lines += [f"  {run.name} ({run.state}): {_contents(folder / run.run, run)}" for run in runs[:20]]
    return lines + ([f"  and {len(runs) - 20} more"] if len(runs) > 20 else [])


def _contents(folder: Path, run: RunState) -> str:
    """Describe what would be lost with a run: its weights, checkpoints, snapshots and scores."""
    if run.state == MISSING:
        return "only its line of the grid"
    there = RunFolder(folder)
    parts = []
    if there.weights.exists() or there.ngrams.exists():
        unfinished = run.state == STOPPED or (run.state == BROKEN and training_failed(folder))
        parts.append("weights of unfinished training" if unfinished else "trained weights")
    elif run.trained:
        parts.append("no weights (the model lies elsewhere)")
    if checkpoints := len(there.checkpoints):
        parts.append(f"{checkpoints} checkpoint{'s' if checkpoints > 1 else ''}")
    if snapshots := len(there.snapshot_files):
        parts.append(f"{snapshots} snapshot{'s' if snapshots > 1 else ''}")
    benchmarks = scored_on(there)
    parts.append(f"scores on {', '.join(benchmarks)}" if benchmarks else "no scores")
    return ", ".join(parts)


def confirmed(yes: bool, ask: Callable[[str], str] = input) -> bool:
    """True if the user agrees. Raises ConfigError where nobody can be asked and `yes` does not say so."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError("remove: nothing is removed unless it is confirmed; add yes=true")
    return ask("Remove them? [y/N] ").strip().lower() in ("y", "yes")


def remove_runs(folder: Path, runs: Sequence[RunState], whole_study: bool = False) -> None:
    """Remove runs and their lines in the grid of the study in `folder`; with `whole_study` also what lies beside them.

    Raises RunInUse, before anything is removed, where a process is at work on one of them.
    """
    busy = [run.run for run in runs if run.state == RUNNING]
    if busy:
        raise RunInUse(f"{folder}: a process is at work on {', '.join(busy[:3])}; stop it first, nothing was removed")
    if not read_grid(folder) and not whole_study and (unknown := [r.name for r in runs if r.state == MISSING]):
        raise ConfigError(f"remove={unknown[0]}: experiment={folder.name} asks for it, and there is nothing of it here")
    for run in runs:
        if run.state != MISSING:
            _remove(RunFolder(folder / run.run))
    forget_runs(folder, {run.run for run in runs})
    if whole_study:
        for path in (folder / name for name in OTHERS):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def _remove(run: RunFolder) -> None:
    """Remove a run's folder while no other process can be at work in it."""
    if run.path.is_symlink():
        run.path.unlink()
        return
    with run.locked():
        run.discard()
