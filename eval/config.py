"""The types of the groups `benchmark`, `method`, `policy` and of pretrained models in `model` (values: conf/)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from corpora.config import NOT_IN_DIGEST
from corpora.errors import ConfigError, check_above, check_choice
from train.config import PRECISIONS, ModelConfig, RunConfig

CONTEXTS = ("none", "eos", "text")
TIES = ("wrong", "half", "right")
UNKNOWN = ("score", "skip")
KINDS = ("causal", "masked")
DTYPES = ("fp32", "bf16", "fp16")
PLL = ("original", "within_word_l2r")
PREFIX_SPANS = ("sum", "first", "last", "as_published")
SCORED = ("input", "target")


@dataclass
class PretrainedConfig(ModelConfig):
    """A Hugging Face model, by its name on the hub or a local folder. It comes trained: only these fields count."""

    kind: str = MISSING  # causal | masked
    path: str = MISSING
    revision: str | None = None  # of the hub: a branch, tag or commit; null: its main branch
    dtype: str = MISSING  # of the weights
    begin: str | None = None  # token that stands before a sentence, where the tokenizer names no BOS or EOS
    load_in_4bit: bool = False  # through bitsandbytes, on CUDA
    trust_remote_code: bool = False  # run the code that the model brings
    allow_pickle: bool = False  # read weights that are there only as a pickle, which can run code

    def __post_init__(self) -> None:
        check_choice("model.kind", self.kind, KINDS)
        check_choice("model.dtype", self.dtype, DTYPES)

    def identity(self, run: RunConfig) -> tuple[list[str], Any]:
        """Nothing but the model counts: no corpus, sample or recipe of ours was used."""
        words = [self.name, Path(self.path).name, *([self.revision] if self.revision else [])]
        return [re.sub(r"[^\w.-]+", "_", word) for word in words], self


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
    language: str | None = None  # ISO 639 code of two letters, of three where a language has no such one

    def __post_init__(self) -> None:
        if self.pairs is not None and self.pairs < 1:
            raise ConfigError(f"benchmark.pairs={self.pairs}: must be above 0, or null for all")


@dataclass
class TemplateConfig:
    """One way to put the sentences of a pair; `text` has the placeholders of its method (eval/templates.py)."""

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
    templates: Any = None  # the user's instead: a list of texts, or a YAML file (eval/templates.py)
    chat: bool | None = None  # ab_prompt, yes_no: null: where the model's tokenizer has a chat template
    seed: int | None = None  # ab_prompt: of the order; vote_*: of the draws
    trials: int | None = None  # vote_*: how many draws
    voters: dict[str, int] | None = None  # vote_*: predictions to draw of each method

    def __post_init__(self) -> None:
        if self.prefix_span is not None:
            check_choice("prefix_span", self.prefix_span, PREFIX_SPANS)
        if self.scored is not None:
            check_choice("scored", self.scored, SCORED)
        check_above("trials", self.trials, 0)


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

    def __post_init__(self) -> None:
        check_choice("policy.context", self.context, CONTEXTS)
        if self.pll is not None:
            check_choice("policy.pll", self.pll, PLL)
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
