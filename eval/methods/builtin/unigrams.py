"""Methods that take the frequency of words out of log-probability: slor and morcela."""

from eval.config import MethodConfig
from eval.methods.method import UNIGRAMS, method
from eval.methods.sides import Side
from eval.scorers.base import FloatArray
from eval.scores.normalised import morcela as weighted


@method("slor", UNIGRAMS)
def slor(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """(lp - u) / n for unigram log-probability u and n tokens (Pauls and Klein 2012). NaN where no token counts."""
    assert side.unigram_lp is not None
    return weighted(side.lp, side.unigram_lp, side.tokens.astype(float), 1, 0)


@method("morcela", UNIGRAMS, needs=("beta", "gamma"))
def morcela(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """(lp - beta u + gamma) / n (Tjuatja et al. 2024), with weights that were fitted to ratings (benchmark=ratings)."""
    assert side.unigram_lp is not None
    assert config.beta is not None
    assert config.gamma is not None
    return weighted(side.lp, side.unigram_lp, side.tokens.astype(float), config.beta, config.gamma)
