"""Learning curves: accuracy against log2(sample_words) per paradigm, phenomenon and overall, with honest intervals.

Two questions, two intervals, the first of which is the primary one:

* *these pairs*: where would the slope lie with new samples of text and new initialisations, for the pairs of this
  benchmark? Only runs vary.
* *new pairs too*: and with new pairs of the same paradigms? Runs and pairs vary; a pair is judged by every run, so the
  two are crossed, not nested. Paradigms are fixed in both.

Sizes weigh equally, however many runs of each are finished. With five runs or more at each size a crossed bootstrap;
with fewer t intervals that do not take the spread between runs for the same at all sizes
(analysis/curves/intervals.py). Each row names its own. What the runs cannot support is NaN, and `note` says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.designs import Design, design_of
from analysis.curves.intervals import (
    BOOTSTRAP,
    NO_INTERVAL,
    RUN_BOOTSTRAP,
    Errors,
    Line,
    fit_lines,
    interval_method,
    judgement_floor,
    lack_of_fit,
    resampled_accuracies,
    run_limits,
    single_judgements,
    slope_errors,
    slope_limits,
)
from analysis.curves.ranks import rank_limits
from analysis.curves.units import Units, paradigm_accuracies, units_of
from analysis.curves.variance import Array, Numbers, weighted_squares
from analysis.study.judgements import Judgements

ALL_PAIRS = "all"
UNK_FREE = "without <unk>"
CHANCE = 0.5
CHANCE_BASELINE = "chance"  # Curves.slopes["onset_baseline"], where no untrained model was scored


@dataclass
class Curves:
    """Everything that tables and figures are made of.

    slopes: one row per group, pairs (ALL_PAIRS or UNK_FREE), level (overall, phenomenon, paradigm) and name: paradigms,
      n_pairs, runs, sizes, slope (accuracy per doubling of the words), intercept (at log2(words) = 0), r2, low, high
      (these pairs), low_new_pairs, high_new_pairs, method, lack_of_fit (p value: below .05 the curve is no line), onset
      (words), onset_baseline (what it exceeds), rank (1 = steepest phenomenon of its group), rank_low, rank_high
      (analysis.curves.ranks), note. Two sizes are a difference: no r2, lack_of_fit or ranks; checkpoints of one
      training have no ranks.
    accuracies: one row per group, pairs, level, name and size: words, runs, accuracy (mean over runs), low, high.
    points: one row per run, pairs, level and name: group, size, seed, words, accuracy.
    """

    slopes: pd.DataFrame
    accuracies: pd.DataFrame
    points: pd.DataFrame


def spread_limits(
    y: Array, size: Numbers, confidence: float, per_trial: Array | None = None, overlap: Array | None = None
) -> tuple[Array, Array, Array]:
    """(R, U) accuracies and (R,) size numbers 0..S-1 -> mean, low, high, each (S, U): of the mean over new runs.

    Wilson's limits with Student's quantile, of as many trials as give the mean the variance that it has (Korn and
    Graubard 1998; Dean and Pagano 2015): t limits in the middle of the scale; at its ends they have a width, given
    `per_trial` (S, U) of chance in single judgements (`of_judgements`). Each size has its own spread and degrees of
    freedom: one with two runs, so its limits are wide. NaN limits at a size of one run, as nothing shows its spread.
    `overlap` (R,): what samples of a size have in common is added (shared_text_variance).
    """
    counts = np.bincount(size)
    means = np.stack([y[size == s].mean(axis=0) for s in range(len(counts))])
    squares = np.stack([((y[size == s] - means[s]) ** 2).sum(axis=0) for s in range(len(counts))])
    degrees = np.maximum(counts - 1, 1)[:, None]
    variance = squares / degrees / counts[:, None]
    variance[counts < 2] = np.nan
    if overlap is not None:
        share = np.asarray([overlap[size == s].mean() for s in range(len(counts))])
        variance = variance * (1 + counts * share / np.maximum(1 - share, 1e-3))[:, None]
    binomial = means * (1 - means)
    by_runs = variance / np.where(binomial > 1e-9, binomial, np.inf)
    square = np.asarray(student.ppf(0.5 + confidence / 2, degrees) ** 2 * by_runs)
    if per_trial is not None:  # chance in single judgements is known: the normal quantile
        square = np.maximum(square, norm.ppf(0.5 + confidence / 2) ** 2 * per_trial)
    return means, *wilson_limits(means, square)


def wilson_limits(mean: Array, square: Array) -> tuple[Array, Array]:
    """Wilson's limits of shares (Brown, Cai and DasGupta 2001, equation 4); `square`: quantile^2 / number of trials."""
    centre = (mean + square / 2) / (1 + square)
    half = np.sqrt(square * mean * (1 - mean) + square**2 / 4) / (1 + square)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def of_judgements(outcome: Array, size: Numbers, units: Units) -> Array:
    """(S, U) 1 / number of independent trials that would give means over runs the variance of single judgements."""
    found = []
    for s in range(size.max() + 1):
        of = outcome[size == s]
        variance, mean = single_judgements(of, units)
        mean = mean @ units.weights
        found.append(weighted_squares(variance, units.weights) / len(of) / (mean * (1 - mean)))
    return np.stack(found)


def fit_curves(judged: Judgements, config: CurvesConfig, untrained: Judgements | None = None) -> Curves:
    """Curves of every group on all pairs and, where some run met <unk>, on the pairs without it.

    `untrained`: of untrained models on the same pairs, for the onset (analysis.study.untrained).
    """
    parts = {ALL_PAIRS: (judged, untrained)}
    if not judged.of_paradigms and judged.unk.any() and judged.unk_free.any():
        known = judged.unk_free
        parts[UNK_FREE] = (judged.select(known), untrained.select(known) if untrained else None)
    found = [_fit(part, name, config, beside) for name, (part, beside) in parts.items()]
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


def fit_group(
    group: str, rows: Numbers, outcome: Array, design: Design, units: Units, interval: str, by: Design | None = None
) -> GroupFit:
    """The line of one group in every unit, with the errors of its slopes; `outcome` (R, P) of its runs.

    `by`: the design that chooses the interval's method; None: its own.
    """
    y = paradigm_accuracies(outcome, units.bounds) @ units.weights
    method, note = interval_method(design, interval)
    if by is not None and NO_INTERVAL not in (method, other := interval_method(by, interval)[0]):
        method = other
    line = fit_lines(design.x, y, design.weights)
    return GroupFit(group, rows, design, method, note, y, line, slope_errors(method, y, outcome, design, units))


def fit_groups(judged: Judgements, units: Units, interval: str) -> list[GroupFit]:
    """Lines of all groups of runs; `interval`: auto, bootstrap or t."""
    fits = []
    for group in judged.runs["group"].unique():
        rows = np.flatnonzero(judged.runs["group"] == group)
        design = design_of(judged.runs.iloc[rows])
        fits.append(fit_group(str(group), rows, judged.outcome[rows], design, units, interval))
    return fits


def _fit(judged: Judgements, name: str, config: CurvesConfig, untrained: Judgements | None) -> Curves:
    units = units_of(judged.pairs)
    fits = fit_groups(judged, units, config.interval)
    slopes, accuracies, points = [], [], []
    for fit, table in zip(fits, slope_tables(judged, fits, units, config), strict=True):
        group, size = fit.group, fit.design.size
        part = judged.runs.iloc[fit.rows]
        per_trial = of_judgements(judged.outcome[fit.rows], size, units)
        means, low, high = spread_limits(fit.y, size, config.confidence, per_trial, fit.design.overlap)
        words = np.asarray([part["sample_words"].to_numpy()[size == s].mean() for s in range(means.shape[0])])
        level, named = onset_baseline(group, units, untrained)
        started = np.where(fit.line.slope > 0, onset(words, low, level), np.nan)
        slopes.append(table.assign(pairs=name, onset=started, onset_baseline=named))
        labels = part["size"].to_numpy()
        for s, at in enumerate(words):
            at_size = {"size": labels[size == s][0], "words": at, "runs": int((size == s).sum())}
            means_here = {"accuracy": means[s], "low": low[s], "high": high[s]}
            accuracies.append(units.table.assign(group=group, pairs=name, **at_size, **means_here))
        for r, (run, row) in enumerate(part.iterrows()):
            of_run = {"run": run, "size": row["size"], "seed": row["seed"], "words": row["sample_words"]}
            points.append(units.table.assign(group=group, pairs=name, **of_run, accuracy=fit.y[r]))
    return Curves(*(pd.concat(parts, ignore_index=True) for parts in (slopes, accuracies, points)))


def slope_tables(
    judged: Judgements, fits: Sequence[GroupFit], units: Units, config: CurvesConfig
) -> list[pd.DataFrame]:
    """Of each fit the columns of Curves.slopes that come from its line: all but pairs and the onset's."""
    new_pairs = None
    if any(fit.method == BOOTSTRAP for fit in fits) and not judged.of_paradigms:
        # One draw of pairs, shared by all runs of all groups.
        rng = np.random.default_rng([config.seed, 0])
        new_pairs = resampled_accuracies(judged.outcome, units.bounds, config.resamples, rng)
    return [
        slope_columns(
            fit, judged.outcome[fit.rows], units, config, None if new_pairs is None else new_pairs[:, fit.rows, :]
        )
        for fit in fits
    ]


def slope_columns(
    fit: GroupFit, outcome: Array, units: Units, config: CurvesConfig, new_pairs: Array | None
) -> pd.DataFrame:
    """`slope_tables` of one group; `outcome` (R, P) of its runs, `new_pairs` as of slope_limits."""
    design, line = fit.design, fit.line
    method = RUN_BOOTSTRAP if fit.method == BOOTSTRAP and new_pairs is None else fit.method
    limits = slope_limits(fit.method, line, fit.errors, fit.y, design, units, config, new_pairs)
    sizes = len(design.counts)
    floor = np.stack(
        [judgement_floor(outcome, np.where(design.size == s, design.weights, 0), design.size, units)
         for s in range(sizes)]
    )  # fmt: skip
    table = units.table.assign(
        group=fit.group, runs=len(design.x), sizes=sizes, slope=line.slope, intercept=line.intercept,
        r2=line.r2, low=limits[0], high=limits[1], low_new_pairs=limits[2], high_new_pairs=limits[3],
        method=method, lack_of_fit=lack_of_fit(fit.method, fit.y, design, floor), note=fit.note,
        rank=np.nan, rank_low=np.nan, rank_high=np.nan,
    )  # fmt: skip
    phenomena = (table["level"] == "phenomenon").to_numpy()
    if sizes > 2 and not design.trajectory:
        table.loc[phenomena, "rank"] = table.loc[phenomena, "slope"].rank(ascending=False, method="min")
        if fit.method != NO_INTERVAL:
            ends = rank_limits(
                fit.method, design, line.slope[phenomena], fit.errors.floor[phenomena], fit.y[:, phenomena],
                config.confidence,
            )  # fmt: skip
            table.loc[phenomena, ["rank_low", "rank_high"]] = ends.T.astype(float)
    return table


def onset_baseline(group: str, units: Units, untrained: Judgements | None) -> tuple[Array, str]:
    """(U,) accuracies that an onset has to exceed, and the name of what they are.

    Chance and, where untrained models of the group were scored, their mean accuracy: an untrained model prefers the
    shorter sentence or the more frequent word, and so is not at chance in each paradigm.
    """
    chance = np.full(len(units.table), CHANCE)
    rows = [] if untrained is None else [group in groups for groups in untrained.runs["baseline_of"]]
    if untrained is None or not any(rows):
        return chance, CHANCE_BASELINE
    accuracy = (paradigm_accuracies(untrained.outcome[rows], units.bounds) @ units.weights).mean(axis=0)
    return np.maximum(chance, accuracy), f"chance and the mean of {sum(rows)} untrained model{'s' * (sum(rows) > 1)}"


def onset(words: Array, low: Array, baseline: Array) -> Array:
    """(S,) words, ascending, (S, U) lower bounds and (U,) baselines -> (U,) the smallest from which all exceed it.

    NaN where none does, and where a size has no bound.
    """
    above = np.logical_and.accumulate((low > baseline)[::-1], axis=0)[::-1]
    return np.where(above.any(axis=0), words[above.argmax(axis=0)], np.nan)


def perplexity_curves(runs: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """log2(perplexity) on log2(sample_words) per group: doubling the text multiplies perplexity by 2^slope.

    `runs` (rows of Study.runs) has valid_ppl; limits as of slopes with fewer than five runs a size. One row
    per group: factor (2^slope), low, high, r2, runs.
    """
    rows = []
    for group, part in runs[runs["valid_ppl"].notna()].groupby("group", sort=False):
        design = design_of(part)
        y = np.log2(part["valid_ppl"].to_numpy(dtype=np.float64))[:, None]
        line = fit_lines(design.x, y, design.weights)
        limits = run_limits(line, y, design, confidence)
        factors = [float(2 ** value[0]) for value in (line.slope, *limits)]
        rows.append({"group": group, **dict(zip(("factor", "low", "high"), factors, strict=True)), "r2": line.r2[0]})
        rows[-1]["runs"] = len(part)
    return pd.DataFrame(rows, columns=["group", "factor", "low", "high", "r2", "runs"])
