"""The run folder: one class owns every path in it, and its identity comes from the configuration alone.

    runs/<study>/<run_id>/
        config.yaml          resolved configuration, written before work starts
        manifest.json        status, digests, versions, device, speed (schema: MANIFEST_VERSION)
        metrics.csv          one row per log or validation, by words seen
        progress.json        how far training is, written every few seconds; gone when it is done
        checkpoints/         everything that resuming needs, until the run is done (train/loop/checkpoints.py)
        snapshots/           the weights at chosen words seen, for trajectories (train/loop/snapshots.py)
        model.safetensors, model.json, tokenizer/   everything that scoring needs (model.kenlm: of an n-gram model)
        scores/<benchmark>/  score files (eval/scores/files.py)

Imports no torch, so that the analysis can read run folders.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

import msgspec

from pairscale.errors import ConfigError, RunError, RunInUse, check_name
from pairscale.files import only_process, sha256_json, write_json
from pairscale.schema import Count, Digest, FolderName, NonNegative, Positive, Share, parse_json, read_json, read_yaml
from pairscale.sizes import parse_size
from train.config import RunConfig

MANIFEST_VERSION = 1
DONE = "done"
NO_STUDY = "single"  # folder of runs without one
GRID = "grid"  # folder in that of a study: the runs that its sweeps requested
UNFINISHED = "unfinished"
FAILED = "failed"
FIRST_CHECKPOINT = "last.ckpt"  # the only one, before names held step and digest
_CHECKPOINT = re.compile(r"(\d+)-[0-9a-f]{16}\.ckpt")
_SNAPSHOT = re.compile(r"(\d+)-[0-9a-f]{16}\.safetensors")
AGAIN = "remove the run's folder to train it again"
LOOK_SECONDS = 0.5  # a lock is waited for: `in_use` may hold it for a moment


class _Sample(TypedDict, total=False):
    digest: str
    words: Positive
    overlap: Share | None


class _Corpus(TypedDict, total=False):
    name: FolderName
    text: str  # digest, as tokenizer
    tokenizer: str
    reference: str
    vocabulary: Positive
    sample: _Sample


class _Git(TypedDict, total=False):
    commit: str | None
    difference: str | None


class _Machine(TypedDict, total=False):
    device: str
    threads: Positive


class Manifest(TypedDict, total=False):
    """Schema of manifest.json: what is read back of it. All keys may be missing, as a run that begins has few."""

    version: int
    status: Literal["done", "unfinished", "failed"]
    reason: str | None
    config_digest: str
    started: str
    ended: str
    attempts: Count
    git: _Git | None
    earlier_git: list[_Git]
    versions: dict[str, str | None]
    machine: _Machine
    corpus: _Corpus
    source: dict[str, str]  # of an imported model
    sample_words: Positive
    sample_digest: str
    digest: str  # of the weights of a model that comes trained
    tokenizer_digest: str
    tokenizer_path: str | None  # of such a model: the folder above its own, where its tokenizer lies in that
    tokens: Count | None  # of the sample; of a model that comes trained: of its training text, null: unknown
    step: Count | None
    vocabulary: Positive
    parameters: Positive
    steps: Count
    words_seen: Count
    words_per_s: NonNegative | None
    wall_s: NonNegative
    export: str
    last: dict[str, float]  # columns of metrics.csv; NaN where a perplexity is not defined
    best_nats_per_word: NonNegative
    stuck: str | None  # why the validation of the exported model measures hardly a model, where it does
    damaged_checkpoints: list[str]
    scoring_failed: dict[str, str]  # label of a benchmark -> why
    scoring_commands: dict[str, str]  # the same labels -> the command that tried it


class _StoredModel(TypedDict):
    name: FolderName
    path: NotRequired[str]
    checkpoint: NotRequired[str]


class _StoredCorpus(TypedDict, total=False):
    name: FolderName
    reference: str


class _StoredSample(TypedDict, total=False):
    size: str
    count: str
    nested: bool
    seed: Count | None


class _StoredTokenizer(TypedDict, total=False):
    name: FolderName
    fit_on: str


class _StoredBudget(TypedDict, total=False):
    epochs: NonNegative | None
    words: str | None


class _StoredRecipe(TypedDict, total=False):
    budget: _StoredBudget | None
    export: str
    bptt: Count


class StoredModelConfig(TypedDict):
    """Schema of what scoring reads of config.yaml."""

    model: _StoredModel


class StoredConfig(StoredModelConfig):
    """Schema of config.yaml: what is read back of a run's configuration, whatever else it holds."""

    sample: _StoredSample
    seed: Count
    study: NotRequired[str | None]
    corpus: NotRequired[_StoredCorpus]
    tokenizer: NotRequired[_StoredTokenizer]
    recipe: NotRequired[_StoredRecipe | None]


def check_stored(config: StoredConfig, where: Path, remedy: str) -> None:
    """Raise RunError where the size of a configuration's sample is none."""
    try:
        parse_size(config["sample"].get("size", "1"))
    except ConfigError as error:
        raise RunError(f"{where}: {error}; {remedy}") from None


class _Weights(TypedDict):
    """Schema of what is read of model.json without loading the model (train/runs/export.py has all of it)."""

    digest: Digest


class TrainingState(msgspec.Struct, frozen=True):
    """Schema of progress.json: words seen so far, `words` at the end, speed of this attempt, `at`: when that was."""

    words_seen: Count | None = None
    words: NonNegative | None = None
    words_per_s: NonNegative | None = None
    at: str | None = None


def _numbers(value: Any) -> Any:
    """Plain data of a configuration, without the fields that cannot change a number."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _numbers(getattr(value, f.name)) for f in dataclasses.fields(value) if _counts(f, value)}
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers(item) for item in value]
    return value


def _counts(field: dataclasses.Field[Any], owner: Any) -> bool:
    """Whether a field is part of a run's identity (NOT_IN_DIGEST and ADDED_LATER in corpora/config.py)."""
    if not field.metadata.get("added", False):
        return bool(field.metadata.get("digest", True))
    return not at_default(field, getattr(owner, field.name))


def at_default(field: dataclasses.Field[Any], value: Any) -> bool:
    """Whether a value is the default of its dataclass field."""
    factory = field.default_factory
    return bool(value == (field.default if factory is dataclasses.MISSING else factory()))


def config_digest(config: RunConfig) -> str:
    """Hexadecimal SHA-256 over all of the configuration that can change the numbers of the run."""
    return sha256_json(_numbers(config.model.identity(config)[1]))


def run_id(config: RunConfig) -> str:
    """Readable name of a run, with 8 hex digits of its configuration's digest."""
    return "-".join([*config.model.identity(config)[0], config_digest(config)[:8]])


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Paths and manifest of one run."""

    path: Path

    @classmethod
    def of(cls, config: RunConfig) -> RunFolder:
        """The folder of the run that `config` describes (which may not exist yet).

        Raises ConfigError where `study` names several.
        """
        if config.study is not None:
            check_name("study", config.study)
        return cls(Path(config.paths.runs) / (config.study or NO_STUDY) / run_id(config))

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.csv"

    @property
    def checkpoint_folder(self) -> Path:
        return self.path / "checkpoints"

    def checkpoint(self, step: int, digest: str) -> Path:
        """Path of the checkpoint after `step` optimiser steps whose bytes have this hexadecimal SHA-256."""
        return self.checkpoint_folder / f"{step}-{digest[:16]}.ckpt"

    @property
    def checkpoints(self) -> list[Path]:
        """The checkpoints that are there, the newest first."""
        found = [
            (int(match[1]), path) for path in self._checkpoint_files() if (match := _CHECKPOINT.fullmatch(path.name))
        ]
        first = [path for path in self._checkpoint_files() if path.name == FIRST_CHECKPOINT]
        return [path for _, path in sorted(found, reverse=True)] + first

    def _checkpoint_files(self) -> list[Path]:
        return list(self.checkpoint_folder.glob("*.ckpt"))

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints of a run that is done: there is nothing left to resume."""
        if self.checkpoint_folder.exists():
            shutil.rmtree(self.checkpoint_folder)

    def snapshot(self, step: int, digest: str) -> Path:
        """Path of the weights after `step` optimiser steps, in a file whose bytes have this hexadecimal SHA-256."""
        return self.path / "snapshots" / f"{step}-{digest[:16]}.safetensors"

    @property
    def snapshots(self) -> dict[int, Path]:
        """Step -> the snapshot that is there of it, by step."""
        return dict(self.snapshot_files)

    @property
    def snapshot_files(self) -> list[tuple[int, Path]]:
        """All snapshots with their steps, by step; two of a step until a run that went on elsewhere is there again."""
        found = [(_SNAPSHOT.fullmatch(path.name), path) for path in self.path.glob("snapshots/*.safetensors")]
        return sorted((int(match[1]), path) for match, path in found if match)

    @property
    def progress(self) -> Path:
        return self.path / "progress.json"

    @property
    def lock(self) -> Path:
        return self.path / ".lock"

    @property
    def weights(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def ngrams(self) -> Path:
        return self.path / "model.kenlm"

    @property
    def model(self) -> Path:
        return self.path / "model.json"

    @property
    def tokenizer(self) -> Path:
        return self.path / "tokenizer"

    def scores(self, benchmark: str) -> Path:
        """Folder of the score files of one benchmark."""
        return self.path / "scores" / benchmark

    def read_config(self) -> dict[str, Any]:
        """Return config.yaml as plain data, with the keys and types of StoredConfig. Raises RunError."""
        config = read_yaml(self.config, StoredConfig, RunError, AGAIN)
        check_stored(config, self.config, AGAIN)
        return cast(dict[str, Any], config)

    def read_model_config(self) -> dict[str, Any]:
        """Return the model's part of config.yaml, whatever is missing elsewhere in it. Raises RunError."""
        return cast(dict[str, Any], read_yaml(self.config, StoredModelConfig, RunError, AGAIN)["model"])

    def read_manifest(self) -> dict[str, Any]:
        """Return manifest.json, with the keys and types of Manifest; {} where there is none. Raises RunError."""
        if not self.manifest.exists():
            return {}
        return cast(dict[str, Any], read_json(self.manifest, Manifest, RunError, AGAIN, MANIFEST_VERSION))

    def model_digest(self) -> str | None:
        """Return the digest of the weights, as model.json has it; None where there is none. Raises RunError."""
        return read_json(self.model, _Weights, RunError, AGAIN)["digest"] if self.model.exists() else None

    def update_manifest(self, **values: Any) -> None:
        """Add `values` to manifest.json."""
        write_json(self.manifest, {"version": MANIFEST_VERSION, **self.read_manifest(), **values})

    def read_progress(self) -> TrainingState:
        """Return how far training is; an empty state before its first seconds. Raises RunError."""
        try:
            text = self.progress.read_bytes()
        except FileNotFoundError:
            return TrainingState()
        return parse_json(text, TrainingState, self.progress, RunError, "remove it: training writes it anew")

    @property
    def done(self) -> bool:
        """Whether training ended and the model for scoring is there."""
        return self.read_manifest().get("status") == DONE

    @property
    def in_use(self) -> bool:
        """Whether a process is at work on the run, here or on another machine that shares the file system.

        The lock tells, whatever the manifest says: it is let go when its process ends, however that ends. Looking at it
        takes it for less than a millisecond, together with others who look.
        """
        try:
            file = os.open(self.lock, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            # ENOSYS: a file system without locks, where FileLock has the file only as long as it is held.
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.ENOSYS):
                return True
            raise
        finally:
            os.close(file)
        return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out of this run, and remove the temporary files of killed ones.

        Raises RunInUse at once when one is at work in it, WriteError where the folder cannot be locked.
        """
        with only_process(self.lock, self.path, wait=LOOK_SECONDS) as alone:
            if not alone:
                raise RunInUse(f"{self.path}: another process is at work on this run ({os.getpid()} gave way)")
            yield

    def discard(self) -> None:
        """Remove the folder, first out of sight in one move, so that nobody finds a part of it. Call it locked."""
        hidden = self.path.with_name(f".{self.path.name}.{os.getpid()}.removed")
        os.rename(self.path, hidden)
        shutil.rmtree(hidden)


def study_runs(runs: str | Path, study: str) -> list[RunFolder]:
    """All run folders of a study that have a configuration, by name. Raises RunError when there is no such study."""
    folder = Path(runs) / study
    if not folder.is_dir():
        known = sorted(p.name for p in Path(runs).iterdir() if p.is_dir()) if Path(runs).is_dir() else []
        raise RunError(f"study={study}: no folder {folder}; studies there: {', '.join(known) or 'none'}")
    return [RunFolder(path.parent) for path in sorted(folder.glob("*/config.yaml"))]
