"""Standard errors of contrasts over new runs, in which the units of a level lend each other their spread.

With two or three runs a size, the spread of one paradigm between them is hardly known, and Student's quantile of one or
two degrees of freedom leaves no interval that says anything. The spreads of all paradigms of a study are known better:
each variance is moved towards those of the others, as far as they resemble each other more than chance lets them
(Smyth 2004, section 3: the moderated t statistic). Two things differ from genes: accuracies near a ceiling vary less,
so that variances are compared over p (1 - p); and paradigms share their runs, so that K of them count as
1 / mean squared correlation at most.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

from analysis.curves.groups import GroupFit
from analysis.curves.intervals import (
    Interval,
    hidden_variance,
    judgement_floor,
    plausible,
    run_terms,
    single_judgements,
)
from analysis.curves.variance import (
    Array,
    cluster_weights,
    judgement_variance,
    pair_variance,
    satterthwaite,
)

FEW_UNITS = 4  # units of a level below which each keeps its own spread
LEAST_SHARE = 1e-3  # of the median variance: least of those whose logarithms are compared


@dataclass(frozen=True)
class Spread:
    """Errors of contrasts c @ y of a group's runs; `fit`: of analysis.curves.groups."""

    fit: GroupFit

    @cached_property
    def binomial(self) -> Array:
        """(R, U) p (1 - p) of the run's size."""
        design, units = self.fit.design, self.fit.units
        of_sizes = [single_judgements(self.fit.outcome[design.size == s], units)[1] for s in range(len(design.counts))]
        means = np.stack(of_sizes) @ units.weights
        return np.asarray((means * (1 - means))[design.size])

    @cached_property
    def shared(self) -> dict[str, float]:
        """The mean squared correlation of a level's units over runs, by level."""
        design, y = self.fit.design, self.fit.y
        means = np.stack([y[design.size == s].mean(axis=0) for s in range(len(design.counts))])
        residual, free = y - means[design.size], int((design.counts - 1).sum())
        levels = self.fit.units.table["level"].to_numpy()
        return {level: squared_correlation(residual[:, levels == level], free) for level in np.unique(levels)}

    @cached_property
    def _largest(self) -> tuple[Array, Array]:
        """The largest (U,) variance between runs over p (1 - p) of any size with two runs, and its degrees."""
        ratios, degrees = [], []
        for s in np.flatnonzero(self.fit.design.counts > 1):
            rows = self.fit.design.size == s
            c = np.where(rows, self.fit.design.weights, 0)
            variance, free = self._known(c)
            ratios.append(variance / (c**2 @ self.binomial))
            degrees.append(free)
        best = np.stack(ratios).argmax(axis=0)
        units = np.arange(len(best))
        return np.stack(ratios)[best, units], np.stack(degrees)[best, units]

    def errors(self, c: Array, new_pairs: bool = False) -> tuple[Array, Array]:
        """Return the (U,) standard errors of c @ y, c (R,), and their degrees of freedom.

        Over new runs for these pairs, or for new pairs of the same paradigms too. A size of one run counts with the
        largest spread of the others; NaN where there is no size of two, and in nested samples with a size of one.
        """
        design, units = self.fit.design, self.fit.units
        alone = design.counts[design.size] < 2
        if not (alone & (c != 0)).any():
            variance, degrees = self._known(c)
        elif alone.all() or design.nested:
            none = np.full(units.weights.shape[1], np.nan)
            return none, none
        else:
            parts = [self._known(np.where(alone, 0, c))] if (c[~alone] != 0).any() else []
            ratio, free = self._largest
            parts.append((ratio * (np.where(alone, c, 0) ** 2 @ self.binomial), free))
            variances, each = (np.stack([part[i] for part in parts]) for i in (0, 1))
            variance, degrees = variances.sum(axis=0), satterthwaite(variances, each)
        return self._with_pairs(c, variance, degrees) if new_pairs else (np.sqrt(variance), degrees)

    def _known(self, c: Array) -> tuple[Array, Array]:
        """Return the (U,) variance of c @ y over new runs, of sizes with two runs or more, and its degrees."""
        fit = self.fit
        rows = np.isin(fit.design.size, np.unique(fit.design.size[c != 0]))
        part, y, weights = fit.design.of(rows), fit.y[rows], c[rows]
        terms = run_terms(Interval.T_SIZES, part, weights)
        scale = weights**2 @ self.binomial[rows]
        own, degrees = self._moderated(terms.variance(y), terms.degrees(y), scale)
        floor = judgement_floor(fit.outcome, c, fit.design.size, fit.units)
        return plausible(own, degrees, floor) + hidden_variance(part, weights, y), degrees

    def _with_pairs(self, c: Array, variance: Array, degrees: Array) -> tuple[Array, Array]:
        """Add the variance over pairs to that over runs, chance in single judgements, which both hold, counted once."""
        fit, units = self.fit, self.fit.units
        of_clusters = cluster_weights(c, fit.design.size, fit.design.cluster)
        chance = judgement_variance(fit.outcome, of_clusters, fit.design.stratum, units.bounds, units.weights)
        pairs = np.maximum(pair_variance(c @ fit.outcome, units.bounds, units.weights) - chance, 0)
        parts = np.stack([variance, pairs])
        return np.sqrt(variance + pairs), satterthwaite(parts, np.stack([degrees, units.pair_degrees]))

    def _moderated(self, variance: Array, degrees: Array, scale: Array) -> tuple[Array, Array]:
        """Return (U,) variances and degrees of freedom, those of each level moderated."""
        levels = self.fit.units.table["level"].to_numpy()
        variance, degrees = variance.copy(), degrees.copy()
        for level, shared in self.shared.items():
            of = levels == level
            if of.sum() >= FEW_UNITS:
                free = float(degrees[of][np.isfinite(degrees[of])].max(initial=0))
                if free > 0:
                    moved, degrees[of] = moderated(variance[of] / scale[of], free, shared)
                    variance[of] = moved * scale[of]
        return variance, degrees


def moderated(variance: Array, degrees: float, shared: float) -> tuple[Array, float]:
    """Return K variances of `degrees` each, moved towards each other, and their degrees of freedom.

    A scaled inverse chi-squared prior is fitted to the moments of the logarithms (Smyth 2004, section 6.2); shared:
    mean squared correlation of what is estimated, so that the prior has no more degrees of freedom than the K estimates
    have together.

    >>> moderated(np.asarray([1.0, 1.0, 1.0, 1.0]), 2.0, 0.25)[1]  # of four equal ones: 4 / (1 + 3 / 4) x 2
    4.571428571428571
    """
    count = len(variance)
    least = LEAST_SHARE * np.median(variance)
    if not least > 0:
        return variance, degrees
    logs = np.log(np.maximum(variance, least)) - digamma(degrees / 2) + np.log(degrees / 2)
    excess = logs.var(ddof=1) - polygamma(1, degrees / 2)
    most = degrees * (1 / (1 / count + (1 - 1 / count) * shared) - 1)
    prior = min(2 * inverse_trigamma(float(excess)) if excess > 0 else np.inf, most)
    if not prior > 0:
        return variance, degrees
    # The mean, not that of the logarithms, where all spreads are one: few runs that agree by chance weigh less.
    centre = variance.mean() if excess <= 0 else np.exp(logs.mean() + digamma(prior / 2) - np.log(prior / 2))
    return np.asarray((prior * centre + degrees * variance) / (prior + degrees)), prior + degrees


def inverse_trigamma(value: float) -> float:
    """Return x > 0 at which the trigamma function has a positive value.

    >>> round(inverse_trigamma(float(polygamma(1, 3.0))), 6)
    3.0
    """
    return float(np.exp(brentq(lambda log: np.log(polygamma(1, np.exp(log))) - np.log(value), -30, 30)))


def squared_correlation(residual: Array, degrees: int) -> float:
    """Return the mean squared correlation of the columns of (R, K) residuals with so many degrees of freedom.

    That of independent columns is 1 / degrees on average, which is taken off. 1 where it is not known.
    """
    varies = residual[:, (residual**2).sum(axis=0) > 1e-24]
    count = varies.shape[1]
    if count < 2 or degrees < 2:
        return 1.0
    unit = varies / np.sqrt((varies**2).sum(axis=0))
    squares = ((unit.T @ unit) ** 2).sum() - count
    mean = squares / (count * (count - 1))
    return float(np.clip((mean - 1 / degrees) / (1 - 1 / degrees), 0, 1))
