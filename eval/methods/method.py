"""Register judgement methods. A method scores both sentences of a pair, and the higher score wins.

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
        score: A function of the side to score, the other side and the parameters. It returns scores (P,) of the first
            side. For prompts, it is a function of a template, pairs and parameters, and returns Questions
            (builtin/prompts.py). For votes, see builtin/votes.py.
        parameters: A dataclass with the default values.
        reads: The input of the method. It is SENTENCES, UNIGRAMS (sentences and token counts in the training text),
            MASKED (sentences with each token masked), VOTES (scores of other methods), or a kind of template
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
            raise ValueError(f"The method {name} exists ({_METHODS[name].score.__module__}). Choose another name.")
        _METHODS[name] = Method(score, parameters or NoParameters(), reads)
        return score

    return register


def methods() -> Mapping[str, Method]:
    """Return all methods by name, from eval/methods/builtin and from plug-ins."""
    load_members(f"{__package__}.builtin")
    return _METHODS


def typed(name: str, parameters: Any) -> Any:
    """Return a method's parameters as its dataclass. `parameters` may be a mapping with only some of them.

    Raises ConfigError if there is no such method, and the same errors as `build`.
    """
    if name not in methods():
        raise ConfigError(f"No method called '{name}'. {nearest(name, methods())}")
    default = methods()[name].parameters
    if isinstance(parameters, type(default)):
        return parameters
    if not isinstance(parameters, Mapping):
        raise ConfigError(
            f"method.{name}={shown(parameters)}: a method's parameters can't be set this way. Set each parameter by "
            f"name, as in method.{name}.KEY=VALUE."
        )
    return build(type(default), asdict(default) | dict(parameters), f"method.{name}.")


def fitting(configs: Mapping[str, Any], masked: bool) -> dict[str, Any]:
    """Return the methods that apply to a masked or causal model, so that one list works for a study with both.

    Raises ConfigError if no method applies.
    """
    known = sorted(name for name, of in methods().items() if (of.reads == MASKED) == masked)
    chosen = {name: parameters for name, parameters in configs.items() if name in known}
    if configs and not chosen:
        kind = "masked" if masked else "causal"
        raise ConfigError(
            f"method={next(iter(configs))} doesn't work with this model, because it is a {kind} model. Use one of "
            f"these methods: {', '.join(known)}."
        )
    return chosen
