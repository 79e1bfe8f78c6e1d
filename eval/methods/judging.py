"""Judge pairs with several methods, sharing their passes over the model, and make the rows of their score files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from corpora.words import count_words
from eval.benchmarks.cells import shown
from eval.benchmarks.choices import compared, hardest
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
    """A method with its parameters and templates, prepared for one model."""

    method: str
    config: Any  # the method's parameters
    templates: Templates = ALONE
    chat_template: ChatTemplate | None = None  # for prompts

    @classmethod
    def of(cls, method: str, config: Any, scorer: Scorer, language: str | None) -> MethodUse:
        """Prepare a method for a model.

        Raises ConfigError if the model can't use the method, and the same errors as `chosen_templates`.
        """
        fitting({method: config}, scorer.masked)
        asks = methods()[method].reads in PROMPTS
        chat_template = chat_template_of(method, scorer, config.chat) if asks else None
        return cls(method, config, chosen_templates(method, config, language), chat_template)

    @property
    def reads(self) -> str:
        return methods()[self.method].reads

    def metadata(self) -> dict[str, Any]:
        """Return the score file's metadata, with the method's parameters, its templates and their digest."""
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
        """Return what to add to the scorer's settings: the digest of the chat template, or {} if there is none."""
        return {} if self.chat_template is None else {"chat_template": self.chat_template.digest}

    @property
    def voters(self) -> dict[str, int]:
        """The methods that vote, with the number of predictions from each, or {} if the method isn't a vote."""
        return getattr(self.config, "voters", {})

    def vote(self, scores: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, list[dict[str, list[str]]]]:
        """Count the votes in the voters' rows. Return rows and drawn templates (eval/methods/builtin/votes.py)."""
        rows, drawn = methods()[self.method].score(scores, self.config)
        return rows, drawn


@dataclass(frozen=True)
class Judged:
    """The judgements of P pairs by several methods. P includes each comparison of a choice's right option."""

    pairs: pd.DataFrame  # (P rows) what was compared (eval.benchmarks.choices.compared)
    # For each method, the columns of eval.scores.schemas.SCORES except the word counts, with the index of `pairs`.
    rows: dict[str, pd.DataFrame]
    prompts: dict[str, dict[str, Any]]  # for each method with prompts, an example and the answers, for metadata
    good: Side  # the good sentences without templates
    bad: Side


def chosen_templates(method: str, config: Any, language: str | None) -> Templates:
    """Return the templates of a method, or ALONE if it has none.

    Raises ConfigError if voters have no templates, and the same errors as `templates_of`.
    """
    with_templates = [name for name, other in methods().items() if other.reads in PLACEHOLDERS]
    for voter in getattr(config, "voters", {}):
        check_choice(f"method.{method}.voters", voter, with_templates)
    if method not in with_templates:
        return ALONE
    return templates_of(method, methods()[method].reads, config.templates, language)


def check_templates(config: EvalConfig) -> None:
    """Check each method's templates before any model is loaded. Raises the same errors as `chosen_templates`."""
    for name, parameters in config.method.items():
        chosen_templates(name, parameters, config.benchmark.language)


def judge_pairs(
    scorer: Scorer,
    pairs: pd.DataFrame,
    uses: Sequence[MethodUse],
    policy: PolicyConfig,
    unigrams: Unigrams | None = None,
) -> Judged:
    """Judge pairs or choices with methods other than votes.

    The sentences and the filled templates are scored once for all methods. Templates are scored one after the other,
    because texts of different templates have few tokens in common, and all of them may not fit into memory.

    `pairs` has the columns of eval.scores.schemas.ITEMS and the index 0, 1, ... `unigrams` contains token counts for
    the methods that need them.

    Raises:
        ConfigError: If a method needs unigrams or contexts but there are none, or has templates although there are.
        RunError: If a score is NaN.
        InputError: If a text is too long, or if all tokens of all texts are unknown to the model.
    """
    if unigrams is None and any(use.reads == UNIGRAMS for use in uses):
        raise ConfigError(
            "slor and morcela need token counts of the training text, which only python -m eval has. Leave them out."
        )
    pairs = compared(pairs)
    check_contexts(uses, pairs)
    columns: dict[tuple[str, Template], dict[str, Any]] = {}  # arrays (P,) by method and template
    prompts: dict[str, dict[str, Any]] = {}
    alone: tuple[Side, Side] | None = None
    reading = [use for use in uses if use.reads not in PROMPTS]
    skip = policy.unk == "skip"
    for template in dict.fromkeys([*ALONE.templates, *(one for use in reading for one in use.templates.templates)]):
        texts, spans = _filled(template, pairs)
        texts, starts = with_contexts(texts, pairs)
        with naming_the_pair(texts, pairs):
            scores = _scored(scorer, texts, policy, starts)
        whole = both_sides(pairs, texts, scores, skip, unigrams, starts)
        alone = alone or whole
        for use in [use for use in reading if template in use.templates.templates]:
            target = getattr(use.config, "scored", "input") == "target"
            sides = both_sides(pairs, texts, list(map(within, scores, spans)), skip, unigrams) if target else whole
            if (neutral := getattr(use.config, "neutral", None)) is not None:
                read, at = with_contexts(_filled(template, pairs)[0], pairs, neutral)
                after = both_sides(pairs, read, _scored(scorer, read, policy, at), skip, unigrams, at)
                good, bad = (dataclasses.replace(side, neutral=of) for side, of in zip(sides, after, strict=True))
                sides = good, bad
            columns[use.method, template] = summed(use.method, use.config, *sides)
    for use in [use for use in uses if use.reads in PROMPTS]:
        score = methods()[use.method].score
        questions = {template: score(template, pairs, use.config) for template in use.templates.templates}
        answered, prompts[use.method] = ask(scorer, questions, use.templates, use.chat_template, policy, pairs)
        columns |= {(use.method, template): of for template, of in answered.items()}
    assert alone is not None
    shared = about(pairs, *alone).assign(trial=None, order=None)
    rows = {}
    for use in uses:
        judged = judged_pairs(use.method, pairs)
        tables = [shared.assign(template=of.name or None, **columns[use.method, of]) for of in use.templates.templates]
        rows[use.method] = pd.concat(table[judged] for table in tables)
        if "rival" in pairs:
            rows[use.method] = hardest(rows[use.method])
    return Judged(pairs, rows, prompts, *alone)


def check_contexts(uses: Sequence[MethodUse], pairs: pd.DataFrame) -> None:
    """Raise ConfigError if methods with templates are used on choices, or methods that need contexts on others."""
    for use in uses:
        if "rival" in pairs and use.reads in PLACEHOLDERS:
            raise ConfigError(
                f"method={use.method}: this method has templates, so it can't judge choices or pairs with a context. "
                "Leave it out."
            )
        if hasattr(use.config, "neutral") and not ("rival" in pairs and pairs["good_context"].ne("").any()):
            raise ConfigError(
                f"method={use.method}: this method compares a context with a neutral one, but these pairs have none. "
                "Leave it out, or name the column with the contexts in benchmark.columns.context."
            )


def with_contexts(
    texts: list[str], pairs: pd.DataFrame, neutral: str | None = None
) -> tuple[list[str], list[int] | None]:
    """Put the context of each pair, or a neutral one, before the 2P texts. Return them and where each is scored from.

    White space between context and text counts with the text. A neutral context is followed by the same white space, or
    by none if it is empty.
    """
    if "rival" not in pairs:
        return texts, None
    read, starts = [], []
    for text, context in zip(texts, [*pairs["good_context"], *pairs["bad_context"]], strict=True):
        if neutral is not None:
            context = neutral + context[len(context.rstrip()) :] if neutral else ""
        read.append(context + text)
        starts.append(len(context.rstrip()))
    return read, starts


def summed(method: str, config: Any, good: Side, bad: Side) -> dict[str, Any]:
    """Return the columns (P,) of a method that computes its scores from log-probabilities of tokens.

    If unk=skip leaves no token of a text, its score is NaN. A sum over no tokens would be higher than any other score.
    """
    columns: dict[str, Any] = {}
    for side, other in ((good, bad), (bad, good)):
        score = methods()[method].score(side, other, config)
        columns |= {side.name: np.where(side.judged, score, np.nan)}
        columns |= {f"{side.name}_lp": side.lp, f"{side.name}_tokens": side.tokens}
    return columns


def _filled(template: Template, pairs: pd.DataFrame) -> tuple[list[str], list[tuple[int, int]]]:
    """Fill a template with all sentences. Return 2P texts, good ones first, and the characters of each sentence."""
    good, bad = list(pairs["good"]), list(pairs["bad"])
    sentences = [good + bad, bad + good][: len(PLACEHOLDERS[template.kind])]
    texts, spans = zip(*map(template.fill, *sentences), strict=True)
    return list(texts), list(spans)


def _scored(
    scorer: Scorer, texts: Sequence[str], policy: PolicyConfig, starts: Sequence[int] | None = None
) -> list[TokenScores]:
    """Score texts from `starts` on.

    Raises RunError if a score is NaN, and InputError if all tokens of all texts are unknown.
    """
    scores = scorer.score(texts, policy, starts)
    for text, score in zip(texts, scores, strict=True):
        if np.isnan(score.logprobs).any():
            raise RunError(
                f"{scorer.name}: the score of {shown(text)} is NaN. If the model doesn't use fp32, set "
                "model.dtype=fp32. If it does, it may be damaged, so train or download it again."
            )
    if not any(map(any_known, scores)):
        raise InputError(
            f"{scorer.name}: all tokens of all {len(texts):,} texts, such as {shown(texts[0])}, are unknown to the "
            "model, so all pairs would be tied. Use a benchmark in the model's language."
        )
    return scores


def template_reading(
    configs: Mapping[str, Any], language: str | None, words: Mapping[str, int], reference: str, distinct: float = 1.0
) -> float:
    """Estimate how many more words a model reads because of the methods' templates.

    The common beginning of a template's texts is read once. `words` contains the number of words in each distinct
    sentence of the benchmark. `distinct` is the share of these words that a model reads, because many sentences have
    the same beginning. Raises the same errors as `templates_of`.
    """
    chosen = {one for name, config in configs.items() for one in chosen_templates(name, config, language).templates}
    total, read = sum(words.values()), 0.0
    for template in chosen.difference(ALONE.templates):
        others = len(PLACEHOLDERS[template.kind]) - 1
        # A word in place of the first sentence shows where this sentence ends. With `ab`, one text has both sentences.
        text, (_, end) = template.fill("x", *[""] * others)
        head, tail = count_words(text[:end], reference) - 1, count_words(text[end:], reference)
        # The last term is for the begin symbol or the answer.
        read += head + distinct * total + tail * len(words) + others * total + len(words)
    return read
