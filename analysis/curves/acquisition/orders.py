"""The order in which units are acquired, with confidence sets of ranks, and correlations between orders.

Ranks by the amount of text: each unit gets simultaneous limits (Bonferroni over the units of a level), and its rank
lies between one more than the number of units that are surely acquired before it and the number of those that are not
surely acquired after it (Klein, Wright and Wieczorek 2020, theorem 2.1). Ranks by accuracy at a size: every two units
are compared, paired by run, p values corrected by Holm's method (Mogstad, Romano, Shaikh and Wilhelm 2024, section 3),
which is narrower; but a difference of two amounts of text has no limits where one lies beyond the sizes of the study.
All sets of a level hold the true ranks together with the confidence asked for, whatever ties there are, which
percentiles of resampled ranks do not (ibid., section 2).

Correlations are of Spearman and Kendall, over units, with limits for other units like these (Bonett and Wright 2000).
Noise between runs lowers them: the reliability of a mean over runs says by how much, and the corrected correlation is
that of means over any number of runs (Spearman 1904; limits: Charles 2005).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import kendalltau, norm, rankdata, spearmanr

from analysis.curves.acquisition.sizes import Bands, size_means
from analysis.curves.acquisition.spread import FEW_UNITS, Spread, moderated, squared_correlation
from analysis.curves.designs import sample_digests
from analysis.curves.groups import GroupFit
from analysis.curves.intervals import Interval, hidden_variance, judgement_floor, plausible, run_terms
from analysis.curves.p_values import holm, two_sided
from analysis.curves.variance import Array, Numbers

LEAST_UNITS = 6  # that two orders must have in common: of fewer, limits of a correlation hold nearly all of them
LEAST_RELIABILITY = 0.2  # below which a corrected correlation is not given: it would rest on noise
ROUNDING = 1e-9  # of a correlation of 1
SHARED_NOISE = "both saw some of the same text: not corrected for noise"
ACQUISITION = "acquisition"  # what is compared: amounts of text, or accuracies at a size
ORDER_COLUMNS = [
    "group", "size", "other", "other_size", "level", "units", "spearman", "low", "high", "kendall", "kendall_low",
    "kendall_high", "reliability", "other_reliability", "corrected", "corrected_low", "corrected_high", "note",
]  # fmt: skip


def rank_limits(low: Array, high: Array) -> tuple[Numbers, Numbers]:
    """Return the least and the greatest rank (U,) of units with limits (U,); 1 is the smallest.

    >>> rank_limits(np.asarray([0.0, 2.0, 2.5]), np.asarray([1.0, 3.0, 4.0]))
    (array([1, 2, 2]), array([1, 3, 3]))
    """
    before = (high[None, :] < low[:, None]).sum(axis=1)
    after = (low[None, :] > high[:, None]).sum(axis=1)
    return 1 + before, len(low) - after


def simultaneous(confidence: float, units: int) -> float:
    """Return the confidence of each unit's limits so that those of all hold together (Bonferroni)."""
    return 1 - (1 - confidence) / max(units, 1)


def crossing_ranks(fit: GroupFit, x: Array, threshold: Array, bands: Bands | None, confidence: float) -> Array:
    """Return rank, rank_low and rank_high of the order of acquisition within each level, (3, U), 1 is the first.

    x: (U,) of `sizes.Crossings`. Units that are censored alike share the least of their ranks. The whole has no rank;
    NaN where the runs give no limits.
    """
    ranks = np.full((3, len(x)), np.nan)
    for of in _levels(fit):
        ranks[0, of] = rankdata(x[of], method="min")
        if bands is not None:
            low, high = bands.limits(threshold, simultaneous(confidence, int(of.sum())))
            ranks[1:, of] = rank_limits(low[of], high[of])
    return ranks


def accuracy_ranks(fit: GroupFit, sizes: Sequence[str], confidence: float) -> pd.DataFrame:
    """Rank the units of each level by accuracy at each of `sizes`, 1 is the highest.

    One row per size and unit: group, size, words, level, name, accuracy, rank, rank_low, rank_high.
    """
    at, weights = size_means(fit.design)
    mean = weights @ fit.y
    ranks = np.full((3, *mean.shape), np.nan)
    for of in _levels(fit):
        ranks[0][:, of] = rankdata(-mean[:, of], method="min", axis=1)
        compared = Pairwise.of(fit, of)
        for s, c in enumerate(weights):
            ranks[1:, s, of] = compared.rank_limits(c, confidence)
    columns = [dict(zip(("rank", "rank_low", "rank_high"), ranks[:, s], strict=True)) for s in range(len(at))]
    named = fit.units.table[["level", "name"]]
    rows = [
        named.assign(group=fit.group, size=size, words=2 ** at[s], accuracy=mean[s], **columns[s])
        for s, size in enumerate(sizes)
    ]
    return pd.concat(rows, ignore_index=True)


@dataclass(frozen=True)
class Pairwise:
    """Every two of some units of a group: numbers of the first and the second, (M,) each, among all units.

    units: how many are compared. shared: mean squared correlation of the differences over runs.
    """

    fit: GroupFit
    spread: Spread
    first: Numbers
    second: Numbers
    shared: float

    @classmethod
    def of(cls, fit: GroupFit, units: npt.NDArray[np.bool_]) -> "Pairwise":
        """units: (U,) mask."""
        numbers = np.flatnonzero(units)
        first, second = np.array(list(combinations(numbers, 2)), dtype=np.intp).reshape(-1, 2).T
        _, weights = size_means(fit.design)
        apart = fit.y[:, first] - fit.y[:, second]
        residual = apart - (weights @ apart)[fit.design.size]
        shared = squared_correlation(residual, int((fit.design.counts - 1).sum()))
        return cls(fit, Spread(fit), first, second, shared)

    def rank_limits(self, c: Array, confidence: float) -> Array:
        """Return the least and the greatest rank of c @ y, the highest first: (2, units); NaN of a size of one run."""
        numbers = np.unique([self.first, self.second])
        rows = np.isin(self.fit.design.size, np.unique(self.fit.design.size[c != 0]))
        part, weights, y = self.fit.design.of(rows), c[rows], self.fit.y[rows]
        if (part.counts < 2).any() or part.trajectory or not len(numbers):
            return np.full((2, max(1, len(numbers))), np.nan)
        apart = y[:, self.first] - y[:, self.second]
        terms = run_terms(Interval.T_SIZES, part, weights)
        spread = self.spread
        binomial = weights**2 @ spread.binomial[rows]
        floor = judgement_floor(self.fit.outcome, c, self.fit.design.size, self.fit.units)
        scale = binomial[self.first] + binomial[self.second]
        variance, degrees = terms.variance(apart), terms.degrees(apart)
        free = float(degrees.max())
        if len(apart.T) >= FEW_UNITS and 0 < free < np.inf:
            variance, common = moderated(variance / scale, free, self.shared)
            variance, degrees = variance * scale, np.full(len(scale), common)
        variance = plausible(variance, degrees, floor[self.first] + floor[self.second])
        variance = variance + hidden_variance(part, weights, apart)
        difference = weights @ apart
        apart_surely = holm(two_sided(difference, np.sqrt(variance), degrees)) < 1 - confidence
        higher = np.where(difference > 0, self.first, self.second)[apart_surely]
        lower = np.where(difference > 0, self.second, self.first)[apart_surely]
        better, worse = (np.zeros(len(numbers), dtype=np.intp) for _ in range(2))
        np.add.at(better, np.searchsorted(numbers, lower), 1)
        np.add.at(worse, np.searchsorted(numbers, higher), 1)
        return np.stack([1.0 + better, float(len(numbers)) - worse])


def _levels(fit: GroupFit) -> list[npt.NDArray[np.bool_]]:
    levels = fit.units.table["level"].to_numpy()
    return [levels == level for level in ("phenomenon", "paradigm") if (levels == level).any()]


@dataclass(frozen=True)
class Values:
    """What an order is of: values of named units, smaller is earlier, and the variance of their noise over runs.

    values, noise: (U,); noise NaN where it is not known. draws: of text that the runs saw; orders that have some in
    common share noise.
    """

    group: str
    size: str
    names: tuple[str, ...]
    values: Array
    noise: Array
    draws: frozenset[str] = frozenset()

    def of(self, names: Sequence[str]) -> "Values":
        """Return those of some of the units, in the order of `names`."""
        place = {name: number for number, name in enumerate(self.names)}
        at = [place[name] for name in names]
        return replace(self, names=tuple(names), values=self.values[at], noise=self.noise[at])

    @property
    def reliability(self) -> float:
        """The share of the variance between units that is not noise; NaN where the noise is not known."""
        spread = self.values.var(ddof=1) if np.isfinite(self.values).all() else np.nan
        return float(1 - self.noise.mean() / spread) if spread > 0 else np.nan


def draws_of_sizes(runs: pd.DataFrame) -> dict[str, frozenset[str]]:
    """Return the draws of text at each size of a group (rows of Study.runs): samples, and seeds of nested ones."""
    of: dict[str, frozenset[str]] = {}
    nested = runs["nested"].astype(bool)
    for size, at in runs.assign(sample=pd.Series(sample_digests(runs), runs.index, dtype=object)).groupby("size"):
        seeds = {f"{row.group}, seed {row.seed}" for row in at[nested[at.index]].itertuples()}
        of[str(size)] = frozenset(at["sample"].dropna()) | seeds
    return of


def values_of(
    fit: GroupFit, sizes: Sequence[str], x: Array, level: str, draws: Mapping[str, frozenset[str]]
) -> list[Values]:
    """Return the values of one level: at each of a group's sizes minus the accuracy, then the amounts of text x.

    draws: of `draws_of_sizes`.
    """
    of = (fit.units.table["level"] == level).to_numpy()
    names = tuple(fit.units.table.loc[of, "name"])
    spread, (_, weights) = Spread(fit), size_means(fit.design)
    parts = [
        Values(fit.group, size, names, -(c @ fit.y)[of], (spread.errors(c)[0] ** 2)[of], draws[size])
        for size, c in zip(sizes, weights, strict=True)
    ]
    return [*parts, Values(fit.group, ACQUISITION, names, x[of], np.full(int(of.sum()), np.nan))]


def correlate(first: Values, second: Values, confidence: float) -> dict[str, Any]:
    """Correlate two orders over the units that both name: the columns of ORDER_COLUMNS but the level.

    Units that are censored alike are tied. NaN with fewer than LEAST_UNITS, or where one order is a single tie. Not
    corrected for noise that both share, as Spearman's (1904) correction takes it to be independent.
    """
    names = [name for name in first.names if name in set(second.names)]
    a, b = first.of(names), second.of(names)
    row: dict[str, Any] = {"group": first.group, "size": first.size, "other": second.group, "other_size": second.size}
    row |= {"units": len(names), **dict.fromkeys(ORDER_COLUMNS[6:-1], np.nan), "note": ""}
    if len(names) < LEAST_UNITS:
        return row | {"note": f"{len(names)} in common, needs {LEAST_UNITS}"}
    tied = [of for of in (a, b) if len(np.unique(of.values)) < LEAST_UNITS / 2]
    if tied:
        where = " and ".join(dict.fromkeys(f"{of.group}, {of.size}" for of in tied))
        return row | {"note": f"nearly all units tied: {where}"}
    count, quantile = len(names), norm.ppf(0.5 + confidence / 2)
    rho, tau = float(spearmanr(a.values, b.values).statistic), float(kendalltau(a.values, b.values).statistic)
    low, high = _fisher(rho, quantile * np.sqrt((1 + rho**2 / 2) / (count - 3)), count)
    tau_low, tau_high = _fisher(tau, quantile * np.sqrt(0.437 / (count - 4)), count)
    row |= {"spearman": rho, "low": low, "high": high, "kendall": tau, "kendall_low": tau_low, "kendall_high": tau_high}
    reliable = a.reliability, b.reliability
    row |= {"reliability": reliable[0], "other_reliability": reliable[1]}
    if first.draws & second.draws:
        row["note"] = SHARED_NOISE
    elif min(reliable) >= LEAST_RELIABILITY:
        most = np.sqrt(reliable[0] * reliable[1])
        row |= {f"corrected{end}": float(np.clip(of / most, -1, 1)) for end, of in
                (("", rho), ("_low", low), ("_high", high))}  # fmt: skip
    return row


def _fisher(r: float, half: float, units: int) -> tuple[float, float]:
    """Return limits on Fisher's scale, of a half width there.

    So near 1 or -1 that a unit or two decide, the scale makes limits too narrow: the one towards 0 is no nearer to the
    end than that of a correlation of 1 - 1 / units. A correlation at its end is itself the other limit.
    """
    inner = np.arctanh(min(abs(r), 1 - 1 / units)) - half
    outer = 1.0 if abs(r) > 1 - ROUNDING else np.tanh(np.arctanh(abs(r)) + half)
    ends = np.tanh(inner), outer
    return (float(ends[0]), float(ends[1])) if r >= 0 else (float(-ends[1]), float(-ends[0]))


def order_table(parts: Sequence[Sequence[Values]], level: str, confidence: float) -> pd.DataFrame:
    """Correlate orders: of each group between its sizes, and of every two groups at each size of both.

    parts: of `values_of`, one for each group. Returns ORDER_COLUMNS. Within a group each size is compared with the
    largest; two groups by accuracy at each common size, and by the amounts of text.
    """
    rows = []
    for part in parts:
        *sizes, _ = part
        rows += [correlate(of, sizes[-1], confidence) for of in sizes[:-1]]
    for one, two in combinations(parts, 2):
        of_two = {of.size: of for of in two}
        rows += [correlate(of, of_two[of.size], confidence) for of in one if of.size in of_two]
    return pd.DataFrame(rows, columns=[name for name in ORDER_COLUMNS if name != "level"]).assign(level=level)[
        ORDER_COLUMNS
    ]
