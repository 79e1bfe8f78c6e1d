"""Fit curves other than lines, test their predictions for held-out sizes, and estimate the text to match humans.

The shapes are functions of d, the number of doublings of the training text since the smallest size of the curve:

    line        accuracy = intercept + slope d
    power law   accuracy = ceiling - gap 2^(-rate d), which is ceiling - gap (words / smallest words)^-rate
    logistic    accuracy = floor + (ceiling - floor) / (1 + exp(-rate (d - midpoint)))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit

from analysis.curves.lines import NO_SPREAD, Array, t_quantile
from analysis.curves.units import Curve, check_columns, join_notes, map_curves
from analysis.formats import DASH, joined

LINE, POWER_LAW, LOGISTIC = ("line", "power law", "logistic")
PARAMETERS = {
    LINE: ("intercept", "slope"),
    POWER_LAW: ("ceiling", "gap", "rate"),
    LOGISTIC: ("floor", "ceiling", "rate", "midpoint"),
}
MAY_BE_0 = "The slope may be 0."
SHAPE_COLUMNS = [
    "shape", "runs", "sizes", "intercept", "slope", "floor", "ceiling", "gap", "rate", "midpoint", "squares", "aicc",
    "aicc_above_best", "largest_accuracy", "predicted", "error", "note",
]  # fmt: skip
HUMAN_COLUMNS = ["humans", "words", "low", "high", "extrapolation", "interval", "note"]
_AT_BOUND = 1e-4  # a parameter is at a bound if it is closer to it than this share of its range


def fit_shapes(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Fit a line, a power law and a logistic curve to each unit of each curve, and predict the largest size with each.

    Each shape is fitted to runs by least squares. Floors and ceilings are limited to 0 to 1, and gaps to -1 to 1. AICc
    (Hurvich and Tsai 1989) counts the residual variance as a parameter. Predictions come from fits to all sizes except
    the largest.

    Args:
        accuracies: The long table of `accuracies()`.

    Returns:
        One row per benchmark, method, curve, level, name and shape, with SHAPE_COLUMNS. The columns include:

        - midpoint: the midpoint of a logistic curve, in words
        - squares: the sum of squared residuals
        - aicc_above_best: AICc minus the lowest AICc of all shapes
        - largest_accuracy: the mean over the runs of the largest size
        - predicted: largest_accuracy as predicted by the fit to the smaller sizes
        - error: predicted minus largest_accuracy
        - note: why there is no fit, prediction or AICc, and which parameters are at their bounds

    Raises:
        InputError: In the same cases as `fit_curves`.
    """
    return map_curves(accuracies, SHAPE_COLUMNS, _fit_shapes)


# Each function returns the accuracies at d doublings, and their derivatives with respect to its parameters.


def _line(d: Array, intercept: Array, slope: Array) -> tuple[Array, list[Array]]:
    return intercept + slope * d, [np.ones_like(d), d]


def _power_law(d: Array, ceiling: Array, gap: Array, rate: Array) -> tuple[Array, list[Array]]:
    fall = np.exp2(-rate * d)
    return ceiling - gap * fall, [np.ones_like(fall), -fall, gap * math.log(2) * d * fall]


def _logistic(d: Array, floor: Array, ceiling: Array, rate: Array, midpoint: Array) -> tuple[Array, list[Array]]:
    rise = expit(rate * (d - midpoint))
    steep = (ceiling - floor) * rise * (1 - rise)
    return floor + (ceiling - floor) * rise, [1 - rise, rise, steep * (d - midpoint), -steep * rate]


SHAPES: dict[str, Callable[..., tuple[Array, list[Array]]]]
SHAPES = {LINE: _line, POWER_LAW: _power_law, LOGISTIC: _logistic}


def fit_shape(shape: str, doublings: Array, y: Array, sizes: int) -> tuple[Array, npt.ArrayLike]:
    """Fit a shape to each of U units.

    Args:
        shape: One of PARAMETERS.
        doublings: (R,) number of doublings from the smallest size to the size of each run.
        y: (R, U) accuracies.
        sizes: The number of different sizes.

    Returns:
        The (P, U) parameters, NaN if there is no fit, and a note for each unit.
    """
    from scipy.optimize import least_squares  # imported here because the import is slow

    names, units = PARAMETERS[shape], y.shape[1]
    if sizes <= len(names):
        reason = f"A fit needs {len(names) + 1} sizes."
        return np.full((len(names), units), np.nan), [reason] * units
    if shape == LINE:
        return np.polyfit(doublings, y, 1)[::-1], [""] * units
    span = float(np.ptp(doublings))
    low, high = np.array([[0.0, -1.0, 0.02 / span], [1.0, 1.0, 5.0]])
    if shape == LOGISTIC:
        low, high = np.array([[0.0, 0.0, 0.1 / span, -2 * span], [1.0, 1.0, max(5.0, 20 / span), 3 * span]])

    def residuals(parameters: Array, y: Array) -> Array:
        return SHAPES[shape](doublings, *parameters)[0] - y

    def derivatives(parameters: Array, _: Array) -> Array:
        return np.stack(SHAPES[shape](doublings, *parameters)[1], axis=1)

    found, settings = [], {"jac": derivatives, "bounds": (low, high), "x_scale": high - low, "max_nfev": 400}
    for of, starts in zip(y.T, _starts(shape, doublings, y, low, high), strict=True):
        fits = [least_squares(residuals, start, args=(of,), **settings) for start in starts]
        best = min(fits, key=lambda fit: (not fit.success, fit.cost))
        found.append(best.x if best.success else np.full(len(names), np.nan))
    at_bound = np.minimum(found - low, high - found) < _AT_BOUND * (high - low)
    notes = [f"The fit is at the bound of its {joined(np.array(names)[of])}." if of.any() else "" for of in at_bound]
    failed = "The search didn't converge, so there is no fit."
    return np.transpose(found), np.where(np.isnan(found).any(axis=1), failed, notes)


def _starts(shape: str, doublings: Array, y: Array, low: Array, high: Array) -> Array:
    """Return (U, T, P) starting values, which are the best ones on a grid for each of slow, medium and fast rates.

    The grid covers rates and midpoints. The first two parameters come from a linear regression.
    """
    starts = []
    for rates in np.geomspace(low[2], high[2], 9).reshape(3, 3):
        grid = np.array([*product(rates, *np.linspace(low[3:], high[3:], 21).T)])
        basis = np.array([np.transpose(SHAPES[shape](doublings, 0, 0, *point)[1][:2]) for point in grid])
        linear = np.clip(np.linalg.pinv(basis) @ y, low[:2, None], high[:2, None])
        best = ((y - basis @ linear) ** 2).sum(axis=1).argmin(axis=0)
        starts.append(np.concatenate([linear[best, :, np.arange(y.shape[1])], grid[best]], axis=1))
    return np.asarray(np.clip(np.stack(starts, axis=1), low + 1e-9, high - 1e-9))


def _fit_shapes(curve: Curve) -> pd.DataFrame:
    """Return the rows of `fit_shapes` for a curve."""
    x, y, size = curve.x, curve.accuracy, curve.size
    d, last, sizes = x - x.min(), size == size[-1], int(size.max()) + 1
    dependent = curve.is_nested or curve.is_trajectory
    parts = []
    for shape, names in PARAMETERS.items():
        parameters, notes = fit_shape(shape, d, y, sizes)
        earlier, _ = fit_shape(shape, d[~last], y[~last], sizes - 1)
        squares = ((y - SHAPES[shape](d[:, None], *parameters)[0]) ** 2).sum(axis=0)
        unknown = [
            "The runs depend on each other, so there is no AICc." if dependent else "",
            f"A prediction needs {sizes + 1} sizes." if sizes == len(names) + 1 else "",
        ]
        parts.append(curve.units.assign(
            shape=shape, runs=len(x), sizes=sizes, **dict(zip(names, parameters, strict=True)), squares=squares,
            aicc=np.nan if dependent else aicc(squares, len(x), len(names) + 1), largest_accuracy=y[last].mean(axis=0),
            predicted=SHAPES[shape](d[last].mean(), *earlier)[0], note=join_notes(notes, *unknown),
        ))  # fmt: skip
    table = pd.concat(parts).sort_index(kind="stable")
    return table.assign(
        midpoint=np.exp2(x.min() + table["midpoint"]),
        error=table["predicted"] - table["largest_accuracy"],
        aicc_above_best=table["aicc"] - table.groupby(level=0)["aicc"].transform("min"),
    )


def aicc(squares: Array, runs: int, parameters: int) -> Array:
    """Return the AICc of least-squares fits (Hurvich and Tsai 1989). `parameters` includes the residual variance.

    It is NaN if there are too few runs, or if a fit goes through all of them.
    """
    free = runs - parameters - 1
    squares = np.where((squares > 1e-18) & (free > 0), squares, np.nan)
    return np.asarray(runs * (np.log(2 * math.pi * squares / runs) + 1) + 2 * parameters * runs / max(free, 1))


def words_to_humans(accuracies: pd.DataFrame, humans: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Estimate the amount of training text at which each curve's line reaches the accuracy of humans.

    This is Fieller's (1954) interval, with the HC3 covariance of the line and Student's t. It contains each x
    at which (line at x - humans)^2 <= t^2 (variance of the line at x + se^2).

    Args:
        accuracies: The long table of `accuracies()`.
        humans: The accuracy (0 to 1) of humans on the same paradigms, with the columns level, name and accuracy. A
            column `se` may contain standard errors. Without it, the accuracy is treated as exact. If the table has a
            column `model`, like the table of `eval.published.read_published("blimp")`, only the rows of the model
            "people" are used.
        confidence: The level of the intervals.

    Returns:
        One row per benchmark, method, curve, level and name in both tables, with HUMAN_COLUMNS. The columns include:

        - words: the amount of text at which the line reaches `humans` (inf: never)
        - low, high: the interval of `words` (0 and inf: no bound)
        - extrapolation: whether `words` is beyond the largest size
        - interval: low and high as text
        - note: why there is no interval or bound

    Raises:
        InputError: In the same cases as `fit_curves`, or if a column of `humans` is missing.
    """
    check_columns(humans, ("level", "name", "accuracy"), "read_published()")
    people = humans[humans["model"] == "people"] if "model" in humans else humans
    people = people.assign(humans=people["accuracy"], se=people.get("se", 0.0))[["level", "name", "humans", "se"]]
    return map_curves(accuracies, HUMAN_COLUMNS, lambda curve: _to_humans(curve, people, confidence))


def _to_humans(curve: Curve, people: pd.DataFrame, confidence: float) -> pd.DataFrame:
    units = curve.units.reset_index(names="place").merge(people, on=["level", "name"]).dropna(subset="humans")
    line, y = curve.line, curve.accuracy[:, units["place"]]
    gap, slope = units["humans"].to_numpy(np.float64) - line.level @ y, line.slope @ y
    of_level, of_slope, of_both = line.variances(y)
    square = t_quantile(confidence, line.degrees) ** 2
    a = slope**2 - square * of_slope
    b = -gap * slope - square * of_both
    c = gap**2 - square * (of_level + units["se"].fillna(0.0).to_numpy(np.float64) ** 2)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        words = np.where(slope > 0, np.exp2(line.centre + gap / slope), np.inf)
        ends = (-b + np.array([[-1], [1]]) * np.sqrt(b**2 - a * c)) / a  # where a d^2 + 2 b d + c = 0, d = x - centre
        first, last = np.exp2(line.centre + np.sort(ends, axis=0))
    cases = [np.isnan(a), (a > 0) & (slope <= 0), (b**2 <= a * c) | (a == 0), a > 0, gap > 0]
    low = np.select(cases, [np.nan, np.inf, 0, first, last], 0)
    high = np.select(cases, [np.nan, np.inf, np.inf, last, np.inf], first)
    return units.assign(
        words=words, low=low, high=high, extrapolation=words > 2 ** curve.x.max() * (1 + 1e-9),
        interval=interval_texts(low, high),
        note=np.select(cases[:4], [line.note or NO_SPREAD, "The line falls.", MAY_BE_0, ""], MAY_BE_0),
    )  # fmt: skip


def interval_texts(low: npt.ArrayLike, high: npt.ArrayLike) -> list[str]:
    """Format intervals of amounts of text, such as "125k to 1M". Missing intervals become ""."""
    ends = zip(np.asarray(low).tolist(), np.asarray(high).tolist(), strict=True)
    return ["" if math.isnan(one) else f"{words_text(one)} to {words_text(other)}" for one, other in ends]


def words_text(words: float) -> str:
    """Format an amount of text, such as "2.4M", "3.1e14", "beyond 1e20" or "never". NaN becomes a dash."""
    if math.isnan(words):
        return DASH
    if math.isinf(words):
        return "never"
    if words > 1e20:  # no larger number is written out, as in Warstadt et al. 2020, section 6.3
        return "beyond 1e20"
    for letter, unit in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if unit <= float(f"{words:.2g}") < 1000 * unit:
            return f"{float(f'{words / unit:.2g}'):g}{letter}"
    return f"{words:.1e}".replace("e+", "e") if words >= 1e12 else f"{words:.0f}"
