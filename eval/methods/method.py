"""The registry of judgement methods. A method scores both sentences of a pair, and the higher score wins.

    @dataclass
    class Squared:
        least: int = 1  # minimum number of tokens

    @method("squared", Squared())
    def squared(side: Side, other: Side, parameters: Squared) -> FloatArray: ...

On the command line, `method=[squared]` chooses this method and `method.squared.least=2` sets its parameter. This module
must not import torch, because every command imports it.
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
    """The parameters of a method that has none."""


@dataclass(frozen=True)
class Method:
    """A registered method.

    Args:
        score: A function that takes the side to score, the other side and the parameters, and returns scores (P,) of
            the first side. For prompts, it takes a template, pairs and parameters, and returns Questions
            (builtin/prompts.py). For votes, see builtin/votes.py.
        parameters: A dataclass with the default values.
        reads: What the method needs. SENTENCES, UNIGRAMS (sentences and the counts of their tokens in training),
            MASKED (sentences with each token hidden), VOTES (the scores of other methods), or a kind of template
            (eval.methods.templates.PLACEHOLDERS).
    """

    score: Callable[..., Any]
    parameters: Any
    reads: str


_METHODS: dict[str, Method] = {}


def method(name: str, parameters: Any = None, reads: str = SENTENCES) -> Callable[[F], F]:
    """Register the decorated function as the method `name`. See Method for its signature and the arguments.

    Raises ValueError if the name is in use.
    """

    def register(score: F) -> F:
        if name in _METHODS:
            raise ValueError(f"method {name} is already registered by {_METHODS[name].score.__module__}.")
        _METHODS[name] = Method(score, parameters or NoParameters(), reads)
        return score

    return register


def methods() -> Mapping[str, Method]:
    """Return all methods by name: those in eval/methods/builtin, and those of plug-ins."""
    load_members(f"{__package__}.builtin")
    return _METHODS


def typed(name: str, parameters: Any) -> Any:
    """Return a method's parameters as its dataclass. `parameters` may be a mapping of only some of them.

    Raises ConfigError if there is no such method, and as `build`.
    """
    if name not in methods():
        raise ConfigError(f"No method called '{name}'. {nearest(name, methods())}")
    default = methods()[name].parameters
    if isinstance(parameters, type(default)):
        return parameters
    if not isinstance(parameters, Mapping):
        raise ConfigError(
            f"method.{name}={shown(parameters)}: must be parameters with values, as in method.{name}.KEY=VALUE."
        )
    return build(type(default), asdict(default) | dict(parameters), f"method.{name}.")


def fitting(configs: Mapping[str, Any], masked: bool) -> dict[str, Any]:
    """Return the methods that fit a masked or causal model, so that one list works for a study with both.

    Raises ConfigError if no method fits.
    """
    known = sorted(name for name, of in methods().items() if (of.reads == MASKED) == masked)
    chosen = {name: parameters for name, parameters in configs.items() if name in known}
    if configs and not chosen:
        kind = "masked" if masked else "causal"
        raise ConfigError(
            f"method={next(iter(configs))} doesn't work with this model, which is {kind}. Methods for {kind} models: "
            f"{', '.join(known)}."
        )
    return chosen
