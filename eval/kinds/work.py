"""Define the steps of scoring: items -> texts -> a model's answers -> rows of score files.

`Work` is the base class of all kinds of items, and finds out which scores are missing. A subclass reads its items,
computes the missing scores, and prints them. Pairs have one score file per method (pairs.py). Other items have a fixed
set of files (items.py).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from rich.text import Text

from eval.config import EvalConfig, recorded_policy, score_label
from eval.scorers.base import Scorer
from eval.scores.files import read_metadata, score_path
from train.runs.folder import RunFolder


class Work(ABC):
    """The scores of one run on one benchmark that a command requests.

    Attributes:
        items: The items that `read` returns, with a `digest` and `notes` about anything unusual.
        moment: Step, words_seen and moment of the snapshot that the scorer loaded, or {} for the exported model.
        metadata: The metadata of each requested score file, by name.
        missing: Names of the requested score files that don't exist or contain other scores.
    """

    def __init__(self, run: RunFolder, config: EvalConfig, scorer: Scorer, moment: Mapping[str, Any] | None = None):
        """Find out which scores are missing. Raises the same errors as `read`, and RunError if a file is damaged."""
        self.run, self.config, self.scorer, self.moment = run, config, scorer, dict(moment or {})
        self.benchmark: Any = config.benchmark
        self.described = run.read_config()
        self.items = self.read(config, self.described)
        self.folder = run.scores(score_label(config.benchmark, config.policy))
        self.metadata: dict[str, dict[str, Any]] = {}
        self.missing: list[str] = []
        common = self.common_metadata()
        for name, own in self.requested():
            self.metadata[name] = common | own
            if not has_scores(self.path(name), self.metadata[name]):
                self.missing.append(name)

    @classmethod
    def check(cls, config: EvalConfig) -> None:
        """Read the items before a model is trained or loaded. Raises the same errors as `read`."""
        cls.read(config, {})

    @classmethod
    @abstractmethod
    def read(cls, config: EvalConfig, described: Mapping[str, Any]) -> Any:
        """Read the items. `described` is the run's configuration. Raises InputError if they cannot be read."""

    @abstractmethod
    def requested(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name of each requested score file, and metadata that only apply to this file."""

    @abstractmethod
    def score(self) -> None:
        """Compute the missing scores in one pass over the model, and write their files."""

    @property
    @abstractmethod
    def contents(self) -> str:
        """A description of what is scored, such as "8 contexts of 3 items"."""

    @abstractmethod
    def headline(self) -> dict[str, float | str]:
        """Return the main result, as fields of pairscale.progress.Result. It is printed in the run's line."""

    @abstractmethod
    def tables(self, width: int) -> Iterator[Table | Text | str]:
        """Yield tables and sentences about the scores, for a terminal that is `width` characters wide."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about anything missing or unusual in the items."""
        return tuple(self.items.notes)

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings of the benchmark that affect scores."""
        return {}

    @property
    def policy(self) -> dict[str, Any]:
        """The scoring settings that affect these scores, with nulls resolved for the model."""
        policy, scorer = self.config.policy, self.scorer
        return recorded_policy(policy, scorer.scores_eos(policy), scorer.pll_shift(policy))

    def common_metadata(self) -> dict[str, Any]:
        """Return the metadata that all score files share (eval.scores.schemas.AnswerMetadata)."""
        model = self.described["model"]
        items = {"name": self.benchmark.name, "digest": self.items.digest}
        name = model.get("path", model["name"])
        return score_metadata(name, self.scorer, items, self.parameters, self.policy) | self.moment

    def path(self, name: str) -> Path:
        """Return the path of a score file."""
        return score_path(self.folder, name, self.moment.get("step"))

    @property
    def title(self) -> str:
        """The names of the run and of its score folder."""
        return f"{self.run.path.name} · {self.folder.name}"

    @property
    def scored_already(self) -> str:
        """A suffix for the title of a table if all of its scores already existed, and "" otherwise."""
        return "" if self.missing else " (scored already)"


def score_metadata(
    name: str, scorer: Scorer, items: Mapping[str, str], parameters: Mapping[str, Any], policy: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metadata of a model's score files (eval.scores.schemas.AnswerMetadata).

    `items` contains the name and the digest of the benchmark.
    """
    return {
        "parameters": parameters,
        "policy": policy,
        "benchmark": items,
        "model": {"name": name, "digest": scorer.digest},
        "tokenizer_digest": scorer.tokenizer_digest,
        "step": None,
        "sample_words": scorer.sample_words,
        "torch": torch.__version__,
        **({"settings": scorer.settings} if scorer.settings else {}),
    }


def has_scores(path: Path, metadata: Mapping[str, Any]) -> bool:
    """Return True if a file contains the scores that `metadata` describes. Raises RunError if the file is damaged."""
    return path.exists() and comparable(read_metadata(path)) == comparable(metadata)


def comparable(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that determine scores. Torch's version, derived values and null settings are left out."""
    policy = {key: value for key, value in metadata["policy"].items() if value is not None}
    rest = {key: value for key, value in metadata.items() if key not in ("torch", "prompts", "drawn")}
    return rest | {"policy": policy}
