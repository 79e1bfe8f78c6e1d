"""The registry of judgement methods: each gives a good and a bad sentence a score, of which the higher wins.

    @method("mine", needs=("alpha",))
    def mine(side: Side, other: Side, config: MethodConfig) -> FloatArray: ...

A method sees one side (good or bad) of all pairs at once, after one pass over the model that all methods share
(eval/methods/judging.py). Its values are those of conf/method/NAME.yaml.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from eval.config import MethodConfig
from eval.methods.sides import Counts, Side
from eval.scorers.base import FloatArray
from eval.scores.files import judged_pairs
from pairscale.errors import ConfigError, check_choice
from pairscale.plugins import load_members

SENTENCES, MASKED, UNIGRAMS, VOTES = "sentences", "masked", "unigrams", "scores"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Method:
    """A method by what it reads and needs.

    reads: SENTENCES; UNIGRAMS: sentences, and how often their tokens occur in training; MASKED: their tokens, each
    hidden; VOTES: the scores of other methods; or a kind of template (eval.methods.templates.PLACEHOLDERS), filled.
    score: from two sides and values to the scores (P,) of the first side. Of prompts: from an Asker, pairs, values and
    policy to the rows of each template and what metadata records (builtin/yes_no.py). Of votes: builtin/votes.py.
    needs: fields of MethodConfig without which it cannot judge.
    """

    reads: str
    score: Callable[..., Any]
    needs: tuple[str, ...] = ()


_METHODS: dict[str, Method] = {}


def method(name: str, reads: str = SENTENCES, needs: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Register a function as the method `name`; `reads`, `needs` and its signature as in Method."""

    def register(score: F) -> F:
        _METHODS[name] = Method(reads, score, needs)
        return score

    return register


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
    known = sorted(name for name, of in methods().items() if (of.reads == MASKED) == masked)
    chosen = {name: config for name, config in configs.items() if name in known}
    if configs and not chosen:
        kind = "a masked model has no probability of a token after those before it" if masked else "not a masked model"
        raise ConfigError(f"method={next(iter(configs))}: {kind}; methods for it: {', '.join(known)}")
    return chosen


def judge(method: str, config: MethodConfig, good: Side, bad: Side, shared: pd.DataFrame) -> pd.DataFrame:
    """Return a method's rows of a score file (eval.scores.schemas.SCORES), its pairs only, without counts of words.

    `shared`: the columns that all methods share (eval.methods.sides.about).
    """
    rows = shared.assign(template=None, trial=None, order=None, **summed(method, config, good, bad))
    return rows[judged_pairs(method, good.pairs)]


def summed(method: str, config: MethodConfig, good: Side, bad: Side) -> dict[str, FloatArray | Counts]:
    """Return the columns (P,) of a method that makes its scores of log-probabilities of tokens.

    A text of which unk=skip leaves nothing has no score (NaN): its log-probability would be higher than any other.
    """
    score = methods()[method].score
    return {
        "good": np.where(good.judged, score(good, bad, config), np.nan),
        "bad": np.where(bad.judged, score(bad, good, config), np.nan),
        "good_lp": good.lp,
        "bad_lp": bad.lp,
        "good_tokens": good.tokens,
        "bad_tokens": bad.tokens,
    }
