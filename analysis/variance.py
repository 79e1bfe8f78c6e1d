"""Variance of slopes (and of any weighted sum of runs' accuracies) over runs, over pairs, and over both, crossed.

A slope is a sum over runs c @ y. Its variance over new runs holds the chance in single judgements, and so does that
over new pairs; in their sum it is counted twice (in a bootstrap of crossed factors three times: Owen 2007, section 3).
The residual of the two-way layout of runs x pairs estimates it, and is taken off once, as in the variance components of
a crossed random-effects design (Searle, Casella and McCulloch 1992, section 4.3).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]
Numbers = npt.NDArray[np.intp]


def cluster_weights(c: Array, size: Numbers, cluster: Numbers) -> Array:
    """(R,) weights, size number and cluster of each run -> (J, R) G: G @ y is what each cluster adds to c @ y.

    Measured from the means of the sizes, so that the terms differ by chance only. A cluster is what was drawn as one: a
    run, or a seed with all of its runs where samples are nested.
    """
    same_size = size[:, None] == size
    deviation = np.eye(len(c)) - same_size / same_size.sum(axis=1)
    member = np.arange(cluster.max() + 1)[:, None] == cluster
    weights: Array = (member * c) @ deviation
    return weights


def stratum_products(a: Array, b: Array, stratum: Numbers) -> Array:
    """(J, U) terms of two sums and each cluster's stratum -> (S, U) what each stratum adds to the sums' covariance.

    n / (n - 1) sum of (a - mean a)(b - mean b) over its n clusters: unbiased for independent draws. NaN for one.
    """
    found = np.full((stratum.max() + 1, a.shape[1]), np.nan)
    for s in range(len(found)):
        of = stratum == s
        n = int(of.sum())
        if n > 1:
            centred = (a[of] - a[of].mean(axis=0)) * (b[of] - b[of].mean(axis=0))
            found[s] = centred.sum(axis=0) * (n / (n - 1))
    return found


def satterthwaite(variances: Array, degrees: Array) -> Array:
    """(S, U) independent estimates that are added, (S, 1) or (S, U) their degrees of freedom -> (U,) those of the sum.

    Satterthwaite 1946, equation 17. Infinite where nothing varies.
    """
    total = variances.sum(axis=0)
    parts = (variances**2 / degrees).sum(axis=0)
    found: Array = np.where(parts > 0, total**2 / np.where(parts > 0, parts, 1), np.where(parts == 0, np.inf, np.nan))
    return found


def judgement_variance(outcome: Array, weights: Array, stratum: Numbers, bounds: Numbers, units: Array) -> Array:
    """(R, P) outcomes, (J, R) `cluster_weights`, their strata -> (U,) chance in single judgements within a slope.

    The residual mean square of runs x pairs within strata and paradigms; `units` (K, U). Strata of one cluster leave
    nothing to estimate it by and add 0, which leaves intervals over new pairs a little too wide.
    """
    pairs = np.diff(bounds)
    terms = weights @ outcome  # (J, P)
    of_paradigm = np.zeros(len(pairs))
    for s in range(stratum.max() + 1):
        of = terms[stratum == s]
        n = len(of)
        if n < 2:
            continue
        of = of - of.mean(axis=0)
        means = np.add.reduceat(of, bounds[:-1], axis=1) / pairs
        squares = np.add.reduceat(of**2, bounds[:-1], axis=1) - pairs * means**2
        of_paradigm += squares.sum(axis=0) * (n / (n - 1))
    of_means = of_paradigm / np.where(pairs > 1, pairs - 1, np.nan) / pairs
    return weighted_squares(of_means, units)


def pair_variance(slope_of_pair: Array, bounds: Numbers, units: Array) -> Array:
    """(U,) variance that a new draw of pairs within paradigms gives the slope; `slope_of_pair` is (P,).

    The slope of a unit is a mean over paradigms of means over pairs of each pair's own slope, so its variance over
    pairs is sum over paradigms of weight^2 s^2 / n, s^2 being the variance of pairs' slopes. NaN where a
    paradigm has one pair.
    """
    sizes = np.diff(bounds)
    means = np.add.reduceat(slope_of_pair, bounds[:-1]) / sizes
    squares = np.add.reduceat((slope_of_pair - np.repeat(means, sizes)) ** 2, bounds[:-1])
    return weighted_squares(squares / np.where(sizes > 1, sizes - 1, np.nan) / sizes, units)


def weighted_squares(of_means: Array, units: Array) -> Array:
    """(K,) variances of paradigms' values, (K, U) weights -> (U,) variances of the units' values."""
    return np.asarray([np.sum(of_means[w > 0] * w[w > 0] ** 2) for w in units.T])
