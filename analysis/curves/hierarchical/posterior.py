"""What draws from the posterior say of slopes, of differences between models, and of orders."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from arviz_stats.base.array import array_stats
from scipy.stats import rankdata

from analysis.curves.designs import slope_weights
from analysis.curves.hierarchical.counts import Counts
from analysis.curves.variance import Array, Numbers

TAILS = (0.05, 0.95)  # quantiles beyond which effective draws are those of a tail
SLOPES, ACQUISITION = "slope", "acquisition"  # what units are ranked by
_EXTENT = ["sizes", "from_size", "to_size"]  # Counts.extent
SLOPE_COLUMNS = [
    "group", "level", "name", "phenomenon", "paradigms", *_EXTENT, "slope", "low", "high", "rises", "rank", "rank_low",
    "rank_high", "r_hat", "effective", "caution",
]  # fmt: skip
DIFFERENCE_COLUMNS = [
    "group", "other", "level", "name", "difference", "low", "high", "steeper", *_EXTENT, "r_hat", "effective", "caution"
]  # fmt: skip


@dataclass(frozen=True)
class Posterior:
    """Draws from the posterior, (chains, draws, ...), and how sampling went.

    draws: accuracy (..., L, K) expected over new runs, for these pairs; logit (..., L, K) of a run whose effects
    are 0; spreads (..., 3, L): deviations between runs in all paradigms, in phenomena and in cells, logits, the
    last times paradigm_spreads (..., K); with nested samples seed_variance (..., 2, L), logits squared: of what runs
    of a seed share in all paradigms, and in each. divergences: of all chains. steps: mean of an iteration. scales:
    R-hat and effective draws of the model's spreads, by name.
    """

    counts: Counts
    draws: dict[str, Array]
    divergences: int
    steps: float
    seconds: float
    scales: dict[str, tuple[Array, Array]] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """Of draws, of all chains."""
        chains, draws = self.draws["accuracy"].shape[:2]
        return int(chains * draws)

    def rows(self, group: str) -> Numbers:
        """Return the rows (L) of a group's sizes, smallest first."""
        return np.flatnonzero(self.counts.group == self.counts.groups.index(group))

    def unit_accuracies(self, rows: Numbers) -> Array:
        """Return (chains, draws, S, U) accuracies of units at some rows."""
        return np.asarray(self.draws["accuracy"][:, :, rows] @ self.counts.units.weights)

    def slopes(self, rows: Numbers) -> Array:
        """Return (chains, draws, U) slopes, accuracy a doubling, of lines through some rows, sizes weighted equally."""
        x = np.log2(self.counts.words[rows])
        contrast = slope_weights(x, np.ones((1, len(x))))[0]
        return np.asarray(np.einsum("s,cdsu->cdu", contrast, self.unit_accuracies(rows)))


def diagnosed(draws: Array) -> tuple[Array, Array]:
    """Return R-hat and the effective number of draws of (chains, draws, ...) values, each (...).

    R-hat is rank-normalised: the larger one of the values and of their distances from the median. Effective draws are
    the fewer of the bulk and of both tails (Vehtari et al. 2021, sections 4.1 to 4.3).
    """
    values = np.asarray(draws, dtype=np.float64)
    arviz: Any = array_stats  # its functions have no types
    axes = {"chain_axis": 0, "draw_axis": 1}
    with np.errstate(invalid="ignore", divide="ignore"):
        r_hat = arviz.rhat(values, **axes, method="rank")
        bulk = arviz.ess(values, **axes, method="bulk")
        tails = arviz.ess(values, **axes, method="tail", prob=TAILS)
    flat = np.isclose(values.std(axis=(0, 1)), 0)
    number = values.shape[0] * values.shape[1]
    return np.asarray(np.where(flat, 1.0, r_hat)), np.asarray(np.where(flat, number, np.minimum(bulk, tails)))


def limits(draws: Array, confidence: float) -> tuple[Array, Array]:
    """Return the ends of the central credible interval of (chains, draws, ...) values."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=(0, 1))
    return np.asarray(low), np.asarray(high)


def slope_rows(posterior: Posterior, confidence: float) -> pd.DataFrame:
    """Return SLOPE_COLUMNS, a row for each group and unit.

    slope: posterior mean, accuracy a doubling over new runs, for these pairs, of the line through the accuracies
    expected at the sizes. rises: probability that it is above 0. rank: 1 is the steepest phenomenon, or paradigm, of
    its group; its mean, and the ends of its interval. caution: Counts.cautions.
    """
    parts = []
    for group in posterior.counts.groups:
        draws = posterior.slopes(posterior.rows(group))
        low, high = limits(draws, confidence)
        r_hat, effective = diagnosed(draws)
        table = posterior.counts.units.table.assign(
            group=group, **posterior.counts.extent(posterior.rows(group)),
            slope=draws.mean(axis=(0, 1)), low=low, high=high,
            rises=(draws > 0).mean(axis=(0, 1)), r_hat=r_hat, effective=effective,
            caution=posterior.counts.cautions(posterior.rows(group)), rank=np.nan, rank_low=np.nan, rank_high=np.nan,
        )  # fmt: skip
        for level in ("phenomenon", "paradigm"):
            of = (table["level"] == level).to_numpy()
            if of.sum() > 1:
                ranks = rankdata(-draws[..., of], axis=-1)
                ends = limits(ranks, confidence)
                table.loc[of, ["rank", "rank_low", "rank_high"]] = np.stack([ranks.mean(axis=(0, 1)), *ends], axis=1)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)[SLOPE_COLUMNS]


def difference_rows(posterior: Posterior, confidence: float) -> pd.DataFrame:
    """Return DIFFERENCE_COLUMNS: slopes of every two groups over the sizes that both have; none with one in common.

    steeper: the probability that the first group is. Runs of two groups are independent given the model, so that runs
    on one text have wider intervals than pairing would give them.
    """
    counts, parts = posterior.counts, []
    for first, second in combinations(counts.groups, 2):
        rows, others = posterior.rows(first), posterior.rows(second)
        labels = [counts.size[row] for row in rows]
        labels = [size for size in labels if size in {counts.size[row] for row in others}]
        if len(labels) < 2:
            continue
        of, against = (np.asarray([row for row in at if counts.size[row] in labels]) for at in (rows, others))
        draws = posterior.slopes(of) - posterior.slopes(against)
        low, high = limits(draws, confidence)
        r_hat, effective = diagnosed(draws)
        parts.append(counts.units.table.assign(
            group=first, other=second, difference=draws.mean(axis=(0, 1)), low=low, high=high, **counts.extent(of),
            steeper=(draws > 0).mean(axis=(0, 1)), r_hat=r_hat, effective=effective,
            caution=counts.cautions(of, against),
        )[DIFFERENCE_COLUMNS])  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=DIFFERENCE_COLUMNS)


def rank_rows(posterior: Posterior, margin: float) -> pd.DataFrame:
    """Return the probability of every rank of every phenomenon and paradigm: group, by, level, name, rank, probability.

    by: the slope (1 is the steepest), or the amount of text from which the expected accuracy stays above chance and
    `margin` (1 is acquired first), between sizes on straight lines in log2 words. Units that share ranks, as all do
    that no size of the study suffices for, have each of these ranks with equal probability.
    """
    table, parts = posterior.counts.units.table, []
    for group in posterior.counts.groups:
        rows = posterior.rows(group)
        slopes = posterior.slopes(rows)
        at = acquired_at(posterior.unit_accuracies(rows), np.log2(posterior.counts.words[rows]), 0.5 + margin)
        for by, values in ((SLOPES, -slopes), (ACQUISITION, at)):
            for level in ("phenomenon", "paradigm"):
                of = np.flatnonzero(table["level"] == level)
                if len(of) < 2:
                    continue
                probability = rank_probabilities(values[..., of].reshape(-1, len(of)))
                names = np.repeat(table["name"].to_numpy()[of], len(of))
                parts.append(pd.DataFrame({
                    "group": group, "by": by, "level": level, "name": names,
                    "rank": np.tile(np.arange(1, len(of) + 1), len(of)), "probability": probability.ravel(),
                }))  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["group", "by", "level", "name"])


def rank_probabilities(values: Array) -> Array:
    """Return the (U, U) probability of each unit (row) to have each rank, of (N, U) draws; equal values share ranks."""
    least, most = (rankdata(values, method=method, axis=1).astype(int) for method in ("min", "max"))
    ranks = np.arange(1, values.shape[1] + 1)
    inside = (least[..., None] <= ranks) & (ranks <= most[..., None])
    return np.asarray((inside / (most - least + 1)[..., None]).mean(axis=0))


def acquired_at(accuracy: Array, x: Array, threshold: float) -> Array:
    """Return (..., U) log2 words from which (..., S, U) accuracies stay at or above `threshold`; x: (S,), ascending.

    -inf: at all sizes; inf: not at the last one.
    """
    below = accuracy < threshold
    sizes = len(x)
    last = np.where(below.any(axis=-2), sizes - 1 - below[..., ::-1, :].argmax(axis=-2), -1)  # the last size below
    inner = np.clip(last, 0, sizes - 2)
    before, after = (np.take_along_axis(accuracy, place[..., None, :], axis=-2)[..., 0, :] for place in
                     (inner, inner + 1))  # fmt: skip
    gain = np.where(after > before, after - before, 1.0)
    between = x[inner] + (x[inner + 1] - x[inner]) * (threshold - before) / gain
    return np.asarray(np.where(last < 0, -np.inf, np.where(last == sizes - 1, np.inf, between)))
