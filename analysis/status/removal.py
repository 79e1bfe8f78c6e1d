"""Removal of a study's runs: one, those whose training failed, those that never began, or all.

A run's line in the grid goes too, so that it is not missing. Nothing outside the study's folder is touched.
"""

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
            f"remove={remove}: training failed in no run of study={folder.name}; {unscored} whose scoring failed are "
            "trained (remove=RUN removes one, with its weights)"
        )
    if not runs:
        raise ConfigError(
            f"remove={remove}: names no run of study={folder.name}; must be a run's name, the 8 digits at its end, "
            f"{ALL_FAILED}, {ALL_MISSING} or {STUDY}"
        )
    return runs


def training_failed(run: Path) -> bool:
    """True if a run's training ended with an error; False if its files are damaged, or only its scoring failed."""
    try:
        return RunFolder(run).read_manifest().get("status") == FAILED
    except RunError:
        return False


def described(folder: Path, runs: Sequence[RunState], remove: str) -> list[str]:
    """Return lines that describe what would be removed."""
    size = sum(run.bytes for run in runs) / 2**20
    study = f"all of study={folder.name}, " if remove == STUDY else ""
    lines = [f"remove {study}{_counted(len(runs), 'run')}, {size:,.0f} MiB, from {folder}:"]
    lines += [f"  {run.name} ({run.state}): {_contents(folder / run.run, run)}" for run in runs[:20]]
    return lines + ([f"  and {len(runs) - 20} more"] if len(runs) > 20 else [])


def _contents(path: Path, run: RunState) -> str:
    """List the contents of a run: its weights, checkpoints, snapshots and scores."""
    if run.state == MISSING:
        return "only its line of the grid"
    folder = RunFolder(path)
    parts = []
    if folder.weights.exists() or folder.ngrams.exists():
        unfinished = run.state == STOPPED or (run.state == BROKEN and training_failed(path))
        parts.append("weights of unfinished training" if unfinished else "trained weights")
    elif run.trained:
        parts.append("no weights (the model is elsewhere)")
    for files, noun in ((folder.checkpoints, "checkpoint"), (folder.snapshot_files, "snapshot")):
        parts += [_counted(len(files), noun)] if files else []
    benchmarks = scored_on(folder)
    parts.append(f"scores on {', '.join(benchmarks)}" if benchmarks else "no scores")
    return ", ".join(parts)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def confirmed(yes: bool, ask: Callable[[str], str] = input) -> bool:
    """True if the user agrees. Raises ConfigError without `yes` or a terminal to ask in."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError("remove: needs a confirmation, and there is no terminal to ask; add yes=true")
    return ask("Remove them? [y/N] ").strip().lower() in ("y", "yes")


def remove_runs(folder: Path, runs: Sequence[RunState], whole_study: bool = False) -> None:
    """Remove runs and their lines in the grid of the study in `folder`; with `whole_study`, the rest of it too.

    Raises RunInUse, before anything is removed, while a process works on one of them.
    """
    busy = [run.run for run in runs if run.state == RUNNING]
    if busy:
        raise RunInUse(f"{folder}: a process works on {', '.join(busy[:3])}; stop it first, nothing was removed")
    if not read_grid(folder) and not whole_study and (unknown := [r.name for r in runs if r.state == MISSING]):
        raise ConfigError(f"remove={unknown[0]}: has no folder; only experiment={folder.name} requests it")
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
    """Remove a run's folder under its lock."""
    if run.path.is_symlink():
        run.path.unlink()
        return
    with run.locked():
        run.discard()
