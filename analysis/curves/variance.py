"""Variance of slopes (and of any weighted sum of runs' accuracies) over runs, over pairs, and over both, crossed.

A slope is a sum over runs c @ y. Its variances over new runs and over new pairs both hold the chance in single
judgements (a bootstrap of crossed factors counts it three times: Owen 2007, section 3). The residual of runs x pairs
estimates it, and is subtracted once (Searle, Casella and McCulloch 1992, section 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]
Numbers = npt.NDArray[np.intp]


def cluster_weights(c: Array, size: Numbers, cluster: Numbers) -> Array:
    """Return (J, R) G, so that G @ y is what each cluster adds to c @ y, from the means of sizes; arguments (R,)."""
    same_size = size[:, None] == size
    deviation = np.eye(len(c)) - same_size / same_size.sum(axis=1)
    member = np.arange(cluster.max() + 1)[:, None] == cluster
    return np.asarray((member * c) @ deviation)


@dataclass(frozen=True)
class RunTerms:
    """Contributions of clusters of runs to a contrast c @ y: their squares add up to its variance over new runs.

    weights: (J, R), so that weights @ y are the contributions, small-sample correction included. stratum: (J,), of each
    cluster; each stratum has a spread of its own. pooled: whether the columns of y are units of one study, whose
    degrees of freedom are estimated together (`degrees`).
    """

    weights: Array
    stratum: Numbers
    pooled: bool = False

    def variance(self, y: Array) -> Array:
        """Return the (U,) variance of c @ y; y (R, U)."""
        return np.asarray(((self.weights @ y) ** 2).sum(axis=0))

    def correlation(self, other: RunTerms, a: Array, b: Array) -> Array:
        """Return the (U,) correlation of c @ a and d @ b, each (R, U); `other`: the terms of d by the same clusters.

        0 where one does not vary.
        """
        together = ((self.weights @ a) * (other.weights @ b)).sum(axis=0)
        spread = np.sqrt(((self.weights @ a) ** 2).sum(axis=0) * ((other.weights @ b) ** 2).sum(axis=0))
        return np.asarray(together / np.where(spread > 0, spread, np.inf))

    def degrees(self, y: Array, correction: float = 0) -> Array:
        """Return the (U,) degrees of freedom of the variance; y (R, U), `correction` as in `satterthwaite`.

        Within a stratum those of Bell and McCaffrey 2002 for runs of equal spread (Imbens and Kolesar 2016, equation
        11): (sum of eigenvalues)^2 / sum of their squares of weights @ weights.T. Strata are added by Satterthwaite, to
        no more than equal spread would give: a stratum of two degrees or fewer often has an estimate near 0.

        Of two runs a size, the share of each stratum in the variance is hardly known from one unit. `pooled`: it is
        that of all units, each weighted by the inverse of its standard error (docs/benchmarks.md).
        """
        squares = (self.weights @ y) ** 2
        variances, expected, free = [], [], []
        for s in np.unique(self.stratum):
            of = self.stratum == s
            products = self.weights[of] @ self.weights[of].T
            if np.trace(products) <= 1e-24:
                continue
            variances.append(squares[of].sum(axis=0))
            expected.append(np.trace(products))
            free.append(np.trace(products) ** 2 / (products**2).sum())
        degrees = np.asarray(free)[:, None]
        most = satterthwaite(np.asarray(expected)[:, None], degrees)
        of_strata = np.stack(variances)
        if self.pooled:
            error = np.sqrt(of_strata.sum(axis=0))
            of_strata = np.divide(of_strata, error, out=np.zeros_like(of_strata), where=error > 0).sum(axis=1)[:, None]
        own = np.minimum(satterthwaite(of_strata, degrees, correction), most)
        return np.asarray(np.broadcast_to(own, (y.shape[1],)))

    def minus(self, other: RunTerms, shared: Numbers) -> RunTerms:
        """Return the terms of the difference of two groups' contrasts, those of this group first.

        `shared`: (J of other,) this group's cluster of the same draw, or -1; other strata stay apart (Welch 1947).
        """
        own, others = len(self.weights), len(other.weights)
        row = np.where(shared >= 0, shared, own + np.arange(others))
        weights = np.zeros((own + others, self.weights.shape[1] + other.weights.shape[1]))
        weights[:own, : self.weights.shape[1]] = self.weights
        weights[row, self.weights.shape[1] :] = -other.weights
        apart = other.stratum + self.stratum.max() + 1
        joined = {int(apart[j]): int(self.stratum[shared[j]]) for j in range(others) if shared[j] >= 0}
        strata = np.asarray([joined.get(int(s), int(s)) for s in apart])
        return RunTerms(weights, np.append(self.stratum, strata), self.pooled and other.pooled)


def robust_terms(
    c: Array, model: Array, run_weights: Array, cluster: Numbers, stratum: Numbers, jackknife: bool
) -> RunTerms:
    """Return the terms of a contrast from the residuals of a weighted regression, whose spread may differ by run.

    c (R,) such that c @ y is a coefficient of the regression on `model` (R, M) with `run_weights` (R,), which make
    sizes weigh equally and say nothing about the spread. With M = I - X (X'WX)^-1 X'W, residuals of a cluster are
    multiplied by B^-1/2, B being its block of M M', their covariance if runs are independent and of one spread: CR2
    with the identity as working covariance (Pustejovsky and Tipton 2018, section 2.1), HC2 for single runs, unbiased at
    equal spread whatever the weights. `jackknife` multiplies by M^-1 of the block instead: HC3 for single runs
    (MacKinnon and White 1985), never below HC2. NaN where a cluster alone determines a coefficient.
    """
    weighted = model * run_weights[:, None]
    residual = np.eye(len(c)) - model @ np.linalg.pinv(model.T @ weighted) @ weighted.T  # (R, R) M
    covariance = residual @ residual.T
    rows = []
    for j in range(cluster.max() + 1):
        (of,) = np.nonzero(cluster == j)
        block = np.ix_(of, of)
        values, vectors = np.linalg.eigh(covariance[block])
        if values.min() < 1e-9:
            rows.append(np.full(len(c), np.nan))
            continue
        if jackknife:
            rows.append(c[of] @ np.linalg.solve(residual[block], residual[of]))
        else:
            rows.append(c[of] @ ((vectors * values**-0.5) @ vectors.T @ residual[of]))
    return RunTerms(np.stack(rows), stratum)


def stratum_products(a: Array, b: Array, stratum: Numbers) -> Array:
    """Return what each stratum adds to the covariance of two sums, (S, U), NaN of one cluster; (J, U) terms of both."""
    products = np.full((stratum.max() + 1, a.shape[1]), np.nan)
    for s in range(len(products)):
        of = stratum == s
        n = int(of.sum())
        if n > 1:
            centred = (a[of] - a[of].mean(axis=0)) * (b[of] - b[of].mean(axis=0))
            products[s] = centred.sum(axis=0) * (n / (n - 1))
    return products


def satterthwaite(variances: Array, degrees: Array, correction: float = 0) -> Array:
    """Return the (U,) degrees of a sum of (S, U) variances, inf where nothing varies (Satterthwaite 1946, eq. 17).

    The square of an estimate with f degrees is (f + 2) / f times that of the variance on average, so that the degrees
    come out too few where spreads are equal. With V the sum they are V^2 / sum(v^2 / (f + correction)) - correction:
    correction 2 is unbiased at equal spreads (Welch 1947), but gives too many where one of a few spreads is much larger
    than the others; 1 stands between.
    """
    parts = (variances**2 / (degrees + correction)).sum(axis=0)
    ratio = variances.sum(axis=0) ** 2 / np.where(parts > 0, parts, 1) - correction
    return np.asarray(np.where(parts > 0, ratio, np.where(parts == 0, np.inf, np.nan)))


def judgement_variance(outcome: Array, weights: Array, stratum: Numbers, bounds: Numbers, units: Array) -> Array:
    """Return the (U,) variance of a slope by chance in single judgements; outcome (R, P), weights (J, R).

    The residual mean square of runs x pairs within strata and paradigms; `units` (K, U). Strata of one cluster add 0.
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


def shared_text_variance(c: Array, y: Array, size: Numbers, overlap: Array, chance: Array | float = 0) -> Array:
    """Return the (U,) variance of c @ y that `shared_text` describes."""
    return shared_text(c, y, size, overlap, chance)[0]


def shared_text(c: Array, y: Array, size: Numbers, overlap: Array, chance: Array | float = 0) -> tuple[Array, Array]:
    """Return the (U,) variance of c @ y over new texts that overlapping samples hide, and its degrees of freedom.

    c, overlap (R,), y (R, U).

    Samples of n out of N units of text, drawn without replacement, have the share f = n / N in common. Let a run's
    accuracy be a mean over its units' effects, of variance S^2: two runs of sizes n and m then have the covariance
    S_n S_m / N, through the text in common, whatever the sizes; the variance within a size is S_n^2 / n - S_n^2 / N, so
    its estimate is short of S_n^2 / n by the factor 1 - f (Cochran 1977, section 2.6), and S_n^2 / N is f / (1 - f)
    times it. What the whole text adds to c @ y has the variance (sum of c_n S_n)^2 / N where effects of units are the
    same at all sizes, sum of c_n^2 S_n^2 / N where they are unrelated: the larger is taken, with all of the spread
    between runs put down to their texts, though initialisations have a share of it; but for `chance` (S, U), the
    variance of a run's accuracy by chance in single judgements. Sizes of one run have the mean spread of the others.
    Degrees of freedom f are such that the variance of the estimate V is 2 V^2 / f (Satterthwaite 1946), by the variance
    2 s^4 / (n - 1) of that of each size, and the delta method; inf where samples share nothing.
    """
    of_contrast = np.asarray([c[size == s].sum() for s in range(size.max() + 1)])[:, None]
    common = text_in_common(y, size, overlap, chance)
    of_size = of_contrast * np.sqrt(common)
    alike, unrelated = of_size.sum(axis=0) ** 2, (of_size**2).sum(axis=0)
    whole, free = text_in_common(y, size, overlap), np.maximum(np.bincount(size) - 1, 1)[:, None]
    # (S, U): half the variance of what each size adds to V. The root of an estimate near 0 is no better known than that
    # of one as large as its standard deviation.
    spread = of_contrast**4 * whole**2 / free
    least = of_contrast**2 * np.maximum(common, whole * np.sqrt(2 / free))
    of_alike = alike * np.divide(spread, least, out=np.zeros_like(common), where=least > 0).sum(axis=0)
    of_variance = np.where(alike > unrelated, of_alike, spread.sum(axis=0))
    variance = np.maximum(alike, unrelated)
    known = (variance > 0) & (of_variance > 0)
    return variance, np.divide(variance**2, of_variance, out=np.full_like(variance, np.inf), where=known)


def text_in_common(y: Array, size: Numbers, overlap: Array, chance: Array | float = 0) -> Array:
    """Return f / (1 - f) times the variance between runs of each size, (S, U): S_n^2 / N of `shared_text`.

    `chance` (S, U): subtracted from that variance, down to 0.
    """
    counts = np.bincount(size)
    known = counts > 1
    spread = np.zeros((len(counts), y.shape[1]))
    if not known.any():
        return spread
    for s in np.flatnonzero(known):
        spread[s] = y[size == s].var(axis=0, ddof=1)
    spread = np.maximum(spread - chance, 0)
    spread[~known] = spread[known].mean(axis=0)
    share = np.asarray([overlap[size == s].mean() for s in range(len(counts))])
    return np.asarray(spread * (share / np.maximum(1 - share, 1e-3))[:, None])


def chance_at_sizes(outcome: Array, size: Numbers, bounds: Numbers, units: Array) -> Array:
    """Return the (S, U) variance of a run's accuracy by chance in single judgements, at each size; outcome (R, P).

    The residual mean square of runs x pairs within sizes and paradigms, over the pairs; 0 at sizes of one run, and
    where a paradigm has one pair. `units` (K, U).
    """
    pairs = np.diff(bounds)
    rows: list[Array] = []
    for s in range(size.max() + 1):
        of = outcome[size == s]
        if len(of) < 2:
            rows.append(np.zeros(units.shape[1]))
            continue
        within = np.add.reduceat(of.var(axis=0, ddof=1), bounds[:-1])
        means = np.add.reduceat(of, bounds[:-1], axis=1) / pairs
        residual = (within - pairs * means.var(axis=0, ddof=1)) / np.where(pairs > 1, pairs - 1, np.inf)
        rows.append(weighted_squares(residual / pairs, units))
    return np.stack(rows)


def pair_variance(slope_of_pair: Array, bounds: Numbers, units: Array) -> Array:
    """Return the (U,) variance of the slope over new draws of pairs within paradigms; `slope_of_pair` is (P,).

    The sum over paradigms of weight^2 s^2 / n, s^2 being the variance of pairs' slopes; NaN where one has one pair.
    """
    sizes = np.diff(bounds)
    means = np.add.reduceat(slope_of_pair, bounds[:-1]) / sizes
    squares = np.add.reduceat((slope_of_pair - np.repeat(means, sizes)) ** 2, bounds[:-1])
    return weighted_squares(squares / np.where(sizes > 1, sizes - 1, np.nan) / sizes, units)


def weighted_squares(of_means: Array, units: Array) -> Array:
    """Return the (U,) variances of the units' values; (K,) variances of paradigms' values, (K, U) weights."""
    return np.asarray([np.sum(of_means[w > 0] * w[w > 0] ** 2) for w in units.T])
