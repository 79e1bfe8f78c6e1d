"""Shapes of learning curves besides the line, their predictions of held-out sizes, and the words to match humans.

d counts doublings of the training text since the smallest size of the curve:

    line        accuracy = intercept + slope d
    power law   accuracy = ceiling - gap 2^(-rate d), which is ceiling - gap (words / smallest words)^-rate
    logistic    accuracy = floor + (ceiling - floor) / (1 + exp(-rate (d - midpoint)))
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import OptimizeWarning, curve_fit
from scipy.special import expit, logit

from analysis.curves.lines import NO_SPREAD, Array, Line
from analysis.curves.units import Curve, join_notes, map_curves
from pairscale.errors import InputError

LINE, POWER_LAW, LOGISTIC = SHAPES = ("line", "power law", "logistic")
PARAMETERS = {
    LINE: ("intercept", "slope"),
    POWER_LAW: ("ceiling", "gap", "rate"),
    LOGISTIC: ("floor", "ceiling", "rate", "midpoint"),
}
HUMANS = "people"  # the model of published accuracies that stands for humans
FURTHEST = 1e20  # words: the largest number that is written out, as in Warstadt et al. 2020, section 6.3
SHAPE_COLUMNS = [
    "benchmark", "method", "curve", "level", "name", "shape", "runs", "sizes", "intercept", "slope", "floor", "ceiling",
    "gap", "rate", "midpoint", "squares", "aicc", "aicc_above_best", "largest_accuracy", "predicted", "error", "note",
]  # fmt: skip
HUMAN_COLUMNS = [
    "benchmark", "method", "curve", "level", "name", "humans", "shape", "words", "low", "high", "extrapolation",
    "interval", "note",
]  # fmt: skip
_AT_BOUND = 1e-4  # share of a parameter's range within which a fit is said to be at its bound
_RATES, _MIDPOINTS, _STARTS = 9, 21, 3  # points of the grid from which fits start, and how many of them do


def fit_shapes(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Fit a line, a power law and a logistic curve to each unit of each curve, and judge them by held-out sizes.

    Fits are least squares over runs, within bounds: accuracies between 0 and 1, gap between -1 and 1. AICc (Hurvich and
    Tsai 1989) counts the residual variance as a parameter. Predictions come from fits to all sizes but the largest.

    Args:
        accuracies: table of `accuracies()`.

    Returns:
        One row per benchmark, method, curve, level, name and shape with the columns of SHAPE_COLUMNS. Parameters are
        those of the module's docstring, but midpoint is in words; those of other shapes are missing. squares: sum of
        squared residuals. aicc_above_best: AICc less the lowest one of the unit. largest_accuracy: mean over the runs
        of the largest size; predicted: the same by the fit to the smaller sizes; error: predicted less
        largest_accuracy. A fit needs more sizes than parameters, a prediction one more. note: why there is no fit, no
        prediction or no AICc, and which parameters are at their bounds.

    Raises:
        InputError: as `fit_curves` does.
    """
    return map_curves(accuracies, SHAPE_COLUMNS, _fitted)


def _line(d: Array, intercept: Array, slope: Array) -> Array:
    return intercept + slope * d


def _power_law(d: Array, ceiling: Array, gap: Array, rate: Array) -> Array:
    return ceiling - gap * np.exp2(-rate * d)


def _power_law_gradient(d: Array, ceiling: float, gap: float, rate: float) -> Array:
    fall = np.exp2(-rate * d)
    return np.stack([np.ones_like(d), -fall, gap * math.log(2) * d * fall], axis=1)


def _logistic(d: Array, floor: Array, ceiling: Array, rate: Array, midpoint: Array) -> Array:
    return floor + (ceiling - floor) * expit(rate * (d - midpoint))


def _logistic_gradient(d: Array, floor: float, ceiling: float, rate: float, midpoint: float) -> Array:
    rise = expit(rate * (d - midpoint))
    steep = (ceiling - floor) * rise * (1 - rise)
    return np.stack([1 - rise, rise, steep * (d - midpoint), -steep * rate], axis=1)


# accuracies, and their (R, P) derivatives, from doublings and parameters
HEIGHTS: dict[str, Callable[..., Array]] = {LINE: _line, POWER_LAW: _power_law, LOGISTIC: _logistic}
GRADIENTS: dict[str, Callable[..., Array]] = {POWER_LAW: _power_law_gradient, LOGISTIC: _logistic_gradient}


class Fits(NamedTuple):
    """A shape fitted to U units: (P, U) parameters, NaN if there is no fit; (U,) sums of squares; a note for each."""

    parameters: Array
    squares: Array
    notes: list[str]


def fit_shape(shape: str, doublings: Array, y: Array, sizes: int) -> Fits:
    """Fit a shape to each of U units; doublings (R,), y (R, U), `sizes`: how many different ones."""
    names, units = PARAMETERS[shape], y.shape[1]
    parameters, notes = np.full((len(names), units), np.nan), [""] * units
    if sizes <= len(names):
        notes = [f"No fit: {len(names)} parameters need {len(names) + 1} sizes."] * units
    elif shape == LINE:
        parameters = np.linalg.lstsq(np.stack([np.ones(len(doublings)), doublings], axis=1), y)[0]
    else:
        span = float(np.ptp(doublings))
        low, high = np.array([[0.0, -1.0, 0.02 / span], [1.0, 1.0, 5.0]])
        if shape == LOGISTIC:
            low, high = np.array([[0.0, 0.0, 0.1 / span, -2 * span], [1.0, 1.0, max(5.0, 20 / span), 3 * span]])
        for u, starts in enumerate(_starts(shape, doublings, y, low, high)):
            parameters[:, u] = found = _least_squares(shape, doublings, y[:, u], starts, low, high)
            at_bound = np.minimum(found - low, high - found) < _AT_BOUND * (high - low)
            if at_bound.any():
                notes[u] = f"At the bound of its {' and '.join(np.array(names)[at_bound])}."
            elif np.isnan(found).any():
                notes[u] = "No fit: the search did not converge."
    squares = ((y - HEIGHTS[shape](doublings[:, None], *parameters)) ** 2).sum(axis=0)
    return Fits(parameters, squares, notes)


def _least_squares(shape: str, doublings: Array, y: Array, starts: Array, low: Array, high: Array) -> Array:
    """Return the best (P,) parameters of the fits to one unit that start from (T, P) `starts`, NaN without any."""
    best, least = np.full(len(low), np.nan), math.inf
    for start in np.clip(starts, low + 1e-9, high - 1e-9):
        with warnings.catch_warnings(), suppress(RuntimeError):  # the search did not converge
            warnings.simplefilter("ignore", OptimizeWarning)  # of covariances, which are not used
            found, _ = curve_fit(
                HEIGHTS[shape], doublings, y, start, bounds=(low, high), jac=GRADIENTS[shape], x_scale=high - low,
                max_nfev=400,
            )  # fmt: skip
            squares = float(((y - HEIGHTS[shape](doublings, *found)) ** 2).sum())
            if squares < least:
                best, least = found, squares
    return best


def _starts(shape: str, doublings: Array, y: Array, low: Array, high: Array) -> Array:
    """Return (U, T, P) starts: the best parameters on a grid of rates and midpoints, for slow, middle and fast rates.

    The first two parameters follow by linear regression.
    """
    height, starts = HEIGHTS[shape], []
    for rates in np.array_split(np.geomspace(low[2], high[2], _RATES), _STARTS):
        axes = [rates, np.linspace(low[3], high[3], _MIDPOINTS)] if shape == LOGISTIC else [rates]
        grid = np.array([*product(*axes)])
        basis = np.stack([np.stack([height(doublings, *of, *point) for of in ((1, 0), (0, 1))], 1) for point in grid])
        linear = np.clip(np.linalg.pinv(basis) @ y, low[:2, None], high[:2, None])
        best = ((y - basis @ linear) ** 2).sum(axis=1).argmin(axis=0)
        starts.append(np.concatenate([linear[best, :, np.arange(y.shape[1])], grid[best]], axis=1))
    return np.stack(starts, axis=1)


def _fitted(curve: Curve) -> pd.DataFrame:
    """Return the rows of a curve."""
    doublings, y, last = curve.x - curve.x.min(), curve.accuracy, curve.size == curve.size[-1]
    sizes, runs = int(curve.size.max()) + 1, len(curve.x)
    parts = []
    for shape in SHAPES:
        names = PARAMETERS[shape]
        fits = fit_shape(shape, doublings, y, sizes)
        earlier = fit_shape(shape, doublings[~last], y[~last], sizes - 1)
        named = dict(zip(names, fits.parameters, strict=True))
        if shape == LOGISTIC:
            named["midpoint"] = np.exp2(curve.x.min() + named["midpoint"])
        no_aicc = "No AICc: the runs depend on each other." if curve.dependent else ""
        no_prediction = f"No prediction: it needs {sizes + 1} sizes." if sizes == len(names) + 1 else ""
        parts.append(curve.units.assign(
            shape=shape, runs=runs, sizes=sizes, **named, squares=fits.squares,
            aicc=np.nan if curve.dependent else aicc(fits.squares, runs, len(names) + 1),
            largest_accuracy=y[last].mean(axis=0),
            predicted=HEIGHTS[shape](doublings[last].mean(), *earlier.parameters),
            note=join_notes(fits.notes, no_aicc, no_prediction),
        ))  # fmt: skip
    table = pd.concat(parts).sort_index(kind="stable")
    table["error"] = table["predicted"] - table["largest_accuracy"]
    table["aicc_above_best"] = table["aicc"] - table.groupby(level=0)["aicc"].transform("min")
    return table


def aicc(squares: Array, runs: int, parameters: int) -> Array:
    """Return AICc of least-squares fits (Hurvich and Tsai 1989); `parameters` include the residual variance.

    NaN with too few runs, and where a fit goes through all runs.
    """
    if runs - parameters - 1 <= 0:
        return np.full(len(squares), np.nan)
    squares = np.where(squares > 1e-18, squares, np.nan)
    constant = 2 * parameters + 2 * parameters * (parameters + 1) / (runs - parameters - 1)
    return np.asarray(runs * (np.log(2 * math.pi * squares / runs) + 1) + constant)


def words_to_humans(accuracies: pd.DataFrame, humans: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Estimate the amount of training text at which each curve reaches the accuracy of humans.

    From the line, the interval is Fieller's (1954), with the HC3 covariance of the line and Student's t. Where the
    slope may be 0, it has no upper end. From the other shapes there is a point without an interval.

    Args:
        accuracies: table of `accuracies()`.
        humans: level, name and accuracy (0 to 1) of humans, on the same paradigms; `se` (standard error) if it is
            known, or else humans' accuracy is taken to be exact. Of a table with a column `model`, only the rows of the
            model "people" count, as in `eval.published.read_published("blimp")`.
        confidence: level of the interval.

    Returns:
        One row per benchmark, method, curve, level, name and shape, for units in both tables, with the columns of
        HUMAN_COLUMNS. words: text at which the shape reaches `humans` (inf: never); low, high: its interval (0 and inf:
        no bound); extrapolation: whether `words` lies beyond the largest size; interval: the same in words; note: why
        there is no estimate.

    Raises:
        InputError: as `fit_curves` does, and for a table of humans without the needed columns.
    """
    if missing := {"level", "name", "accuracy"} - set(humans):
        raise InputError(f"The table of humans has no column {', '.join(sorted(missing))}.")
    people = humans[humans["model"] == HUMANS] if "model" in humans else humans
    people = people.assign(humans=people["accuracy"], se=people.get("se", 0.0))[["level", "name", "humans", "se"]]

    def to_humans(curve: Curve) -> pd.DataFrame:
        units = curve.units.reset_index(names="unit").merge(people, on=["level", "name"]).dropna(subset="humans")
        theirs, y = units["humans"].to_numpy(np.float64), curve.accuracy[:, units["unit"]]
        error = units["se"].fillna(0.0).to_numpy(np.float64)
        parts = [units.assign(shape=LINE, **fieller(curve.line, y, theirs, error, confidence))]
        for shape in (POWER_LAW, LOGISTIC):
            fits = fit_shape(shape, curve.x - curve.x.min(), y, int(curve.size.max()) + 1)
            reached = curve.x.min() + _reaches(shape, fits.parameters, theirs)
            words = np.exp2(np.where(reached < math.inf, np.minimum(reached, 1023.0), reached))
            parts.append(units.assign(shape=shape, words=words, low=np.nan, high=np.nan, interval="", note=fits.notes))
        table = pd.concat(parts).sort_index(kind="stable")
        return table.assign(extrapolation=table["words"] > 2 ** curve.x.max() * (1 + 1e-9))

    return map_curves(accuracies, HUMAN_COLUMNS, to_humans)


def fieller(line: Line, y: Array, humans: Array, error: Array, confidence: float) -> dict[str, Any]:
    """Return words, low, high, interval and note of each unit: where the line reaches humans (Fieller 1954).

    The set of amounts is {x: (line at x - humans)^2 <= t^2 (variance of the line at x + error^2)}. y is (R, U); humans
    and error, their standard error, are (U,).
    """
    level, slope = line.level @ y, line.slope @ y
    of_level, of_slope, of_both = line.variances(y)
    square = line.quantile(confidence) ** 2
    a = slope**2 - square * of_slope
    b = (level - humans) * slope - square * of_both
    c = (level - humans) ** 2 - square * (of_level + error**2)
    reached = np.where(slope > 0, line.centre + (humans - level) / np.where(slope > 0, slope, 1.0), np.inf)
    without = math.nan, math.nan, "no interval", line.note or NO_SPREAD
    known = np.column_stack([a, b, c, slope, humans - level]).tolist()
    rows = [without if math.isnan(of[0]) else _limits(line.centre, *of) for of in known]
    table = pd.DataFrame(rows, columns=["low", "high", "interval", "note"])
    return {"words": np.exp2(np.where(reached < 1000, reached, math.inf)), **table}


def _limits(centre: float, a: float, b: float, c: float, slope: float, gap: float) -> tuple[float, float, str, str]:
    """Return the ends of the set a d^2 + 2 b d + c <= 0, d = x - centre, in words of text, as text, and a note."""
    if a > 0 and slope <= 0:
        return math.inf, math.inf, "never", "The line falls."
    root = b**2 - a * c
    if root <= 0 or a == 0:
        return 0.0, math.inf, "any amount of text", "The slope may be 0."
    ends = sorted(centre + (-b + sign * math.sqrt(root)) / a for sign in (-1, 1))
    low, high = (2.0**end if end < 1000 else math.inf for end in ends)
    if a > 0:
        text = f"{words_text(low)} to {words_text(high)}" if low < FURTHEST else words_text(low)
        return low, high, text, ""
    if gap > 0:
        return high, math.inf, f"{words_text(high)} or more, or never", "The slope may be 0."
    return 0.0, low, f"{words_text(low)} or less, or never", "The slope may be 0."


def _reaches(shape: str, parameters: Array, accuracy: Array) -> Array:
    """Return the doublings at which rising curves have accuracies: inf if they stay below, -inf if they stay above."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if shape == POWER_LAW:
            ceiling, gap, rate = parameters
            at = np.where(gap > 0, -np.log2((ceiling - accuracy) / gap) / rate, np.nan)
            return np.where(accuracy > ceiling, np.inf, at)
        floor, ceiling, rate, midpoint = parameters
        at = midpoint + logit(np.clip((accuracy - floor) / (ceiling - floor), 0, 1)) / rate
        return np.where(accuracy >= np.maximum(floor, ceiling), np.inf, np.where(ceiling > floor, at, np.nan))


def words_text(words: float) -> str:
    """Write an amount of text: 2.4M, 3.1e14, beyond 1e20."""
    if words > FURTHEST:
        return "beyond 1e20"
    for letter, unit in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if unit <= float(f"{words:.2g}") < 1000 * unit:
            return f"{float(f'{words / unit:.2g}'):g}{letter}"
    return f"{words:.1e}".replace("e+", "e") if words >= 1e12 else f"{words:.0f}"
