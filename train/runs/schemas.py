"""Schemas of the files of a run that are read back: config.yaml, manifest.json, model/pairscale.json, progress.json."""

from pathlib import Path
from typing import Literal, NotRequired, TypedDict

import msgspec

from pairscale.errors import ConfigError, RunError
from pairscale.schema import Count, Digest, FolderName, NonNegative, Positive, Share
from pairscale.sizes import parse_size

MANIFEST_VERSION = 2


class _Sample(TypedDict, total=False):
    digest: str
    words: Positive
    overlap: Share | None


class _StoredCorpus(TypedDict, total=False):
    name: FolderName
    reference: str


class _Corpus(_StoredCorpus, total=False):
    text: str  # digest, as tokenizer
    tokenizer: str
    vocabulary: Positive
    sample: _Sample


class _Git(TypedDict, total=False):
    commit: str | None
    difference: str | None


class _Machine(TypedDict, total=False):
    device: str
    threads: Positive


class Manifest(TypedDict, total=False):
    """Schema of the part of manifest.json that is read back. All keys may be missing, as a run that begins has few."""

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
    tokenizer_path: str | None  # of such a model: the folder above its own if its tokenizer is there
    tokens: Count | None  # of the sample; of a model that comes trained: of its training text, null: unknown
    step: Count | None
    vocabulary: Positive
    parameters: Positive
    words_seen: Count
    words_per_s: NonNegative | None
    wall_s: NonNegative
    cost: dict[str, NonNegative]  # gpu_hours or core_hours
    export: str
    last: dict[str, float]  # columns of metrics.csv; NaN where a perplexity is not defined
    stuck: str | None  # of the exported model (train.loop.perplexity.Perplexity.stuck)
    damaged_checkpoints: list[str]
    scoring_failed: dict[str, str]  # label of a benchmark -> why
    scoring_commands: dict[str, str]  # the same labels -> the command that tried it


class _StoredModel(TypedDict):
    name: FolderName
    path: NotRequired[str]
    checkpoint: NotRequired[str]


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
    """Schema of the part of config.yaml that scoring reads."""

    model: _StoredModel


class StoredConfig(StoredModelConfig):
    """Schema of the part of config.yaml that is read back."""

    sample: _StoredSample
    seed: Count
    study: NotRequired[str | None]
    corpus: NotRequired[_StoredCorpus]
    tokenizer: NotRequired[_StoredTokenizer]
    recipe: NotRequired[_StoredRecipe | None]


def check_stored(config: StoredConfig, where: Path, remedy: str) -> None:
    """Raise RunError for an impossible size of a configuration's sample."""
    try:
        parse_size(config["sample"].get("size", "1"))
    except ConfigError as error:
        raise RunError(f"{where}: {error}; {remedy}") from None


class Weights(TypedDict):
    """Schema of the part of pairscale.json that is read without the model (all of it: train/runs/model_folder.py)."""

    digest: Digest


class TrainingState(msgspec.Struct, frozen=True):
    """Schema of progress.json: words seen so far, `words` at the end, speed of this attempt, and the time, `at`."""

    words_seen: Count | None = None
    words: NonNegative | None = None
    words_per_s: NonNegative | None = None
    at: str | None = None
