"""Judgements of a model by methods: the passes that they share, and the rows of their score files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from corpora.words import count_words
from eval.benchmarks.cells import shown
from eval.config import EvalConfig, PolicyConfig
from eval.methods.builtin.prompts import ask, chat_template_of
from eval.methods.method import UNIGRAMS, fitting, methods
from eval.methods.sides import Side, about, any_known, both_sides, naming_the_pair
from eval.methods.templates import ALONE, PLACEHOLDERS, PROMPTS, Template, Templates, templates_of, within
from eval.methods.unigrams import Unigrams
from eval.scorers.base import Scorer, TokenScores
from eval.scorers.chat import ChatTemplate
from eval.scores.files import judged_pairs
from pairscale.errors import ConfigError, InputError, RunError, check_choice
from pairscale.files import sha256_json


@dataclass(frozen=True)
class MethodUse:
    """A method with one model."""

    method: str
    config: Any  # its parameters
    templates: Templates = ALONE
    chat_template: ChatTemplate | None = None  # of prompts

    @classmethod
    def of(cls, method: str, config: Any, scorer: Scorer, language: str | None) -> MethodUse:
        """Raises ConfigError where method, model and parameters do not fit, and what `chosen_templates` raises."""
        fitting({method: config}, scorer.masked)
        asks = methods()[method].reads in PROMPTS
        chat_template = chat_template_of(method, scorer, config.chat) if asks else None
        return cls(method, config, chosen_templates(method, config, language), chat_template)

    @property
    def reads(self) -> str:
        return methods()[self.method].reads

    def metadata(self) -> dict[str, Any]:
        """Return the method's parameters, and its templates by digest and in full, for its score file."""
        values = dataclasses.asdict(self.config)
        parameters = {key: value for key, value in values.items() if value is not None and key != "templates"}
        metadata: dict[str, Any] = {"method": self.method, "parameters": parameters}
        if self.reads in PLACEHOLDERS:
            metadata["templates"] = self.templates.described()
            parameters["templates"] = sha256_json(metadata["templates"])[:8]
        if self.reads in PROMPTS:
            parameters["chat"] = self.chat_template is not None
        return metadata

    def settings(self) -> dict[str, Any]:
        """Return the method's own addition to the scorer's settings: the chat template of its prompts."""
        return {} if self.chat_template is None else {"chat_template": self.chat_template.digest}

    @property
    def voters(self) -> dict[str, int]:
        """Methods and how many of their predictions vote; {} for a method that is no vote."""
        return getattr(self.config, "voters", {})

    def vote(self, scores: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, list[dict[str, list[str]]]]:
        """Return the rows of a vote and its draws, from the rows of its voters (eval/methods/builtin/votes.py)."""
        rows, drawn = methods()[self.method].score(scores, self.config)
        return rows, drawn


@dataclass(frozen=True)
class Judged:
    """Judgements of P pairs by methods."""

    rows: dict[str, pd.DataFrame]  # columns of eval.scores.schemas.SCORES but counts of words, by pair
    prompts: dict[str, dict[str, Any]]  # of each method that asks: a prompt and the answers, for metadata
    good: Side  # the sentences alone
    bad: Side


def chosen_templates(method: str, config: Any, language: str | None) -> Templates:
    """Return the templates of a method, ALONE for one without.

    Raises ConfigError for voters without templates, and what `templates_of` raises.
    """
    with_templates = [name for name, other in methods().items() if other.reads in PLACEHOLDERS]
    for voter in getattr(config, "voters", {}):
        check_choice(f"method.{method}.voters", voter, with_templates)
    if method not in with_templates:
        return ALONE
    return templates_of(method, methods()[method].reads, config.templates, language)


def check_templates(config: EvalConfig) -> None:
    """Raise the errors of `chosen_templates` for each method, before any model is loaded."""
    for name, parameters in config.method.items():
        chosen_templates(name, parameters, config.benchmark.language)


def judge_pairs(
    scorer: Scorer,
    pairs: pd.DataFrame,
    uses: Sequence[MethodUse],
    policy: PolicyConfig,
    unigrams: Unigrams | None = None,
) -> Judged:
    """Judge all pairs (columns of eval.scores.schemas.ITEMS, index 0..P-1) by methods other than votes.

    The sentences are scored once for all methods, and so is each filled template. Templates come one after the other:
    texts of two have little in common, and all of a large benchmark's are too many to hold. `unigrams`: for methods
    that read them; raises ConfigError for such a method without.
    """
    if unigrams is None and any(use.reads == UNIGRAMS for use in uses):
        raise ConfigError(
            "methods slor and morcela: need counts of tokens, which python -m eval takes from a run's sample"
        )
    columns: dict[tuple[str, Template], dict[str, Any]] = {}  # of each method and template, (P,) each
    prompts: dict[str, dict[str, Any]] = {}
    alone: tuple[Side, Side] | None = None
    reading = [use for use in uses if use.reads not in PROMPTS]
    skip = policy.unk == "skip"
    for template in dict.fromkeys([*ALONE.templates, *(one for use in reading for one in use.templates.templates)]):
        texts, spans = _filled(template, pairs)
        with naming_the_pair(texts, pairs):
            scores = _scored(scorer, texts, policy)
        whole = both_sides(pairs, texts, scores, skip, unigrams)
        alone = alone or whole
        for use in [use for use in reading if template in use.templates.templates]:
            target = getattr(use.config, "scored", "input") == "target"
            sides = both_sides(pairs, texts, list(map(within, scores, spans)), skip, unigrams) if target else whole
            columns[use.method, template] = summed(use.method, use.config, *sides)
    for use in [use for use in uses if use.reads in PROMPTS]:
        score = methods()[use.method].score
        questions = {template: score(template, pairs, use.config) for template in use.templates.templates}
        answered, prompts[use.method] = ask(scorer, questions, use.templates, use.chat_template, policy, pairs)
        columns |= {(use.method, template): of for template, of in answered.items()}
    assert alone is not None
    shared = about(*alone).assign(trial=None, order=None)
    rows = {}
    for use in uses:
        judged = judged_pairs(use.method, pairs)
        tables = [shared.assign(template=of.name or None, **columns[use.method, of]) for of in use.templates.templates]
        rows[use.method] = pd.concat(table[judged] for table in tables)
    return Judged(rows, prompts, *alone)


def summed(method: str, config: Any, good: Side, bad: Side) -> dict[str, Any]:
    """Return the columns (P,) of a method that makes its scores of log-probabilities of tokens.

    A text of which unk=skip leaves nothing has no score (NaN): its log-probability would be higher than any other.
    """
    columns: dict[str, Any] = {}
    for side, other in ((good, bad), (bad, good)):
        score = methods()[method].score(side, other, config)
        columns |= {side.name: np.where(side.judged, score, np.nan)}
        columns |= {f"{side.name}_lp": side.lp, f"{side.name}_tokens": side.tokens}
    return columns


def _filled(template: Template, pairs: pd.DataFrame) -> tuple[list[str], list[tuple[int, int]]]:
    """Return a template's 2P texts, of the good sentences and the bad ones, and the place of the sentence in each."""
    good, bad = list(pairs["good"]), list(pairs["bad"])
    sentences = [good + bad, bad + good][: len(PLACEHOLDERS[template.kind])]
    texts, spans = zip(*map(template.fill, *sentences), strict=True)
    return list(texts), list(spans)


def _scored(scorer: Scorer, texts: Sequence[str], policy: PolicyConfig) -> list[TokenScores]:
    """Return scores of texts. Raises RunError for NaN, InputError where the model knows no token of any text."""
    scores = scorer.score(texts, policy)
    for text, score in zip(texts, scores, strict=True):
        if np.isnan(score.logprobs).any():
            raise RunError(f"{scorer.name}: its score of {shown(text)} is NaN")
    if not any(map(any_known, scores)):
        raise InputError(
            f"{scorer.name}: knows no token of any of {len(texts):,} texts, such as {shown(texts[0])}: all would tie"
        )
    return scores


def template_reading(
    configs: Mapping[str, Any], language: str | None, words: Mapping[str, int], reference: str, distinct: float = 1.0
) -> float:
    """Estimate how many words the templates of the methods add to the sentences alone. Raises as templates_of.

    `words`: of each different sentence of the benchmark; `distinct`: the share of them that is read. What texts begin
    with in common is read once: of a template, all up to the end of its first sentence.
    """
    chosen = {one for name, config in configs.items() for one in chosen_templates(name, config, language).templates}
    total, read = sum(words.values()), 0.0
    for template in chosen.difference(ALONE.templates):
        others = len(PLACEHOLDERS[template.kind]) - 1
        # One word in the place of the first sentence shows where that ends; ab has two sentences at once.
        text, (_, end) = template.fill("x", *[""] * others)
        head, tail = count_words(text[:end], reference) - 1, count_words(text[end:], reference)
        # The last term: the begin symbol, or the answer.
        read += head + distinct * total + tail * len(words) + others * total + len(words)
    return read
