"""Slopes of learning curves and their intervals: lines, which interval a group gets, and its limits.

Arrays only: R runs, P pairs, K paradigms, U units (analysis/curves/units.py), B resamples. Sizes weigh equally, however
many runs each has. tests/bench/coverage.py shows how often these intervals hold the truth, and which others do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.stats import f as f_distribution
from scipy.stats import norm
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.designs import Design, slope_weights
from analysis.curves.units import Units
from analysis.curves.variance import (
    Array,
    Numbers,
    RunTerms,
    cluster_weights,
    judgement_variance,
    pair_variance,
    robust_terms,
    satterthwaite,
    shared_text_variance,
    text_in_common,
    weighted_squares,
)

BOOTSTRAP = "crossed bootstrap"
RUN_BOOTSTRAP = "bootstrap over runs"  # the same, where judgements of single pairs are not known
T_SIZES = "t interval, spread of each size"
T_SEEDS = "t interval on slopes of seeds"
T_HC3 = "t interval, HC3 errors"
T_HC2 = "t interval, HC2 errors"
NO_INTERVAL = "none"
ONE_TRAINING = "checkpoints of one training: a trajectory, without an interval, a test or a rank"
BOOTSTRAP_RUNS = 5  # runs at each size from which the crossed bootstrap is used
SIZE_RUNS = 3  # runs at each size from which each size's own spread is used
OVERLAP_LIMIT = 0.5  # share of text that samples of a size have in common from which a note names it
SAME_TEXT = 0.99  # and from which nothing tells what new text would change
CHUNK = 16_000_000  # numbers held at once while pairs are resampled


def interval_method(design: Design, requested: str) -> tuple[str, str]:
    """Which interval a group's slopes get, and what has to be said about it; `requested`: auto, bootstrap or t.

    Chosen by coverage (tests/bench/README.md): the smallest number of runs at a size decides.
    """
    if design.trajectory:
        return NO_INTERVAL, ONE_TRAINING
    counts = design.counts[design.counts > 0]
    fewest, seeds = int(counts.min()), len(np.unique(design.seed))
    note = ""
    if len(counts) < 2:
        return NO_INTERVAL, "one size only: no slope"
    if requested == "bootstrap" and fewest < 2:
        return NO_INTERVAL, "one run at some size: runs cannot be resampled, no interval"
    if len(design.size) < 3:
        return NO_INTERVAL, "two runs: a line without an interval"
    if len(counts) == 2 and fewest < 2:
        return NO_INTERVAL, "one run at one of two sizes: nothing shows its spread, no interval"
    if design.nested and seeds < 2:
        return NO_INTERVAL, "nested samples of one seed are one draw of text: no interval"
    if design.nested and (counts > 1).sum() < 2:
        return NO_INTERVAL, "nested samples with several seeds at fewer than two sizes: seeds cannot be told from sizes"
    if same_text(design):
        return NO_INTERVAL, "samples of a size are the same text: nothing shows what new text would change, no interval"
    if design.overlap is not None and (counts > 1).any():
        shared = max(design.overlap[design.size == s][0] for s in np.flatnonzero(design.counts > 1))
        if shared > OVERLAP_LIMIT:
            note = f"samples of a size share up to {shared:.0%} of their text: limits widened for new text"
    if requested == "bootstrap" or (requested == "auto" and fewest >= BOOTSTRAP_RUNS):
        return BOOTSTRAP, note
    if design.nested and fewest > 1:
        return T_SEEDS, _joined(f"nested samples: the interval rests on the slopes of {seeds} seeds", note)
    if fewest == 1:
        alone = int((counts == 1).sum())
        told = "one run a size" if alone == len(counts) else f"one run at {alone} of {len(counts)} sizes"
        return T_HC2, _joined(f"{told}: the interval rests on how straight the curve is", note)
    return (T_SIZES if fewest >= SIZE_RUNS else T_HC3), note


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def same_text(design: Design) -> bool:
    """Return whether runs of some size were trained on (almost) the same text."""
    if design.overlap is None:
        return False
    return bool((design.overlap[design.counts[design.size] > 1] > SAME_TEXT).any())


def run_terms(method: str, design: Design, contrast: Array) -> RunTerms:
    """Terms of the variance of contrast @ y, a (R,) contrast of a regression, as the interval `method` estimates it.

    T_SIZES and the bootstrap: residuals from the means of the sizes, each size with a spread of its own; T_SEEDS too,
    with seeds as clusters (CR2). T_HC3 and T_HC2: residuals from the line, which so hold the curve's distance from it.
    """
    x, size = design.x, design.size
    if method in (T_HC3, T_HC2):
        model = np.stack([np.ones(len(x)), x - x.mean()], axis=1)
        stratum = np.zeros(design.cluster.max() + 1, dtype=np.intp)
    else:
        model = (size[:, None] == np.arange(size.max() + 1)).astype(np.float64)
        stratum = design.stratum
    return robust_terms(contrast, model, design.weights, design.cluster, stratum, method == T_HC3)


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
    r2: Array  # NaN where x has two values or fewer, or where y does not vary


def fit_lines(x: Array, y: Array, weights: Array | None = None) -> Line:
    """Weighted least squares of each column of `y` on `x`; `weights` (R,), None: equal. All NaN for only one x."""
    weights = np.ones(len(x)) if weights is None else weights
    c = slope_weights(x, weights[None])[0]
    share = weights / weights.sum()
    slope = c @ y
    intercept = share @ y - slope * (share @ x)
    residual = share @ (y - intercept - np.outer(x, slope)) ** 2
    total = share @ (y - share @ y) ** 2
    r2 = 1 - residual / np.where(total > 1e-24, total, np.nan)
    return Line(slope, intercept, r2 if len(np.unique(x)) > 2 else np.full(y.shape[1], np.nan))


def t_limits(estimate: Array, error: Array, degrees: Array, confidence: float) -> tuple[Array, Array]:
    """(U,) estimates, their standard errors and degrees of freedom -> Student's limits."""
    half = student.ppf(0.5 + confidence / 2, degrees) * error
    return estimate - half, estimate + half


def bootstrap_limits(
    estimate: Array, error: Array, resampled: Array, degrees: Array, confidence: float, floor: Array
) -> tuple[Array, Array]:
    """(U,) estimates, their standard errors, (B, U) resampled estimates -> percentile limits of that standard error.

    Percentiles hold the shape. Their distance from the estimate is scaled by the ratio of `error` to the deviation of
    the resampled (which counts chance in single judgements three times where runs and pairs are resampled together,
    analysis/curves/variance.py), and by that of Student's to the normal quantile, as percentiles treat the spread as
    known. Where the variance of the resampled is below `floor` (U,) they have no shape to hold: Student's limits.
    """
    tail = (1 - confidence) / 2
    deviation = resampled.std(axis=0)
    flat = (deviation**2 < floor) | (deviation < 1e-12)
    scale = error / np.where(flat, 1, deviation)
    stretch = scale * student.ppf(1 - tail, degrees) / norm.ppf(1 - tail)
    low, high = np.nanquantile(resampled, [tail, 1 - tail], axis=0)
    plain = t_limits(estimate, error, degrees, confidence)
    return (
        np.where(flat, plain[0], estimate - (estimate - low) * stretch),
        np.where(flat, plain[1], estimate + (high - estimate) * stretch),
    )


@dataclass(frozen=True)
class Errors:
    """Standard errors of slopes and their degrees of freedom, each (U,); NaN where the runs give none."""

    runs: Array  # over new runs, for these pairs
    degrees: Array
    both: Array  # over new runs and new pairs
    degrees_both: Array
    chance: Array  # variance, not its root: chance in single judgements, which both sources of variance hold
    floor: Array  # variance that chance in single judgements gives at least, also where all of them are right
    text: Array  # variance of what samples of one size have in common, which no difference between runs shows


def slope_errors(method: str, y: Array, outcome: Array, design: Design, units: Units) -> Errors:
    """Errors of a group's slopes. `outcome` (R, P) of its runs, y (R, U) its accuracies, `method` as named above.

    Over runs: `run_terms`, no less than chance in single judgements gives (near a ceiling few runs show no spread), and
    what samples that overlap hide (`shared_text_variance`). Over both: the variance of pairs' slopes added, chance in
    single judgements counted once.
    """
    if method == NO_INTERVAL:
        return Errors(*(np.full(y.shape[1], np.nan) for _ in range(7)))
    c = design.contrast
    variance, degrees, floor, text = contrast_variance(method, c, y, outcome, design, units)
    weights = cluster_weights(c, design.size, design.cluster)
    chance = judgement_variance(outcome, weights, design.stratum, units.bounds, units.weights)
    of_pairs = pair_variance(c @ outcome, units.bounds, units.weights) - chance
    both, degrees_both = with_pairs(variance, degrees, floor, of_pairs, units)
    return Errors(np.sqrt(variance), degrees, np.sqrt(both), degrees_both, chance, floor, text)


def contrast_variance(
    method: str, c: Array, y: Array, outcome: Array, design: Design, units: Units
) -> tuple[Array, Array, Array, Array]:
    """Variance of c @ y over new runs, its degrees of freedom, its floor, and the part of text in common; each (U,)."""
    terms = run_terms(method, design, c)
    floor = judgement_floor(outcome, c, design.size, units)
    degrees = terms.degrees(y)
    variance = floored(terms.variance(y), degrees, floor, 0.95)
    text = hidden_variance(design, c, y)
    return variance + text, degrees, floor, text


def single_judgements(outcome: Array, units: Units) -> tuple[Array, Array]:
    """Variance of a run's accuracy by chance in single judgements, at least, and smoothed mean; outcome (n, P) -> (K,).

    For these pairs: in each paradigm the variance of a pair's outcomes over the n runs of a size, or over pairs where
    it has one run, as of independent judgements (0 where judgements of single pairs are not known). Where all are alike
    that is 0 or nearly so; added is what two judgements at either end of the scale, beside those there are, would add
    to the variance of single judgements (Agresti and Coull 1998; one at either end for differences of outcomes, Agresti
    and Caffo 2000). They are in the smoothed mean too.
    """
    starts, rows = units.bounds[:-1], np.diff(units.bounds)
    outcome = np.asarray(outcome, dtype=np.float64)
    low, more = (-1.0, 1.0) if units.differences else (0.0, 2.0)
    mean = np.add.reduceat(outcome.mean(axis=0), starts) / rows
    square = np.add.reduceat((outcome**2).mean(axis=0), starts) / rows if units.rows_are_pairs else mean
    added = more / (len(outcome) * units.pairs + 2 * more)
    smoothed = (1 - 2 * added) * mean + added * (1 + low)
    whole = square - mean**2
    grown = (1 - 2 * added) * square + added * (1 + low**2) - smoothed**2
    if not units.rows_are_pairs:
        within = np.zeros(len(mean))
    else:
        within = np.add.reduceat(outcome.var(axis=0, ddof=1), starts) / rows if len(outcome) > 1 else whole
    return (within + np.maximum(grown - whole, 0)) / units.pairs, smoothed


def judgement_floor(outcome: Array, c: Array, size: Numbers, units: Units) -> Array:
    """(U,) variance that chance in single judgements gives c @ y at least; outcome (R, P), c (R,), size (R,)."""
    of_paradigm = np.zeros(len(units.pairs))
    for s in range(size.max() + 1):
        of_paradigm += (c[size == s] ** 2).sum() * single_judgements(outcome[size == s], units)[0]
    return weighted_squares(of_paradigm, units.weights)


def floored(variance: Array, degrees: Array, floor: Array, confidence: float) -> Array:
    """(U,) variances so that Student's limits are no closer than the normal limits of a variance `floor`."""
    ratio = norm.ppf(0.5 + confidence / 2) / student.ppf(0.5 + confidence / 2, degrees)
    return np.asarray(np.maximum(variance, floor * ratio**2))


def with_pairs(runs: Array, degrees: Array, floor: Array, pairs: Array, units: Units) -> tuple[Array, Array]:
    """(U,) variance over runs, no less than `floor`, and over pairs, added, and the degrees of freedom of the sum."""
    least = np.maximum(runs, floor)
    known = np.where(runs > 0, degrees * (least / np.where(runs > 0, runs, 1)) ** 2, np.inf)
    both = np.stack([least, np.maximum(pairs, 0)])
    return both.sum(axis=0), satterthwaite(both, np.stack([known, units.pair_degrees]))


def run_limits(line: Line, y: Array, design: Design, confidence: float) -> tuple[Array, Array]:
    """Return the limits of the slopes of any (R, U) y over new runs, as of accuracies but for what judgements add."""
    method, _ = interval_method(design, "t")
    if method == NO_INTERVAL:
        none = np.full(y.shape[1], np.nan)
        return none, none
    terms = run_terms(method, design, design.contrast)
    variance = terms.variance(y) + hidden_variance(design, design.contrast, y)
    return t_limits(line.slope, np.sqrt(variance), terms.degrees(y), confidence)


def hidden_variance(design: Design, c: Array, y: Array) -> Array:
    """(U,) variance of c @ y by text that samples have in common (`shared_text_variance`); 0 if they have none."""
    if design.overlap is None:
        return np.zeros(y.shape[1])
    return shared_text_variance(c, y, design.size, design.overlap)


def lack_of_fit(method: str, y: Array, design: Design, floor: Array) -> Array:
    """(U,) p values of the test that the sizes' expected accuracies lie on a line; y (R, U), `floor` (S, U) of means.

    The ANOVA-type statistic: the squares of the means' distances from their line over what their variances, each
    size with its own, let expect; F with estimated degrees of freedom (Brunner, Dette and Munk 1997; Box 1954). It
    holds its level where spreads differ, which the F test on pure error does not. Sizes of one run are left out, as
    nothing shows their spread. What the text that samples of a size have in common adds to a mean is in its variance
    as if it were unrelated between sizes, which is when it bends the curve most. NaN with fewer than three sizes of
    two runs, and where nothing varies.
    """
    known = design.counts > 1
    if method == NO_INTERVAL or known.sum() < 3:
        return np.full(y.shape[1], np.nan)
    rows = known[design.size]
    part, y, least = design.of(rows), y[rows], floor[known]
    terms = [run_terms(T_SIZES, part, np.where(part.size == s, part.weights, 0)) for s in range(len(least))]
    values = np.stack([of.weights @ y for of in terms])  # (S, J, U)
    covariance = np.einsum("sju,tju->ust", values, values)
    diagonal = np.arange(len(least))
    covariance[:, diagonal, diagonal] = np.maximum(covariance[:, diagonal, diagonal], least.T)
    if part.overlap is not None:
        covariance[:, diagonal, diagonal] += text_in_common(y, part.size, part.overlap).T
    means = np.stack([y[part.size == s].mean(axis=0) for s in diagonal], axis=1)  # (U, S)
    x = np.stack([np.ones(len(least)), [part.x[part.size == s].mean() for s in diagonal]], axis=1)
    apart = np.eye(len(least)) - x @ np.linalg.pinv(x)
    spread = apart @ covariance  # (U, S, S)
    trace = np.trace(spread, axis1=1, axis2=2)
    trace = np.where(trace > 1e-24, trace, np.nan)
    if part.nested:
        free = np.full(y.shape[1], part.counts.min() - 1.0)
    else:
        free = trace**2 / ((np.diag(apart) * covariance[:, diagonal, diagonal]) ** 2 / (part.counts - 1)).sum(axis=1)
    statistic = np.einsum("us,st,ut->u", means, apart, means) / trace
    return np.asarray(f_distribution.sf(statistic, trace**2 / np.einsum("ust,uts->u", spread, spread), free))


def slope_limits(
    method: str, line: Line, errors: Errors, y: Array, design: Design, units: Units, config: CurvesConfig,
    new_pairs: Array | None,
) -> list[Array]:  # fmt: skip
    """Low and high for these pairs, low and high for new pairs too, each (U,); NaN where there is no interval.

    `y` (R, U); `new_pairs` (B, R, K) are this group's part of `resampled_accuracies`, which only the bootstrap reads,
    or None where judgements of single pairs are not known.
    """
    closest = t_limits(line.slope, np.sqrt(errors.floor), np.full(len(line.slope), np.inf), config.confidence)
    if method != BOOTSTRAP:
        these = at_least(t_limits(line.slope, errors.runs, errors.degrees, config.confidence), closest)
        both = t_limits(line.slope, errors.both, errors.degrees_both, config.confidence)
        return [*these, *at_least(both, these)]
    # One generator a purpose: that a group is added does not change the runs drawn of another.
    drawn = resampled_runs(design.stratum, config.resamples, np.random.default_rng([config.seed, 1]))
    c = slope_weights(design.x, drawn[:, design.cluster] * design.weights)
    these = bootstrap_limits(line.slope, errors.runs, c @ y, errors.degrees, config.confidence, errors.floor)
    these = at_least(these, closest)
    if new_pairs is None:
        none = np.full(len(line.slope), np.nan)
        return [*these, none, none]
    resampled = np.einsum("br,brk->bk", c, new_pairs) @ units.weights
    both = bootstrap_limits(line.slope, errors.both, resampled, errors.degrees_both, config.confidence, errors.floor)
    return [*these, *at_least(both, these)]


def at_least(limits: tuple[Array, Array], inner: tuple[Array, Array]) -> tuple[Array, Array]:
    """Limits as wide as `inner` or wider: what varies more cannot be known better.

    Degrees of freedom grow with the share of pairs in the variance, which is overestimated where few runs happen to lie
    close together; their interval is narrow then, and that over new pairs would be narrower still.
    """
    return np.minimum(limits[0], inner[0]), np.maximum(limits[1], inner[1])
