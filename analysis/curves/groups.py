"""The lines of a group of runs, with the errors, limits and ranks of their slopes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.config import CONSERVATIVE, KEEP, LEAVE_OUT, CurvesConfig
from analysis.curves.designs import (
    Design,
    Line,
    design_of,
    fit_lines,
    is_trajectory,
    shares_text,
    sizes_of_few,
    slope_weights,
)
from analysis.curves.intervals import (
    NOTHING_VARIES,
    Errors,
    Interval,
    at_least,
    bootstrap_limits,
    contrast_errors,
    contrast_variance,
    hidden_variance,
    interval_method,
    judgement_floor,
    lack_of_fit,
    of_curves,
    plausible,
    resampled_accuracies,
    resampled_runs,
    run_terms,
    t_limits,
)
from analysis.curves.p_values import holm, two_sided
from analysis.curves.units import Units, paradigm_accuracies
from analysis.curves.variance import Array, Numbers
from analysis.study.judgements import Judgements
from pairscale.sizes import readable_size

LINE_POINTS = 17  # of a fitted line with its band: the edges of a band are curves
FEW_JUDGEMENTS = 10  # the rule of ten: below it the distribution of a count is far from normal
ROUGH = "rough"
NO_INTERVAL = "no interval, as "
HOW_TO_KEEP = "analysis.cautioned_limits={} gives them"
OR_LEAVE_OUT = ", and analysis.least_runs=2 those without such sizes"
FEW = f"fewer than {FEW_JUDGEMENTS} judgements are wrong, or right, at every size"
LONE = "one run at a size, beside sizes of several"


@dataclass(frozen=True)
class GroupFit:
    """Least-squares lines of a group's runs, one for each unit, with the errors of their slopes.

    outcome: (R, P) of the group's runs; y: (R, U) their accuracies. method: of the intervals, with a note on it.
    """

    group: str
    outcome: Array
    design: Design
    units: Units
    method: Interval
    note: str
    y: Array
    line: Line
    errors: Errors


def fit_group(
    group: str, outcome: Array, design: Design, units: Units, interval: str, by: Design | None = None
) -> GroupFit:
    """Fit a line to (R, P) outcomes in every unit; `by`: the design that chooses the interval, else the group's own."""
    y = paradigm_accuracies(outcome, units.bounds) @ units.weights
    method, note = interval_method(design, interval)
    if by is not None and Interval.NONE not in (method, other := interval_method(by, interval)[0]):
        method = other
    method = of_curves(method, design, y)
    line = fit_lines(design.x, y, design.weights)
    errors = contrast_errors(method, design.contrast, y, outcome, design, units)
    return GroupFit(group, outcome, design, units, method, note, y, line, errors)


def fit_groups(judged: Judgements, units: Units, interval: str) -> list[GroupFit]:
    """Fit a line to every group of runs, as `fit_group` does."""
    fits = []
    for group in judged.runs["group"].unique():
        rows = rows_of(judged, group)
        fits.append(fit_group(str(group), judged.outcome[rows], design_of(judged.runs.iloc[rows]), units, interval))
    return fits


def rows_of(judged: Judgements, group: str) -> Numbers:
    """Return the numbers of a group's runs among all runs."""
    return np.flatnonzero(judged.runs["group"] == group)


def without_sizes(judged: Judgements, left_out: Mapping[str, Sequence[str]]) -> Judgements:
    """Return the judgements without the runs of some sizes of groups."""
    rows = zip(judged.runs["group"], judged.runs["size"], strict=True)
    kept = [size not in left_out.get(str(group), ()) for group, size in rows]
    return judged if all(kept) else judged.of_runs([*judged.runs.index[kept]])


def with_least_runs(judged: Judgements, least: int) -> Judgements:
    """Return the judgements that lines are fitted to: without the sizes of fewer runs than `least`."""
    return without_sizes(judged, sizes_of_few(judged.runs, least))


def few_notes(runs: pd.DataFrame, least: int) -> list[str]:
    """Say which sizes no line is fitted to, and which groups keep sizes of fewer runs than `least`.

    Where sizes of one run are kept, the note on the interval says so (`interval_method`).
    """
    few = sizes_of_few(runs, least)
    notes = [
        f"{group}: {'one run' if least == 2 else f'fewer than {least} runs'} at {named(sizes)}: shown, but no part of "
        f"its slope (analysis.least_runs={least})."
        for group, sizes in few.items()
    ]
    for group, part in runs.groupby("group", sort=False):
        counts = part["size"].value_counts()
        if least > 2 and group not in few and len(counts) > 1 and counts.min() < least and not is_trajectory(part):
            notes.append(
                f"{group}: analysis.least_runs={least} would leave fewer than two sizes, so no size is left out."
            )
    return notes


def named(sizes: Sequence[str]) -> str:
    """List sizes: "31,250, 1M"."""
    return ", ".join(map(readable_size, sizes))


def slope_limits(fit: GroupFit, config: CurvesConfig, new_pairs: Array | None = None) -> list[Array]:
    """Return low and high for these pairs, then low and high for new pairs too, each (U,); NaN without an interval.

    `new_pairs` (B, R, K): the group's `resampled_accuracies`, for the bootstrap; None if single pairs are not known.
    """
    slope, errors = fit.line.slope, fit.errors
    if fit.method != Interval.BOOTSTRAP:
        these = t_limits(slope, errors.runs, errors.degrees, config.confidence)
        both = t_limits(slope, errors.both, errors.degrees_both, config.confidence)
        return [*these, *at_least(both, these)]
    # One generator a purpose, so that another group does not change these draws.
    drawn = resampled_runs(fit.design.stratum, config.resamples, np.random.default_rng([config.seed, 1]))
    c = slope_weights(fit.design.x, drawn[:, fit.design.cluster] * fit.design.weights)
    least = plausible(np.zeros(len(slope)), errors.degrees, errors.floor)
    these = bootstrap_limits(slope, errors.runs, c @ fit.y, errors.degrees, config.confidence, least)
    if new_pairs is None:
        none = np.full(len(slope), np.nan)
        return [*these, none, none]
    resampled = np.einsum("br,brk->bk", c, new_pairs) @ fit.units.weights
    both = bootstrap_limits(slope, errors.both, resampled, errors.degrees_both, config.confidence, least)
    return [*these, *at_least(both, these)]


def fitted_slopes(judged: Judgements, units: Units, config: CurvesConfig) -> list[tuple[GroupFit, pd.DataFrame]]:
    """Fit a line to every group, and return it with the columns of Curves.slopes: all but pairs and the onset's."""
    fits, new_pairs = fit_groups(judged, units, config.interval), None
    if any(fit.method == Interval.BOOTSTRAP for fit in fits) and not judged.of_paradigms:
        # One draw of pairs, shared by all runs of all groups.
        rng = np.random.default_rng([config.seed, 0])
        new_pairs = resampled_accuracies(judged.outcome, units.bounds, config.resamples, rng)
    return [
        (fit, slope_columns(fit, config, None if new_pairs is None else new_pairs[:, rows_of(judged, fit.group), :]))
        for fit in fits
    ]


def cautions(fit: GroupFit) -> npt.NDArray[np.str_]:
    """Say why (U,) limits do not contain the truth in about as many studies as they say; "" where they do.

    Conservative limits contain it in more: where samples overlap, and where a size has one run beside sizes of several,
    runs do not show all of the variance, and limits assume the most that it can be. Rough ones rest on few judgements
    that are wrong, or right: they contain it in nearly all studies if accuracy is the same at all sizes, and in fewer
    than they say in the studies that happen to have so few (docs/benchmarks.md). Rough counts for more than
    conservative.
    """
    several, none = int((fit.design.counts > 1).sum()), np.isnan(fit.errors.runs)
    alone = fit.method == Interval.T_HC2 and several > 1 and several < len(fit.design.counts)
    reason = shares_text(fit.design) or (LONE if alone else "")
    wide = f"{CONSERVATIVE}: {reason}" if reason else ""
    few = np.zeros(len(none), dtype=bool) if fit.units.differences or none.all() else _few_at_all_sizes(fit)
    return np.where(none, "", np.where(few, f"{ROUGH}: {FEW}", wide))


def _few_at_all_sizes(fit: GroupFit) -> npt.NDArray[np.bool_]:
    """Return (U,) whether few judgements are wrong, or right; False where their number is not known."""
    design, units = fit.design, fit.units
    right = paradigm_accuracies(fit.outcome, units.bounds)
    means = np.stack([right[design.size == s].mean(axis=0) for s in range(len(design.counts))])
    known = np.isfinite(units.pairs)
    judgements = np.outer(design.counts, np.where(known, units.pairs, 0.0))
    members = units.weights > 0
    return np.asarray(few_judgements(means * judgements, judgements, members) & ~(~known @ members))


def cautions_left(
    reasons: npt.NDArray[np.str_], config: CurvesConfig
) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.str_]]:
    """Return the (U,) cautions that stand beside limits, and why other limits are left out; "" for neither.

    reasons: of `cautions`. analysis.cautioned_limits: limits with one are left out, kept if conservative, or kept.
    """
    rough = np.char.startswith(reasons, ROUGH)
    left = {LEAVE_OUT: reasons != "", CONSERVATIVE: rough, KEEP: np.zeros_like(rough)}[config.cautioned_limits]
    how = np.where(rough, HOW_TO_KEEP.format(KEEP), HOW_TO_KEEP.format(CONSERVATIVE))
    how = np.where(np.char.endswith(reasons, LONE), np.char.add(how, OR_LEAVE_OUT), how)
    why = np.char.add(np.char.add(f"{NO_INTERVAL}limits would be ", reasons), np.char.add("; ", how))
    return np.where(left, "", reasons), np.where(left, why, "")


def few_judgements(right: Array, judgements: Array, members: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return (U,) whether fewer than FEW_JUDGEMENTS of (S, K) judgements are wrong, or right, at every size.

    right: how many are right, of each paradigm. members: (K, U), which paradigms are of which unit.
    """
    fewest = np.minimum(right @ members, (judgements - right) @ members)
    return np.asarray((fewest < FEW_JUDGEMENTS - 1e-6).all(axis=0))


def slope_columns(fit: GroupFit, config: CurvesConfig, new_pairs: Array | None) -> pd.DataFrame:
    """Return the table of `fitted_slopes` for one group; `new_pairs` as for `slope_limits`."""
    design, line = fit.design, fit.line
    method = Interval.RUN_BOOTSTRAP if fit.method == Interval.BOOTSTRAP and new_pairs is None else fit.method
    limits = slope_limits(fit, config, new_pairs)
    sizes = len(design.counts)
    contrasts = [np.where(design.size == s, design.weights, 0) for s in range(sizes)]
    floor = np.stack([judgement_floor(fit.outcome, c, design.size, fit.units) for c in contrasts])
    note = np.where(np.isnan(fit.errors.runs) & (fit.errors.floor == 0), NOTHING_VARIES, fit.note)
    reasons = cautions(fit)
    caution, left_out = cautions_left(reasons, config)
    few = np.char.startswith(reasons, ROUGH) & (left_out != "")
    bent = np.where(few, np.nan, lack_of_fit(fit.method, fit.y, design, floor))
    limits = [np.where(left_out != "", np.nan, of) for of in limits]
    table = fit.units.table.assign(
        group=fit.group, runs=len(design.x), sizes=sizes, slope=line.slope, intercept=line.intercept,
        r2=line.r2, low=limits[0], high=limits[1], low_new_pairs=limits[2], high_new_pairs=limits[3],
        method=method.value, lack_of_fit=bent,
        note=np.where(left_out == "", note, left_out), caution=caution,
        rank=np.nan, rank_low=np.nan, rank_high=np.nan,
    )  # fmt: skip
    phenomena = (table["level"] == "phenomenon").to_numpy()
    if sizes > 2 and not design.trajectory:
        table.loc[phenomena, "rank"] = table.loc[phenomena, "slope"].rank(ascending=False, method="min")
        if fit.method != Interval.NONE:
            ends = rank_limits(fit, phenomena, config.confidence, left_out == "")
            table.loc[phenomena, ["rank_low", "rank_high"]] = ends.T.astype(float)
            table.loc[phenomena & (left_out != ""), ["rank_low", "rank_high"]] = np.nan
    return table


def fitted_lines(fit: GroupFit, confidence: float, known: npt.NDArray[np.bool_]) -> pd.DataFrame:
    """Return points of the lines of a group, from its smallest to its largest size: LINE_POINTS rows a unit.

    Columns: those of the unit, words, accuracy, low, high: pointwise limits of the expected accuracy over new runs, for
    these pairs. They are Student's limits with the standard error and degrees of freedom of that point, estimated as
    those of the slope (`contrast_variance`), also where the limits of the slope come from a bootstrap. Limits end at 0
    and 1; NaN where the slope has none (`known`: (U,) whether it has). No rows for a single size.
    """
    design, line = fit.design, fit.line
    if len(design.counts) < 2:
        return fit.units.table.iloc[:0].assign(words=0.0, accuracy=0.0, low=0.0, high=0.0)
    parts = []
    for x in np.linspace(design.x.min(), design.x.max(), LINE_POINTS):
        accuracy = line.intercept + line.slope * x
        low, high = (np.full(len(accuracy), np.nan) for _ in range(2))
        if fit.method != Interval.NONE:
            c = design.mean_weights + (x - design.centre) * design.contrast
            variance, degrees, *_ = contrast_variance(fit.method, c, fit.y, fit.outcome, design, fit.units)
            low, high = t_limits(accuracy, np.where(known, np.sqrt(variance), np.nan), degrees, confidence)
        limits = {"low": np.clip(low, 0, 1), "high": np.clip(high, 0, 1)}
        parts.append(fit.units.table.assign(words=2.0**x, accuracy=accuracy, **limits))
    return pd.concat(parts, ignore_index=True)


def rank_limits(
    fit: GroupFit, units: npt.NDArray[np.bool_], confidence: float, known: npt.NDArray[np.bool_] | None = None
) -> Numbers:
    """Return simultaneous limits of the ranks of slopes, (2, units); 1 is the steepest. `units`: a (U,) mask.

    Every two slopes are compared, paired by run, p values corrected by Holm's method. A slope's least rank is 1 more
    than the number of significantly steeper slopes; its greatest is the number of slopes less the shallower ones
    (Mogstad, Romano, Shaikh and Wilhelm 2024, section 3; Klein, Wright and Wieczorek 2020). `known`: (U,) whether a
    slope has limits; others are compared with none, and may have any rank.
    """
    slope, floor, y, design = fit.line.slope[units], fit.errors.floor[units], fit.y[:, units], fit.design
    count = len(slope)
    compared = np.arange(count) if known is None else np.flatnonzero(known[units])
    first, second = np.array(list(combinations(compared, 2)), dtype=np.intp).reshape(-1, 2).T
    difference, apart = slope[first] - slope[second], y[:, first] - y[:, second]
    terms = run_terms(fit.method, design, design.contrast)
    degrees = terms.degrees(apart)
    variance = plausible(terms.variance(apart), degrees, floor[first] + floor[second])
    variance = variance + hidden_variance(design, design.contrast, apart)
    significant = holm(two_sided(difference, np.sqrt(variance), degrees)) < 1 - confidence
    steeper, shallower = (np.zeros(count, dtype=np.intp) for _ in range(2))
    np.add.at(steeper, np.where(difference > 0, second, first)[significant], 1)
    np.add.at(shallower, np.where(difference > 0, first, second)[significant], 1)
    return np.stack([1 + steeper, count - shallower])
