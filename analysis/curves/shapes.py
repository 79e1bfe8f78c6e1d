"""Shapes of learning curves besides the line, their predictions of held-out sizes, and the words to match humans.

d counts doublings of the training text since the smallest size of the curve:

    line        accuracy = intercept + slope d
    power law   accuracy = ceiling - gap 2^(-rate d), which is ceiling - gap (words / smallest words)^-rate
    logistic    accuracy = floor + (ceiling - floor) / (1 + exp(-rate (d - midpoint)))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, logit

from analysis.curves.lines import NO_SPREAD, Array, Line, t_quantile
from analysis.curves.units import Curve, check_columns, join_notes, map_curves

LINE, POWER_LAW, LOGISTIC = ("line", "power law", "logistic")
PARAMETERS = {
    LINE: ("intercept", "slope"),
    POWER_LAW: ("ceiling", "gap", "rate"),
    LOGISTIC: ("floor", "ceiling", "rate", "midpoint"),
}
HUMANS = "people"  # the model of published accuracies that stands for humans
MAY_BE_0 = "The slope may be 0."
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


def fit_shape(shape: str, doublings: Array, y: Array, sizes: int) -> tuple[Array, list[str]]:
    """Fit a shape to each of U units; doublings (R,), y (R, U), `sizes`: how many different ones.

    Returns:
        The (P, U) parameters, NaN without a fit, and a note for each unit.
    """
    names, units = PARAMETERS[shape], y.shape[1]
    if sizes <= len(names):
        return np.full((len(names), units), np.nan), [f"No fit: it needs {len(names) + 1} sizes."] * units
    if shape == LINE:
        return np.polyfit(doublings, y, 1)[::-1], [""] * units
    span = float(np.ptp(doublings))
    low, high = np.array([[0.0, -1.0, 0.02 / span], [1.0, 1.0, 5.0]])
    if shape == LOGISTIC:
        low, high = np.array([[0.0, 0.0, 0.1 / span, -2 * span], [1.0, 1.0, max(5.0, 20 / span), 3 * span]])
    starts = np.clip(_starts(shape, doublings, y, low, high), low + 1e-9, high - 1e-9)
    found = np.empty((len(names), units))
    for u in range(units):
        found[:, u] = _best_fit(shape, doublings, y[:, u], starts[u], low, high)
    at_bound = np.minimum(found.T - low, high - found.T) < _AT_BOUND * (high - low)
    notes = [f"At the bound of its {' and '.join(np.array(names)[of])}." if of.any() else "" for of in at_bound]
    notes = [
        "No fit: the search did not converge." if np.isnan(of[0]) else note
        for of, note in zip(found.T, notes, strict=True)
    ]
    return found, notes


def _best_fit(shape: str, doublings: Array, y: Array, starts: Array, low: Array, high: Array) -> Array:
    """Return the best (P,) parameters of the fits to one unit that start from (T, P) `starts`, NaN without any."""
    from scipy.optimize import curve_fit  # here, because it takes a while to import

    best, least = np.full(len(low), np.nan), math.inf
    for start in starts:
        with suppress(RuntimeError):  # the search did not converge
            found, _, about, *_ = curve_fit(
                HEIGHTS[shape],
                doublings,
                y,
                start,
                bounds=(low, high),
                jac=GRADIENTS[shape],
                x_scale=high - low,
                max_nfev=400,
                full_output=True,
            )
            squares = float((about["fvec"] ** 2).sum())
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
    x, y, size = curve.x, curve.accuracy, curve.size
    doublings, last, sizes, runs = x - x.min(), size == size[-1], int(size.max()) + 1, len(x)
    dependent = curve.is_nested or curve.is_trajectory
    parts = []
    for shape, names in PARAMETERS.items():
        parameters, notes = fit_shape(shape, doublings, y, sizes)
        earlier, _ = fit_shape(shape, doublings[~last], y[~last], sizes - 1)
        squares = ((y - HEIGHTS[shape](doublings[:, None], *parameters)) ** 2).sum(axis=0)
        parts.append(curve.units.assign(
            shape=shape, runs=runs, sizes=sizes, **dict(zip(names, parameters, strict=True)), squares=squares,
            aicc=np.nan if dependent else aicc(squares, runs, len(names) + 1), largest_accuracy=y[last].mean(axis=0),
            predicted=HEIGHTS[shape](doublings[last].mean(), *earlier),
            note=join_notes(
                notes,
                "No AICc: the runs depend on each other." if dependent else "",
                f"No prediction: it needs {sizes + 1} sizes." if sizes == len(names) + 1 else "",
            ),
        ))  # fmt: skip
    table = pd.concat(parts).sort_index(kind="stable")
    table["midpoint"] = np.exp2(x.min() + table["midpoint"])
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
    check_columns(humans, ("level", "name", "accuracy"), "read_published()")
    people = humans[humans["model"] == HUMANS] if "model" in humans else humans
    people = people.assign(humans=people["accuracy"], se=people.get("se", 0.0))[["level", "name", "humans", "se"]]

    def to_humans(curve: Curve) -> pd.DataFrame:
        units = curve.units.reset_index(names="unit").merge(people, on=["level", "name"]).dropna(subset="humans")
        theirs, y, x = units["humans"].to_numpy(np.float64), curve.accuracy[:, units["unit"]], curve.x
        error = units["se"].fillna(0.0).to_numpy(np.float64)
        parts = [units.assign(shape=LINE, **fieller(curve.line, y, theirs, error, confidence))]
        for shape in (POWER_LAW, LOGISTIC):
            parameters, notes = fit_shape(shape, x - x.min(), y, curve.runs["size"].nunique())
            with np.errstate(over="ignore"):
                words = np.exp2(x.min() + _reaches(shape, parameters, theirs))
            parts.append(units.assign(shape=shape, words=words, low=np.nan, high=np.nan, interval="", note=notes))
        table = pd.concat(parts).sort_index(kind="stable")
        return table.assign(extrapolation=table["words"] > 2 ** x.max() * (1 + 1e-9))

    return map_curves(accuracies, HUMAN_COLUMNS, to_humans)


def fieller(line: Line, y: Array, humans: Array, error: Array, confidence: float) -> dict[str, Any]:
    """Return words, low, high, interval and note of each unit: where the line reaches humans (Fieller 1954).

    The set of amounts is {x: (line at x - humans)^2 <= t^2 (variance of the line at x + error^2)}. y is (R, U); humans
    and error, their standard error, are (U,).
    """
    gap, slope = humans - line.level @ y, line.slope @ y
    of_level, of_slope, of_both = line.variances(y)
    square = t_quantile(confidence, line.degrees) ** 2
    a = slope**2 - square * of_slope
    b = -gap * slope - square * of_both
    c = gap**2 - square * (of_level + error**2)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        reached = np.where(slope > 0, np.exp2(line.centre + gap / slope), np.inf)
        ends = (-b + np.array([[-1], [1]]) * np.sqrt(b**2 - a * c)) / a  # where a d^2 + 2 b d + c = 0, d = x - centre
        low, high = np.exp2(line.centre + np.sort(ends, axis=0))
    cases = [np.isnan(a), (a > 0) & (slope <= 0), (b**2 <= a * c) | (a == 0), a > 0, gap > 0]
    notes = np.select(cases[:4], [line.note or NO_SPREAD, "The line falls.", MAY_BE_0, ""], MAY_BE_0)
    bounds = (
        np.select(cases, [np.nan, np.inf, 0, low, high], 0),
        np.select(cases, [np.nan, np.inf, np.inf, high, np.inf], low),
    )
    low, high = bounds
    return {"words": reached, "low": low, "high": high, "interval": interval_texts(low, high), "note": notes}


def interval_texts(low: npt.ArrayLike, high: npt.ArrayLike) -> list[str]:
    """Write intervals of amounts of text, "" for missing ones."""
    ends = zip(np.asarray(low).tolist(), np.asarray(high).tolist(), strict=True)
    return ["" if math.isnan(one) else f"{words_text(one)} to {words_text(other)}" for one, other in ends]


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
    """Write an amount of text: 2.4M, 3.1e14, beyond 1e20, never."""
    if math.isinf(words):
        return "never"
    if words > FURTHEST:
        return "beyond 1e20"
    for letter, unit in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if unit <= float(f"{words:.2g}") < 1000 * unit:
            return f"{float(f'{words / unit:.2g}'):g}{letter}"
    return f"{words:.1e}".replace("e+", "e") if words >= 1e12 else f"{words:.0f}"
