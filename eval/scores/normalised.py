"""Log-probability normalised for the length of a sentence and the frequency of its tokens."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def morcela(lp: Array, unigram_lp: Array, tokens: Array, beta: float, gamma: float) -> Array:
    """Return (lp - beta u + gamma) / n (Tjuatja et al. 2024, arXiv:2411.02528); NaN where no token counts.

    It is slor (Pauls and Klein 2012) with beta = 1 and gamma = 0, and the mean log-probability with both 0.
    """
    top = lp - beta * unigram_lp + gamma
    return np.asarray(np.divide(top, tokens, out=np.full(len(top), np.nan), where=tokens > 0))
