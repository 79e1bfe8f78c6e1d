"""The words at which curves reach people's accuracy: from the line by Fieller's theorem, from other shapes by profile.

Everything is on the scale of log2(words). People judged few pairs, and judgements of one pair are correlated: the
sampling error of their accuracy includes that clustering (`PublishedPeople`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq, least_squares
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.designs import shares_text
from analysis.curves.groups import GroupFit, cautions, cautions_left, fit_groups, slope_limits
from analysis.curves.intervals import Interval, contrast_variance, run_terms
from analysis.curves.shapes import LINE, MIN_SIZES, Fit, fit_shape, preferred, shapes_for
from analysis.curves.units import units_of
from analysis.curves.variance import Array
from analysis.published import published_file
from analysis.study.judgements import Judgements

PEOPLE = "people"
AS_GOOD = 2.0  # AICc above the lowest up to which a shape is as good (Burnham and Anderson 2002, section 2.6)
ROUNDING = 1e-18  # sum of squares up to which a line passes through every run, as accuracies are shares of pairs
BEYOND = 1e20  # words, as in Warstadt et al. 2020, section 6.3: larger numbers are shown as beyond it
REACHED, ESTIMATED, UNBOUNDED, NEVER, NO_ESTIMATE = "reached", "estimated", "unbounded", "never", "none"
COLUMNS = [
    "group", "level", "name", "fit", "people", "people_error", "last_words", "last_accuracy", "words", "low", "high",
    "status", "text", "note",
]  # fmt: skip


@dataclass(frozen=True)
class PublishedPeople:
    """The design of a benchmark's published human judgements, for each paradigm (analysis/published/people.csv).

    pairs: of the paradigm that were judged; judgements: of each of these pairs; correlation: intraclass correlation of
    two judgements of one pair. The correlation of one person's judgements is not published, and is in no error here.
    """

    pairs: int
    judgements: int
    correlation: float

    @property
    def design_effect(self) -> float:
        """The variance of a share over that of as many independent judgements: 1 + (m - 1) rho (Kish 1965, 5.4)."""
        return 1 + (self.judgements - 1) * self.correlation


def published_people(benchmark: str, correlation: float | None = None) -> PublishedPeople | None:
    """Return the design of a benchmark's human judgements, or None; `correlation` replaces the published one."""
    rows = published_file("people")
    rows = rows[rows["benchmark"] == benchmark]
    if rows.empty:
        return None
    pairs, judgements, published = rows[["pairs", "judgements", "correlation"]].iloc[0]
    return PublishedPeople(int(pairs), int(judgements), float(published if correlation is None else correlation))


def people_accuracy(published: pd.DataFrame, units: pd.DataFrame, design: PublishedPeople | None) -> pd.DataFrame:
    """Return people's accuracy in each unit that it is published for: level, name, accuracy, error (standard error).

    `published`: eval.published.read_published; `units`: Units.table. Accuracies are means over the paradigms of the
    unit, where those are published, else as published. The variance of a share p of n judgements is the design effect
    times p'(1 - p') / (n + 4), p' = (np + 2) / (n + 4) (Agresti and Coull 1998). A paradigm that is not published has
    the share of its phenomenon. NaN errors where the design of the judgements is not known.
    """
    of_people = published[published["model"] == PEOPLE]
    people = dict(zip(zip(of_people["level"], of_people["name"], strict=True), of_people["accuracy"], strict=True))
    n = math.nan if design is None else float(design.pairs * design.judgements)
    paradigms = units[units["level"] == "paradigm"]
    known = np.array([people.get(("paradigm", name), math.nan) for name in paradigms["name"]])
    stand_in = np.array([people.get(("phenomenon", name), math.nan) for name in paradigms["phenomenon"]])
    share = (n * np.where(np.isnan(known), stand_in, known) + 2) / (n + 4)
    variance = share * (1 - share) / (n + 4) * (1.0 if design is None else design.design_effect)
    rows = []
    for unit in units.to_dict("records"):
        level, name = unit["level"], unit["name"]
        column = {"overall": None, "phenomenon": "phenomenon", "paradigm": "name"}[level]
        of = np.full(len(paradigms), True) if column is None else (paradigms[column] == name).to_numpy()
        accuracy = people.get((level, name), math.nan) if np.isnan(known[of]).any() else float(known[of].mean())
        if not math.isnan(accuracy):
            error = math.sqrt(variance[of].sum()) / int(of.sum())
            rows.append({"level": level, "name": name, "accuracy": accuracy, "error": error})
    return pd.DataFrame(rows, columns=["level", "name", "accuracy", "error"])


def fieller(
    numerator: Array, denominator: Array, variances: tuple[Array, Array, Array], quantile: Array
) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Return the limits of numerator / denominator, each (U,), and True where the set is bounded (Fieller 1954).

    `variances`: of the numerator, of the denominator, and their covariance; `quantile`: in standard errors. Where the
    denominator may be 0 the set is all but what lies between the two limits, or everything (NaN).
    """
    top, bottom, covariance = variances
    a = denominator**2 - quantile**2 * bottom
    b = numerator * denominator - quantile**2 * covariance
    c = numerator**2 - quantile**2 * top
    root = np.sqrt(np.where(b**2 - a * c >= 0, b**2 - a * c, np.nan))
    ends = np.stack([b - root, b + root]) / np.where(a == 0, np.nan, a)
    return ends.min(axis=0), ends.max(axis=0), np.asarray(a > 0)


def mean_and_slope(fit: GroupFit) -> tuple[Array, Array, Array]:
    """Return the (U,) variances over runs of a group's mean accuracy and of its slope, and their covariance."""
    design, slope = fit.design, fit.errors.runs**2
    if fit.method == Interval.NONE:
        return slope, slope, slope
    mean, *_ = contrast_variance(fit.method, design.mean_weights, fit.y, fit.outcome, design, fit.units)
    of_mean, of_slope = (run_terms(fit.method, design, c) for c in (design.mean_weights, design.contrast))
    return mean, slope, of_mean.correlation(of_slope, fit.y, fit.y) * np.sqrt(mean * slope)


def slope_quantile(fit: GroupFit, config: CurvesConfig) -> Array:
    """Return the (U,) standard errors from the slope to its limit on the side of 0, so that both agree on direction.

    NaN where runs do not differ.
    """
    low, high, *_ = slope_limits(fit, config)
    slope = fit.line.slope
    errors = np.where(fit.errors.runs > 0, fit.errors.runs, np.nan)
    return np.asarray(np.where(slope > 0, slope - low, high - slope) / errors)


def line_reaches(
    fit: GroupFit, people: Array, error: Array, quantile: Array
) -> tuple[Array, Array, Array, npt.NDArray[np.bool_]]:
    """Return log2(words) at which the lines reach people, its limits, and True where the set is bounded (`fieller`).

    Each is (U,), as are people's accuracy, its standard error `error`, and `quantile`, of `slope_quantile`.
    """
    centre = fit.design.centre
    numerator = people - fit.line.intercept - fit.line.slope * centre
    mean, slope, covariance = mean_and_slope(fit)
    # The mean of the runs is subtracted, so its covariance with the slope changes sign.
    low, high, bounded = fieller(numerator, fit.line.slope, (error**2 + mean, slope, -covariance), quantile)
    slopes = np.where(fit.line.slope == 0, np.nan, fit.line.slope)
    return centre + numerator / slopes, centre + low, centre + high, bounded


def above_people(fit: GroupFit, people: Array, error: Array, quantile: Array) -> npt.NDArray[np.bool_]:
    """True where the line certainly lies above people at the largest size; (U,), arguments as for `line_reaches`."""
    ahead = fit.design.last - fit.design.centre
    fitted = fit.line.intercept + fit.line.slope * fit.design.last
    mean, slope, covariance = mean_and_slope(fit)
    variance = error**2 + mean + 2 * ahead * covariance + ahead**2 * slope
    # It may be 0, as that of a size whose runs are equal, and then rounding takes it below.
    return np.asarray(fitted - people > quantile * np.sqrt(np.maximum(variance, 0)))


def words_to_people(judged: Judgements, config: CurvesConfig, people: pd.DataFrame) -> pd.DataFrame:
    """Estimate the words at which each group's curve reaches people, overall and by phenomenon, for these pairs.

    `people`: of `people_accuracy`. One row of COLUMNS per group and unit for the line, and one for the shape that AICc
    prefers where the line is not as good, among those that can reach people (six sizes or more; not of a trajectory).
    last_words: the largest size; last_accuracy: of the fit there; low, high: NaN not known, inf no limit. status:
    reached (at the largest size, by the fit), estimated, unbounded (the slope's interval holds 0, or the profile has no
    end), never (the slope's interval lies below 0, or no text of up to 1e20 words does), none (no interval or slope, or
    two sizes, which are no curve to continue).
    """
    units = units_of(judged.pairs)
    rows_of_people = people[people["level"] != "paradigm"].to_dict("records")
    known = {(row["level"], row["name"]): (row["accuracy"], row["error"]) for row in rows_of_people}
    rows = []
    for fit in fit_groups(judged, units, config.interval):
        design, (_, left_out) = fit.design, cautions_left(cautions(fit), config)
        has_shapes = len(design.counts) >= MIN_SIZES and not design.trajectory
        for u, row in _from_lines(fit, known, config, left_out).items():
            rows.append({"group": fit.group, **row})
            if not has_shapes or left_out[u]:
                continue
            at, error = row["people"], row["people_error"]
            dependent = "those of a seed share their text" if design.nested else shares_text(design)
            shapes = [shape for shape in shapes_for(design.x, None) if shape.can_reach(at)]
            fits = [fit_shape(shape, design.x, fit.y[:, u], design.weights) for shape in shapes]
            straight, best = fits[0], preferred(fits)
            if best is not None and straight.aicc - best.aicc > AS_GOOD and straight.squares > ROUNDING:
                rows.append({**rows[-1], **_from_shape(best, at, error, config.confidence, dependent)})
    return pd.DataFrame(rows, columns=COLUMNS)


def _from_lines(
    fit: GroupFit,
    known: dict[tuple[str, str], tuple[float, float]],
    config: CurvesConfig,
    left_out: npt.NDArray[np.str_],
) -> dict[int, dict[str, Any]]:
    """Return the rows of the line, by the number of the unit; left_out: why slopes have no limits (`cautions_left`)."""
    x, last, slope = fit.design.x, fit.design.last, fit.line.slope
    keys = [(unit["level"], unit["name"]) for unit in fit.units.table.to_dict("records")]
    accuracy, error = (np.array([known.get(key, (math.nan, math.nan))[i] for key in keys]) for i in (0, 1))
    quantile = slope_quantile(fit, config)
    reaches, low, high, bounded = line_reaches(fit, accuracy, np.nan_to_num(error), quantile)
    above = above_people(fit, accuracy, np.nan_to_num(error), quantile)
    sure = np.abs(slope) > quantile * fit.errors.runs  # the slope's interval lies on one side of 0
    rows = {}
    for u, key in enumerate(keys):
        if key not in known:
            continue
        fitted = float(fit.line.intercept[u] + slope[u] * last)
        reach = float(reaches[u]) if slope[u] > 0 else math.inf
        limits = [float(low[u]), float(high[u])]
        note = [] if np.isfinite(error[u]) else ["people's accuracy is taken to be exact"]
        if math.isnan(slope[u]):
            status, reach, limits, note = NO_ESTIMATE, math.nan, [math.nan, math.nan], [fit.note]
        elif len(fit.design.counts) == 2 and fitted < accuracy[u]:
            status, reach, limits, note = (
                NO_ESTIMATE,
                math.nan,
                [math.nan, math.nan],
                ["two sizes: no curve to continue"],
            )
        elif math.isnan(fit.errors.runs[u]) or left_out[u]:
            status, limits = REACHED if fitted >= accuracy[u] else NO_ESTIMATE, [math.nan, math.nan]
            note.append(str(left_out[u]) or fit.note)
        elif fitted >= accuracy[u] and (bounded[u] or above[u]):
            status = REACHED
            if not (bounded[u] and slope[u] > 0):
                reach, limits = math.nan, [math.nan, math.nan]
        elif fitted >= accuracy[u]:  # neither the level nor the slope is known well enough
            status, limits = UNBOUNDED, [math.nan, math.inf]
        elif sure[u] and slope[u] < 0:
            status, reach, limits = NEVER, math.inf, [math.inf, math.inf]
            note.append("accuracy falls")
        elif not sure[u]:
            # All ratios but those between the limits: with a rising line, those above the upper one.
            status, limits = UNBOUNDED, [limits[1] if low[u] < x.mean() < high[u] else math.nan, math.inf]
        else:
            status = ESTIMATED
        if status == REACHED and not slope[u] > 0:
            reach = math.nan
        unit = {"level": key[0], "name": key[1], "people": accuracy[u], "people_error": error[u]}
        rows[u] = {**unit, "last_words": words_at(last), **_row(LINE, fitted, (reach, *limits), status, note)}
    return rows


def _row(fit: str, last_accuracy: float, reach: Sequence[float], status: str, note: list[str]) -> dict[str, Any]:
    """Return the columns that a fit gives; `reach`: log2(words) at which it reaches people, and their limits."""
    words = dict(zip(("words", "low", "high"), map(words_at, reach), strict=True))
    row = {"fit": fit, "last_accuracy": last_accuracy, **words, "status": status, "note": "; ".join(note)}
    return {**row, "text": described(row)}


def _from_shape(fit: Fit, people: float, error: float, confidence: float, dependent: str) -> dict[str, Any]:
    """Return the row of another shape than the line: "never" only if no curve of the profile reaches people.

    dependent: why runs are not independent, so that there are no limits; "" if they are.
    """
    fitted = float(fit.shape.at(fit.points.x.max(keepdims=True), fit.free)[0])
    reach = fit.shape.reaches(people, fit.free)
    note = [fit.note] if fit.note else []
    if dependent:
        low = high = math.nan
        note.append(f"no limits: the profile takes runs to be independent, and {dependent}")
        status = REACHED if fitted >= people else ESTIMATED if math.isfinite(reach) else NO_ESTIMATE
    else:
        low, high = profile_limits(fit, people, error, confidence)
        if fitted >= people:
            status = REACHED
        elif low == math.inf:  # -inf: no text is too short
            status = NEVER
            note.append("the ceiling lies below people")
        else:
            status = ESTIMATED if math.isfinite(high) else UNBOUNDED
    return _row(fit.shape.name, fitted, (reach, low, high), status, note)


def profile_limits(fit: Fit, people: float, error: float, confidence: float) -> tuple[float, float]:
    """Return the smallest and the largest log2(words) at which the curve may reach people, by its profile.

    `people`: their accuracy, `error`: its standard error (NaN: exact). The search runs from one span of the sizes below
    them to 1e20 words: inf where that is still possible, (inf, inf) where nothing is: never.
    """
    x, profile = fit.points.x, Profile(fit, people, error, confidence)
    furthest = math.log2(BEYOND)
    reach = fit.shape.reaches(people, fit.free)
    grid = np.unique(np.append(np.linspace(2 * x.min() - x.max(), furthest, 25), x))
    if math.isfinite(reach) and grid[0] < reach < furthest:
        grid = np.unique(np.append(grid, reach))
    values = np.array([profile.excess(at) for at in grid])
    (possible,) = np.nonzero(values <= 0)
    if not len(possible):
        return (math.inf, math.inf) if not reach < furthest else (reach, reach)
    on_grid = dict(zip(grid.tolist(), values.tolist(), strict=True))

    def excess(at: float) -> float:
        """Return the excess, with the sign that it has on the grid: another start may lead to another minimum."""
        value = profile.excess(at)
        return value if value * on_grid.get(at, value) > 0 else on_grid.get(at, value)

    ends = []
    for edge, step in ((possible[0], -1), (possible[-1], 1)):
        if not 0 <= edge + step < len(grid):
            ends.append(-math.inf if step < 0 else math.inf)
        else:
            inner, outer = sorted((float(grid[edge]), float(grid[edge + step])))
            ends.append(brentq(excess, inner, outer, xtol=1e-3))
    return ends[0], ends[1]


class Profile:
    """The profile of a fit over the x at which its curve reaches people.

    At each x the shape is fitted again, with people's accuracy as a further observation of the curve there, with its
    own error; x is possible while the sum of squares over the residual variance grows by less than the square of
    Student's quantile (Bates and Watts 1988, section 6.1). For a line that is Fieller's set.

    Runs are taken to have the same variance: the sum of squares is divided by what makes the variance of the curve at x
    that of the weighted fit (a sandwich), as for composite likelihoods (Varin, Reid and Firth 2011, section 2.3), with
    the degrees of freedom of Bell and McCaffrey 2002. With equal weights that is the residual variance.
    """

    def __init__(self, fit: Fit, people: float, error: float, confidence: float) -> None:
        self.fit, self.people = fit, people
        self.error = max(0.0 if math.isnan(error) else error, 1e-4)  # a constraint is an observation with hardly any
        self.low, self.high = ([fit.shape.bounds[i][side] for i in fit.shape.free] for side in (0, 1))
        self.start = fit.free
        weights = fit.points.weights
        jacobian = fit.shape.gradient(fit.points.x, fit.free)
        self.inverse = np.linalg.pinv(jacobian.T @ (weights[:, None] * jacobian))
        self.meat = self.inverse @ (jacobian.T @ (weights[:, None] ** 2 * jacobian)) @ self.inverse
        apart = np.eye(len(weights)) - jacobian @ self.inverse @ (jacobian.T * weights)
        products = apart.T @ (weights[:, None] * apart)
        self.run_variance = fit.squares / float(np.trace(products))
        freedom = float(np.trace(products) ** 2 / (products**2).sum())
        self.limit = float(student.ppf(0.5 + confidence / 2, freedom)) ** 2

    def variance(self, at: float) -> float:
        """Return the variance by which squares are divided for the curve at an x."""
        gradient = self.fit.shape.gradient(np.array([at]), self.fit.free)[0]
        plain = float(gradient @ self.inverse @ gradient)
        return self.run_variance * (float(gradient @ self.meat @ gradient) / plain if plain > 0 else 1.0)

    def excess(self, at: float) -> float:
        """Return by how much the sum of squares grows beyond its limit where the curve reaches people at an x."""
        shape, points, variance = self.fit.shape, self.fit.points, self.variance(at)
        there, scale = np.array([at]), math.sqrt(variance)

        def residuals(free: Array) -> Array:
            return np.append(points.residuals(shape, free) / scale, (shape.at(there, free) - self.people) / self.error)

        def gradient(free: Array) -> Array:
            return np.vstack([points.gradient(shape, free) / scale, shape.gradient(there, free) / self.error])

        starts = [np.clip(start, self.low, self.high) for start in (self.start, self.fit.free)]
        fits = [least_squares(residuals, start, gradient, (self.low, self.high), max_nfev=200) for start in starts]
        best = min(fits, key=lambda fitted: fitted.cost)
        self.start = best.x
        return float(2 * best.cost - self.fit.squares / variance - self.limit)


def words_at(x: float) -> float:
    """Return 2^x, the words at an x of the curves; inf where that overflows."""
    return math.nan if math.isnan(x) else 2.0**x if x < 1000 else math.inf


def words_text(words: float) -> str:
    """Format words: 2.4M, 3.1e14, beyond 1e20."""
    if math.isnan(words):
        return "not known"
    if words > BEYOND:
        return "beyond 1e20"
    for letter, unit in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if unit <= float(f"{words:.2g}") < 1000 * unit:
            return f"{float(f'{words / unit:.2g}'):g}{letter}"
    return f"{words:.1e}".replace("e+", "e") if words >= 1e12 else f"{words:.0f}"


def described(row: dict[str, Any]) -> str:
    """Describe the result of a row, such as "reached at 2.4M" or "unbounded, at least 1.2e9"."""
    words, low, high = (float(str(row[key])) for key in ("words", "low", "high"))
    match row["status"]:
        case "reached":
            limits = "" if math.isnan(low) else f" ({words_text(low)} to {words_text(high)})"
            return "reached" if math.isnan(words) else f"reached at {words_text(words)}{limits}"
        case "estimated":
            return words_text(words) + ("" if math.isnan(low) else f" ({words_text(low)} to {words_text(high)})")
        case "unbounded":
            least = words_text(low) if low > BEYOND else f"at least {words_text(low)}"
            return f"unbounded, {least}" if low > 1 else "unbounded"
        case "never":
            return "never" if math.isinf(low) else f"never; at least {words_text(low)} if at all"
    return "no interval" if math.isfinite(words) else "no estimate"
