"""Define the schemas of a run's files: config.yaml, manifest.json, model/pairscale.json and progress.json."""

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
    text: str  # digest of the text
    tokenizer: str  # digest of the tokenizer
    vocabulary: Positive
    sample: _Sample


class _Git(TypedDict, total=False):
    commit: str | None
    difference: str | None


class _Machine(TypedDict, total=False):
    device: str
    threads: Positive


class Manifest(TypedDict, total=False):
    """The schema of the part of manifest.json that is read back. Any key may be missing, because a new run has few."""

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
    source: dict[str, str]  # files that an imported model was made from
    sample_words: Positive
    sample_digest: str
    digest: str  # digest of a pretrained model's weights
    tokenizer_digest: str
    tokenizer_path: str | None  # the folder above a pretrained model's own, if its tokenizer is there
    tokens: Count | None  # tokens in the sample or, for a pretrained model, in its training text; null: unknown
    step: Count | None
    vocabulary: Positive
    parameters: Positive
    words_seen: Count
    words_per_s: NonNegative | None
    wall_s: NonNegative
    cost: dict[str, NonNegative]  # gpu_hours or core_hours
    export: str
    last: dict[str, float]  # last validation, by column of metrics.csv; NaN for a perplexity that is not defined
    stuck: str | None  # warning about the exported model (train.loop.perplexity.Perplexity.stuck)
    damaged_checkpoints: list[str]
    scoring_failed: dict[str, str]  # reasons why scoring failed, by benchmark label
    scoring_commands: dict[str, str]  # commands that scored the run, by benchmark label


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
    """The schema of the part of config.yaml that scoring reads."""

    model: _StoredModel


class StoredConfig(StoredModelConfig):
    """The schema of the part of config.yaml that is read back."""

    sample: _StoredSample
    seed: Count
    study: NotRequired[str | None]
    corpus: NotRequired[_StoredCorpus]
    tokenizer: NotRequired[_StoredTokenizer]
    recipe: NotRequired[_StoredRecipe | None]


def check_stored(config: StoredConfig, where: Path, remedy: str) -> None:
    """Raise RunError if the sample size in a stored configuration is impossible."""
    try:
        parse_size(config["sample"].get("size", "1"))
    except ConfigError as error:
        raise RunError(f"{where}: {str(error).rstrip('.')}; {remedy}.") from None


class Weights(TypedDict):
    """The schema of the part of pairscale.json that is read without the model (see train/runs/model_folder.py)."""

    digest: Digest


class TrainingState(msgspec.Struct, frozen=True):
    """The schema of progress.json."""

    words_seen: Count | None = None  # words seen so far
    words: NonNegative | None = None  # words seen at the end of the run
    words_per_s: NonNegative | None = None  # speed of this attempt
    at: str | None = None  # time of the last update
