"""Define the configuration of each command in eval/, with the groups `policy` and `scoring`."""

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from corpora.config import CorporaConfig, RootConfig
from eval.benchmarks.config import SYNTAXGYM, BenchmarkConfig, Ties, is_ratings
from eval.diagnostics.diagnostic import diagnostics
from eval.methods.method import typed
from pairscale.command.compose import compose
from pairscale.command.line import Line, key_of
from pairscale.command.schemas import NOT_IN_DIGEST, AboveZero, Seed, Share, Texts
from pairscale.errors import ConfigError
from pairscale.files import sha256_json
from pairscale.sizes import written
from train.config import Precision, RunConfig, TrainerConfig
from train.models.config import ModelConfig

Few = Annotated[int, Meta(ge=0, le=10**6)]
Some = Annotated[int, Meta(ge=1, le=10**6)]


@dataclass(kw_only=True)
class PolicyConfig:
    """Scoring settings. Every score file records them, and scores with different settings are never mixed."""

    context: Literal["none", "eos", "text"]  # what comes before the sentence and its begin symbol
    context_tokens: Annotated[int, Meta(ge=1, le=100_000)]  # number of <eos> before the sentence, with context=eos
    context_text: str | None = None  # text before the sentence, with context=text
    score_eos: bool | None = None  # whether to score <eos>; null: only for our word-level models
    unk: Literal["score", "skip"]  # whether to score an unknown token as <unk>, or to skip it
    precision: Precision  # number format of the forward pass
    # For masked models: which tokens are masked together with the scored one.
    pll: Literal["original", "within_word_l2r"] | None = None
    # Whether a masked token is predicted one position before it, as by masked next-token models. null: detect this.
    pll_shift: Literal[0, 1] | None = None

    def __post_init__(self) -> None:
        if (self.context == "text") != (self.context_text is not None):
            raise ConfigError("policy.context=text and policy.context_text must be set together. Set both, or neither.")

    @property
    def label(self) -> list[str]:
        """The settings that differ from the defaults, as parts of a folder name, such as "unk-skip"."""
        parts = [f"context-eos-{self.context_tokens}"] if self.context == "eos" else []
        parts += [f"context-text-{sha256_json(self.context_text)[:8]}"] if self.context == "text" else []
        usual = {"score_eos": None, "unk": "score", "precision": "fp32", "pll": None, "pll_shift": None}
        values = {name: getattr(self, name) for name in usual}
        return parts + [f"{name}-{value}".lower() for name, value in values.items() if value != usual[name]]


def score_label(benchmark: BenchmarkConfig, policy: PolicyConfig) -> str:
    """Return the name of the folder for score files, such as "blimp", or "blimp+pairs-10+unk-skip" with settings."""
    return "+".join([benchmark.label, *policy.label])


def benchmark_type(label: str) -> str:
    """Return the type of a benchmark (pairs, diagnostic ...), given `label`, the name of its score folder."""
    name = label.partition("+")[0]
    if name == SYNTAXGYM:
        return SYNTAXGYM
    if is_ratings(name):
        return "ratings"
    return "diagnostic" if name in diagnostics() else "pairs"


def is_of_pairs(label: str) -> bool:
    """Return True if the score folder named `label` is for minimal pairs rather than items or sentences."""
    return benchmark_type(label) == "pairs"


def recorded_policy(policy: PolicyConfig, score_eos: bool | None, pll_shift: int | None) -> dict[str, Any]:
    """Return the scoring settings as score files record them, with nulls resolved for one model.

    pll_shift is recorded only for masked next-token models, because other models predict a token at its own position.
    unk_only is recorded only with unk=skip. In older files without it, a sentence of only `<unk>` has a score of 0.
    """
    recorded = dataclasses.asdict(policy) | {"score_eos": score_eos, "pll_shift": pll_shift}
    if not pll_shift:
        del recorded["pll_shift"]
    if policy.unk == "skip":
        recorded["unk_only"] = "tie"
    return recorded


# The settings of conf/base.yaml, for use from Python. There is no context, <unk> is scored, and numbers are float32.
PLAIN = PolicyConfig(context="none", context_tokens=32, unk="score", precision="fp32")


@dataclass(kw_only=True)
class ScoringConfig:
    """Settings for the speed and extent of scoring. None of them changes a score."""

    batch_tokens: Annotated[int, Meta(ge=1, le=10**9)]  # tokens per batch
    # Number of pairs per paradigm whose token scores are written to tokens.parquet.
    token_pairs: Annotated[str, Meta(pattern=r"\A([0-9]{1,9}|all)\Z", description="a number of pairs, or all")]
    seed: Seed  # for drawing these pairs
    # Whether to score the run's snapshots (train/loop/snapshots.py) too. live: during training (eval/live.py)
    snapshots: bool | Literal["live"] = False


@dataclass(kw_only=True)
class UnigramsConfig:
    """The text in which slor and morcela count tokens. It is the run's own sample, or `text` for pretrained models."""

    text: str | None = None  # a file with one sentence per line; null: no slor and morcela for pretrained models
    unseen: AboveZero = 0.5  # the count assumed for a token that doesn't occur in the text


@dataclass(kw_only=True)
class EvalConfig(RunConfig):
    """Configuration of `python -m eval`."""

    benchmark: BenchmarkConfig = field(metadata=NOT_IN_DIGEST)
    benchmarks: list[str] | None = field(default=None, metadata=NOT_IN_DIGEST)  # if set, `benchmark` is the first one
    method: dict[str, Any] = field(default_factory=dict, metadata=NOT_IN_DIGEST)  # parameters (eval/methods/method.py)
    policy: PolicyConfig = field(metadata=NOT_IN_DIGEST)
    scoring: ScoringConfig = field(metadata=NOT_IN_DIGEST)
    unigrams: UnigramsConfig = field(default_factory=UnigramsConfig, metadata=NOT_IN_DIGEST)
    ties: Ties | None = field(metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.method = {name: typed(name, parameters) for name, parameters in self.method.items()}
        if self.scoring.snapshots and not self.benchmark.has_pairs:
            raise ConfigError(
                f"scoring.snapshots={written(self.scoring.snapshots)} works only with minimal pairs, not with "
                f"benchmark={self.benchmark.name}. Leave this setting out."
            )

    @property
    def is_live(self) -> bool:
        """True if the snapshots of a run are scored while it is trained."""
        return self.scoring.snapshots == "live" and self.trainer.snapshots is not None and not self.model.counted


def of_each_benchmark(config: EvalConfig, line: Line) -> list[EvalConfig]:
    """Return one configuration of a command line per benchmark that it names. Raises the same errors as `compose`."""
    if config.benchmarks is None:
        return [config]
    words = [one for one in line.overrides if key_of(one) not in ("benchmark", "benchmarks")]
    return [compose("eval", Line((*words, f"benchmark={name}"), line.folders)) for name in config.benchmarks]


@dataclass(kw_only=True)
class FetchConfig(RootConfig):
    """Configuration of `python -m eval.fetch`."""

    benchmark: BenchmarkConfig


@dataclass(kw_only=True)
class BabylmConfig(RootConfig):
    """Configuration of `python -m eval.babylm`. `seed` draws the winners of ties, and chooses fine-tuned models."""

    # Which checkpoints a submission needs: up to 100M words, or up to 1,000M (strict and multilingual).
    track: Literal["strict-small", "strict", "multilingual"]
    languages: list[Literal["eng", "nld", "zho"]] | None = None  # of the track multilingual; null: those with data
    evaluation_data: str  # the challenge's folder evaluation_data, with full_eval and fast_eval, or multilingual
    trainer: TrainerConfig
    policy: PolicyConfig
    scoring: ScoringConfig  # with scoring.snapshots=false, snapshots aren't scored
    dry_run: bool
    verbose: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.languages is not None and self.track != "multilingual":
            raise ConfigError(f"languages={self.languages}: only track=multilingual uses this key. Leave it out.")


@dataclass(kw_only=True)
class GenerateConfig(CorporaConfig):
    """Configuration of `python -m eval.generate`. The corpus and sample are used with benchmark.vocabulary=run."""

    benchmark: BenchmarkConfig = field(metadata=NOT_IN_DIGEST)


@dataclass(kw_only=True)
class QuestionnaireConfig:
    """Settings of a questionnaire and of its evaluation (conf/questionnaire/default.yaml explains each of them)."""

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
    """Configuration of `python -m eval.questionnaire`."""

    benchmark: BenchmarkConfig = field(metadata=NOT_IN_DIGEST)
    questionnaire: QuestionnaireConfig = field(metadata=NOT_IN_DIGEST)
    people: Texts = field(default=None, metadata=NOT_IN_DIGEST)  # one or more files of people's answers


@dataclass(kw_only=True)
class ExportConfig(RootConfig):
    """Configuration of `python -m eval.export`."""

    ties: Ties | None
    run: str | None = None  # one run of the study; null: all of them
    output: str | None = None  # output folder; null: reports/STUDY/huggingface
    push: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+\Z", description="OWNER/NAME")] | None = None
    licence: str | None = None  # licence of the weights, as named on the Hugging Face hub


@dataclass(kw_only=True)
class SurprisalConfig:
    """The names of a table's columns, and how much context a model sees before a word."""

    text_column: str = "text"  # contains one sentence or longer text per row
    word_column: str = "word"  # if the table has this column, it contains one word or region per row
    id_column: str = "text_id"  # consecutive rows with the same id make up one text of words
    document_column: str = "document"  # consecutive rows with the same value are one document (context=document)
    context: Literal["text", "document"] = "text"  # whether a text is read alone or after the document's earlier texts
    # Number of tokens to read at a time. null: 1,024, or the model's limit if that is lower.
    window: Annotated[int, Meta(ge=2, le=10**6)] | None = None
    step: Annotated[int, Meta(ge=1, le=10**6)] | None = None  # tokens that each window adds; null: half a window

    def __post_init__(self) -> None:
        columns = [self.text_column, self.word_column, self.id_column, self.document_column]
        if len(set(columns)) < len(columns) or "" in columns:
            raise ConfigError(
                f"surprisal: the columns {', '.join(columns)} must have four different names that aren't empty. Change "
                "the settings surprisal.*_column."
            )


@dataclass(kw_only=True)
class SurprisalCommand(RootConfig):
    """Configuration of `python -m eval.surprisal`."""

    model: ModelConfig  # a pretrained model; if it is another kind, the models of the study's runs are used
    trainer: TrainerConfig
    scoring: ScoringConfig
    policy: PolicyConfig
    run: str | None = None  # one run of the study; null: all of them
    text: str | None = None  # a file with texts, or a table of texts or words
    surprisal: SurprisalConfig = field(default_factory=SurprisalConfig)
