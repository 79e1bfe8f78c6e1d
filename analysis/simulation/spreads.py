"""What the runs of a group vary by: spread between runs, by size, and chance in single judgements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from analysis.curves.designs import Design
from analysis.curves.p_values import ALPHA
from analysis.curves.units import Units, paradigm_accuracies
from analysis.curves.variance import Array, Numbers

STEEPEST = 3.0  # |log variance| per doubling, of a trend
LEAST_DEGREES = 10  # of each size, from which sizes may have variances of their own: the test needs them


@dataclass(frozen=True)
class Trend:
    """A variance that changes by exp(slope) with each doubling: `variance` at log2(words) = x.

    shape: log2(words) and log of the variance over `variance` of each size, between which it is interpolated; empty:
    log-linear. degrees: of its estimate, inf where it is stated.
    """

    variance: float
    x: float = 0.0
    slope: float = 0.0
    degrees: float = np.inf
    shape: tuple[tuple[float, float], ...] = ()

    def at(self, x: Array) -> Array:
        """Return the variances at x."""
        if self.shape:
            at, logs = np.asarray(self.shape).T
            return np.asarray(self.variance * np.exp(np.interp(x, at, logs)))
        return np.asarray(self.variance * np.exp(self.slope * (x - self.x)))

    def upper(self, level: float) -> float:
        """Return the factor to the upper limit, one-sided, of the variance: degrees / chi2 quantile."""
        return 1.0 if np.isinf(self.degrees) else float(self.degrees / chi2.ppf(1 - level, self.degrees))


def trend(variances: Array, degrees: Array, x: Array) -> Trend:
    """Fit a trend to variances with chi-square errors; each (S,).

    One variance for all sizes unless a likelihood-ratio test shows a log-linear trend at 5%; those of the sizes where
    another shows at 5% that they do not lie on it. Sizes of one run say nothing.
    """
    known = degrees > 0
    variances, degrees, x = variances[known], degrees[known], x[known]
    total = float(degrees.sum())
    centre = float(degrees @ x / total)

    def pooled(slope: float) -> float:
        return float(degrees @ (variances * np.exp(-slope * (x - centre))) / total)

    def deviance(slope: float) -> float:  # the mean of slope * (x - centre), weighted by degrees, is 0
        return total * float(np.log(pooled(slope)))

    if len(x) < 2 or pooled(0.0) <= 0:
        return Trend(pooled(0.0), centre, 0.0, total)
    best = float(minimize_scalar(deviance, bounds=(-STEEPEST, STEEPEST), method="bounded").x)
    if chi2.sf(deviance(0.0) - deviance(best), 1) >= ALPHA:
        best = 0.0
    variance = pooled(best)
    if len(x) > 2 and variances.min() > 0 and degrees.min() >= LEAST_DEGREES:
        apart = deviance(best) - float(degrees @ np.log(variances))
        if chi2.sf(apart, len(x) - (2 if best else 1)) < ALPHA:
            logs = np.log(variances / variance)
            return Trend(variance, centre, best, total, tuple(zip(x.tolist(), logs.tolist(), strict=True)))
    return Trend(variance, centre, best, total)


def between_runs(y: Array, design: Design, chance: Array | float = 0) -> tuple[Array, Array]:
    """Return the (S, U) variances between runs of a size over new text, and their (S,) degrees of freedom.

    What samples of a size have in common hides its share of the variance: it is added. `chance` (U,): the part of the
    variance that single judgements have, whatever the text.
    """
    sizes = range(design.size.max() + 1)
    degrees = design.counts - 1.0
    variances = np.stack([y[design.size == s].var(axis=0) for s in sizes])
    variances = variances * (design.counts / np.maximum(degrees, 1))[:, None]
    if design.overlap is not None:
        share = np.asarray([design.overlap[design.size == s].mean() for s in sizes])
        hidden = (share / np.maximum(1 - share, 1e-3))[:, None]
        variances = variances + np.maximum(variances - chance, 0) * hidden
    return variances, degrees


def judgement_squares(outcome: Array, design: Design, units: Units) -> Array:
    """Return the (K,) variance of single judgements: the residual mean square of runs x pairs within sizes.

    Without two runs at any size it is the variance over pairs, which is larger; outcomes (R, P).
    """
    starts, n = units.bounds[:-1], np.diff(units.bounds)
    squares, degrees = np.zeros(len(n)), np.zeros(len(n))
    for s in np.flatnonzero(design.counts > 1):
        of = outcome[design.size == s].astype(np.float64)
        of = of - of.mean(axis=0)
        means = np.add.reduceat(of, starts, axis=1) / n
        squares += np.add.reduceat(of**2, starts, axis=1).sum(axis=0) - (n * means**2).sum(axis=0)
        degrees += (len(of) - 1) * (n - 1)
    accuracy = paradigm_accuracies(outcome, units.bounds).mean(axis=0)
    return np.asarray(np.where(degrees > 0, squares / np.maximum(degrees, 1), accuracy * (1 - accuracy)))


def common_share(y: Array, cell: Numbers, key: Numbers, variance: Array) -> float:
    """Return the share of their variance that runs of different cells have in common if they have one key.

    Each (R,): y: accuracies; cell: numbers of what has a mean of its own, such as a size; key: of what is shared, such
    as a seed (below 0: nothing); variance: between runs of the cell, without chance in single judgements, as chance is
    not shared. Products of deviations from the means of two cells of n and m runs, of which k have a key of the other,
    are 1 - 1/n - 1/m + k/nm times as large as those from their expectations; their sum is set against what it would be
    if all variance were shared.
    """
    runs = np.bincount(cell)
    members = np.zeros((len(runs), int(max(key.max(), 0)) + 1))
    np.add.at(members, (cell[key >= 0], key[key >= 0]), 1)
    kept = 1 - np.add.outer(1 / runs[cell], 1 / runs[cell])
    kept = kept + (members @ members.T)[np.ix_(cell, cell)] / np.outer(runs[cell], runs[cell])
    residual, deviation = y - (np.bincount(cell, y) / runs)[cell], np.sqrt(np.maximum(variance, 0))
    pairs = (key[:, None] == key) & (key >= 0) & (cell[:, None] != cell)
    whole = float((np.outer(deviation, deviation) * kept)[pairs].sum())
    return float(np.clip(np.outer(residual, residual)[pairs].sum() / whole, 0, 1)) if whole > 0 else 0.0


def seed_share(y: Array, design: Design, variance: Array) -> float:
    """Return the `common_share` of runs of one seed, of different sizes, where samples are nested; else 0.

    y: (R,). variance: (S,).
    """
    return common_share(y, design.size, design.seed, variance[design.size]) if design.nested else 0.0
