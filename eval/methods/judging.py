"""Judgements of a model by methods: the passes that they share, and the rows of their score files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from corpora.words import count_words
from eval.benchmarks.cells import shown
from eval.config import EvalConfig, MethodConfig, PolicyConfig
from eval.methods.method import UNIGRAMS, fitting, judge, methods, summed
from eval.methods.prompting import Asker
from eval.methods.sides import Side, about
from eval.methods.templates import PLACEHOLDERS, PROMPTS, Template, Templates, templates_of, within
from eval.methods.unigrams import Unigrams
from eval.scorers.base import Scorer, TextTooLong, TokenScores
from pairscale.errors import ConfigError, InputError, RunError, check_choice
from pairscale.files import sha256_json

_OF_TEMPLATES = ("by_language", "templates")  # fields of MethodConfig that Templates.described replaces


@dataclass(frozen=True)
class MethodUse:
    """A method with one model."""

    method: str
    config: MethodConfig
    templates: Templates | None
    asker: Asker | None

    @classmethod
    def of(cls, method: str, config: MethodConfig, scorer: Scorer, language: str | None) -> MethodUse:
        """Raises ConfigError where method, model and values do not fit together, and what templates_of raises."""
        fitting({method: config}, scorer.masked)
        check_values(method, config)
        reads = methods()[method].reads
        templates = templates_of(method, reads, config, language) if reads in PLACEHOLDERS else None
        asker = Asker.of(method, scorer, templates, config.chat) if templates and reads in PROMPTS else None
        return cls(method, config, templates, asker)

    @property
    def reads(self) -> str:
        return methods()[self.method].reads

    def metadata(self) -> dict[str, Any]:
        """Return the method's values in force, and its templates by digest and in full, for its score file."""
        values = dataclasses.asdict(self.config)
        parameters = {key: value for key, value in values.items() if value is not None and key not in _OF_TEMPLATES}
        metadata: dict[str, Any] = {"method": self.method, "parameters": parameters}
        if self.templates is not None:
            metadata["templates"] = self.templates.described()
            parameters["templates"] = sha256_json(metadata["templates"])[:8]
        if self.asker is not None:
            parameters["chat"] = self.asker.chat_template is not None
        return metadata

    def settings(self) -> dict[str, Any]:
        """Return the method's own addition to the scorer's settings: the chat template of its prompts."""
        template = self.asker.chat_template if self.asker is not None else None
        return {} if template is None else {"chat_template": template.digest}

    @property
    def voters(self) -> dict[str, int]:
        """Methods and how many of their predictions vote; {} for a method that is no vote."""
        return self.config.voters or {}

    def vote(self, scores: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, list[dict[str, list[str]]]]:
        """Return the rows of a vote and its draws, from the rows of its voters (eval/methods/builtin/votes.py)."""
        rows, drawn = methods()[self.method].score(scores, self.voters, self.config.trials, self.config.seed)
        return rows, drawn


@dataclass(frozen=True)
class Judged:
    """Judgements of P pairs by methods."""

    rows: dict[str, pd.DataFrame]  # columns of eval.scores.schemas.SCORES but counts of words, by pair
    prompts: dict[str, dict[str, Any]]  # of each method that asks: a prompt and the answers, for metadata
    good: Side  # the sentences alone
    bad: Side


def check_values(method: str, config: MethodConfig) -> None:
    """Raise ConfigError for a value that the method needs and that is null, and for voters without templates."""
    for name in methods()[method].needs:
        if getattr(config, name) in (None, {}):
            raise ConfigError(f"method.{method}.{name}: must have a value; conf/method/{method}.yaml says which")
    with_templates = [name for name, other in methods().items() if other.reads in PLACEHOLDERS]
    for voter in config.voters or {}:
        check_choice(f"method.{method}.voters", voter, with_templates)


def check_templates(config: EvalConfig) -> None:
    """Raise the errors of `check_values` and `templates_of` for each method, before any model is loaded."""
    for name, values in config.method.items():
        if name in methods():
            check_values(name, values)
            if (reads := methods()[name].reads) in PLACEHOLDERS:
                templates_of(name, reads, values, config.benchmark.language)


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
    with _naming_the_pair(pairs):
        good, bad = _sides(pairs, _scored(scorer, [*pairs["good"], *pairs["bad"]], policy), policy)
    if any(use.reads == UNIGRAMS for use in uses):
        if unigrams is None:
            raise ConfigError(
                "methods slor and morcela: need counts of tokens, which python -m eval takes from a run's sample"
            )
        good, bad = (
            dataclasses.replace(side, unigram_lp=unigrams.sums(side.scores, side.skip_unk)[0]) for side in (good, bad)
        )
    shared = about(good, bad)
    filled = _judge_filled(scorer, pairs, uses, policy)
    rows: dict[str, pd.DataFrame] = {}
    prompts: dict[str, dict[str, Any]] = {}
    for use in uses:
        if use.templates is None:
            rows[use.method] = judge(use.method, use.config, good, bad, shared)
            continue
        if use.asker is not None:
            with _naming_the_pair(pairs):
                parts, prompts[use.method] = methods()[use.method].score(use.asker, pairs, use.config, policy)
        else:
            parts = [filled[use.method, template] for template in use.templates.templates]
        rows[use.method] = pd.concat(
            shared.assign(template=template.name, trial=None).join(part)
            for template, part in zip(use.templates.templates, parts, strict=True)
        )
    return Judged(rows, prompts, good, bad)


def _judge_filled(
    scorer: Scorer, pairs: pd.DataFrame, uses: Sequence[MethodUse], policy: PolicyConfig
) -> dict[tuple[str, Template], pd.DataFrame]:
    """Return the columns (P rows) of each method that fills templates, by method and template."""
    users: dict[Template, list[MethodUse]] = {}
    for use in uses:
        for template in use.templates.templates if use.templates and not use.asker else ():
            users.setdefault(template, []).append(use)
    columns = {}
    sentences, others = [*pairs["good"], *pairs["bad"]], [*pairs["bad"], *pairs["good"]]
    for template in users:
        texts, spans = zip(*map(template.fill, *[sentences, others][: len(PLACEHOLDERS[template.kind])]), strict=True)
        as_read = pairs.assign(good=texts[: len(pairs)], bad=texts[len(pairs) :])
        with _naming_the_pair(pairs):
            scores = _scored(scorer, texts, policy)
        for use in users[template]:
            targets = use.config.scored == "target"
            counted = list(map(within, scores, spans)) if targets else scores
            part = summed(use.method, use.config, *_sides(as_read, counted, policy))
            columns[use.method, template] = pd.DataFrame(part, index=pairs.index).assign(order=None)
    return columns


@contextmanager
def _naming_the_pair(pairs: pd.DataFrame) -> Iterator[None]:
    """Name the pair of a text that is too long. Texts go by pair within each side, template and order."""
    try:
        yield
    except TextTooLong as error:
        pair = pairs.iloc[error.index % len(pairs)]
        raise InputError(f"{error} (paradigm {pair['paradigm']}, pair {pair['pair_id']})") from None


def _scored(scorer: Scorer, texts: Sequence[str], policy: PolicyConfig) -> list[TokenScores]:
    """Return scores of texts. Raises RunError for NaN, InputError where the model knows no token of any text."""
    scores = scorer.score(texts, policy)
    for text, score in zip(texts, scores, strict=True):
        if np.isnan(score.logprobs).any():
            raise RunError(f"{scorer.name}: its score of {shown(text)} is NaN")
    of_text = [score.spans[:, 1] > score.spans[:, 0] for score in scores]  # <eos> has no characters
    if not any((inside & ~score.unk).any() for inside, score in zip(of_text, scores, strict=True)):
        raise InputError(
            f"{scorer.name}: knows no token of any of {len(texts):,} texts, such as {shown(texts[0])}: all would tie"
        )
    return scores


def _sides(as_read: pd.DataFrame, scores: Sequence[TokenScores], policy: PolicyConfig) -> tuple[Side, Side]:
    """Return both sides from 2P scores of the good and bad texts in `as_read`."""
    half = len(as_read)
    return Side.of("good", as_read, scores[:half], policy), Side.of("bad", as_read, scores[half:], policy)


def template_reading(
    configs: Mapping[str, MethodConfig],
    language: str | None,
    words: Mapping[str, int],
    reference: str,
    distinct: float = 1.0,
) -> float:
    """Estimate how many words the templates of the methods add to the sentences alone. Raises as templates_of.

    `words`: of each different sentence of the benchmark; `distinct`: the share of them that is read. What texts begin
    with in common is read once: of a template, all up to the end of its first sentence.
    """
    templates: set[Template] = set()
    for method, config in configs.items():
        if methods()[method].reads in PLACEHOLDERS:
            templates.update(templates_of(method, methods()[method].reads, config, language).templates)
    total, read = sum(words.values()), 0.0
    for template in templates:
        places = PLACEHOLDERS[template.kind]
        # One word in the place of the first sentence shows where that ends; ab has two sentences at once.
        text, (_, end) = template.fill("x", *[""] * (len(places) - 1))
        head, tail = count_words(text[:end], reference) - 1, count_words(text[end:], reference)
        read += head + distinct * total + tail * len(words) + (len(places) - 1) * total
        read += len(words)  # the begin symbol, or the answer
    return read
