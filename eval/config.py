"""The types of the groups `benchmark`, `policy` and of pretrained models in `model` (values: conf/)."""

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from corpora.config import CorporaConfig
from eval.benchmarks.config import BenchmarkConfig
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.diagnostic import is_diagnostic
from eval.methods.method import typed
from eval.questionnaire.config import QuestionnaireConfig
from eval.ratings.config import RatingsConfig, is_ratings
from eval.surprisal.config import SurprisalConfig
from eval.syntaxgym.config import SyntaxGymConfig, is_syntaxgym
from pairscale.command.schemas import NOT_IN_DIGEST, Texts, store_schemas
from pairscale.errors import ConfigError, check_above, check_between, check_choice, check_seed
from pairscale.files import sha256_json
from pairscale.plugins import load_modules
from train.config import PRECISIONS, RunConfig
from train.models.config import ModelConfig

CONTEXTS = ("none", "eos", "text")


@dataclass
class PretrainedConfig(ModelConfig):
    """A Hugging Face model, by its name on the hub or a local folder. It comes trained: only these fields count."""

    kind: str = MISSING  # causal | masked
    path: str = MISSING  # name on the hub, or a local folder
    revision: str | None = None  # a branch, tag or commit of the hub, or a folder within the local one; null: none
    # Several, each a run of its own: names, or patterns such as step*.
    revisions: list[str] | None = field(default=None, metadata=NOT_IN_DIGEST)
    revision_pattern: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # regular expression of the step
    tokens_per_step: int | None = field(default=None, metadata=NOT_IN_DIGEST)  # of training, for the x of a curve
    dtype: str = MISSING  # of the weights
    begin: str | None = None  # token that stands before a sentence, where the tokenizer names no BOS or EOS
    load_in_4bit: bool = False  # through bitsandbytes, on CUDA
    trust_remote_code: bool = False  # run the code that the model brings
    allow_pickle: bool = False  # read weights that are there only as a pickle, which can run code

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("model.kind", self.kind, ("causal", "masked"))
        check_choice("model.dtype", self.dtype, ("fp32", "bf16", "fp16"))
        if self.revision is not None and self.revisions is not None:
            raise ConfigError("model.revision and model.revisions: give one of them")
        if self.tokens_per_step is not None:
            check_between("model.tokens_per_step", self.tokens_per_step, 1, 10**15)
        try:
            groups = re.compile(self.revision_pattern or "()").groups
        except re.error as error:
            raise ConfigError(f"model.revision_pattern={self.revision_pattern}: {error}") from None
        if groups != 1:
            raise ConfigError(f"model.revision_pattern={self.revision_pattern}: must have one group, (...), the step")

    @property
    def step(self) -> int | None:
        """The training step in the revision's name; None if it has none."""
        match = re.search(self.revision_pattern or "()", self.revision or "")
        return int(match[1]) if match and match[1].isdecimal() else None

    @property
    def several_models(self) -> bool:
        return self.revisions is not None

    @property
    def masked(self) -> bool:
        return self.kind == "masked"

    @property
    def weight_bytes(self) -> int:
        return sum(path.stat().st_size for path in Path(self.path).glob("*.safetensors"))

    @property
    def tokens(self) -> int | None:
        """Tokens of text that the model was trained on, with repeats; None if unknown."""
        return None if self.step is None or self.tokens_per_step is None else self.step * self.tokens_per_step

    def identity(self, run: CorporaConfig) -> tuple[list[str], Any]:
        """Return name and identity by the model alone, as none of our corpora, samples or recipes was used."""
        words = [self.name, Path(self.path).name, *([self.revision] if self.revision else [])]
        return [re.sub(r"[^\w.-]+", "_", word) for word in words], self


@dataclass
class PolicyConfig:
    """How a string is scored: recorded in each score file; files of different policies are never mixed."""

    context: str = MISSING  # before the sentence and its begin symbol: none | eos | text
    context_tokens: int = MISSING  # context=eos: how many <eos> stand before the sentence
    context_text: str | None = None  # context=text: the text
    score_eos: bool | None = None  # null: true for our word models, false elsewhere
    unk: str = MISSING  # score as <unk>, or skip the token
    precision: str = MISSING  # fp32 | bf16, of the pass over the model
    pll: str | None = None  # masked models: which tokens are hidden with the one that is scored
    pll_shift: int | None = None  # positions before a hidden token at which it is predicted; null: found by a probe

    def __post_init__(self) -> None:
        check_choice("policy.context", self.context, CONTEXTS)
        if self.pll is not None:
            check_choice("policy.pll", self.pll, ("original", "within_word_l2r"))
        if self.pll_shift not in (None, 0, 1):
            raise ConfigError(f"policy.pll_shift={self.pll_shift}: must be 0, 1 (a masked next-token model) or null")
        check_choice("policy.unk", self.unk, ("score", "skip"))
        check_choice("policy.precision", self.precision, PRECISIONS)
        check_between("policy.context_tokens", self.context_tokens, 1, 100_000)
        if (self.context == "text") != (self.context_text is not None):
            raise ConfigError("policy.context=text and policy.context_text belong together: give both or neither")

    @property
    def label(self) -> list[str]:
        """The values that differ from the usual policy, as parts of a folder's name: "context-eos-32", "unk-skip"."""
        parts = [
            (self.context == "eos", f"context-eos-{self.context_tokens}"),
            (self.context == "text", f"context-text-{sha256_json(self.context_text)[:8]}"),
            (self.score_eos is not None, f"score_eos-{str(self.score_eos).lower()}"),
            (self.unk != "score", f"unk-{self.unk}"),
            (self.precision != "fp32", f"precision-{self.precision}"),
            (self.pll is not None, f"pll-{self.pll}"),
            (self.pll_shift is not None, f"pll_shift-{self.pll_shift}"),
        ]
        return [part for differs, part in parts if differs]


def score_label(benchmark: BenchmarkConfig, policy: PolicyConfig) -> str:
    """Return the name of the folder of score files: "blimp", or "blimp+pairs-10+unk-skip" of part of the pairs."""
    return "+".join([benchmark.label, *policy.label])


def is_of_pairs(label: str) -> bool:
    """Return True if a folder of scores named `label` is of minimal pairs; False: of items or single sentences."""
    return not (is_diagnostic(label) or is_syntaxgym(label) or is_ratings(label))


def recorded_policy(policy: PolicyConfig, score_eos: bool | None, pll_shift: int | None) -> dict[str, Any]:
    """Return the policy as score files record it, with nulls resolved for one model.

    Only masked next-token models have pll_shift; without it, a token is read at its own position. Only unk=skip has
    unk_only; in older files without it, a sentence of nothing but `<unk>` has the log-probability 0.
    """
    recorded = dataclasses.asdict(dataclasses.replace(policy, score_eos=score_eos, pll_shift=pll_shift))
    if not recorded["pll_shift"]:
        del recorded["pll_shift"]
    if policy.unk == "skip":
        recorded["unk_only"] = "tie"
    return recorded


# The policy of conf/base.yaml, for use from Python: each sentence alone, <unk> scored as it is, float32.
PLAIN = PolicyConfig(context="none", context_tokens=32, unk="score", precision="fp32")


@dataclass
class ScoringConfig:
    """Speed and extent of scoring; none of it changes a score."""

    batch_tokens: int = MISSING  # tokens per batch
    token_pairs: str = MISSING  # pairs per paradigm whose tokens are written to tokens.parquet: a number or "all"
    seed: int = MISSING  # draws those pairs
    snapshots: bool = False  # score the snapshots of a run too (train/loop/snapshots.py), for its trajectory

    def __post_init__(self) -> None:
        check_between("scoring.batch_tokens", self.batch_tokens, 1, 10**9)
        check_seed("scoring.seed", self.seed)
        if self.token_pairs != "all" and not re.fullmatch(r"[0-9]{1,9}", self.token_pairs):
            raise ConfigError(f"scoring.token_pairs={self.token_pairs}: must be a number of pairs per paradigm, or all")


@dataclass
class UnigramsConfig:
    """Where slor and morcela count tokens: in each run's own sample, and for models that come trained in `text`."""

    text: str | None = None  # a file with a sentence a line; null: these models have neither method
    unseen: float = 0.5  # occurrences that a token counts as that is not in the text

    def __post_init__(self) -> None:
        check_above("unigrams.unseen", self.unseen, 0)


FORMATS = ("html", "md", "huggingface")


@dataclass
class EvalConfig(RunConfig):
    """What `python -m eval` reads."""

    benchmark: BenchmarkConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    benchmarks: list[str] | None = field(default=None, metadata=NOT_IN_DIGEST)  # several; `benchmark` is the first then
    method: dict[str, Any] = field(default_factory=dict, metadata=NOT_IN_DIGEST)  # parameters (eval/methods/method.py)
    policy: PolicyConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    scoring: ScoringConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    unigrams: UnigramsConfig = field(default_factory=UnigramsConfig, metadata=NOT_IN_DIGEST)
    # A pair with two equal scores counts as wrong | half | right.
    ties: str = field(default=MISSING, metadata=NOT_IN_DIGEST)
    questionnaire: QuestionnaireConfig | None = field(default=None, metadata=NOT_IN_DIGEST)
    people: Texts = field(default=None, metadata=NOT_IN_DIGEST)  # a path, or a list of them: answers to questionnaires
    # Of the report: a page or Markdown; of an export: huggingface.
    format: str = field(default="html", metadata=NOT_IN_DIGEST)

    # eval.export
    output: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # folder; null: in reports/
    push: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # repository on the hub: OWNER/NAME
    licence: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # of the weights, as the hub names it

    # eval.export and eval.surprisal
    run: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # of the study; null: each

    # eval.surprisal
    text: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # a file: texts, or a table of texts or words
    surprisal: SurprisalConfig = field(default_factory=SurprisalConfig, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.method = {name: typed(name, parameters) for name, parameters in self.method.items()}
        check_choice("ties", self.ties, ("wrong", "half", "right"))
        check_choice("format", self.format, FORMATS)
        paths = [self.people] if isinstance(self.people, str) else self.people
        if paths is not None and not (isinstance(paths, list) and paths and all(isinstance(p, str) for p in paths)):
            raise ConfigError(f"people={self.people}: must be a file or a folder, or a list of them")
        self.people = paths
        if self.scoring.snapshots and not self.benchmark.has_pairs:
            raise ConfigError(
                f"scoring.snapshots=true with benchmark={self.benchmark.name}: trajectories are of pairs; leave it out"
            )


load_modules("eval.methods.builtin")  # which store the schemas of `method`
store_schemas("model", pretrained_schema=PretrainedConfig)
store_schemas(
    "benchmark",
    benchmark_schema=BenchmarkConfig,
    diagnostic_schema=DiagnosticConfig,
    ratings_schema=RatingsConfig,
    syntaxgym_schema=SyntaxGymConfig,
)
