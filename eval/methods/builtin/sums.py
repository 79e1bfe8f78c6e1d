"""Define methods that sum and normalise token scores, with or without a template (Ide et al. 2024, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from eval.methods.method import MASKED, UNIGRAMS, method
from eval.methods.templates import TemplateParameters
from pairscale.command.schemas import MISSING

if TYPE_CHECKING:
    from eval.methods.sides import Side
    from eval.scorers.base import FloatArray


@dataclass
class Penalty:
    """The parameters of pen_lp."""

    alpha: Annotated[float, Meta(ge=0, le=10)] = 0.8  # exponent of the length penalty


@dataclass
class InTemplate(TemplateParameters):
    """The parameters of methods that score a template with the sentence filled in."""

    scored: Literal["input", "target"] = "input"  # whether to score the whole text or only the sentence


@dataclass
class InTemplatePenalty(InTemplate, Penalty):
    """The parameters of in_template_pen_lp."""


@dataclass
class Weights:
    """The parameters of morcela. The report on benchmark=ratings contains fitted values for each model."""

    beta: float = MISSING  # weight of the unigram log-probability
    gamma: float = MISSING  # correction for length in nats; beta = 1 and gamma = 0 are the same as slor


@dataclass
class Neutral:
    """Parameters of methods that compare a context with a neutral one."""

    neutral: str = ""  # the neutral context, such as "Answer:"; empty: none


@method("lp")
@method("in_template_lp", InTemplate(), "in_template")
@method("in_template_comparative_lp", TemplateParameters(), "comparative")
def lp(side: Side, other: Side, parameters: Any) -> FloatArray:
    """Return the log-probability, summed over tokens (Lau et al. 2020), after the context if there is one."""
    return side.lp


@method("pll", reads=MASKED)
def pll(side: Side, other: Side, parameters: Any) -> FloatArray:
    """Return the pseudo-log-likelihood, masking each token in turn (Salazar et al. 2020, Kauf and Ivanova 2023)."""
    return side.lp


@method("mean_lp")
@method("mean_pll", reads=MASKED)
@method("in_template_mean_lp", InTemplate(), "in_template")
def mean_lp(side: Side, other: Side, parameters: Any) -> FloatArray:
    """Return the log-probability per token (Lau et al. 2020), or NaN if no token is scored."""
    return np.divide(side.lp, side.tokens, out=np.full_like(side.lp, np.nan), where=side.tokens > 0)


@method("char_lp")
@method("char_pll", reads=MASKED)
def char_lp(side: Side, other: Side, parameters: Any) -> FloatArray:
    """Return the log-probability per character, as `acc_norm` of the LM evaluation harness (Gao et al. 2023)."""
    return side.lp / side.chars


@method("pmi_lp", Neutral())
@method("pmi_pll", Neutral(), MASKED)
def pmi_lp(side: Side, other: Side, parameters: Neutral) -> FloatArray:
    """Return the pointwise mutual information of sentence and context: ln p(sentence | context) - ln p(sentence).

    The second term is after a neutral context (Brown et al. 2020, section 2.4; Holtzman et al. 2021).
    """
    assert side.neutral is not None
    return side.lp - side.neutral.lp


@method("pen_lp", Penalty())
@method("in_template_pen_lp", InTemplatePenalty(), "in_template")
def pen_lp(side: Side, other: Side, parameters: Penalty) -> FloatArray:
    """Return log-probability / ((5 + n) / 6)^alpha for n tokens (Lau et al. 2020, penalty from Wu et al. 2016)."""
    return side.lp / ((5 + side.tokens) / 6) ** parameters.alpha


@method("slor", reads=UNIGRAMS)
def slor(side: Side, other: Side, parameters: Any) -> FloatArray:
    """Return (log-probability - unigram log-probability) / tokens (Pauls and Klein 2012), or NaN if tokens is 0."""
    from eval.scores.accuracy import morcela as weighted  # imported here so that commands start without pandas

    return weighted(side.lp, side.unigram_lp, side.tokens.astype(float), 1, 0)


@method("morcela", Weights(), UNIGRAMS)
def morcela(side: Side, other: Side, parameters: Weights) -> FloatArray:
    """Return (log-probability - beta * unigram log-probability + gamma) / tokens (Tjuatja et al. 2024)."""
    from eval.scores.accuracy import morcela as weighted

    return weighted(side.lp, side.unigram_lp, side.tokens.astype(float), parameters.beta, parameters.gamma)
