"""Learning curves: accuracy against log2(sample_words) per paradigm, phenomenon and overall, with intervals.

The primary interval is over new samples of text and new initialisations, for the pairs of this benchmark ("these
pairs"); the other is over new pairs of the same paradigms too ("new pairs"), runs and pairs crossed. Paradigms are
fixed in both.

Sizes weigh equally, however many runs of each are finished. With five runs or more at each size the interval is a
crossed bootstrap, with fewer a t interval (intervals.py). A statistic that the runs cannot support is NaN, and `note`
says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.designs import SAME_TEXT, design_of, sizes_of
from analysis.curves.groups import fitted_lines, fitted_slopes, rows_of
from analysis.curves.intervals import ROUNDING, single_judgements
from analysis.curves.units import Units, paradigm_accuracies, units_of
from analysis.curves.variance import Array, Numbers, weighted_squares
from analysis.study.baselines import baseline_rows
from analysis.study.collect import UNTRAINED
from analysis.study.judgements import Judgements
from corpora.config import WITHIN_SAMPLE, WITHIN_SENTENCE

ALL_PAIRS = "all"
UNK_FREE = "without <unk>"
CHANCE = 0.5
LINE_COLUMNS = ("group", "pairs", "level", "name", "words", "accuracy", "low", "high")
CHANCE_BASELINE = "chance"  # Curves.slopes["onset_baseline"], where no other baseline was scored
BASELINES = {
    UNTRAINED: "untrained models", WITHIN_SENTENCE: "models of shuffled sentences",
    WITHIN_SAMPLE: "models of shuffled text",
}  # fmt: skip


@dataclass
class Curves:
    """The statistics that tables and figures show.

    slopes: one row per group, pairs (ALL_PAIRS or UNK_FREE), level (overall, phenomenon, paradigm) and name: paradigms,
      n_pairs, runs, sizes, from_size, to_size (of the line), slope (accuracy per doubling of the words), intercept (at
      log2(words) = 0), r2, low, high (these pairs), low_new_pairs, high_new_pairs, method (of the interval),
      lack_of_fit (p value: below .05 the curve is not a line), onset (words), onset_baseline (what it exceeds), rank (1
      = steepest phenomenon of its group), rank_low, rank_high (groups.rank_limits), note, caution (why limits
      do not contain the truth in about as many studies as they say, groups.cautions; ""). Two sizes are a difference:
      no r2, lack_of_fit or ranks; checkpoints of one training have no ranks.
    accuracies: one row per group, pairs, level, name and size, of all sizes: words, runs, accuracy (mean over runs),
      low, high.
    points: one row per run, pairs, level and name: group, size, seed, words, accuracy.
    lines: points of the lines whose slopes are in `slopes`, without paradigms: group, pairs, level, name, words,
      accuracy, low, high (groups.fitted_lines); no rows where nothing is fitted.
    """

    slopes: pd.DataFrame
    accuracies: pd.DataFrame
    points: pd.DataFrame
    lines: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(LINE_COLUMNS)))


def spread_limits(
    y: Array, size: Numbers, confidence: float, per_trial: Array | None = None, overlap: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return the mean of each size and its limits over new runs, each (S, U).

    `y` (R, U) accuracies; `size` (R,) numbers 0..S-1. Wilson's limits with Student's quantile, of as many trials as
    give the mean its variance (Korn and Graubard 1998; Dean and Pagano 2015); at the ends of the scale they keep a
    width, given `per_trial` (S, U) of chance in single judgements (`inverse_trials`). Each size has its own spread and
    degrees of freedom; NaN limits at a size of one run, of runs on the same text, and where nothing varies. `overlap`
    (R,): adds the variance by shared text.
    """
    counts = np.bincount(size)
    means = np.stack([y[size == s].mean(axis=0) for s in range(len(counts))])
    squares = np.stack([((y[size == s] - means[s]) ** 2).sum(axis=0) for s in range(len(counts))])
    degrees = np.maximum(counts - 1, 1)[:, None]
    variance = squares / degrees / counts[:, None]
    variance[counts < 2] = np.nan
    if overlap is not None:
        share = np.asarray([overlap[size == s].mean() for s in range(len(counts))])
        variance = variance * (1 + counts * share / np.where(share > SAME_TEXT, np.nan, 1 - share))[:, None]
    binomial = means * (1 - means)
    by_runs = variance / np.where(binomial > 1e-9, binomial, np.inf)
    square = np.asarray(student.ppf(0.5 + confidence / 2, degrees) ** 2 * by_runs)
    if per_trial is not None:  # chance in single judgements is known: the normal quantile
        square = np.maximum(square, norm.ppf(0.5 + confidence / 2) ** 2 * per_trial)
    return means, *wilson_limits(means, np.where(square < ROUNDING, np.nan, square))


def wilson_limits(mean: Array, square: Array) -> tuple[Array, Array]:
    """Return Wilson's limits (Brown, Cai and DasGupta 2001, equation 4); `square`: quantile^2 / number of trials."""
    centre = (mean + square / 2) / (1 + square)
    half = np.sqrt(square * mean * (1 - mean) + square**2 / 4) / (1 + square)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def inverse_trials(outcome: Array, size: Numbers, units: Units) -> Array:
    """Return (S, U) 1 / number of independent trials that give means over runs the variance of single judgements."""
    rows = []
    for s in range(size.max() + 1):
        of = outcome[size == s]
        variance, mean = single_judgements(of, units)
        mean = mean @ units.weights
        binomial = mean * (1 - mean)  # 0 only where the number of pairs is not known, and all are right or none is
        by_trials = weighted_squares(variance, units.weights) / len(of)
        rows.append(np.divide(by_trials, binomial, out=np.zeros_like(by_trials), where=binomial > 0))
    return np.stack(rows)


def fit_curves(
    judged: Judgements, config: CurvesConfig, baselines: Judgements | None = None, shown: Judgements | None = None
) -> Curves:
    """Fit the curves of every group on all pairs and, where some run met <unk>, on the pairs without it.

    `baselines`: of analysis.study.baselines, for the onset. `shown`: the same and more runs, which accuracies and
    points are of.
    """
    shown = judged if shown is None else shown
    parts = {ALL_PAIRS: (judged, shown, baselines)}
    if not shown.of_paradigms and shown.unk.any() and shown.unk_free.any():
        free = shown.unk_free
        parts[UNK_FREE] = (judged.select(free), shown.select(free), baselines.select(free) if baselines else None)
    return concatenated([_fit(*part, name, config) for name, part in parts.items()])


def concatenated(parts: Sequence[Curves]) -> Curves:
    """Return one object with the rows of several."""
    tables = ([getattr(part, name) for part in parts] for name in ("slopes", "accuracies", "points", "lines"))
    return Curves(*(pd.concat(of, ignore_index=True) for of in tables))


def _fit(
    judged: Judgements, shown: Judgements, baselines: Judgements | None, name: str, config: CurvesConfig
) -> Curves:
    units = units_of(judged.pairs)
    slopes, accuracies, points, lines = [], [], [], []
    for fit, table in fitted_slopes(judged, units, config):
        group = fit.group
        sizes = sizes_of(judged.runs[judged.runs["group"] == group])
        of_group = fitted_lines(fit, config.confidence, table["low"].notna().to_numpy()).assign(group=group, pairs=name)
        lines.append(of_group.loc[of_group["level"] != "paradigm", [*LINE_COLUMNS]])
        of_sizes, of_runs = _accuracies(shown, group, units, config.confidence)
        level, baseline = onset_baseline(group, units, baselines)
        seen = [of for of in of_sizes if of["size"].iloc[0] in sizes]
        words, low = np.asarray([of["words"].iloc[0] for of in seen]), np.stack([of["low"] for of in seen])
        rising = np.where(fit.line.slope > 0, onset(words, low, level), np.nan)
        ends = {"from_size": sizes[0], "to_size": sizes[-1]}
        slopes.append(table.assign(pairs=name, onset=rising, onset_baseline=baseline, **ends))
        accuracies += [of.assign(pairs=name) for of in of_sizes]
        points += [of.assign(pairs=name) for of in of_runs]
    return Curves(*(pd.concat(parts, ignore_index=True) for parts in (slopes, accuracies, points, lines)))


def _accuracies(
    judged: Judgements, group: str, units: Units, confidence: float
) -> tuple[list[pd.DataFrame], list[pd.DataFrame]]:
    """Return the rows of Curves.accuracies of each size of a group, and those of Curves.points of each of its runs."""
    rows = rows_of(judged, group)
    part, outcome = judged.runs.iloc[rows], judged.outcome[rows]
    design, y = design_of(part), paradigm_accuracies(outcome, units.bounds) @ units.weights
    size = design.size
    per_trial = inverse_trials(outcome, size, units)
    means, low, high = spread_limits(y, size, confidence, per_trial, design.overlap)
    of_sizes = []
    for s, label in enumerate(sizes_of(part)):
        at_size = {"size": label, "words": part["sample_words"].to_numpy()[size == s].mean()}
        means_here = {"accuracy": means[s], "low": low[s], "high": high[s]}
        of_sizes.append(units.table.assign(group=group, **at_size, runs=int((size == s).sum()), **means_here))
    of_runs = []
    for r, (run, row) in enumerate(part.iterrows()):
        of_run = {"run": run, "size": row["size"], "seed": row["seed"], "words": row["sample_words"]}
        of_runs.append(units.table.assign(group=group, **of_run, accuracy=y[r]))
    return of_sizes, of_runs


def onset_baseline(group: str, units: Units, baselines: Judgements | None) -> tuple[Array, str]:
    """Return the (U,) accuracies that an onset has to exceed, chance and the means of baselines, and their name.

    An untrained model prefers the shorter sentence, and one of shuffled text the more frequent words, so they are not
    at chance in each paradigm. `baselines`: of analysis.study.baselines.
    """
    level, parts = np.full(len(units.table), CHANCE), []
    if baselines is None:
        return level, CHANCE_BASELINE
    for kind, rows in baseline_rows(baselines, group).items():
        accuracy = paradigm_accuracies(baselines.outcome[rows], units.bounds) @ units.weights
        level = np.maximum(level, accuracy.mean(axis=0))
        one = f"{'an' if kind == UNTRAINED else 'a'} {BASELINES[kind].replace('models', 'model')}"
        parts.append(f"{len(rows)} {BASELINES[kind]}" if len(rows) > 1 else one)
    return level, f"{CHANCE_BASELINE} and the mean of {' and of '.join(parts)}" if parts else CHANCE_BASELINE


def onset(words: Array, low: Array, baseline: Array) -> Array:
    """Return the (U,) smallest of ascending (S,) words from which all (S, U) `low` exceed `baseline` (U,), or NaN."""
    above = np.logical_and.accumulate((low > baseline)[::-1], axis=0)[::-1]
    return np.where(above.any(axis=0), words[above.argmax(axis=0)], np.nan)
