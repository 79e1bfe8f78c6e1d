"""The registry of judgement methods: each gives a good and a bad sentence a score, of which the higher wins.

    @dataclass
    class Squared:
        least: int = 1  # tokens that a sentence counts as

    @method("squared", Squared())
    def squared(side: Side, other: Side, parameters: Squared) -> FloatArray: ...

`method=[squared]` chooses the method, `method.squared.least=2` sets its parameter. Imports no torch, since every
command reads it.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from pairscale.command.schemas import build, nearest, shown
from pairscale.errors import ConfigError
from pairscale.plugins import load_members

SENTENCES, MASKED, UNIGRAMS, VOTES = "sentences", "masked", "unigrams", "scores"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class NoParameters:
    """The parameters of a method without any."""


@dataclass(frozen=True)
class Method:
    """A method by what it reads.

    score: from the side to score, the other side and parameters to the scores (P,) of the first. Of prompts: from a
    template, pairs and parameters to Questions (builtin/prompts.py). Of votes: builtin/votes.py.
    parameters: a dataclass with the default values.
    reads: SENTENCES; UNIGRAMS: sentences, and how often their tokens occur in training; MASKED: their tokens, each
    hidden; VOTES: the scores of other methods; or a kind of template (eval.methods.templates.PLACEHOLDERS), filled.
    """

    score: Callable[..., Any]
    parameters: Any
    reads: str


_METHODS: dict[str, Method] = {}


def method(name: str, parameters: Any = None, reads: str = SENTENCES) -> Callable[[F], F]:
    """Register a function as the method `name`; `parameters`, `reads` and its signature as in Method.

    Raises ValueError for a name in use.
    """

    def register(score: F) -> F:
        if name in _METHODS:
            raise ValueError(f"method {name}: registered by {_METHODS[name].score.__module__} already")
        _METHODS[name] = Method(score, parameters or NoParameters(), reads)
        return score

    return register


def methods() -> Mapping[str, Method]:
    """Return all methods by name: those of eval/methods/builtin, and those that plug-ins registered."""
    load_members(f"{__package__}.builtin")
    return _METHODS


def typed(name: str, parameters: Any) -> Any:
    """Return the parameters of a method, from plain values of some of them. Raises ConfigError, as `build` does."""
    if name not in methods():
        raise ConfigError(f"No method called '{name}'. {nearest(name, methods())}")
    default = methods()[name].parameters
    if isinstance(parameters, type(default)):
        return parameters
    if not isinstance(parameters, Mapping):
        raise ConfigError(f"method.{name}={shown(parameters)}: must be keys with values")
    return build(type(default), asdict(default) | dict(parameters), f"method.{name}.")


def fitting(configs: Mapping[str, Any], masked: bool) -> dict[str, Any]:
    """Return the methods that fit the kind of model, so that one list serves a study of causal and masked models.

    Raises ConfigError if none fits.
    """
    known = sorted(name for name, of in methods().items() if (of.reads == MASKED) == masked)
    chosen = {name: parameters for name, parameters in configs.items() if name in known}
    if configs and not chosen:
        kind = "a masked model has no probability of a token after those before it" if masked else "not a masked model"
        raise ConfigError(f"method={next(iter(configs))}: {kind}; methods for it: {', '.join(known)}")
    return chosen
