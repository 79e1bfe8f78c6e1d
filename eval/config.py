"""The types of the configuration groups `benchmark`, `method` and `policy` (values: conf/)."""

from __future__ import annotations

from dataclasses import dataclass, field

from omegaconf import MISSING

from corpora.config import NOT_IN_DIGEST
from corpora.errors import ConfigError, check_choice
from train.config import PRECISIONS, RunConfig

CONTEXTS = ("none", "eos", "text")
TIES = ("wrong", "half", "right")
UNKNOWN = ("score", "skip")
PREFIX_SPANS = ("sum", "first", "last", "as_published")


@dataclass
class BenchmarkConfig:
    """A set of minimal pairs."""

    name: str = MISSING
    path: str | None = None  # a local folder
    dataset: str | None = None  # or a data set of the Hugging Face hub
    paradigms: list[str] | None = None  # null: all
    pairs: int | None = None  # the first so many of each paradigm; null: all
    seed: int | None = None  # toy: of the pairs
    per_paradigm: int | None = None  # toy: pairs to make of each paradigm

    def __post_init__(self) -> None:
        if self.pairs is not None and self.pairs < 1:
            raise ConfigError(f"benchmark.pairs={self.pairs}: must be above 0, or null for all")


@dataclass
class MethodConfig:
    """One judgement method; the fields that it does not use stay null."""

    alpha: float | None = None  # pen_lp: exponent of the length penalty
    prefix_span: str | None = None  # one_prefix, two_prefix: which tokens of the critical words count

    def __post_init__(self) -> None:
        if self.prefix_span is not None:
            check_choice("prefix_span", self.prefix_span, PREFIX_SPANS)


@dataclass
class PolicyConfig:
    """How a string is scored: recorded in each score file; files of different policies are never mixed."""

    context: str = MISSING
    context_tokens: int = MISSING  # context=eos: how many <eos> stand before the sentence
    context_text: str | None = None  # context=text: the text
    score_eos: bool | None = None  # null: true for our word models, false elsewhere
    unk: str = MISSING  # score as <unk>, or skip the token
    precision: str = MISSING

    def __post_init__(self) -> None:
        check_choice("policy.context", self.context, CONTEXTS)
        check_choice("policy.unk", self.unk, UNKNOWN)
        check_choice("policy.precision", self.precision, PRECISIONS)
        if (self.context == "text") != (self.context_text is not None):
            raise ConfigError("policy.context=text and policy.context_text belong together: give both or neither")


@dataclass
class ScoringConfig:
    """Speed and extent of scoring; none of it changes a score."""

    batch_tokens: int = MISSING
    token_pairs: str = MISSING  # pairs per paradigm whose tokens are written to tokens.parquet: a number or "all"
    seed: int = MISSING  # draws those pairs

    def __post_init__(self) -> None:
        if self.batch_tokens < 1:
            raise ConfigError(f"scoring.batch_tokens={self.batch_tokens}: must be above 0")
        if self.token_pairs != "all" and not self.token_pairs.isdecimal():
            raise ConfigError(f"scoring.token_pairs={self.token_pairs}: must be a number of pairs per paradigm, or all")


@dataclass
class EvalConfig(RunConfig):
    """What `python -m eval` reads."""

    benchmark: BenchmarkConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    method: dict[str, MethodConfig] = field(default_factory=dict, metadata=NOT_IN_DIGEST)
    policy: PolicyConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    scoring: ScoringConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    ties: str = field(default=MISSING, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("ties", self.ties, TIES)
