"""What surprisal adds to the log-likelihood of a word, with intervals over words, over runs, and over both, crossed."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from analysis.curves.designs import Design
from analysis.curves.intervals import Interval, hidden_variance, run_terms
from analysis.curves.variance import Array, Numbers, cluster_weights, judgement_variance, pair_variance, satterthwaite

WORDS, RUNS, BOTH = "words", "runs", "words and runs"
_RUNS_ALONE = "runs, without chance in words"
_ONE = np.ones((1, 1))  # one mean over all words, of the functions that know several paradigms

# With two runs, normal limits then hold 93.1 to 96.8%, whatever the share of runs in the variance; with 0, 87 to 95%.
_SHARE_OF_RUNS = 0.7
_PRIOR_ROWS = 4  # weight of what the error is where surprisal adds nothing, in the error of the root


@dataclass(frozen=True)
class Nothing:
    """The delta that is expected of surprisal that adds nothing, nats a word, and the rows of the regression."""

    delta: float
    rows: int

    @classmethod
    def of(cls, coefficients: int, rows: int, training: int | None) -> "Nothing":
        """Return that of some additional coefficients.

        Each costs 1/2 nat in all on rows that the regression was not fitted on, of which `training` fit it, and gains
        as much on those that it was fitted to (None), to first order (Akaike 1974).
        """
        return cls(coefficients / 2 / rows if training is None else -coefficients / 2 / training, rows)


@dataclass(frozen=True)
class Estimate:
    """A weighted sum of runs' deltas; error and degrees of freedom by what is drawn anew, NaN where it has none.

    nothing: of a mean of deltas, whose limits are then Student's on the scale of its root; None: of differences.
    """

    value: float
    errors: dict[str, tuple[float, float]]
    nothing: Nothing | None = None

    def limits(self, over: str, confidence: float) -> tuple[float, float]:
        """Return limits over new WORDS, RUNS or BOTH, with the estimate between them.

        Satterthwaite's degrees of freedom are too many where two runs that differ by much happen to agree: limits over
        BOTH are at least `_SHARE_OF_RUNS` of those by the runs' own variance.
        """
        error, degrees = self.errors[over]
        t = float(student.ppf(0.5 + confidence / 2, degrees))
        if over == BOTH and _RUNS_ALONE in self.errors:
            of_runs, few = self.errors[_RUNS_ALONE]
            error = max(error, _SHARE_OF_RUNS * of_runs * float(student.ppf(0.5 + confidence / 2, few)) / t)
        if self.nothing is None or np.isnan(error):
            return self.value - t * error, self.value + t * error
        return self._limits_of_root(error, t, self.nothing)

    def _limits_of_root(self, error: float, t: float, nothing: Nothing) -> tuple[float, float]:
        """Return the limits of a delta from those of the standardised coefficient b that it stands for.

        Delta is about b^2 / 2 more than that of nothing, and its error about |b| times that of b: limits around delta
        itself are too narrow where chance makes it small. The squared estimate of b is 1 / rows above b^2 on average.
        The error of b is that of delta over |b|, and 1 / sqrt(rows) where surprisal adds nothing: both are weighed, as
        the first is unknown there.
        """
        square = max(2 * (self.value - nothing.delta) + 1 / nothing.rows, 0)
        prior = _PRIOR_ROWS / nothing.rows
        half = t * float(np.sqrt((error**2 + prior / nothing.rows) / (square + prior)))
        low, high = max(square**0.5 - half, 0) ** 2, (square**0.5 + half) ** 2
        return min(nothing.delta + low / 2, self.value), nothing.delta + high / 2

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


def estimate(
    c: Array, of_clusters: Array, design: Design | None, method: Interval, nothing: Nothing | None = None
) -> Estimate:
    """Return c @ deltas with its errors; c (R,), of_clusters (R, C) of `contributions`; `nothing` if it is a mean.

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
        shared = min(shared, runs, words)
        both = max(runs + words - shared, runs, words)
        parts = np.asarray([[runs], [words]])
        free = float(satterthwaite(parts, np.asarray([[degrees], [clusters - 1.0]]))[0])
        errors |= {RUNS: (float(np.sqrt(runs)), degrees), BOTH: (float(np.sqrt(both)), free)}
        errors[_RUNS_ALONE] = (float(np.sqrt(runs - shared)), degrees)
    return Estimate(float(c @ deltas), errors, nothing)
