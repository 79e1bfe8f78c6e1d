"""Methods that sum the tokens of a text, plain or in a template (Ide et al. 2024, section 3.2)."""

import numpy as np

from eval.config import MethodConfig
from eval.methods.method import MASKED, method
from eval.methods.sides import Side
from eval.scorers.base import FloatArray


@method("lp")
@method("in_template_lp", "in_template", needs=("scored",))
@method("in_template_comparative_lp", "comparative")
def lp(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """Log-probability of the sentence, the sum over its tokens: LP of Lau et al. 2020."""
    return side.lp


@method("mean_lp")
@method("in_template_mean_lp", "in_template", needs=("scored",))
def mean_lp(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """Log-probability per token: MeanLP of Lau et al. 2020. NaN where no token counts."""
    return np.divide(side.lp, side.tokens, out=np.full_like(side.lp, np.nan), where=side.tokens > 0)


@method("pen_lp", needs=("alpha",))
@method("in_template_pen_lp", "in_template", needs=("alpha", "scored"))
def pen_lp(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """LP / ((5 + n) / 6)^alpha for n tokens: PenLP of Lau et al. 2020 (the penalty of Wu et al. 2016)."""
    assert config.alpha is not None
    return side.lp / ((5 + side.tokens) / 6) ** config.alpha


@method("pll", MASKED)
def pll(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """Sum of the log-probabilities of each token with it hidden: PLL of Salazar et al. 2020, of masked models."""
    return side.lp
