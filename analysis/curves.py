"""Learning curves: accuracy against log2(sample_words) per paradigm, phenomenon and overall, with honest intervals.

Two questions, two intervals, the first of which is the primary one:

* *these pairs*: where would the slope lie with new samples of text and new initialisations, for the pairs of this
  benchmark? Only runs vary.
* *new pairs too*: and with new pairs of the same paradigms? Runs and pairs vary; a pair is judged by every run, so the
  two are crossed, not nested. Paradigms are fixed in both.

Two methods: with five runs or more at each size a crossed bootstrap, otherwise the t interval of the regression on the
accuracies of runs. Each row names its own. What the runs cannot support is NaN, and `note` says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.judgements import Judgements

Array = npt.NDArray[np.floating]
Numbers = npt.NDArray[np.intp]

BOOTSTRAP = "crossed bootstrap"
RUN_BOOTSTRAP = "bootstrap over runs"  # the same, where judgements of single pairs are not known
T_INTERVAL = "t interval on run accuracies"
NO_INTERVAL = "none"
BOOTSTRAP_RUNS = 5  # runs at each size from which the crossed bootstrap is used
ALL_PAIRS = "all"
UNK_FREE = "without <unk>"
CHUNK = 16_000_000  # numbers held at once while pairs are resampled


@dataclass
class Curves:
    """Everything that tables and figures are made of.

    slopes: one row per group, pairs (ALL_PAIRS or UNK_FREE), level (overall, phenomenon, paradigm) and name: paradigms,
      n_pairs, runs, sizes, slope (accuracy per doubling of the words), intercept (at log2(words) = 0), r2, low, high
      (these pairs), low_new_pairs, high_new_pairs, method, onset (words), rank (1 = steepest phenomenon of its group),
      note.
    accuracies: one row per group, pairs, level, name and size: words, runs, accuracy (mean over runs), low, high.
    points: one row per run, pairs, level and name: group, size, seed, words, accuracy.
    """

    slopes: pd.DataFrame
    accuracies: pd.DataFrame
    points: pd.DataFrame


@dataclass(frozen=True)
class Units:
    """What gets a curve: `weights` (K, U) turn accuracies of K paradigms into those of U units, as means."""

    bounds: Numbers  # (K + 1,) where each paradigm starts among the pairs, and their number
    table: pd.DataFrame  # U rows: level, name, phenomenon, paradigms, n_pairs
    weights: Array


def units_of(pairs: pd.DataFrame) -> Units:
    """Overall, phenomena and paradigms of `pairs`, which are sorted by phenomenon and paradigm.

    A phenomenon and the whole are means over their paradigms.
    """
    counted = pairs if "n_pairs" in pairs else pairs.assign(n_pairs=1)
    paradigms = counted.groupby(["phenomenon", "paradigm"], as_index=False, sort=True).agg(n_pairs=("n_pairs", "sum"))
    rows = pairs.groupby(["phenomenon", "paradigm"], sort=True).size().to_numpy()
    phenomenon = paradigms["phenomenon"].to_numpy(dtype=str)
    members = [("overall", "overall", "", np.ones(len(paradigms), dtype=bool))]
    members += [("phenomenon", name, name, phenomenon == name) for name in np.unique(phenomenon)]
    for k, name in enumerate(paradigms["paradigm"]):
        members.append(("paradigm", name, phenomenon[k], np.arange(len(paradigms)) == k))
    counts = paradigms["n_pairs"].to_numpy()
    table = [
        {"level": level, "name": name, "phenomenon": part, "paradigms": int(of.sum()), "n_pairs": int(counts[of].sum())}
        for level, name, part, of in members
    ]
    weights = np.stack([of / of.sum() for *_, of in members], axis=1)
    return Units(np.append(0, np.cumsum(rows)), pd.DataFrame(table), weights)


def paradigm_accuracies(outcome: Array, bounds: Numbers) -> Array:
    """(R, P) outcomes -> (R, K) means within paradigms, float64."""
    return np.add.reduceat(outcome, bounds[:-1], axis=1, dtype=np.float64) / np.diff(bounds)


def slope_weights(x: Array, weights: Array) -> Array:
    """(R,) x and (B, R) weights of runs -> (B, R) c, so that c @ y is the slope of the weighted least-squares line.

    NaN where all the weight lies on one x.
    """
    centred = x - (weights @ x / weights.sum(axis=1))[:, None]
    spread = (weights * centred**2).sum(axis=1, keepdims=True)
    slopes: Array = weights * centred / np.where(spread > 1e-12, spread, np.nan)
    return slopes


def resampled_runs(strata: Numbers, resamples: int, rng: np.random.Generator) -> Array:
    """(B, R) weights of runs drawn with replacement within their stratum (their size; their seed's whole if nested).

    Of k runs k - 1 are drawn, and weighted by k / (k - 1): drawing k would make the variance of a mean too small by
    (k - 1) / k, which matters with five (Rao and Wu 1988, section 2.1). A stratum of one run cannot be resampled.
    """
    weights = np.empty((resamples, len(strata)))
    for stratum in np.unique(strata):
        (of,) = np.nonzero(strata == stratum)
        k = len(of)
        weights[:, of] = rng.multinomial(k - 1, np.full(k, 1 / k), size=resamples) * (k / (k - 1))
    return weights


def resampled_accuracies(
    outcome: Array, bounds: Numbers, resamples: int, rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """(B, R, K) accuracies of paradigms, pairs drawn with replacement within each: one draw, shared by all runs."""
    means = np.empty((resamples, outcome.shape[0], len(bounds) - 1), np.float32)
    for k, (start, end) in enumerate(pairwise(bounds)):
        n = int(end - start)
        judged = np.ascontiguousarray(outcome[:, start:end].T, dtype=np.float32)
        step = max(1, CHUNK // n)
        for first in range(0, resamples, step):
            rows = min(step, resamples - first)
            drawn = rng.integers(0, n, size=(rows, n), dtype=np.int64)
            drawn += np.arange(rows)[:, None] * n
            counts = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float32)
            means[first : first + rows, :, k] = counts @ judged / n
    return means


@dataclass(frozen=True)
class Line:
    """Least-squares lines through (R,) x and (R, U) y; each field is (U,)."""

    slope: Array
    intercept: Array
    r2: Array  # NaN for two runs or fewer, or where y does not vary
    error: Array  # standard error of the slope, R - 2 degrees of freedom; NaN for two runs or fewer


def fit_lines(x: Array, y: Array) -> Line:
    """Ordinary least squares of each column of `y` on `x`; all NaN when there is only one x."""
    runs = len(x)
    centred = x - x.mean()
    spread = float((centred**2).sum())
    if spread < 1e-12:
        none = np.full(y.shape[1], np.nan)
        return Line(none, none, none, none)
    slope = centred @ y / spread
    intercept = y.mean(axis=0) - slope * x.mean()
    residual = ((y - intercept - np.outer(x, slope)) ** 2).sum(axis=0)
    if runs <= 2:
        none = np.full(y.shape[1], np.nan)
        return Line(slope, intercept, none, none)
    total = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    r2 = 1 - residual / np.where(total > 1e-24, total, np.nan)
    return Line(slope, intercept, r2, np.sqrt(residual / (runs - 2) / spread))


def pair_variance(slope_of_pair: Array, bounds: Numbers, weights: Array) -> Array:
    """(U,) variance that a new draw of pairs within paradigms gives the slope; `slope_of_pair` is (P,).

    The slope of a unit is a mean over paradigms of means over pairs of each pair's own slope, so its variance over
    pairs is sum over paradigms of weight^2 s^2 / n, s^2 being the variance of pairs' slopes. NaN where a
    paradigm has one pair.
    """
    sizes = np.diff(bounds)
    means = np.add.reduceat(slope_of_pair, bounds[:-1]) / sizes
    squares = np.add.reduceat((slope_of_pair - np.repeat(means, sizes)) ** 2, bounds[:-1])
    of_means = squares / np.where(sizes > 1, sizes - 1, np.nan) / sizes
    return np.asarray([np.sum(of_means[w > 0] * w[w > 0] ** 2) for w in weights.T])


def t_limits(line: Line, variance: Array, degrees: int, confidence: float) -> list[Array]:
    """Low and high for these pairs, low and high for new pairs too: each (U,); `variance` is that of `pair_variance`.

    The second pair is a little too wide: chance in single judgements is in both of the variances that it adds, as it is
    in a bootstrap of crossed factors (Owen 2007, section 3).
    """
    quantile = float(student.ppf(0.5 + confidence / 2, degrees))
    errors = (line.error, np.sqrt(line.error**2 + variance))
    return [line.slope + sign * quantile * error for error in errors for sign in (-1, 1)]


def bootstrap_limits(estimate: Array, resampled: Array, confidence: float, degrees: int) -> tuple[Array, Array]:
    """(U,) estimates and (B, U) resampled ones -> percentile limits, widened for the few runs they rest on.

    Percentiles treat the spread between runs as known; their distance from the estimate is stretched by the ratio of
    Student's to the normal quantile, with runs - sizes degrees of freedom.
    """
    tail = (1 - confidence) / 2
    stretch = float(student.ppf(1 - tail, degrees) / norm.ppf(1 - tail))
    low, high = np.nanquantile(resampled, [tail, 1 - tail], axis=0)
    return estimate - (estimate - low) * stretch, estimate + (high - estimate) * stretch


def spread_limits(y: Array, size: Numbers, confidence: float) -> tuple[Array, Array, Array]:
    """(R, U) accuracies and (R,) size numbers 0..S-1 -> mean, low, high, each (S, U): t intervals over runs.

    With five runs or more at each size each has its own spread; with fewer the spread is pooled over sizes. NaN limits
    where no size has two runs.
    """
    counts = np.bincount(size)
    means = np.stack([y[size == s].mean(axis=0) for s in range(len(counts))])
    squares = np.stack([((y[size == s] - means[s]) ** 2).sum(axis=0) for s in range(len(counts))])
    if counts.min() >= BOOTSTRAP_RUNS:
        degrees = (counts - 1)[:, None]
        variance = squares / degrees
    else:
        pooled = len(y) - len(counts)
        degrees = np.full((len(counts), 1), pooled if pooled > 0 else np.nan)
        variance = squares.sum(axis=0, keepdims=True) / degrees
    half = student.ppf(0.5 + confidence / 2, degrees) * np.sqrt(variance / counts[:, None])
    return means, np.clip(means - half, 0, 1), np.clip(means + half, 0, 1)


def interval_method(size: Numbers, seed: Numbers, nested: bool, asked: str) -> tuple[str, str]:
    """Which interval a group's slopes get, and what has to be said about it; `asked`: auto, bootstrap or t."""
    counts = np.bincount(size)
    counts = counts[counts > 0]
    fewest = len(np.unique(seed)) if nested else int(counts.min())
    if len(counts) < 2:
        return NO_INTERVAL, "one size only: no slope"
    if asked == "bootstrap" and fewest < 2:
        return NO_INTERVAL, "one run at some size: runs cannot be resampled, no interval"
    if asked == "bootstrap" or (asked == "auto" and fewest >= BOOTSTRAP_RUNS):
        return BOOTSTRAP, ""
    if len(size) < 3:
        return NO_INTERVAL, "two runs: a line without an interval"
    note = "one run a size: the interval rests on how straight the curve is" if counts.max() == 1 else ""
    return T_INTERVAL, note


def fit_curves(judged: Judgements, config: CurvesConfig) -> Curves:
    """Curves of every group on all pairs and, where some run met <unk>, on the pairs without it."""
    parts = {ALL_PAIRS: judged}
    if not judged.of_paradigms and judged.unk.any() and judged.unk_free.any():
        parts[UNK_FREE] = judged.select(judged.unk_free)
    found = [_fit(part, name, config) for name, part in parts.items()]
    slopes, accuracies, points = (
        pd.concat([getattr(curves, name) for curves in found], ignore_index=True)
        for name in ("slopes", "accuracies", "points")
    )
    return Curves(slopes, accuracies, points)


def _fit(judged: Judgements, name: str, config: CurvesConfig) -> Curves:
    units = units_of(judged.pairs)
    bounds = units.bounds
    accuracy = paradigm_accuracies(judged.outcome, bounds)
    runs = judged.runs
    groups = {group: np.flatnonzero(runs["group"] == group) for group in runs["group"].unique()}
    numbers = {group: _numbers(runs.iloc[of]) for group, of in groups.items()}
    methods = {group: interval_method(*numbers[group], config.interval) for group in groups}
    # One generator a purpose: that a group is added changes neither the pairs drawn nor the runs of the other groups.
    new_pairs = None
    if any(method == BOOTSTRAP for method, _ in methods.values()) and not judged.of_paradigms:
        rng = np.random.default_rng([config.seed, 0])
        new_pairs = resampled_accuracies(judged.outcome, bounds, config.resamples, rng)
    slopes, accuracies, points = [], [], []
    for group, of in groups.items():
        part, (size, seed, nested), (method, note) = runs.iloc[of], numbers[group], methods[group]
        x = np.log2(part["sample_words"].to_numpy(dtype=np.float64))
        y = accuracy[of] @ units.weights
        line = fit_lines(x, y)
        limits = [np.full(y.shape[1], np.nan)] * 4
        if method == T_INTERVAL:
            of_pair = slope_weights(x, np.ones((1, len(x))))[0] @ judged.outcome[of]
            variance = pair_variance(of_pair, bounds, units.weights)
            limits = t_limits(line, variance, len(x) - 2, config.confidence)
        elif method == BOOTSTRAP:
            rng = np.random.default_rng([config.seed, 1])
            # Nested samples of a seed share their text: a seed is drawn with all of its runs.
            strata = np.zeros(seed.max() + 1, dtype=np.intp) if nested else size
            drawn = resampled_runs(strata, config.resamples, rng)
            c = slope_weights(x, drawn[:, seed] if nested else drawn)
            degrees = int(seed.max()) if nested else len(x) - len(np.unique(size))
            drawn_slopes = [c @ y]
            if new_pairs is not None:
                drawn_slopes.append(np.einsum("br,brk->bk", c, new_pairs[:, of, :]) @ units.weights)
            for n, b in enumerate(drawn_slopes):
                limits[2 * n : 2 * n + 2] = bootstrap_limits(line.slope, b, config.confidence, degrees)
            method = BOOTSTRAP if new_pairs is not None else RUN_BOOTSTRAP
        means, low, high = spread_limits(y, size, config.confidence)
        words = np.asarray([part["sample_words"].to_numpy()[size == s].mean() for s in range(means.shape[0])])
        slopes.append(
            units.table.assign(
                group=group, pairs=name, runs=len(x), sizes=len(words), slope=line.slope, intercept=line.intercept,
                r2=line.r2, low=limits[0], high=limits[1], low_new_pairs=limits[2], high_new_pairs=limits[3],
                method=method, onset=onset(words, low), note=note,
            )
        )  # fmt: skip
        labels = part["size"].to_numpy()
        for s, at in enumerate(words):
            at_size = {"size": labels[size == s][0], "words": at, "runs": int((size == s).sum())}
            means_here = {"accuracy": means[s], "low": low[s], "high": high[s]}
            accuracies.append(units.table.assign(group=group, pairs=name, **at_size, **means_here))
        for r, (run, row) in enumerate(part.iterrows()):
            of_run = {"run": run, "size": row["size"], "seed": row["seed"], "words": row["sample_words"]}
            points.append(units.table.assign(group=group, pairs=name, **of_run, accuracy=y[r]))
    table = pd.concat(slopes, ignore_index=True)
    phenomena = table["level"] == "phenomenon"
    table["rank"] = table[phenomena].groupby("group")["slope"].rank(ascending=False, method="min")
    return Curves(table, pd.concat(accuracies, ignore_index=True), pd.concat(points, ignore_index=True))


def _numbers(runs: pd.DataFrame) -> tuple[Numbers, Numbers, bool]:
    """Number of each run's size (0 = smallest) and of its seed, and whether small samples are parts of larger ones."""
    words = runs.groupby("size")["sample_words"].mean().sort_values()
    size = pd.Series(range(len(words)), index=words.index)
    seeds = np.unique(runs["seed"].to_numpy(dtype=np.int64), return_inverse=True)[1].astype(np.intp)
    numbers = np.asarray(size[runs["size"]], dtype=np.intp)
    return numbers, seeds, bool(runs["nested"].all())


def onset(words: Array, low: Array) -> Array:
    """(S,) words, ascending, and (S, U) lower bounds -> (U,) the smallest from which all bounds exceed .5, or NaN.

    NaN too where a size has no bound.
    """
    above = np.logical_and.accumulate((low > 0.5)[::-1], axis=0)[::-1]
    return np.where(above.any(axis=0), words[above.argmax(axis=0)], np.nan)


def perplexity_curves(runs: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """log2(perplexity) on log2(sample_words) per group: doubling the text multiplies perplexity by 2^slope.

    `runs` has group, sample_words and valid_ppl. One row per group: factor (2^slope), low, high, r2, runs.
    """
    rows = []
    for group, part in runs[runs["valid_ppl"].notna()].groupby("group", sort=False):
        x = np.log2(part["sample_words"].to_numpy(dtype=np.float64))
        line = fit_lines(x, np.log2(part["valid_ppl"].to_numpy(dtype=np.float64))[:, None])
        half = line.error * student.ppf(0.5 + confidence / 2, len(x) - 2) if len(x) > 2 else np.full(1, np.nan)
        factors = [float(2 ** value[0]) for value in (line.slope, line.slope - half, line.slope + half)]
        rows.append({"group": group, **dict(zip(("factor", "low", "high"), factors, strict=True)), "r2": line.r2[0]})
        rows[-1]["runs"] = len(x)
    return pd.DataFrame(rows, columns=["group", "factor", "low", "high", "r2", "runs"])
