"""Configurations of scoring: the groups `benchmark` and `policy`, and what the commands of this room read."""

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from corpora.config import CorporaConfig, RootConfig
from eval.benchmarks.config import SYNTAXGYM, BenchmarkConfig, is_ratings
from eval.diagnostics.diagnostic import diagnostics
from eval.methods.method import typed
from pairscale.command.schemas import NOT_IN_DIGEST, AboveZero, Seed, Share, Texts
from pairscale.errors import ConfigError
from pairscale.files import sha256_json
from train.config import Precision, RunConfig, TrainerConfig
from train.models.config import ModelConfig

Few = Annotated[int, Meta(ge=0, le=10**6)]
Some = Annotated[int, Meta(ge=1, le=10**6)]
Ties = Literal["wrong", "half", "right"]  # what a pair with two equal scores counts as


@dataclass(kw_only=True)
class PolicyConfig:
    """How a string is scored: recorded in each score file; files of different policies are never mixed."""

    context: Literal["none", "eos", "text"]  # before the sentence and its begin symbol
    context_tokens: Annotated[int, Meta(ge=1, le=100_000)]  # context=eos: how many <eos> stand before the sentence
    context_text: str | None = None  # context=text: the text
    score_eos: bool | None = None  # null: true for our word models, false elsewhere
    unk: Literal["score", "skip"]  # score as <unk>, or skip the token
    precision: Precision  # of the pass over the model
    # Masked models: which tokens are hidden with the one that is scored.
    pll: Literal["original", "within_word_l2r"] | None = None
    # Positions before a hidden token at which it is predicted (1: a masked next-token model); null: found by a probe.
    pll_shift: Literal[0, 1] | None = None

    def __post_init__(self) -> None:
        if (self.context == "text") != (self.context_text is not None):
            raise ConfigError("policy.context=text and policy.context_text belong together: give both or neither")

    @property
    def label(self) -> list[str]:
        """The values that differ from the usual policy, as parts of a folder's name: "context-eos-32", "unk-skip"."""
        parts = [f"context-eos-{self.context_tokens}"] if self.context == "eos" else []
        parts += [f"context-text-{sha256_json(self.context_text)[:8]}"] if self.context == "text" else []
        usual = {"score_eos": None, "unk": "score", "precision": "fp32", "pll": None, "pll_shift": None}
        values = {name: getattr(self, name) for name in usual}
        return parts + [f"{name}-{value}".lower() for name, value in values.items() if value != usual[name]]


def score_label(benchmark: BenchmarkConfig, policy: PolicyConfig) -> str:
    """Return the name of the folder of score files: "blimp", or "blimp+pairs-10+unk-skip" of part of the pairs."""
    return "+".join([benchmark.label, *policy.label])


def benchmark_type(label: str) -> str:
    """Return the type of the benchmark that a folder of scores named `label` is of: pairs, diagnostic, ..."""
    name = label.partition("+")[0]
    if name == SYNTAXGYM:
        return SYNTAXGYM
    if is_ratings(name):
        return "ratings"
    return "diagnostic" if name in diagnostics() else "pairs"


def is_of_pairs(label: str) -> bool:
    """Return True if a folder of scores named `label` is of minimal pairs; False: of items or single sentences."""
    return benchmark_type(label) == "pairs"


def recorded_policy(policy: PolicyConfig, score_eos: bool | None, pll_shift: int | None) -> dict[str, Any]:
    """Return the policy as score files record it, with nulls resolved for one model.

    Only masked next-token models have pll_shift; without it, a token is read at its own position. Only unk=skip has
    unk_only; in older files without it, a sentence of nothing but `<unk>` has the log-probability 0.
    """
    recorded = dataclasses.asdict(policy) | {"score_eos": score_eos, "pll_shift": pll_shift}
    if not pll_shift:
        del recorded["pll_shift"]
    if policy.unk == "skip":
        recorded["unk_only"] = "tie"
    return recorded


# The policy of conf/base.yaml, for use from Python: each sentence alone, <unk> scored as it is, float32.
PLAIN = PolicyConfig(context="none", context_tokens=32, unk="score", precision="fp32")


@dataclass(kw_only=True)
class ScoringConfig:
    """Speed and extent of scoring; none of it changes a score."""

    batch_tokens: Annotated[int, Meta(ge=1, le=10**9)]  # tokens per batch
    # Pairs per paradigm whose tokens are written to tokens.parquet.
    token_pairs: Annotated[str, Meta(pattern=r"\A([0-9]{1,9}|all)\Z", description="a number of pairs, or all")]
    seed: Seed  # draws those pairs
    snapshots: bool = False  # score the snapshots of a run too (train/loop/snapshots.py), for its trajectory


@dataclass(kw_only=True)
class UnigramsConfig:
    """Where slor and morcela count tokens: in each run's own sample, and for models that come trained in `text`."""

    text: str | None = None  # a file with a sentence a line; null: these models have neither method
    unseen: AboveZero = 0.5  # occurrences that a token counts as that is not in the text


@dataclass(kw_only=True)
class EvalConfig(RunConfig):
    """What `python -m eval` reads."""

    benchmark: BenchmarkConfig = field(metadata=NOT_IN_DIGEST)
    benchmarks: list[str] | None = field(default=None, metadata=NOT_IN_DIGEST)  # several; `benchmark` is the first then
    method: dict[str, Any] = field(default_factory=dict, metadata=NOT_IN_DIGEST)  # parameters (eval/methods/method.py)
    policy: PolicyConfig = field(metadata=NOT_IN_DIGEST)
    scoring: ScoringConfig = field(metadata=NOT_IN_DIGEST)
    unigrams: UnigramsConfig = field(default_factory=UnigramsConfig, metadata=NOT_IN_DIGEST)
    ties: Ties = field(metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.method = {name: typed(name, parameters) for name, parameters in self.method.items()}
        if self.scoring.snapshots and not self.benchmark.has_pairs:
            raise ConfigError(
                f"scoring.snapshots=true with benchmark={self.benchmark.name}: trajectories are of pairs; leave it out"
            )


@dataclass(kw_only=True)
class GenerateConfig(CorporaConfig):
    """What `python -m eval.generate` reads; the text is that of benchmark.vocabulary=run."""

    benchmark: BenchmarkConfig = field(metadata=NOT_IN_DIGEST)


@dataclass(kw_only=True)
class QuestionnaireConfig:
    """Questions for people, and which answers count (values and meanings: conf/questionnaire/default.yaml)."""

    folder: str
    per_paradigm: Some
    pairs: Some
    raters: Some
    seed: Seed
    checks: Few
    language: str | None = None
    texts: str | None = None
    max_failed_checks: Few
    native_only: bool
    threshold: Share


@dataclass(kw_only=True)
class QuestionnaireCommand(CorporaConfig):
    """What `python -m eval.questionnaire` reads."""

    benchmark: BenchmarkConfig = field(metadata=NOT_IN_DIGEST)
    questionnaire: QuestionnaireConfig = field(metadata=NOT_IN_DIGEST)
    people: Texts = field(default=None, metadata=NOT_IN_DIGEST)  # a path, or a list of them: answers


@dataclass(kw_only=True)
class ExportConfig(RootConfig):
    """What `python -m eval.export` reads."""

    ties: Ties
    run: str | None = None  # of the study; null: each
    output: str | None = None  # folder; null: in reports/
    push: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+\Z", description="OWNER/NAME")] | None = None
    licence: str | None = None  # of the weights, as the hub names it


@dataclass(kw_only=True)
class SurprisalConfig:
    """The columns of a table, and what a model sees before a word."""

    text_column: str = "text"  # a sentence or a longer text a row
    word_column: str = "word"  # if a table has it: a word, or region, a row
    id_column: str = "text_id"  # of the text: consecutive rows of one id, of which texts of words are made
    document_column: str = "document"  # of context=document: consecutive rows of one document
    context: Literal["text", "document"] = "text"  # text: each text is read alone; document: after those before it
    # tokens that are read at a time; null: 1,024, or as many as the model reads
    window: Annotated[int, Meta(ge=2, le=10**6)] | None = None
    step: Annotated[int, Meta(ge=1, le=10**6)] | None = None  # tokens that each further window adds; null: half of it

    def __post_init__(self) -> None:
        columns = [self.text_column, self.word_column, self.id_column, self.document_column]
        if len(set(columns)) < len(columns) or "" in columns:
            raise ConfigError(f"surprisal: columns {', '.join(columns)}: must be four different names")


@dataclass(kw_only=True)
class SurprisalCommand(RootConfig):
    """What `python -m eval.surprisal` reads."""

    model: ModelConfig  # a pretrained one, or else those of the study's runs
    trainer: TrainerConfig
    scoring: ScoringConfig
    policy: PolicyConfig
    run: str | None = None  # of the study; null: each
    text: str | None = None  # a file: texts, or a table of texts or words
    surprisal: SurprisalConfig = field(default_factory=SurprisalConfig)
