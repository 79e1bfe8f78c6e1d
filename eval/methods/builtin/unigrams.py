"""Methods that take the frequency of words out of log-probability: slor and morcela."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omegaconf import MISSING

from eval.methods.method import UNIGRAMS, method
from eval.scores.normalised import morcela as weighted

if TYPE_CHECKING:
    from eval.methods.sides import Side
    from eval.scorers.base import FloatArray


@dataclass
class Weights:
    """Parameters of morcela: numbers of a model in the report on benchmark=ratings."""

    beta: float = MISSING  # weight of the unigram log-probability; slor has 1
    gamma: float = MISSING  # weight of length, nats; slor has 0


@method("slor", reads=UNIGRAMS)
def slor(side: Side, other: Side, parameters: Any) -> FloatArray:
    """(Log-probability - unigram log-probability) / tokens (Pauls and Klein 2012); NaN where no token counts."""
    return weighted(side.lp, side.unigram_lp, side.tokens.astype(float), 1, 0)


@method("morcela", Weights(), UNIGRAMS)
def morcela(side: Side, other: Side, parameters: Weights) -> FloatArray:
    """(Log-probability - beta * unigram log-probability + gamma) / tokens (Tjuatja et al. 2024)."""
    return weighted(side.lp, side.unigram_lp, side.tokens.astype(float), parameters.beta, parameters.gamma)
