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
from eval.config import SCORED, EvalConfig, MethodConfig, PolicyConfig
from eval.methods.method import UNIGRAMS, VOTES, check_method, judge, methods, summed
from eval.methods.prompting import Asker
from eval.methods.sides import Side, about
from eval.methods.templates import PLACEHOLDERS, PROMPTS, Span, Template, Templates, templates_of, within
from eval.methods.unigrams import Unigrams
from eval.methods.voting import Drawn, vote
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
        check_method(method, scorer.masked)
        reads = methods()[method].reads
        if reads == "in_template" and config.scored is None:
            raise ConfigError(f"method.{method}.scored=null: must be one of {', '.join(SCORED)}")
        if reads == "ab" and config.seed is None:
            raise ConfigError(f"method.{method}.seed=null: must be a number")
        if reads == VOTES and (config.seed is None or config.trials is None or not config.voters):
            raise ConfigError(f"method.{method}: seed, trials and voters must be given")
        for voter in config.voters or {}:
            with_templates = [name for name, other in methods().items() if other.reads in PLACEHOLDERS]
            check_choice(f"method.{method}.voters", voter, with_templates)
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
        if self.templates is None:
            return {"method": self.method, "parameters": parameters}
        described = self.templates.described()
        parameters["templates"] = sha256_json(described)[:8]
        if self.asker is not None:
            parameters["chat"] = self.asker.chat_template is not None
        return {"method": self.method, "parameters": parameters, "templates": described}

    def settings(self) -> dict[str, Any]:
        """Return the method's own addition to the scorer's settings: the chat template of its prompts."""
        template = self.asker.chat_template if self.asker is not None else None
        return {} if template is None else {"chat_template": template.digest}

    @property
    def voters(self) -> dict[str, int]:
        """Methods and how many of their predictions vote; {} for a method that is no vote."""
        return self.config.voters or {}

    def vote(self, scores: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, list[Drawn]]:
        """Return the rows of a vote and its draws, from the rows of its voters."""
        assert self.config.trials is not None
        assert self.config.seed is not None
        return vote(scores, self.voters, self.config.trials, self.config.seed)


@dataclass(frozen=True)
class Judged:
    """Judgements of P pairs by methods."""

    rows: dict[str, pd.DataFrame]  # columns of eval.scores.schemas.SCORES but counts of words, by pair
    prompts: dict[str, dict[str, Any]]  # of each method that asks: a prompt and the answers, for metadata
    good: Side  # the sentences alone
    bad: Side


def check_templates(config: EvalConfig) -> None:
    """Raise the errors of `templates_of` for each method of a configuration, before any model is loaded."""
    for name, parameters in config.method.items():
        if name in methods() and (reads := methods()[name].reads) in PLACEHOLDERS:
            templates_of(name, reads, parameters, config.benchmark.language)


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
        good, bad = _with_unigrams(good, unigrams), _with_unigrams(bad, unigrams)
    shared = about(good, bad)
    of_filled: dict[tuple[str, Template], pd.DataFrame] = {}
    for template, users in _filled_for(uses).items():
        inputs = _fill(template, pairs)
        texts = [text for text, _ in inputs]
        as_read = pairs.assign(good=texts[: len(pairs)], bad=texts[len(pairs) :])
        with _naming_the_pair(pairs):
            scores = _scored(scorer, texts, policy)
        for use in users:
            counted = scores
            if use.config.scored == "target":
                counted = [within(score, span) for score, (_, span) in zip(scores, inputs, strict=True)]
            columns = summed(use.method, use.config, *_sides(as_read, counted, policy))
            of_filled[use.method, template] = pd.DataFrame(columns, index=pairs.index).assign(order=None)
    rows: dict[str, pd.DataFrame] = {}
    prompts: dict[str, dict[str, Any]] = {}
    for use in uses:
        if use.templates is None:
            rows[use.method] = judge(use.method, use.config, good, bad, shared)
            continue
        if use.asker is not None:
            ask = methods()[use.method].ask
            assert ask is not None, use.method
            with _naming_the_pair(pairs):
                parts, prompts[use.method] = ask(use.asker, pairs, use.config, policy)
        else:
            parts = [of_filled[use.method, template] for template in use.templates.templates]
        rows[use.method] = pd.concat(
            shared.assign(template=template.name, trial=None).join(part)
            for template, part in zip(use.templates.templates, parts, strict=True)
        )
    return Judged(rows, prompts, good, bad)


def _with_unigrams(side: Side, unigrams: Unigrams | None) -> Side:
    if unigrams is None:
        raise ConfigError(
            "methods slor and morcela: need counts of tokens, which python -m eval takes from a run's sample"
        )
    return dataclasses.replace(side, unigram_lp=unigrams.sums(side.scores, side.skip_unk)[0])


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


def _filled_for(uses: Sequence[MethodUse]) -> dict[Template, list[MethodUse]]:
    """Return the templates that are filled and scored as texts, each with its uses."""
    users: dict[Template, list[MethodUse]] = {}
    for use in uses:
        if use.templates is not None and use.asker is None:
            for template in use.templates.templates:
                users.setdefault(template, []).append(use)
    return users


def _fill(template: Template, pairs: pd.DataFrame) -> list[tuple[str, Span]]:
    """Return a template with the good sentences, then with the bad ones (2P), and the place of each in its text."""
    good, bad = pairs["good"].tolist(), pairs["bad"].tolist()
    if len(PLACEHOLDERS[template.kind]) == 2:
        return list(map(template.fill, [*good, *bad], [*bad, *good]))
    return list(map(template.fill, [*good, *bad]))


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
        check_choice("method", method, methods())
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
