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

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.intervals import (
    BOOTSTRAP,
    BOOTSTRAP_RUNS,
    RUN_BOOTSTRAP,
    Design,
    Errors,
    Line,
    design_of,
    fit_lines,
    interval_method,
    resampled_accuracies,
    slope_errors,
    slope_limits,
)
from analysis.judgements import Judgements
from analysis.units import Units, paradigm_accuracies, units_of
from analysis.variance import Array, Numbers

ALL_PAIRS = "all"
UNK_FREE = "without <unk>"


@dataclass
class Curves:
    """Everything that tables and figures are made of.

    slopes: one row per group, pairs (ALL_PAIRS or UNK_FREE), level (overall, phenomenon, paradigm) and name: paradigms,
      n_pairs, runs, sizes, slope (accuracy per doubling of the words), intercept (at log2(words) = 0), r2, low, high
      (these pairs), low_new_pairs, high_new_pairs, method, onset (words), rank (1 = steepest phenomenon of its group,
      NaN for checkpoints of one training), note.
    accuracies: one row per group, pairs, level, name and size: words, runs, accuracy (mean over runs), low, high.
    points: one row per run, pairs, level and name: group, size, seed, words, accuracy.
    """

    slopes: pd.DataFrame
    accuracies: pd.DataFrame
    points: pd.DataFrame


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


@dataclass(frozen=True)
class GroupFit:
    """The line of one group: what its slopes, their comparison and words to people are worked out from."""

    group: str
    rows: Numbers  # (R,) of the group's runs within the judgements
    design: Design
    method: str  # of the interval
    note: str
    y: Array  # (R, U) accuracies
    line: Line
    errors: Errors


def fit_group(group: str, rows: Numbers, outcome: Array, design: Design, units: Units, interval: str) -> GroupFit:
    """The line of one group in every unit, with the errors of its slopes; `outcome` (R, P) of its runs."""
    y = paradigm_accuracies(outcome, units.bounds) @ units.weights
    method, note = interval_method(design, interval)
    line = fit_lines(design.x, y)
    return GroupFit(group, rows, design, method, note, y, line, slope_errors(method, line, outcome, design, units))


def fit_groups(judged: Judgements, units: Units, interval: str) -> list[GroupFit]:
    """Lines of all groups of runs; `interval`: auto, bootstrap or t."""
    fits = []
    for group in judged.runs["group"].unique():
        rows = np.flatnonzero(judged.runs["group"] == group)
        design = design_of(judged.runs.iloc[rows])
        fits.append(fit_group(str(group), rows, judged.outcome[rows], design, units, interval))
    return fits


def _fit(judged: Judgements, name: str, config: CurvesConfig) -> Curves:
    units = units_of(judged.pairs)
    runs = judged.runs
    fits = fit_groups(judged, units, config.interval)
    new_pairs = None
    if any(fit.method == BOOTSTRAP for fit in fits) and not judged.of_paradigms:
        # One draw of pairs, shared by all runs of all groups.
        rng = np.random.default_rng([config.seed, 0])
        new_pairs = resampled_accuracies(judged.outcome, units.bounds, config.resamples, rng)
    slopes, accuracies, points = [], [], []
    for fit in fits:
        group, design, y, line = fit.group, fit.design, fit.y, fit.line
        part, x, size = runs.iloc[fit.rows], design.x, design.size
        drawn = None if new_pairs is None else new_pairs[:, fit.rows, :]
        method = RUN_BOOTSTRAP if fit.method == BOOTSTRAP and drawn is None else fit.method
        limits = slope_limits(fit.method, line, fit.errors, y, design, units, config, drawn)
        means, low, high = spread_limits(y, size, config.confidence)
        words = np.asarray([part["sample_words"].to_numpy()[size == s].mean() for s in range(means.shape[0])])
        slopes.append(
            units.table.assign(
                group=group, pairs=name, runs=len(x), sizes=len(words), slope=line.slope, intercept=line.intercept,
                r2=line.r2, low=limits[0], high=limits[1], low_new_pairs=limits[2], high_new_pairs=limits[3],
                method=method, onset=onset(words, low), note=fit.note,
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
    trajectories = table["group"].isin([fit.group for fit in fits if fit.design.trajectory])
    table["rank"] = table[phenomena & ~trajectories].groupby("group")["slope"].rank(ascending=False, method="min")
    return Curves(table, pd.concat(accuracies, ignore_index=True), pd.concat(points, ignore_index=True))


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
