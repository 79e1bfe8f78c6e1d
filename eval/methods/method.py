"""The registry of judgement methods: each gives a good and a bad sentence a score, of which the higher wins.

    @method("mine")
    def mine(side: Side, other: Side, config: MethodConfig) -> FloatArray: ...

A method sees one side (good or bad) of all pairs at once, after one pass over the model that all methods share
(eval/methods/judging.py). Its values are those of conf/method/NAME.yaml.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from eval.config import MethodConfig, PolicyConfig
from eval.methods.prompting import Asker
from eval.methods.sides import Counts, Side
from eval.scorers.base import FloatArray
from eval.scores.files import judged_pairs
from pairscale.errors import ConfigError, check_choice
from pairscale.plugins import load_members

Score = Callable[[Side, Side, MethodConfig], FloatArray]
Ask = Callable[[Asker, pd.DataFrame, MethodConfig, PolicyConfig], tuple[list[pd.DataFrame], dict[str, Any]]]

SENTENCES, MASKED, UNIGRAMS, VOTES = "sentences", "masked", "unigrams", "scores"


@dataclass(frozen=True)
class Method:
    """A method by its needs. A vote has neither `score` nor `ask`."""

    # SENTENCES; UNIGRAMS: sentences, and how often their tokens occur in training; MASKED: their tokens, each hidden;
    # VOTES: the scores of other methods; or a kind of template (eval.methods.templates.PLACEHOLDERS), filled.
    reads: str
    score: Score | None = None  # returns the scores (P,) of one side, and may look at the other
    ask: Ask | None = None  # returns the rows of each template from a model's answers to prompts


_METHODS: dict[str, Method] = {}


def method(name: str, reads: str = SENTENCES) -> Callable[[Score], Score]:
    """Register a function of token scores as the method `name`."""

    def register(score: Score) -> Score:
        _METHODS[name] = Method(reads, score=score)
        return score

    return register


def prompt_method(name: str, reads: str) -> Callable[[Ask], Ask]:
    """Register a function of a model's answers to prompts of the kind `reads` as the method `name`."""

    def register(ask: Ask) -> Ask:
        _METHODS[name] = Method(reads, ask=ask)
        return ask

    return register


def vote_method(name: str) -> None:
    """Register a vote over other methods (eval/methods/voting.py), which its configuration names."""
    _METHODS[name] = Method(VOTES)


def methods() -> Mapping[str, Method]:
    """Return all methods by name: those of eval/methods/builtin, and those that plug-ins registered."""
    load_members(f"{__package__}.builtin")
    return _METHODS


def fitting(configs: Mapping[str, MethodConfig], masked: bool) -> dict[str, MethodConfig]:
    """Return the methods that fit the kind of model, so that one list serves a study of causal and masked models.

    Raises ConfigError for an unknown method, or if none fits.
    """
    for name in configs:
        check_choice("method", name, methods())
    chosen = {name: config for name, config in configs.items() if (methods()[name].reads == MASKED) == masked}
    if configs and not chosen:
        check_method(next(iter(configs)), masked)
    return chosen


def check_method(method: str, masked: bool) -> None:
    """Raise ConfigError for an unknown method, or one that does not fit the kind of model."""
    check_choice("method", method, methods())
    fitting = [name for name, of in methods().items() if (of.reads == MASKED) == masked]
    if method not in fitting:
        kind = "a masked model has no probability of a token after those before it" if masked else "not a masked model"
        raise ConfigError(f"method={method}: {kind}; methods for it: {', '.join(sorted(fitting))}")


def judge(method: str, config: MethodConfig, good: Side, bad: Side, shared: pd.DataFrame) -> pd.DataFrame:
    """Return a method's rows of a score file (eval.scores.schemas.SCORES), its pairs only, without counts of words.

    `shared`: the columns that all methods share (eval.methods.sides.about). Raises ConfigError for an unknown method.
    """
    check_choice("method", method, methods())
    rows = shared.assign(template=None, trial=None, order=None, **summed(method, config, good, bad))
    return rows[judged_pairs(method, good.pairs)]


def summed(method: str, config: MethodConfig, good: Side, bad: Side) -> dict[str, FloatArray | Counts]:
    """Return the columns (P,) of a method that makes its scores of log-probabilities of tokens.

    A text of which unk=skip leaves nothing has no score (NaN): its log-probability would be higher than any other.
    """
    score = methods()[method].score
    assert score is not None, method
    return {
        "good": np.where(good.judged, score(good, bad, config), np.nan),
        "bad": np.where(bad.judged, score(bad, good, config), np.nan),
        "good_lp": good.lp,
        "bad_lp": bad.lp,
        "good_tokens": good.tokens,
        "bad_tokens": bad.tokens,
    }
