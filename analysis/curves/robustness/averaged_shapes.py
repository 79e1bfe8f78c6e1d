"""Learning curves averaged over shapes, with intervals that hold the uncertainty about the shape.

The shapes of analysis.curves.shapes without fixed parameters are weighted by AICc: exp(-difference / 2), over their sum
(Burnham and Anderson 2002, section 2.9). A fixed ceiling is a special case of a free one: where data do not reach it,
AICc prefers it as the simpler one, which says nothing for it, and limits would be as narrow as if it were known. A
quantity is averaged over the shapes that have it, with weights that are theirs alone (section 4.2): all have an
accuracy and a slope at a size, some a ceiling or a midpoint that is not fixed. Its error is the weighted mean of the
root of each shape's own variance, times (t / z)^2, plus its squared distance from the average (section 4.3.3): wider
than that of the preferred shape, the more the shapes disagree.

A shape's own variance is that of its linearised regression with HC3 errors, as spreads between runs may differ by size
(MacKinnon and White 1985); parameters at their bounds count as known. Nested samples of a seed are one draw of text,
and leave no limits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from analysis.curves.designs import shares_text
from analysis.curves.shapes import Fit, UnitFits
from analysis.curves.variance import Array

ACCURACY, SLOPE, CEILING, MIDPOINT = "accuracy", "slope", "ceiling", "midpoint"
NEGLIGIBLE = 1e-3  # weight, relative to the largest: such a shape must not take a quantity's limits away
STEP = 1e-3  # of log2(words): half the difference that stands for a derivative
AVERAGED = ["group", "level", "name", "quantity", "words", "value", "low", "high", "weight", "preferred", "note"]
NESTED = "nested samples"


@dataclass(frozen=True)
class Quantity:
    """Something that shapes have: a parameter's name, or accuracy or slope per doubling at `x`, log2 of the words."""

    name: str
    x: float = np.nan

    def value(self, fit: Fit) -> float:
        """Return its value by a shape; NaN if the shape has none, or a fixed one."""
        gradient = self.gradient(fit)
        if gradient is None:
            return np.nan
        if self.name in (ACCURACY, SLOPE):
            return float(self._at(lambda x: fit.shape.at(x, fit.free))[0])
        return float(fit.free[gradient.argmax()])

    def gradient(self, fit: Fit) -> Array | None:
        """Return its derivatives by the free parameters of a shape; None if the shape has none, or a fixed one."""
        if self.name in (ACCURACY, SLOPE):
            return np.asarray(self._at(lambda x: fit.shape.gradient(x, fit.free))[0])
        names = [fit.shape.parameters[i] for i in fit.shape.free]
        return np.eye(len(names))[names.index(self.name)] if self.name in names else None

    def _at(self, function: Callable[[Array], Array]) -> Array:
        """Return a function of (1,) x there, or its derivative."""
        x = np.array([self.x])
        return function(x) if self.name == ACCURACY else (function(x + STEP) - function(x - STEP)) / (2 * STEP)


def weights_of(fits: Sequence[Fit]) -> Array:
    """Return the weights of shapes by AICc, which one of them has at least; 0 of those without, and NEGLIGIBLE ones.

    >>> from types import SimpleNamespace as Fitted
    >>> weights_of([Fitted(aicc=-10.0), Fitted(aicc=-10.0 + 2 * np.log(3)), Fitted(aicc=np.nan)])
    array([0.75, 0.25, 0.  ])
    """
    found = np.array([fit.aicc for fit in fits], dtype=np.float64)
    lowest = np.nanmin(found)
    if np.isinf(lowest):  # of shapes on which all points lie
        relative = (found == lowest).astype(np.float64)
    else:
        relative = np.where(np.isnan(found), 0, np.exp(-(found - lowest) / 2))
    relative = np.where(relative < NEGLIGIBLE, 0, relative)
    return np.asarray(relative / relative.sum())


def covariance(fit: Fit) -> Array:
    """Return the (P, P) covariance of a shape's free parameters by HC3; 0 of those at their bounds, NaN if singular."""
    inside = _inside(fit)
    design = fit.points.gradient(fit.shape, fit.free)[:, inside]
    residual = fit.points.residuals(fit.shape, fit.free)
    full = np.zeros((len(inside), len(inside)))
    normal = design.T @ design
    if inside.any() and np.linalg.matrix_rank(normal, hermitian=True) < inside.sum():
        return np.full_like(full, np.nan)
    inverse = np.linalg.inv(normal)
    leverage = np.einsum("rp,pq,rq->r", design, inverse, design)
    spread = residual / np.maximum(1 - leverage, 1e-6)
    scores = (design * spread[:, None]) @ inverse
    full[np.ix_(inside, inside)] = scores.T @ scores
    return full


def _inside(fit: Fit) -> npt.NDArray[np.bool_]:
    """Return which free parameters do not lie at their bounds."""
    low, high = (np.array([fit.shape.bounds[i][side] for i in fit.shape.free]) for side in (0, 1))
    return ~fit.at_bounds(low, high)


def degrees_of(fit: Fit, gradient: Array) -> float:
    """Return the degrees of freedom of the variance that `covariance` gives a quantity, for runs of equal spread.

    Those of Bell and McCaffrey 2002: few where a run is the only one of its size, as its residual alone says how much
    that size counts for. NaN where nothing varies.
    """
    points, inside = fit.points, _inside(fit)
    design = points.gradient(fit.shape, fit.free)[:, inside]
    inverse = np.linalg.pinv(design.T @ design)
    hat = design @ inverse @ design.T
    share = (design @ inverse @ gradient[inside]) / np.maximum(1 - np.diag(hat), 1e-6)
    terms = share[:, None] * (np.eye(len(hat)) - hat) * np.sqrt(points.weights)
    products = terms @ terms.T
    squares = float((products**2).sum())
    return float(np.trace(products) ** 2 / squares) if squares > 0 else np.nan


def averaged(fits: Sequence[Fit], quantity: Quantity, confidence: float) -> tuple[float, float, float, float]:
    """Return the average of a quantity over shapes, its limits, and the weight of the shapes that have it.

    All NaN, but for a weight of 0, if none has it; NaN limits where one that has some weight leaves none, as one whose
    parameter lies at its bound, and where nothing varies.
    """
    weights = weights_of(fits)
    rows = []
    z = norm.ppf(0.5 + confidence / 2)
    for fit, weight in zip(fits, weights, strict=True):
        gradient = quantity.gradient(fit) if weight > 0 else None
        if gradient is not None:
            degrees = degrees_of(fit, gradient)
            variance = float(gradient @ covariance(fit) @ gradient) or np.nan  # 0 of a parameter at its bound
            rows.append((weight, quantity.value(fit), variance * (student.ppf(0.5 + confidence / 2, degrees) / z) ** 2))
    if not rows:
        return np.nan, np.nan, np.nan, 0.0
    weight, value, variance = np.array(rows).T
    share = weight / weight.sum()
    mean = float(share @ value)
    error = float(share @ np.sqrt(variance + (value - mean) ** 2)) or np.nan
    return mean, mean - z * error, mean + z * error, float(weight.sum())


def averaged_table(fitted: Sequence[UnitFits], confidence: float) -> pd.DataFrame:
    """Return averages over shapes for each unit: AVERAGED.

    quantity: accuracy and slope (per doubling) at the smallest and the largest size (words), ceiling, and midpoint,
    whose value and limits are in words. Accuracies and ceilings end at 0 and 1. weight: that of the shapes that have
    the quantity. preferred: the shape of the lowest AICc.
    """
    rows = []
    for of in fitted:
        known = [fit for fit in of.fits if not np.isnan(fit.aicc) and not fit.shape.restricted]
        if not known:
            continue
        best = min(known, key=lambda fit: fit.aicc).shape.name
        ends = of.design.x.min(), of.design.x.max()
        dependent = NESTED if of.design.nested else shares_text(of.design)
        quantities = [Quantity(name, x) for x in ends for name in (ACCURACY, SLOPE)]
        for quantity in [*quantities, Quantity(CEILING), Quantity(MIDPOINT)]:
            value, low, high, weight = averaged(known, quantity, confidence)
            low, high = (np.nan, np.nan) if dependent else (low, high)
            if quantity.name in (ACCURACY, CEILING):
                low, high = np.clip([low, high], 0, 1)
            elif quantity.name == MIDPOINT:
                value, low, high = (float(np.exp2(np.clip(x, -1000, 1000))) for x in (value, low, high))
            row = (of.group, of.level, of.name, quantity.name, 2.0**quantity.x, value, low, high, weight, best)
            rows.append((*row, f"{dependent}: no limits" if dependent else ""))
    return pd.DataFrame(rows, columns=AVERAGED)
