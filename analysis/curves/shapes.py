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
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import OptimizeWarning, curve_fit
from scipy.special import expit, logit

from analysis.curves.lines import NO_SPREAD, Array, Numbers
from analysis.curves.units import TRAJECTORIES, Curve, check_confidence, read_curves
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
    parts = [_fitted(curve) for curves in read_curves(accuracies) for curve in curves]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=SHAPE_COLUMNS)


class Fit(NamedTuple):
    """A shape fitted to one unit: parameters (NaN if there is no fit), sum of squares, and a note."""

    parameters: Array
    squares: float
    note: str = ""


def _height(shape: str) -> Callable[..., Array]:
    """Return the function of doublings and parameters that gives a shape's accuracies."""
    if shape == LINE:
        return lambda d, intercept, slope: intercept + slope * d
    if shape == POWER_LAW:
        return lambda d, ceiling, gap, rate: ceiling - gap * np.exp2(-rate * d)
    return lambda d, floor, ceiling, rate, midpoint: floor + (ceiling - floor) * expit(rate * (d - midpoint))


def _gradient(shape: str) -> Callable[..., Array]:
    """Return the function that gives the (R, P) derivatives of a shape's accuracies by its parameters."""
    if shape == POWER_LAW:

        def power_law(d: Array, ceiling: float, gap: float, rate: float) -> Array:
            fall = np.exp2(-rate * d)
            return np.stack([np.ones_like(d), -fall, gap * math.log(2) * d * fall], axis=1)

        return power_law

    def logistic(d: Array, floor: float, ceiling: float, rate: float, midpoint: float) -> Array:
        rise = expit(rate * (d - midpoint))
        steep = (ceiling - floor) * rise * (1 - rise)
        return np.stack([1 - rise, rise, steep * (d - midpoint), -steep * rate], axis=1)

    return logistic


def _bounds(shape: str, span: float) -> Array:
    """Return the (2, P) least and greatest values of the parameters of curves over `span` doublings."""
    if shape == POWER_LAW:
        return np.array([[0.0, -1.0, 0.02 / span], [1.0, 1.0, 5.0]])
    return np.array([[0.0, 0.0, 0.1 / span, -2 * span], [1.0, 1.0, max(5.0, 20 / span), 3 * span]])


def fit_shape(shape: str, doublings: Array, y: Array, sizes: int) -> list[Fit]:
    """Fit a shape to each of U units; doublings (R,), y (R, U), `sizes`: how many different ones."""
    names, units = PARAMETERS[shape], y.shape[1]
    if sizes <= len(names):
        note = f"No fit: {len(names)} parameters need {len(names) + 1} sizes."
        return [Fit(np.full(len(names), np.nan), math.nan, note)] * units
    if shape == LINE:
        parameters, *_ = np.linalg.lstsq(np.stack([np.ones(len(doublings)), doublings], axis=1), y)
        fitted = parameters[0] + np.outer(doublings, parameters[1])
        return [Fit(*of) for of in zip(parameters.T, ((y - fitted) ** 2).sum(axis=0).tolist(), strict=True)]
    bounds = _bounds(shape, float(np.ptp(doublings)))
    return [
        _least_squares(shape, doublings, y[:, u], starts, bounds)
        for u, starts in enumerate(_starts(shape, doublings, y, bounds))
    ]


def _least_squares(shape: str, doublings: Array, y: Array, starts: Array, bounds: Array) -> Fit:
    """Return the best of the fits that start from (T, P) `starts`."""
    low, high = bounds
    height, found = _height(shape), []
    for start in np.clip(starts, low + 1e-9, high - 1e-9):
        with warnings.catch_warnings(), suppress(RuntimeError):  # the search did not converge
            warnings.simplefilter("ignore", OptimizeWarning)  # of covariances, which are not used
            parameters, _ = curve_fit(
                height, doublings, y, start, bounds=(low, high), jac=_gradient(shape), x_scale=high - low,
                max_nfev=400,
            )  # fmt: skip
            found.append((float(((y - height(doublings, *parameters)) ** 2).sum()), parameters))
    if not found:
        return Fit(np.full(len(low), np.nan), math.nan, "No fit: the search did not converge.")
    squares, parameters = min(found, key=lambda fit: fit[0])
    margin = _AT_BOUND * (high - low)
    edges = (parameters - low < margin) | (high - parameters < margin)
    at_bound = " and ".join(np.array(PARAMETERS[shape])[edges])
    return Fit(parameters, squares, f"At the bound of its {at_bound}." if at_bound else "")


def _starts(shape: str, doublings: Array, y: Array, bounds: Array) -> Array:
    """Return (U, T, P) starts: the best parameters on a grid of rates and midpoints, for slow, middle and fast rates.

    The first two parameters follow by linear regression.
    """
    rates = np.geomspace(float(bounds[0, 2]), float(bounds[1, 2]), _RATES)
    middles = np.linspace(bounds[0, 3], bounds[1, 3], _MIDPOINTS).tolist() if shape == LOGISTIC else [None]
    height, starts = _height(shape), []
    for part in np.array_split(rates, _STARTS):
        grid = np.array([[rate, *([] if middle is None else [middle])] for rate in part for middle in middles])
        basis = np.stack([np.stack([height(doublings, *of, *point) for of in ((1, 0), (0, 1))], 1) for point in grid])
        linear = np.clip(np.linalg.pinv(basis) @ y, bounds[0, :2, None], bounds[1, :2, None])
        best = ((y - basis @ linear) ** 2).sum(axis=1).argmin(axis=0)
        starts.append(np.concatenate([linear[best, :, np.arange(y.shape[1])], grid[best]], axis=1))
    return np.stack(starts, axis=1)


def _fitted(curve: Curve) -> pd.DataFrame:
    """Return the rows of a curve."""
    doublings, y, last = curve.x - curve.x.min(), curve.accuracy, curve.size == curve.size[-1]
    sizes, runs = len(np.unique(curve.size)), len(curve.x)
    dependent = curve.nested or curve.unit in TRAJECTORIES
    observed = y[last].mean(axis=0)
    parts = []
    for shape in SHAPES:
        fits = fit_shape(shape, doublings, y, sizes)
        earlier = fit_shape(shape, doublings[~last], y[~last], sizes - 1)
        parameters = np.stack([of.parameters for of in fits], axis=1)
        predicted = _height(shape)(doublings[last].mean(), *np.stack([of.parameters for of in earlier], axis=1))
        named = dict(zip(PARAMETERS[shape], parameters, strict=True))
        if shape == LOGISTIC:
            named["midpoint"] = np.exp2(curve.x.min() + named["midpoint"])
        squares = np.array([of.squares for of in fits])
        notes = [of.note for of in fits]
        if dependent:
            notes = [f"{note} No AICc: the runs depend on each other.".strip() for note in notes]
        if sizes == len(PARAMETERS[shape]) + 1:
            notes = [f"{note} No prediction: it needs {sizes + 1} sizes.".strip() for note in notes]
        parts.append(curve.units.assign(
            shape=shape, **named, squares=squares, predicted=predicted, note=notes,
            aicc=np.nan if dependent else aicc(squares, runs, len(PARAMETERS[shape]) + 1),
        ))  # fmt: skip
    table = pd.concat(parts).sort_index(kind="stable").assign(
        benchmark=curve.benchmark, method=curve.method, curve=curve.name, runs=runs, sizes=sizes,
        largest_accuracy=np.repeat(observed, len(SHAPES)),
    )  # fmt: skip
    table["error"] = table["predicted"] - table["largest_accuracy"]
    table["aicc_above_best"] = table["aicc"] - table.groupby(level=0)["aicc"].transform("min")
    return table.reindex(columns=SHAPE_COLUMNS).reset_index(drop=True)


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
    check_confidence(confidence)
    if missing := {"level", "name", "accuracy"} - set(humans):
        raise InputError(f"The table of humans has no column {', '.join(sorted(missing))}.")
    people = humans[humans["model"] == HUMANS] if "model" in humans else humans
    people = people.assign(se=people.get("se", 0.0)).set_index(["level", "name"])
    parts = []
    for curve in (curve for curves in read_curves(accuracies) for curve in curves):
        known = people.reindex(pd.MultiIndex.from_frame(curve.units[["level", "name"]]))
        rows = np.flatnonzero(known["accuracy"].notna())
        if len(rows):
            parts.append(_to_humans(curve, known.iloc[rows].astype({"accuracy": float}), rows, confidence))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=HUMAN_COLUMNS)


def _to_humans(curve: Curve, humans: pd.DataFrame, rows: Numbers, confidence: float) -> pd.DataFrame:
    accuracy, y = humans["accuracy"].to_numpy(), curve.accuracy[:, rows]
    named = curve.units.iloc[rows].assign(
        benchmark=curve.benchmark, method=curve.method, curve=curve.name, humans=accuracy
    )
    of_line = fieller(curve, y, accuracy, humans["se"].fillna(0.0).to_numpy(dtype=np.float64), confidence)
    parts = [named.assign(shape=LINE, **of_line)]
    doublings, sizes = curve.x - curve.x.min(), len(np.unique(curve.size))
    for shape in (POWER_LAW, LOGISTIC):
        fits = fit_shape(shape, doublings, y, sizes)
        reached = [_reaches(shape, of.parameters, h) for of, h in zip(fits, accuracy, strict=True)]
        words = np.exp2(np.minimum(curve.x.min() + np.array(reached), 1023.0))
        words = np.where(np.isinf(reached) & (np.array(reached) > 0), np.inf, words)
        parts.append(named.assign(shape=shape, words=words, low=np.nan, high=np.nan, interval="",
                                  note=[of.note for of in fits]))  # fmt: skip
    table = pd.concat(parts).sort_index(kind="stable")
    largest = 2 ** curve.x.max()
    return table.assign(extrapolation=table["words"] > largest * (1 + 1e-9))[HUMAN_COLUMNS].reset_index(drop=True)


def fieller(curve: Curve, y: Array, humans: Array, error: Array, confidence: float) -> dict[str, list[Any]]:
    """Return words, low, high, interval and note of each unit: where the curve's line reaches humans (Fieller 1954).

    The set of amounts is {x: (line at x - humans)^2 <= t^2 (variance of the line at x + error^2)}. y is (R, U); humans
    and error, their standard error, are (U,).
    """
    line = curve.line
    level, slope = line.level @ y, line.slope @ y
    of_level, of_slope, of_both = line.variances(y)
    square = line.quantile(confidence) ** 2
    a = slope**2 - square * of_slope
    b = (level - humans) * slope - square * of_both
    c = (level - humans) ** 2 - square * (of_level + error**2)
    rises = slope > 0
    reached = np.where(rises, line.centre + (humans - level) / np.where(rises, slope, 1.0), np.inf)
    without = math.nan, math.nan, "no interval", line.note or NO_SPREAD
    rows = [
        without if math.isnan(of[0]) else _limits(*of, line.centre)
        for of in zip(a.tolist(), b.tolist(), c.tolist(), slope.tolist(), (humans - level).tolist(), strict=True)
    ]
    low, high, interval, note = map(list, zip(*rows, strict=True))
    return {
        "words": [_words(x) for x in reached.tolist()],
        "low": low,
        "high": high,
        "interval": interval,
        "note": note,
    }


def _limits(a: float, b: float, c: float, slope: float, gap: float, centre: float) -> tuple[float, float, str, str]:
    """Return the ends of the set a d^2 + 2 b d + c <= 0, d = x - centre, in words of text, as text, and a note."""
    if a > 0 and slope <= 0:
        return math.inf, math.inf, "never", "The line falls."
    root = b**2 - a * c
    if root <= 0 or a == 0:
        return 0.0, math.inf, "any amount of text", "The slope may be 0."
    ends = sorted(centre + (-b + sign * math.sqrt(root)) / a for sign in (-1, 1))
    low, high = map(_words, ends)
    if a > 0:
        text = f"{words_text(low)} to {words_text(high)}" if low < FURTHEST else words_text(low)
        return low, high, text, ""
    if gap > 0:
        return high, math.inf, f"{words_text(high)} or more, or never", "The slope may be 0."
    return 0.0, low, f"{words_text(low)} or less, or never", "The slope may be 0."


def _reaches(shape: str, parameters: Array, accuracy: float) -> float:
    """Return the doublings at which a rising curve has an accuracy: inf if it stays below, -inf if it stays above."""
    if np.isnan(parameters).any():
        return math.nan
    if shape == POWER_LAW:
        ceiling, gap, rate = parameters
        if gap <= 0:
            return math.inf if ceiling < accuracy else math.nan
        return -math.log2((ceiling - accuracy) / gap) / rate if accuracy < ceiling else math.inf
    floor, ceiling, rate, midpoint = parameters
    if accuracy >= max(floor, ceiling):
        return math.inf
    if ceiling <= floor:
        return math.nan
    return float(midpoint + logit((accuracy - floor) / (ceiling - floor)) / rate) if accuracy > floor else -math.inf


def _words(x: float) -> float:
    """Return 2^x; inf where that overflows."""
    return 2.0**x if x < 1000 else math.inf


def words_text(words: float) -> str:
    """Write an amount of text: 2.4M, 3.1e14, beyond 1e20."""
    if words > FURTHEST:
        return "beyond 1e20"
    for letter, unit in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if unit <= float(f"{words:.2g}") < 1000 * unit:
            return f"{float(f'{words / unit:.2g}'):g}{letter}"
    return f"{words:.1e}".replace("e+", "e") if words >= 1e12 else f"{words:.0f}"
