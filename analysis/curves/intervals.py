"""Lines, the choice of an interval for their slopes, standard errors and limits.

Arrays only: R runs, P pairs, K paradigms, U units (analysis/curves/units.py), B resamples. tests/bench/coverage.py
shows how often intervals cover the truth. Regressions of statsmodels and bootstraps of scipy take one unit at a time,
and know no floor, no CR2 and no crossed factors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, norm
from scipy.stats import f as f_distribution
from scipy.stats import t as student

from analysis.curves.designs import SAME_TEXT, Design, Line, same_text, shares_text
from analysis.curves.units import Units
from analysis.curves.variance import (
    Array,
    Numbers,
    RunTerms,
    chance_at_sizes,
    cluster_weights,
    judgement_variance,
    pair_variance,
    robust_terms,
    satterthwaite,
    shared_text,
    text_in_common,
)


class Interval(StrEnum):
    """A way to estimate the interval of a slope; its text is what tables show."""

    BOOTSTRAP = "crossed bootstrap"
    RUN_BOOTSTRAP = "bootstrap over runs"  # the same, where judgements of single pairs are not known
    T_SIZES = "t interval, spread of each size"
    T_SEEDS = "t interval on slopes of seeds"
    T_BENT = "t interval, HC3 or, of bent curves, spread of each size"  # the next or the one after it: `of_curves`
    T_HC3 = "t interval, HC3 errors"
    T_POOLED = "t interval, spread of each size, pooled degrees of freedom"
    T_HC2 = "t interval, HC2 errors"
    NONE = "none"

    @property
    def rule(self) -> Interval:
        """The interval that a design alone chooses (`interval_method`)."""
        return Interval.T_BENT if self in (Interval.T_HC3, Interval.T_POOLED) else self


NOTHING_VARIES = "runs do not differ, and the number of pairs is not known: no interval"
ONE_TRAINING = "checkpoints of one training depend on each other: a trajectory, without an interval, a test or a rank"
BOOTSTRAP_RUNS = 5  # runs at each size from which the crossed bootstrap is used
SIZE_RUNS = 3  # runs at each size from which each size's own spread is used alone
MOST_BENT = 1.2  # errors about a line over those of sizes, from which curves of two runs a size count as bent
ROUNDING = 1e-24  # variance of a sum of accuracies below which it is that of floating-point numbers
LEAST_PLAUSIBLE = 0.05  # quantile of estimates of the variance by single judgements below which one is raised
CHUNK = 16_000_000  # numbers held at once while pairs are resampled


def interval_method(design: Design, requested: str) -> tuple[Interval, str]:
    """Choose the interval of a group's slopes, by the fewest runs at a size (docs/benchmarks.md); return a note too.

    `requested`: auto, bootstrap or t.
    """
    if reason := no_interval(design, requested):
        return Interval.NONE, reason
    counts, note = design.counts, ""
    fewest, seeds = int(counts.min()), len(np.unique(design.seed))
    if reason := shares_text(design):
        note = f"{reason}: limits widened for new text, and conservative"
    if requested == "bootstrap" or (requested == "auto" and fewest >= BOOTSTRAP_RUNS):
        return Interval.BOOTSTRAP, note
    if design.nested and fewest > 1:
        return Interval.T_SEEDS, _joined(f"nested samples: the interval rests on the slopes of {seeds} seeds", note)
    if fewest == 1:
        alone = int((counts == 1).sum())
        where = "one run a size" if alone == len(counts) else f"one run at {alone} of {len(counts)} sizes"
        rests = f"{where}: the interval rests on how straight the curve is"
        if len(counts) - alone > 1:
            rests += ", and is conservative; analysis.least_runs=2 leaves out such sizes"
        return Interval.T_HC2, _joined(rests, note)
    return (Interval.T_SIZES if fewest >= SIZE_RUNS else Interval.T_BENT), note


def mean_method(design: Design) -> tuple[Interval, str]:
    """Choose the t interval of a mean over sizes, which needs no second size; return a note too, as above."""
    if len(design.x) == 1:
        return Interval.NONE, "one run: no interval"
    if len(design.counts) == 1 and not design.trajectory:
        if design.overlap is not None and design.overlap.max() > SAME_TEXT:
            return Interval.NONE, "runs on the same text: no interval"
        return Interval.T_SIZES, ""
    return interval_method(design, "t")


def no_interval(design: Design, requested: str) -> str:
    """Return why a group's slopes have no interval; "" where they have one."""
    if design.trajectory:
        return ONE_TRAINING
    counts, fewest = design.counts, int(design.counts.min())
    if len(counts) < 2:
        return "one size only: no slope"
    if requested == "bootstrap" and fewest < 2:
        return "one run at some size: runs cannot be resampled, no interval"
    if len(design.size) < 3:
        return "two runs: a line without an interval"
    if len(counts) == 2 and fewest < 2:
        return "one run at one of two sizes: nothing shows its spread, no interval"
    if design.nested and len(np.unique(design.seed)) < 2:
        return "nested samples of one seed are one draw of text: no interval"
    if design.nested and (counts > 1).sum() < 2:
        return "nested samples with several seeds at fewer than two sizes: seeds cannot be told from sizes"
    if same_text(design):
        return "samples of a size are the same text: nothing shows what new text would change, no interval"
    return ""


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def run_terms(method: Interval, design: Design, contrast: Array) -> RunTerms:
    """Return the terms of the variance of contrast @ y, `contrast` (R,) of a regression, as `method` estimates it.

    T_SIZES and the bootstrap: residuals from the means of the sizes, each size with its own spread; T_SEEDS too, with
    seeds as clusters (CR2). T_HC3 and T_HC2: residuals from the line, which include the curve's distance from it.
    T_POOLED: those of T_SIZES, but degrees of freedom are of all units of a study together (`RunTerms.degrees`).
    """
    assert method != Interval.T_BENT, "of_curves decides"
    x, size = design.x, design.size
    if method in (Interval.T_HC3, Interval.T_HC2):
        model = np.stack([np.ones(len(x)), x - x.mean()], axis=1)
        stratum = np.zeros(design.cluster.max() + 1, dtype=np.intp)
    else:
        model = (size[:, None] == np.arange(size.max() + 1)).astype(np.float64)
        stratum = design.stratum
    terms = robust_terms(contrast, model, design.weights, design.cluster, stratum, method == Interval.T_HC3)
    return replace(terms, pooled=method == Interval.T_POOLED)


def of_curves(method: Interval, design: Design, y: Array) -> Interval:
    """Return the interval of a study's slopes; y (R, U) of all of its units. Another than T_BENT stays as it is.

    Of two runs a size one unit hardly shows how far its runs lie apart. Errors about the line (HC3) rest on all runs,
    but take a bend of the curve for spread: each size's own spread counts where, summed over units, errors about the
    line are more than MOST_BENT times as large. By construction they are with two sizes or three.
    """
    if method != Interval.T_BENT:
        return method
    line, own = (run_terms(of, design, design.contrast).variance(y) for of in (Interval.T_HC3, Interval.T_POOLED))
    return Interval.T_POOLED if bent(line, own) else Interval.T_HC3


def bent(line: Array, own: Array) -> npt.NDArray[np.bool_]:
    """Return (...) whether curves bend; (..., U) variances of slopes about the line, and by sizes' own spreads."""
    return np.asarray(np.sqrt(line).sum(axis=-1) > MOST_BENT * np.sqrt(own).sum(axis=-1))


def resampled_runs(strata: Numbers, resamples: int, rng: np.random.Generator) -> Array:
    """Draw runs with replacement within strata (the size; whole seeds if nested): (B, R) weights.

    Of k runs k - 1 are drawn, and weighted by k / (k - 1): drawing k would make the variance of a mean too small by
    (k - 1) / k (Rao and Wu 1988, section 2.1). A stratum of one run cannot be resampled.
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
    """Draw pairs with replacement within paradigms, in one draw for all runs: (B, R, K) accuracies of paradigms."""
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


def t_limits(estimate: Array, error: Array, degrees: Array, confidence: float) -> tuple[Array, Array]:
    """Return Student's limits of (U,) estimates; an error of 0 has a width of 0, unlike in scipy's `t.interval`."""
    half = student.ppf(0.5 + confidence / 2, degrees) * error
    return estimate - half, estimate + half


def bootstrap_limits(
    estimate: Array, error: Array, resampled: Array, degrees: Array, confidence: float, floor: Array
) -> tuple[Array, Array]:
    """Return percentile limits of (B, U) resampled estimates, scaled to the (U,) standard errors of the estimates.

    Their distance from the estimate is scaled by the ratio of `error` to the deviation of the resampled estimates
    (which counts chance in single judgements three times, analysis/curves/variance.py), and by that of Student's to the
    normal quantile. Where the variance of the resampled estimates is below `floor` (U,) the limits are Student's.
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
    chance: Array  # variance, not its root: chance in single judgements, part of both sources of variance
    floor: Array  # least variance by chance in single judgements, also where all of them are right
    text: Array  # variance by the text that samples of one size share, which no difference between runs shows


def contrast_errors(
    method: Interval, c: Array, y: Array, outcome: Array, design: Design, units: Units, correction: float = 0
) -> Errors:
    """Return the errors of c @ y; c (R,), y (R, U) accuracies of `outcome` (R, P); `correction`: of `RunTerms.degrees`.

    Over runs: `run_terms`, at least chance in single judgements, plus what overlapping samples hide
    (`shared_text`). Over both: the variance of pairs' sums added, chance in single judgements counted once.
    """
    if method == Interval.NONE:
        return Errors(*(np.full(y.shape[1], np.nan) for _ in range(7)))
    variance, degrees, floor, text = contrast_variance(method, c, y, outcome, design, units, correction)
    weights = cluster_weights(c, design.size, design.cluster)
    chance = judgement_variance(outcome, weights, design.stratum, units.bounds, units.weights)
    of_pairs = pair_variance(c @ outcome, units.bounds, units.weights) - chance
    both, degrees_both = with_pairs(variance, degrees, of_pairs, units.pair_degrees)
    return Errors(np.sqrt(variance), degrees, np.sqrt(both), degrees_both, chance, floor, text)


def contrast_variance(
    method: Interval, c: Array, y: Array, outcome: Array, design: Design, units: Units, correction: float = 0
) -> tuple[Array, Array, Array, Array]:
    """Return the (U,) variance of c @ y over new runs, its degrees of freedom, floor and part by shared text."""
    terms = run_terms(method, design, c)
    floor = judgement_floor(outcome, c, design.size, units)
    degrees = terms.degrees(y, correction)
    variance = plausible(terms.variance(y), degrees, floor)
    text, few = hidden_text(design, c, y, outcome, units)
    return *with_text(variance, degrees, text, few), floor, text


def plausible(variance: Array, degrees: Array, floor: Array) -> Array:
    """Raise (U,) estimates of a variance, of `degrees`, that are too small for one of at least `floor`.

    A few runs that happen to agree show too little, near a ceiling none. Estimates of a variance `floor` lie below
    floor chi2(.05) / degrees in one of 20 studies: smaller ones are raised to that. NaN where nothing varies but by the
    rounding of numbers, and no number of pairs gives a floor: limits would have no width.
    """
    raised = np.maximum(variance, floor * chi2.ppf(LEAST_PLAUSIBLE, degrees) / degrees)
    return np.where(raised < ROUNDING, np.nan, raised)


def single_judgements(outcome: Array, units: Units, summed: Numbers | int = 1) -> tuple[Array, Array]:
    """Return the least variance of a run's accuracy by chance in single judgements, and its smoothed mean, each (K,).

    `outcome` (n, P) of the n runs of a size. For these pairs: in each paradigm the variance of a pair's outcomes over
    runs, or over pairs with one run, as of independent judgements. Where judgements of single pairs are not known, that
    of a binomial, as if pairs were alike, which is more; 0 where their number is not known either. As it is about 0
    where all are alike, two further judgements at either end of the scale are added to the variance of single
    judgements and to the mean (Agresti and Coull 1998; one at either end for differences of outcomes, Bonett and Price
    2012). For a mean of m paradigms they are divided among these (Price and Bonett 2004): `summed`, m, may be (U, 1)
    for means of U units; the results are (U, K) then.
    """
    starts, rows = units.bounds[:-1], np.diff(units.bounds)
    outcome = np.asarray(outcome, dtype=np.float64)
    low, more = (-1.0, 1.0) if units.differences else (0.0, 2.0)
    mean = np.add.reduceat(outcome.mean(axis=0), starts) / rows
    square = np.add.reduceat((outcome**2).mean(axis=0), starts) / rows if units.rows_are_pairs else np.abs(mean)
    added = more / (len(outcome) * units.pairs * summed + 2 * more)
    smoothed = (1 - 2 * added) * mean + added * (1 + low)
    whole = square - mean**2
    grown = (1 - 2 * added) * square + added * (1 + low**2) - smoothed**2
    within = whole
    if units.rows_are_pairs and len(outcome) > 1:
        within = np.add.reduceat(outcome.var(axis=0, ddof=1), starts) / rows
    return (within + np.maximum(grown - whole, 0)) / units.pairs, smoothed


def judgement_floor(outcome: Array, c: Array, size: Numbers, units: Units) -> Array:
    """Return the least (U,) variance of c @ y by chance in single judgements; outcome (R, P), c (R,), size (R,).

    The judgements that `single_judgements` adds are divided among a unit's paradigms, not among sizes: where all that
    is wrong is so at one size, as on a curve that reaches its ceiling early, limits would be too close.
    """
    paradigms = (units.weights > 0).sum(axis=0)[:, None]
    of_paradigm = np.zeros((len(paradigms), len(units.pairs)))
    for s in range(size.max() + 1):
        of_paradigm += (c[size == s] ** 2).sum() * single_judgements(outcome[size == s], units, paradigms)[0]
    return np.asarray((of_paradigm * units.weights.T**2).sum(axis=1))


def with_pairs(runs: Array, degrees: Array, pairs: Array, free: Array) -> tuple[Array, Array]:
    """Add the (U,) variances over runs, of `degrees`, and over pairs, of `free`; return the sum and its degrees."""
    both = np.stack([runs, np.maximum(pairs, 0)])
    return both.sum(axis=0), satterthwaite(both, np.stack([degrees, free]))


def run_limits(line: Line, y: Array, design: Design, confidence: float) -> tuple[Array, Array]:
    """Return the limits over new runs of the slopes of any (R, U) y, without the floor of accuracies."""
    method = of_curves(interval_method(design, "t")[0], design, y)
    if method == Interval.NONE:
        none = np.full(y.shape[1], np.nan)
        return none, none
    terms = run_terms(method, design, design.contrast)
    variance = terms.variance(y) + hidden_variance(design, design.contrast, y)
    return t_limits(line.slope, np.sqrt(variance), terms.degrees(y), confidence)


def hidden_variance(design: Design, c: Array, y: Array) -> Array:
    """Return the (U,) variance of c @ y by text that samples share (`shared_text`); 0 if they share none."""
    return hidden_text(design, c, y)[0]


def hidden_text(
    design: Design, c: Array, y: Array, outcome: Array | None = None, units: Units | None = None
) -> tuple[Array, Array]:
    """Return that variance and its degrees of freedom; chance in the outcomes (R, P) of pairs is no part of it."""
    if design.overlap is None:
        return np.zeros(y.shape[1]), np.full(y.shape[1], np.inf)
    chance: Array | float = 0
    if outcome is not None and units is not None and units.rows_are_pairs:
        chance = chance_at_sizes(np.asarray(outcome, dtype=np.float64), design.size, units.bounds, units.weights)
    return shared_text(c, y, design.size, design.overlap, chance)


def with_text(variance: Array, degrees: Array, text: Array, few: Array) -> tuple[Array, Array]:
    """Add the (U,) variance by shared text, of `few` degrees of freedom; return the sum and its degrees, not more."""
    together = satterthwaite(np.stack([variance, text]), np.stack([degrees, few]))
    return variance + text, np.minimum(degrees, together)


def lack_of_fit(method: Interval, y: Array, design: Design, floor: Array) -> Array:
    """Test that the sizes' expected accuracies lie on a line: (U,) p values; y (R, U), `floor` (S, U) of means.

    The ANOVA-type statistic: the squared distances of the means from their line over their expectation, given each
    size's own variance; F with estimated degrees of freedom (Brunner, Dette and Munk 1997; Box 1954). Sizes of one run
    are left out. Text that samples of a size share counts as unrelated between sizes, which bends a curve most. NaN
    with fewer than three sizes of two runs, and where nothing varies.
    """
    known = design.counts > 1
    if method == Interval.NONE or known.sum() < 3:
        return np.full(y.shape[1], np.nan)
    rows = known[design.size]
    part, y, least = design.of(rows), y[rows], floor[known]
    terms = [run_terms(Interval.T_SIZES, part, np.where(part.size == s, part.weights, 0)) for s in range(len(least))]
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


def at_least(limits: tuple[Array, Array], inner: tuple[Array, Array]) -> tuple[Array, Array]:
    """Widen limits to `inner` where they lie within: what varies more cannot be known better.

    Few runs that lie close together overestimate the share of pairs in the variance, and so the degrees of freedom.
    """
    return np.minimum(limits[0], inner[0]), np.maximum(limits[1], inner[1])
