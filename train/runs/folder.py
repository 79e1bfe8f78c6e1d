"""Define the run folder. `RunFolder` knows every path in it, and `MetricsFile` the rows of its metrics.csv.

    runs/<study>/<run_id>/
        config.yaml          resolved configuration, written before work starts
        manifest.json        status, digests, versions, device, speed, time, cost (schema: MANIFEST_VERSION)
        metrics.csv          one row per log point or validation, by words seen
        progress.json        progress of training, updated every few seconds; removed when the run is done
        checkpoints/         everything needed to resume; removed when the run is done (train/loop/state.py)
        snapshots/           the weights after chosen numbers of words, for trajectories (train/loop/snapshots.py)
        model/               everything needed for scoring, as a Hugging Face folder (train/runs/model_folder.py)
        scores/<benchmark>/  score files (eval/scores/files.py)
        finetuned/<task>/seed-<n>/  results of fine-tuning (train/finetune)
        tracking.log         tracebacks of trackers that failed (train/trackers/tracker.py)

This module does not import torch, so that the analysis can read run folders.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pairscale.errors import RunError, RunInUse
from pairscale.files import LOCK, atomic_path, only_process, write_json
from pairscale.schema import parse_json, read_json, read_yaml
from train.config import RunConfig, run_id
from train.runs.schemas import (
    MANIFEST_VERSION,
    Manifest,
    StoredConfig,
    StoredModelConfig,
    TrainingState,
    Weights,
    check_stored,
)

DONE = "done"
NO_STUDY = "single"  # folder for runs without a study
GRID = "grid"  # folder in a study's folder that records which runs its sweeps requested
UNFINISHED = "unfinished"
FAILED = "failed"
_BY_STEP = re.compile(r"(\d+)-[0-9a-f]{16}")  # name of a checkpoint or snapshot, made of step and digest
AGAIN = "Remove the run's folder to train it again"
LOOK_SECONDS = 0.5  # how long to wait for a lock, because `in_use` can take it for a moment
COLUMNS = (
    "step",
    "words_seen",
    "epoch",
    "lr",
    "train_nats_per_token",
    "valid_nats_per_word",
    "valid_ppl",
    "valid_ppl_without_eos",
    "valid_ppl_without_unk",
    "valid_oov_rate",
)
MASKED_COLUMNS = ("valid_pseudo_nats_per_word", "valid_pseudo_ppl")  # only for masked models


class ModelFolder:
    """The paths in a model's folder, which is RUN/model or a copy of it."""

    def __init__(self, path: Path):
        self.path = path
        self.weights = path / "model.safetensors"
        self.ngrams = path / "model.kenlm"
        self.description = path / "pairscale.json"
        self.tokenizer = path / "tokenizer"

    def digest(self) -> str | None:
        """Return the digest of the weights in pairscale.json, or None if there is no such file.

        Raises RunError if the file is damaged.
        """
        return read_json(self.description, Weights, RunError, AGAIN)["digest"] if self.description.exists() else None


@dataclass
class RunFolder:
    """The paths and the manifest of one run."""

    path: Path

    def __post_init__(self) -> None:
        self.config = self.path / "config.yaml"
        self.manifest = self.path / "manifest.json"
        self.metrics = self.path / "metrics.csv"
        self.progress = self.path / "progress.json"
        self.lock = self.path / LOCK
        self.checkpoint_folder = self.path / "checkpoints"
        self.model = ModelFolder(self.path / "model")

    @classmethod
    def of(cls, config: RunConfig) -> RunFolder:
        """Return the folder of a run. It may not exist yet."""
        return cls(Path(config.paths.runs) / (config.study or NO_STUDY) / run_id(config))

    def checkpoint(self, step: int, digest: str) -> Path:
        """Return the path of a checkpoint after `step` steps. `digest` is the hexadecimal SHA-256 of its bytes."""
        return self.checkpoint_folder / f"{step}-{digest[:16]}.ckpt"

    @property
    def checkpoints(self) -> list[Path]:
        """The existing checkpoints, newest first."""
        return [path for _, path in reversed(_by_step(self.checkpoint_folder.glob("*.ckpt")))]

    def remove_checkpoints(self) -> None:
        """Remove all checkpoints, which a finished run no longer needs."""
        if self.checkpoint_folder.exists():
            shutil.rmtree(self.checkpoint_folder)

    def snapshot(self, step: int, digest: str) -> Path:
        """Return the path of a snapshot after `step` steps. `digest` is the hexadecimal SHA-256 of its bytes."""
        return self.path / "snapshots" / f"{step}-{digest[:16]}.safetensors"

    @property
    def snapshots(self) -> dict[int, Path]:
        """The existing snapshots, by step."""
        return dict(self.snapshot_files)

    @property
    def snapshot_files(self) -> list[tuple[int, Path]]:
        """All snapshots with their steps, in order. A step may have two until a resumed run repeats it."""
        return _by_step(self.path.glob("snapshots/*.safetensors"))

    def scores(self, benchmark: str) -> Path:
        """Return the folder with the score files of one benchmark."""
        return self.path / "scores" / benchmark

    def finetuned(self, task: str, seed: int) -> RunFolder:
        """Return the folder with the results of fine-tuning, which has a manifest and a lock of its own."""
        return RunFolder(self.path / "finetuned" / task / f"seed-{seed}")

    def read_config(self) -> dict[str, Any]:
        """Return config.yaml as plain data that fits StoredConfig. Raises RunError if it is missing or damaged."""
        config = read_yaml(self.config, StoredConfig, RunError, AGAIN)
        check_stored(config, self.config, AGAIN)
        return cast(dict[str, Any], config)

    def read_model_config(self) -> dict[str, Any]:
        """Return `model` of config.yaml, where other groups may be missing. Raises the same errors as `read_config`."""
        return cast(dict[str, Any], read_yaml(self.config, StoredModelConfig, RunError, AGAIN)["model"])

    def read_manifest(self) -> dict[str, Any]:
        """Return manifest.json, which fits Manifest, or {} if there is none. Raises RunError if it is damaged."""
        if not self.manifest.exists():
            return {}
        return cast(dict[str, Any], read_json(self.manifest, Manifest, RunError, AGAIN, MANIFEST_VERSION))

    def update_manifest(self, **values: Any) -> dict[str, Any]:
        """Add `values` to manifest.json and return its contents.

        Raises RunError if the file is damaged, and WriteError if it can't be written.
        """
        manifest = {"version": MANIFEST_VERSION, **self.read_manifest(), **values}
        write_json(self.manifest, manifest)
        return manifest

    def read_progress(self) -> TrainingState:
        """Return the progress of training, which is empty in the first seconds. Raises RunError if it is damaged."""
        try:
            text = self.progress.read_bytes()
        except FileNotFoundError:
            return TrainingState()
        return parse_json(text, TrainingState, self.progress, RunError, "remove it, and training will write it again")

    @property
    def done(self) -> bool:
        """True if training ended and the model for scoring exists."""
        return self.read_manifest().get("status") == DONE

    def check_done(self) -> None:
        """Raise RunError unless the run is done, even if its folder already has a model."""
        if not self.done:
            status = self.read_manifest().get("status", "not started")
            raise RunError(f"{self.path}: this run is not done (status: {status}). Train it before you score it.")

    @property
    def in_use(self) -> bool:
        """True if a process is working on the run, here or on another machine that shares the file system.

        A process holds the run's lock until it ends. This check takes the lock, too, but for less than a millisecond.
        """
        try:
            file = os.open(self.lock, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            # ENOSYS: on a file system without locks, the lock file exists only while FileLock holds it.
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.ENOSYS):
                return True
            raise
        finally:
            os.close(file)
        return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run for this process, and remove temporary files that killed processes left.

        Raises RunInUse if another process is working on the run, and WriteError if the lock can't be written.
        """
        with only_process(self.lock, self.path, wait=LOOK_SECONDS) as alone:
            if not alone:
                raise RunInUse(
                    f"{self.path}: another process is working on this run, so this one (process {os.getpid()}) "
                    "stopped. Run the command again later."
                )
            yield

    def discard(self) -> None:
        """Remove the folder. The caller must hold its lock. It is renamed first, so that nobody reads a part of it."""
        hidden = self.path.with_name(f".{self.path.name}.{os.getpid()}.removed")
        os.rename(self.path, hidden)
        shutil.rmtree(hidden)


def _by_step(paths: Iterable[Path]) -> list[tuple[int, Path]]:
    """Return the files whose names are a step and a digest, with their steps, in order."""
    named = ((_BY_STEP.fullmatch(path.stem), path) for path in paths)
    return sorted((int(match[1]), path) for match, path in named if match)


def study_runs(runs: str | Path, study: str, run: str | None = None) -> list[RunFolder]:
    """Return the run folders of a study in alphabetical order, or only the one that `run` names.

    Args:
        runs: the folder of all studies.
        study: the name of the study.
        run: the name of a run's folder, or the 8 digits at its end; None for all runs.

    Raises:
        RunError: if there is no such study or run.
    """
    folder = Path(runs) / study
    if not folder.is_dir():
        studies = sorted(path.name for path in Path(runs).glob("*") if path.is_dir())
        there = f"Choose one of {', '.join(studies)}." if studies else "There are no studies."
        raise RunError(f"There is no study '{study}' in {runs}. {there}")
    folders = [RunFolder(path.parent) for path in sorted(folder.glob("*/config.yaml"))]
    if run is None:
        return folders
    chosen = [one for one in folders if run in (one.path.name, one.path.name.rpartition("-")[2])]
    if not chosen:
        raise RunError(f"run={run}: study={study} contains no such run. Give a run's full name or its last 8 digits.")
    return chosen


class MetricsFile:
    """The file metrics.csv, with one row per log point or validation.

    Rows are keyed by step and don't contain times. So the file depends only on the configuration, and a resumed run
    writes the same file. `columns` begins with "step".
    """

    def __init__(self, path: Path, columns: tuple[str, ...] = COLUMNS):
        """Read the rows that exist. Raises RunError if the file is damaged."""
        self.path = path
        self.columns = columns
        self.rows = _read_metrics(path, columns) if path.exists() else []

    def forget_after(self, step: int) -> None:
        """Drop the rows after `step`. A run that resumes there writes them again."""
        self.rows = [row for row in self.rows if int(row["step"]) <= step]

    def add(self, step: int, values: dict[str, float]) -> None:
        """Add values to the row of a step."""
        if not self.rows or int(self.rows[-1]["step"]) != step:
            self.rows.append(dict.fromkeys(self.columns, "") | {"step": str(step)})
        self.rows[-1].update({name: repr(value) for name, value in values.items()})

    def at(self, step: int) -> dict[str, float]:
        """Return the values of `step` if its row is the last one so far, else {}."""
        if not self.rows or int(self.rows[-1]["step"]) != step:
            return {}
        return numbers(self.rows[-1])

    def write(self) -> None:
        """Write the file atomically."""
        with atomic_path(self.path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            masked = any(row.get(name) for row in self.rows for name in MASKED_COLUMNS)
            writer = csv.DictWriter(file, self.columns + MASKED_COLUMNS if masked else self.columns)
            writer.writeheader()
            writer.writerows(self.rows)


def _read_metrics(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows of metrics.csv after step 0. Empty cells of MASKED_COLUMNS are left out.

    Raises RunError if the file is damaged.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows, found = list(reader), reader.fieldnames or []
        if missing := {"step", "valid_ppl", "valid_oov_rate"}.intersection(columns).difference(found):
            raise ValueError(f"missing columns: {', '.join(sorted(missing))}")
        for row in rows:
            if None in row or None in row.values():
                raise ValueError(f"step {row['step']}: the number of cells differs from the number of columns")
            numbers(row)
        rows = [{name: text for name, text in row.items() if text or name in columns} for row in rows]
        return [row for row in rows if int(row["step"])]
    except (ValueError, csv.Error) as error:
        raise RunError(f"{path}: this file can't be read ({error}). {AGAIN}.") from None


def numbers(row: Mapping[str, str]) -> dict[str, float]:
    """Return the non-empty cells of a row as numbers."""
    return {name: float(text) for name, text in row.items() if text}


def exported_validation(path: Path, export: str) -> dict[str, float | None]:
    """Return valid_ppl and valid_oov_rate of the exported model (None if missing), or valid_pseudo_ppl if it is masked.

    Raises RunError if the metrics.csv at `path` is damaged.
    """
    rows = MetricsFile(path).rows
    for loss in ("valid_ppl", "valid_pseudo_ppl"):
        validated = [numbers(row) for row in rows if row.get(loss)]
        if validated:
            row = min(validated, key=lambda row: row[loss]) if export == "best" else validated[-1]
            return {"valid_ppl": None, "valid_oov_rate": row.get("valid_oov_rate")} | {loss: row[loss]}
    return {"valid_ppl": None, "valid_oov_rate": None}
