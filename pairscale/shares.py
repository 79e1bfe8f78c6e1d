"""Compute confidence intervals for proportions."""

import math
from statistics import NormalDist


def wilson(share: float, trials: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval for a proportion of `trials` (Brown, Cai and DasGupta 2001, equation 4)."""
    if trials == 0:
        return math.nan, math.nan
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)
