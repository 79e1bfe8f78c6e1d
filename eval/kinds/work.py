"""Scoring is one protocol: items -> texts -> the answers of a model -> rows of score files.

`Work` is what all kinds of items share: it finds the scores that are missing. A kind reads its items, computes missing
scores, and shows them. Pairs are judged by methods, each of which has a file (pairs.py); other items have fixed files
(items.py).
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
        items: what `read` returns: it has a `digest`, and `notes` on what is odd about the items.
        moment: step, words_seen and moment of the snapshot whose weights the scorer has; {} for the exported model.
        metadata: of each requested score file, by name.
        missing: names of the requested score files that are not there, or that contain other scores.
    """

    def __init__(self, run: RunFolder, config: EvalConfig, scorer: Scorer, moment: Mapping[str, Any] | None = None):
        """Compare the request with the files of a run. Raises as `read`, and RunError for damaged files."""
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
        """Read the items before a model is trained or loaded. Raises as `read`."""
        cls.read(config, {})

    @classmethod
    @abstractmethod
    def read(cls, config: EvalConfig, described: Mapping[str, Any]) -> Any:
        """Return the items; `described` is the run's configuration. Raises InputError."""

    @abstractmethod
    def requested(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name of each requested score file, and its metadata that other files do not have."""

    @abstractmethod
    def score(self) -> None:
        """Compute the missing scores in one pass over the model, and write their files."""

    @property
    @abstractmethod
    def contents(self) -> str:
        """What would be scored: "8 contexts of 3 items"."""

    @abstractmethod
    def headline(self) -> dict[str, float | str]:
        """Return what one line about the run says (fields of pairscale.progress.Result)."""

    @abstractmethod
    def tables(self, width: int) -> Iterator[Table | Text | str]:
        """Yield what a terminal of `width` characters shows of the score files."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what is missing or odd about the items."""
        return tuple(self.items.notes)

    @property
    def parameters(self) -> dict[str, Any]:
        """Settings of the benchmark on which scores depend."""
        return {}

    @property
    def policy(self) -> dict[str, Any]:
        """The scoring settings that matter here, as resolved for the model."""
        policy, scorer = self.config.policy, self.scorer
        return recorded_policy(policy, scorer.scores_eos(policy), scorer.pll_shift(policy))

    def common_metadata(self) -> dict[str, Any]:
        """Return the metadata that all files have (eval.scores.schemas.AnswerMetadata)."""
        model = self.described["model"]
        items = {"name": self.benchmark.name, "digest": self.items.digest}
        name = model.get("path", model["name"])
        return score_metadata(name, self.scorer, items, self.parameters, self.policy) | self.moment

    def path(self, name: str) -> Path:
        """Return the path of a score file."""
        return score_path(self.folder, name, self.moment.get("step"))

    @property
    def title(self) -> str:
        """The run and the folder of its scores."""
        return f"{self.run.path.name} · {self.folder.name}"

    @property
    def scored_already(self) -> str:
        """An addition to the title of a table whose scores were there."""
        return "" if self.missing else " (scored already)"


def score_metadata(
    name: str, scorer: Scorer, items: Mapping[str, str], parameters: Mapping[str, Any], policy: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metadata of score files of a model (eval.scores.schemas.AnswerMetadata); items: name and digest."""
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
    """Return True if a file has the scores that `metadata` describes. Raises RunError for a damaged file."""
    return path.exists() and comparable(read_metadata(path)) == comparable(metadata)


def comparable(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what files with the same scores share: not the version of torch, what follows from the rest, and nulls."""
    policy = {key: value for key, value in metadata["policy"].items() if value is not None}
    rest = {key: value for key, value in metadata.items() if key not in ("torch", "prompts", "drawn")}
    return rest | {"policy": policy}
