"""What surprisal adds to the log-likelihood of a word, with intervals over words, over runs, and over both, crossed."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from analysis.curves.designs import Design
from analysis.curves.intervals import Interval, hidden_variance, run_terms
from analysis.curves.variance import Array, Numbers, cluster_weights, judgement_variance, pair_variance, satterthwaite

WORDS, RUNS, BOTH = "words", "runs", "words and runs"
_ONE = np.ones((1, 1))  # one mean over all words, of the functions that know several paradigms


@dataclass(frozen=True)
class Estimate:
    """A weighted sum of runs' deltas; error and degrees of freedom by what is drawn anew, NaN where it has none."""

    value: float
    errors: dict[str, tuple[float, float]]

    def limits(self, over: str, confidence: float) -> tuple[float, float]:
        """Return Student's limits over new WORDS, RUNS or BOTH."""
        error, degrees = self.errors[over]
        half = float(student.ppf(0.5 + confidence / 2, degrees)) * error
        return self.value - half, self.value + half

    @property
    def over(self) -> str:
        """What the widest interval that there is is over."""
        return WORDS if np.isnan(self.errors[BOTH][0]) else BOTH


def contributions(difference: Array, cluster: Numbers) -> Array:
    """Return (R, C) what clusters of words say of each run's delta, so that their mean is the delta of the run.

    difference: (R, N) of `regressions.Fit`. cluster: (N,) of each row. Around the delta, rows are summed within
    clusters: the variance of the mean of these is that of a ratio, for clusters of different lengths.
    """
    rows, clusters = difference.shape[1], int(cluster.max()) + 1
    mean = difference.mean(axis=1, keepdims=True)
    sums = np.stack([np.bincount(cluster, weights=of, minlength=clusters) for of in difference - mean])
    return np.asarray(mean + sums * (clusters / rows))


def estimate(c: Array, of_clusters: Array, design: Design | None, method: Interval) -> Estimate:
    """Return c @ deltas with its errors; c (R,), of_clusters (R, C) of `contributions`.

    design, method: of the runs, as for slopes of accuracies; None or Interval.NONE: the interval is over words alone.
    Over both, the variances are added and the interaction of runs and words, which both hold, is subtracted once.
    """
    clusters = of_clusters.shape[1]
    bounds = np.asarray([0, clusters])
    deltas = of_clusters.mean(axis=1)
    words = float(pair_variance(c @ of_clusters, bounds, _ONE)[0]) if clusters > 1 else np.nan
    none = (np.nan, np.nan)
    errors = {WORDS: (float(np.sqrt(words)), clusters - 1.0), RUNS: none, BOTH: none}
    if design is not None and method != Interval.NONE:
        y = deltas[:, None]
        terms = run_terms(method, design, c)
        runs = float((terms.variance(y) + hidden_variance(design, c, y))[0])
        degrees = float(terms.degrees(y)[0])
        weights = cluster_weights(c, design.size, design.cluster)
        shared = float(judgement_variance(of_clusters, weights, design.stratum, bounds, _ONE)[0])
        both = max(runs + words - min(shared, runs, words), runs, words)
        parts = np.asarray([[runs], [words]])
        free = float(satterthwaite(parts, np.asarray([[degrees], [clusters - 1.0]]))[0])
        errors |= {RUNS: (float(np.sqrt(runs)), degrees), BOTH: (float(np.sqrt(both)), free)}
    return Estimate(float(c @ deltas), errors)
