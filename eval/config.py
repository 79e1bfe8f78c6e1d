"""The types of the groups `benchmark`, `method`, `policy` and of pretrained models in `model` (values: conf/)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from corpora.config import NOT_IN_DIGEST, CorporaConfig
from eval.benchmarks.forms.form import forms
from eval.questionnaire.config import QuestionnaireConfig
from pairscale.command.schemas import store_schemas
from pairscale.errors import ConfigError, check_between, check_choice, check_name, check_seed
from train.config import PRECISIONS, RunConfig
from train.models.config import ModelConfig

CONTEXTS = ("none", "eos", "text")
TIES = ("wrong", "half", "right")
UNKNOWN = ("score", "skip")
KINDS = ("causal", "masked")
DTYPES = ("fp32", "bf16", "fp16")
PLL = ("original", "within_word_l2r")
PREFIX_SPANS = ("sum", "first", "last", "as_published")
QUOTES = ("as_published", "straight")
PUBLISHED_SHUFFLES = 100  # Ettinger 2020, table 4

GENERATED_LANGUAGES = ("en", "zh")
# Of each paradigm that is generated; BLiMP has as many pairs. Not told in folders' names.
USUAL_PAIRS, USUAL_SEED, USUAL_MIN_COUNT = 1000, 1, 5
MOST_PAIRS = 10_000  # of each paradigm that is generated, or of the toy language
# Benchmarks of what a model expects next: no pairs, no methods.
DIAGNOSTICS = {"cprag": ("path", "seed"), "role": ("path", "seed"), "neg": ("path", "seed")}
MAX_PAIRS = 10**6  # of a paradigm: a hundred times the largest that there is
_LANGUAGE = re.compile(r"[a-z]{2,3}")
SCORED = ("input", "target")


@dataclass
class PretrainedConfig(ModelConfig):
    """A Hugging Face model, by its name on the hub or a local folder. It comes trained: only these fields count."""

    kind: str = MISSING  # causal | masked
    path: str = MISSING
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
        check_choice("model.kind", self.kind, KINDS)
        check_choice("model.dtype", self.dtype, DTYPES)
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
        """Of training, as the revision's name tells it; None where it tells none."""
        found = re.search(self.revision_pattern or "()", self.revision or "")
        return int(found[1]) if found and found[1].isdecimal() else None

    @property
    def tokens(self) -> int | None:
        """Tokens of text that the model was trained on, with repeats; None where they are not known."""
        return None if self.step is None or self.tokens_per_step is None else self.step * self.tokens_per_step

    def identity(self, run: CorporaConfig) -> tuple[list[str], Any]:
        """Nothing but the model counts: no corpus, sample or recipe of ours was used."""
        words = [self.name, Path(self.path).name, *([self.revision] if self.revision else [])]
        return [re.sub(r"[^\w.-]+", "_", word) for word in words], self


@dataclass
class ColumnsConfig:
    """The columns of a table by what they hold; null: a usual name (eval/benchmarks/forms/pairs.py); "": none."""

    good: str | None = None
    bad: str | None = None
    sentence: str | None = None  # instead of the two: one sentence a row,
    label: str | None = None  # and whether it is the good or the bad one
    paradigm: Any = None  # a column, or a list of columns whose texts are joined; none: the file's name
    phenomenon: str | None = None  # none: the paradigm
    field: str | None = None
    pair_id: str | None = None  # none: the number of the pair in its paradigm, from 0
    lexically_identical: str | None = None
    one_prefix_method: str | None = None  # none: pairs that have the fields of the method
    two_prefix_method: str | None = None
    one_prefix_prefix: str | None = None
    one_prefix_word_good: str | None = None
    one_prefix_word_bad: str | None = None
    two_prefix_prefix_good: str | None = None
    two_prefix_prefix_bad: str | None = None
    two_prefix_word: str | None = None

    def __post_init__(self) -> None:
        names = self.paradigm if isinstance(self.paradigm, list) else [self.paradigm] if self.paradigm else None
        if names is not None:
            names = [str(name) if type(name) is int else name for name in names]  # some headers are numbers
            if not names or not all(isinstance(name, str) and name for name in names):
                raise ConfigError(f"benchmark.columns.paradigm={self.paradigm}: must be a column, or a list of columns")
            self.paradigm = names
        if bool(self.sentence) != bool(self.label):
            raise ConfigError("benchmark.columns.sentence and .label belong together: give both or neither")
        if self.good and self.good == self.bad:
            raise ConfigError(f"benchmark.columns.good and .bad are one column ({self.good}): every pair would tie")
        if self.sentence and self.sentence == self.label:
            raise ConfigError(f"benchmark.columns.sentence and .label are one column ({self.sentence})")
        if self.sentence and (self.good or self.bad):
            raise ConfigError(
                "benchmark.columns: a row holds good and bad, or sentence and label: name two of the four"
            )


@dataclass
class BenchmarkConfig:
    """A set of minimal pairs."""

    name: str = MISSING
    form: str | None = None  # one of eval/benchmarks/forms/; null: that of its name, or else pairs
    path: str | None = None  # a local folder, or a file
    dataset: str | None = None  # or a data set of the Hugging Face hub
    revision: str | None = None  # of the data set: a branch, tag or commit; null: its main branch
    subset: str | None = None  # of the data set; null: all
    split: str | None = None  # of the data set; null: the only one
    files: list[str] | None = None  # patterns below path; null: all tables in the folder, which are of one format
    delimiter: str | None = None  # null: a comma in .csv, a tab in .tsv
    header: bool = True  # .csv, .tsv, .txt: the first row names the columns; false: they are named 0, 1, ...
    quotes: bool = True  # .csv, .tsv: whether a cell that begins with " ends with one; false: they are text
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    labels: list[str] | None = None  # in the column of labels: the good one's and the bad one's; null: 1 and 0
    paradigms: list[str] | None = None  # null: all
    pairs: int | None = None  # the first so many of each paradigm; null: all
    seed: int | None = None  # toy, generated: of the pairs
    per_paradigm: int | None = None  # toy: pairs to make of each paradigm
    vocabulary: str | None = None  # generated: run, study, or a file of words; null: all words
    min_count: int | None = None  # generated: words that a sample, or a file with counts, has at least so many times
    balance: bool = False  # generated: critical words within a factor of two in frequency
    language: str | None = None  # ISO 639 code of two letters, of three where a language has no such one

    def __post_init__(self) -> None:
        fields = self._fields_of_forms()
        if self.form is None:
            self.form = self.name if self.name in fields else "pairs"
        check_choice("benchmark.form", self.form, fields)
        check_name("benchmark.name", self.name)
        usual = BenchmarkConfig.__dataclass_fields__
        of_any_form = {name for form in forms().values() for name in form.fields}
        for name in sorted(of_any_form - set(fields[self.form])):
            if getattr(self, name) not in (None, usual[name].default, ColumnsConfig()):
                raise ConfigError(f"benchmark.{name}={getattr(self, name)}: form={self.form} has no use for it")
        if self.paradigms == []:
            raise ConfigError("benchmark.paradigms=[]: must name at least one, or null for all")
        for name in ("pairs", "per_paradigm"):
            if self.form in ("generated", "toy") and (getattr(self, name) or 0) > MOST_PAIRS:
                raise ConfigError(f"benchmark.{name}={getattr(self, name)}: must be at most {MOST_PAIRS} a paradigm")
            check_between(f"benchmark.{name}", getattr(self, name), 1, MAX_PAIRS)
        check_seed("benchmark.seed", self.seed)
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ConfigError(f"benchmark.delimiter={self.delimiter!r}: must be one character, or null")
        if self.labels is not None and len({label.casefold() for label in self.labels}) != 2:
            raise ConfigError(f"benchmark.labels={self.labels}: must be two, the good sentence's and the bad one's")
        if self.form == "generated":
            self._check_generated()
        if self.language is not None and not _LANGUAGE.fullmatch(self.language):
            raise ConfigError(f"benchmark.language={self.language}: must be an ISO 639 code such as en or zh")

    def _fields_of_forms(self) -> Mapping[str, tuple[str, ...]]:
        """Form -> the fields that it reads."""
        return {name: form.fields for name, form in forms().items()}

    def _check_generated(self) -> None:
        check_choice("benchmark.language", str(self.language), GENERATED_LANGUAGES)
        if self.pairs is None or self.seed is None:
            raise ConfigError(f"benchmark.pairs={self.pairs}, benchmark.seed={self.seed}: both must be numbers")
        if self.vocabulary in ("run", "study") and self.min_count is None:
            raise ConfigError(f"benchmark.min_count=null with vocabulary={self.vocabulary}: must be above 0")
        check_between("benchmark.min_count", self.min_count, 1, 10**12)
        if self.balance and self.vocabulary is None:
            raise ConfigError("benchmark.balance=true: needs a vocabulary, whose frequencies they are")


@dataclass
class DiagnosticConfig(BenchmarkConfig):
    """A psycholinguistic diagnostic of Ettinger 2020: which words a model expects after a context."""

    shuffles: int | None = None  # cprag: orders that the first sentence's words are put in, drawn from `seed`
    quote_marks: str = MISSING  # straight: ' and " for the curly ones of the files, for models that never saw those
    top_words: int = MISSING  # most probable words of each context to keep in topk.parquet
    show: int = MISSING  # items whose most probable words are printed

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("benchmark.quote_marks", self.quote_marks, QUOTES)
        check_between("benchmark.top_words", self.top_words, 1, 10**6)
        for key in ("shuffles", "show"):
            check_between(f"benchmark.{key}", getattr(self, key), 0, 10**5)
        if self.shuffles and self.seed is None:
            raise ConfigError(f"benchmark.seed=null: must be a number, to draw benchmark.shuffles={self.shuffles} from")
        for key in ("pairs", "paradigms", "dataset"):
            if getattr(self, key) is not None:
                raise ConfigError(
                    f"benchmark.{key}: {self.name} has items, not pairs, and is scored whole from a folder"
                )

    def _fields_of_forms(self) -> Mapping[str, tuple[str, ...]]:
        return DIAGNOSTICS


@dataclass
class TemplateConfig:
    """One way to put the sentences of a pair; `text` has the placeholders of its method (eval/methods/templates.py)."""

    name: str = MISSING
    text: str = MISSING  # of a prompt: the user's message


@dataclass
class TemplatesConfig:
    """Templates of one kind and language (conf/template/); what only prompts have stays null elsewhere."""

    system: str | None = None  # message that describes the task
    answers: list[str] | None = None  # yes_no: for and against; ab_prompt: the first and the second sentence
    cue: str | None = None  # what a base model's prompt ends with
    space: str | None = None  # between the cue and an answer
    templates: list[TemplateConfig] = field(default_factory=list)


@dataclass
class MethodConfig:
    """One judgement method; the fields that it does not use stay null."""

    alpha: float | None = None  # pen_lp, in_template_pen_lp: exponent of the length penalty
    prefix_span: str | None = None  # one_prefix, two_prefix: which tokens of the critical words count
    scored: str | None = None  # in_template_*: the whole input, or the target sentence alone
    by_language: dict[str, TemplatesConfig] | None = None  # templates of the project, from conf/template/
    templates: Any = None  # the user's instead: a list of texts, or a YAML file (eval/methods/templates.py)
    chat: bool | None = None  # ab_prompt, yes_no: null: where the model's tokenizer has a chat template
    seed: int | None = None  # ab_prompt: of the order; vote_*: of the draws
    trials: int | None = None  # vote_*: how many draws
    voters: dict[str, int] | None = None  # vote_*: predictions to draw of each method

    def __post_init__(self) -> None:
        if self.prefix_span is not None:
            check_choice("prefix_span", self.prefix_span, PREFIX_SPANS)
        if self.scored is not None:
            check_choice("scored", self.scored, SCORED)
        check_between("alpha", self.alpha, 0, 10)
        check_seed("seed", self.seed)
        check_between("trials", self.trials, 1, 10**5)
        for method, count in (self.voters or {}).items():
            check_between(f"voters.{method}", count, 1, 10**5)


@dataclass
class PolicyConfig:
    """How a string is scored: recorded in each score file; files of different policies are never mixed."""

    context: str = MISSING
    context_tokens: int = MISSING  # context=eos: how many <eos> stand before the sentence
    context_text: str | None = None  # context=text: the text
    score_eos: bool | None = None  # null: true for our word models, false elsewhere
    unk: str = MISSING  # score as <unk>, or skip the token
    precision: str = MISSING
    pll: str | None = None  # masked models: which tokens are hidden with the one that is scored
    pll_shift: int | None = None  # positions before a hidden token at which it is predicted; null: found by a probe

    def __post_init__(self) -> None:
        check_choice("policy.context", self.context, CONTEXTS)
        if self.pll is not None:
            check_choice("policy.pll", self.pll, PLL)
        if self.pll_shift not in (None, 0, 1):
            raise ConfigError(f"policy.pll_shift={self.pll_shift}: must be 0, 1 (a masked next-token model) or null")
        check_choice("policy.unk", self.unk, UNKNOWN)
        check_choice("policy.precision", self.precision, PRECISIONS)
        check_between("policy.context_tokens", self.context_tokens, 1, 100_000)
        if (self.context == "text") != (self.context_text is not None):
            raise ConfigError("policy.context=text and policy.context_text belong together: give both or neither")


def recorded_policy(policy: PolicyConfig, score_eos: bool | None, pll_shift: int | None) -> dict[str, Any]:
    """The policy as score files keep it, with what null became for one model.

    pll_shift is there for masked next-token models alone: without it, a token was read at its own position.
    unk_only is there under unk=skip alone: without it, a sentence of nothing but `<unk>` had the log-probability 0.
    """
    kept = dataclasses.asdict(dataclasses.replace(policy, score_eos=score_eos, pll_shift=pll_shift))
    if not kept["pll_shift"]:
        del kept["pll_shift"]
    if policy.unk == "skip":
        kept["unk_only"] = "tie"
    return kept


# The policy of conf/base.yaml, for use from Python: each sentence alone, <unk> scored as it is, float32.
PLAIN = PolicyConfig(context="none", context_tokens=32, unk="score", precision="fp32")


@dataclass
class ScoringConfig:
    """Speed and extent of scoring; none of it changes a score."""

    batch_tokens: int = MISSING
    token_pairs: str = MISSING  # pairs per paradigm whose tokens are written to tokens.parquet: a number or "all"
    seed: int = MISSING  # draws those pairs
    snapshots: bool = False  # score the snapshots of a run too (train/loop/snapshots.py), for its trajectory

    def __post_init__(self) -> None:
        check_between("scoring.batch_tokens", self.batch_tokens, 1, 10**9)
        check_seed("scoring.seed", self.seed)
        if self.token_pairs != "all" and not re.fullmatch(r"[0-9]{1,9}", self.token_pairs):
            raise ConfigError(f"scoring.token_pairs={self.token_pairs}: must be a number of pairs per paradigm, or all")


@dataclass
class EvalConfig(RunConfig):
    """What `python -m eval` reads."""

    benchmark: BenchmarkConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    method: dict[str, MethodConfig] = field(default_factory=dict, metadata=NOT_IN_DIGEST)
    policy: PolicyConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    scoring: ScoringConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    ties: str = field(default=MISSING, metadata=NOT_IN_DIGEST)
    questionnaire: QuestionnaireConfig | None = field(default=None, metadata=NOT_IN_DIGEST)
    people: Any = field(default=None, metadata=NOT_IN_DIGEST)  # a path, or a list of them: answers to questionnaires

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("ties", self.ties, TIES)
        paths = [self.people] if isinstance(self.people, str) else self.people
        if paths is not None and not (isinstance(paths, list) and paths and all(isinstance(p, str) for p in paths)):
            raise ConfigError(f"people={self.people}: must be a file or a folder, or a list of them")
        self.people = paths
        if self.scoring.snapshots and isinstance(self.benchmark, DiagnosticConfig):
            raise ConfigError(
                f"scoring.snapshots=true with benchmark={self.benchmark.name}: trajectories are of pairs; leave it out"
            )


store_schemas("model", pretrained_schema=PretrainedConfig)
store_schemas("benchmark", benchmark_schema=BenchmarkConfig, diagnostic_schema=DiagnosticConfig)
