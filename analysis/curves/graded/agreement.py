"""Means and differences of a statistic over runs, with intervals for new runs, new sentences, and both.

R runs and C units (sentences, or pairs of them), which are crossed: all runs have scores of the same sentences. On the
scale of the statistic (Fisher's z, or logits) a contrast c @ z has three variances. Over new sentences, for these runs:
that of the contrast of influences. Over new runs, for these sentences: that of the runs within their sizes, each size
with its own spread, plus what text in common hides. Over both: their sum less the variance of runs x sentences, which
both hold. tests/bench/ratings_coverage.py shows how often the intervals contain the truth.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from analysis.curves.designs import Design
from analysis.curves.variance import satterthwaite, shared_text_variance
from eval.ratings.statistics import Array, Statistic

LIMITS = ("low", "high", "low_items", "high_items", "low_both", "high_both")


class Interval(NamedTuple):
    """Limits for new runs and these sentences, for new sentences and these runs, and for new ones of both."""

    value: float
    low: float
    high: float
    low_items: float
    high_items: float
    low_both: float
    high_both: float


@dataclass(frozen=True)
class Contrast:
    """c @ z of R runs: its value, variances and their degrees of freedom; NaN where a size has a single run."""

    value: float
    runs: float
    runs_degrees: float
    items: float
    items_degrees: float
    both: float
    both_degrees: float

    @classmethod
    def of(cls, statistic: Statistic, c: Array, design: Design | None) -> "Contrast":
        """statistic: of R runs, on its scale. c (R,). design: None of a model without a place on a curve."""
        z, influence = statistic.value, statistic.influence
        units = influence.shape[1]
        items = float(((c @ influence) ** 2).sum() / (units * (units - 1)))
        size = np.zeros(len(z), np.intp) if design is None else design.size
        variances, degrees, twice = [], [], 0.0
        for s in np.unique(size[c != 0]):
            of = size == s
            share, k = float((c[of] ** 2).sum()), int(of.sum())
            apart = ((influence[of] - influence[of].mean(axis=0)) ** 2).sum() / (units * (units - 1))
            variances.append(share * z[of].var(ddof=1) if k > 1 else np.nan)
            twice += share * apart / (k - 1) if k > 1 else np.nan
            degrees.append(k - 1.0)
        runs = float(np.sum(variances))
        if design is not None and design.overlap is not None and np.isfinite(runs):
            runs += float(shared_text_variance(c, z[:, None], size, design.overlap)[0])
        runs_degrees = _degrees(variances, degrees)
        both = max(runs + items - twice, runs, items) if np.isfinite(runs) else np.nan
        both_degrees = _degrees([runs, items], [runs_degrees, units - 1.0])
        return cls(float(c @ z), runs, runs_degrees, items, units - 1.0, both, both_degrees)

    def limits(self, confidence: float) -> Interval:
        """Return Student's limits; those for both are no closer than the others, as what varies more is known less."""
        variances = np.asarray([self.runs, self.items, self.both])
        degrees = np.asarray([self.runs_degrees, self.items_degrees, self.both_degrees])
        half = student.ppf(0.5 + confidence / 2, degrees) * np.sqrt(variances)
        half[2] = half.max()
        return Interval(self.value, *np.ravel([self.value - half, self.value + half], order="F").tolist())


def _degrees(variances: list[float], degrees: list[float]) -> float:
    if np.isnan(variances).any():
        return np.nan
    return float(satterthwaite(np.asarray(variances)[:, None], np.asarray(degrees)[:, None])[0])
