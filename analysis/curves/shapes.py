"""Shapes of a learning curve besides the line: sigmoids and a power law, fitted by bounded least squares.

x is log2(words) everywhere. Warstadt et al. 2020 (section 6.3) conjecture a sigmoid. Shapes are compared by AICc
(Hurvich and Tsai 1989), the residual variance counted as a parameter. None is fitted to fewer than six sizes, or to
checkpoints of a single training, whose deviations from a curve are not independent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import least_squares
from scipy.special import expit, logit
from statsmodels.tools import eval_measures

from analysis.curves.designs import Design, fit_lines
from analysis.curves.groups import fit_groups
from analysis.curves.units import units_of
from analysis.curves.variance import Array
from analysis.study.judgements import Judgements

MIN_SIZES = 6
CHANCE = 0.5
LINE = "line"
STARTS = 3  # of each fit: the best points of as many parts of a grid
TOLERANCE, MOST_EVALUATIONS = 1e-12, 400
AT_BOUND = 1e-4  # share of a parameter's range from its bound at which the fit is said to lie there


@dataclass(frozen=True)
class Shape:
    """A curve of four parameters, of which those that are None in `fixed` are fitted, within `bounds`.

    sigmoid: chance + (ceiling - chance) / (1 + exp(-rate (x - midpoint))), rate per doubling.
    power law: ceiling - gap * 2^(-rate (x - origin)), which is ceiling - gap * (words / first words)^-rate; origin is
    the smallest size's x. line: intercept + slope (x - origin).
    """

    name: str
    kind: str  # sigmoid | power law | line
    fixed: tuple[float | None, ...]
    origin: float
    bounds: tuple[tuple[float, float], ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in order; the first two enter linearly."""
        names = {"sigmoid": ("chance", "ceiling", "rate", "midpoint"), "power law": ("ceiling", "gap", "rate")}
        return names.get(self.kind, ("intercept", "slope"))

    @property
    def free(self) -> tuple[int, ...]:
        return tuple(i for i, value in enumerate(self.fixed) if value is None)

    @property
    def restricted(self) -> bool:
        """Return True if a parameter is fixed: a special case of another shape."""
        return any(value is not None for value in self.fixed)

    def full(self, free: Array) -> list[float]:
        """Return all parameters, from the free ones."""
        values = list(self.fixed)
        for i, value in zip(self.free, free, strict=True):
            values[i] = float(value)
        return [math.nan if value is None else value for value in values]

    def at(self, x: Array, free: Array) -> Array:
        """Return accuracies at x."""
        p = self.full(free)
        first, second = self._basis(x, *p[2:])
        return p[0] * first + p[1] * second

    def gradient(self, x: Array, free: Array) -> Array:
        """Return the derivatives of `at`, (len(x), free parameters)."""
        p = self.full(free)
        columns = list(self._basis(x, *p[2:]))
        if self.kind == "sigmoid":
            slope = (p[1] - p[0]) * columns[1] * columns[0]
            columns += [slope * (x - p[3]), -slope * p[2]]
        elif self.kind == "power law":
            columns.append(p[1] * columns[1] * (-math.log(2)) * (x - self.origin))
        return np.stack([columns[i] for i in self.free], axis=-1)

    def _basis(self, x: Array, *nonlinear: float) -> tuple[Array, Array]:
        """Return the factors of the first two parameters."""
        if self.kind == "sigmoid":
            rise = expit(nonlinear[0] * (x - nonlinear[1]))
            return 1 - rise, rise
        if self.kind == "power law":
            return np.ones_like(x), -np.exp2(-nonlinear[0] * (x - self.origin))
        return np.ones_like(x), x - self.origin

    def can_reach(self, accuracy: float) -> bool:
        """Return False if a fixed ceiling keeps the curve below an accuracy, whatever its free parameters are."""
        ceiling = self.fixed[1] if self.kind == "sigmoid" else None
        return ceiling is None or ceiling > accuracy

    def reaches(self, accuracy: float, free: Array) -> float:
        """Return the x at which the curve takes a value; inf if it stays below, NaN if above or if it falls to it."""
        p = self.full(free)
        if self.kind == "line":
            return self.origin + (accuracy - p[0]) / p[1] if p[1] > 0 else math.inf
        low, ceiling = (p[0], p[1]) if self.kind == "sigmoid" else (-math.inf if p[1] > 0 else math.inf, p[0])
        if ceiling <= low:
            return math.nan if ceiling >= accuracy else math.inf
        if not low < accuracy < ceiling:
            return math.inf if accuracy >= ceiling else math.nan
        if self.kind == "sigmoid":
            return p[3] + float(logit((accuracy - low) / (ceiling - low))) / p[2]
        return self.origin - math.log2((ceiling - accuracy) / p[1]) / p[2]


@dataclass(frozen=True)
class Points:
    """Accuracies `y` of R runs at `x`, log2(words), each (R,); `weights` (R,) of their squares have the mean 1."""

    x: Array
    y: Array
    weights: Array

    def residuals(self, shape: Shape, free: Array) -> Array:
        """Return the (R,) weighted residuals of a curve."""
        return np.sqrt(self.weights) * (shape.at(self.x, free) - self.y)

    def gradient(self, shape: Shape, free: Array) -> Array:
        """Return the derivatives of `residuals`, (R, free parameters)."""
        return np.sqrt(self.weights)[:, None] * shape.gradient(self.x, free)


@dataclass(frozen=True)
class Fit:
    """A shape fitted to points: free parameters, sum of squares, and a note for the reader."""

    shape: Shape
    points: Points
    free: Array
    squares: float
    note: str = ""
    converged: bool = True

    @property
    def runs(self) -> int:
        return len(self.points.x)

    def at_bounds(self, low: Array, high: Array) -> npt.NDArray[np.bool_]:
        """Return which free parameters lie at their bounds, (P,) `low` and `high`."""
        margin = AT_BOUND * (high - low)
        return np.asarray((self.free - low < margin) | (high - self.free < margin))

    @property
    def aicc(self) -> float:
        return aicc(self.squares, self.runs, len(self.free) + 1) if self.converged else math.nan


def aicc(squares: float, runs: int, parameters: int) -> float:
    """Return AICc of a least-squares fit with normal residuals; `parameters` include the residual variance."""
    if runs - parameters - 1 <= 0:
        return math.nan
    log_likelihood = math.inf if squares <= 0 else -runs / 2 * (math.log(2 * math.pi * squares / runs) + 1)
    return float(eval_measures.aicc(log_likelihood, runs, parameters))


def sigmoid(x: Array, chance: float | None = None, ceiling: float | None = None, name: str = "sigmoid") -> Shape:
    """Return a sigmoid for curves measured at `x`: chance and ceiling lie between 0 and 1 unless they are fixed."""
    low, high = float(x.min()), float(x.max())
    span = high - low
    bounds = ((0.0, 1.0), (0.0, 1.0), (0.1 / span, max(5.0, 20 / span)), (low - 2 * span, high + 2 * span))
    return Shape(name, "sigmoid", (chance, ceiling, None, None), low, bounds)


def power_law(x: Array) -> Shape:
    """Return a power law of the words for curves measured at `x`: its ceiling lies between 0 and 1."""
    low, span = float(x.min()), float(np.ptp(x))
    return Shape("power law", "power law", (None, None, None), low, ((0.0, 1.0), (-1.0, 1.0), (0.02 / span, 5.0)))


def line(x: Array) -> Shape:
    return Shape(LINE, "line", (None, None), float(x.min()), ((-math.inf, math.inf), (-math.inf, math.inf)))


def fit_shape(shape: Shape, x: Array, y: Array, weights: Array | None = None) -> Fit:
    """Fit (R,) accuracies at (R,) log2(words) by least squares from the best points of a grid, within the bounds.

    `weights` (R,) of the squares, of which only the ratios matter; None: equal. Squares are those of weights that have
    the mean 1. The note says which parameters lie at their bounds: the curve is simpler (a step, a straight piece).
    """
    weights = np.ones(len(x)) if weights is None else weights / weights.mean()
    points = Points(x, y, weights)
    if shape.kind == "line":
        straight = fit_lines(x, y[:, None], weights)
        slope = float(straight.slope[0])
        free = np.array([straight.intercept[0] + slope * shape.origin, slope])
        return Fit(shape, points, free, float((weights * (y - shape.at(x, free)) ** 2).sum()))
    low, high = (np.array([shape.bounds[i][side] for i in shape.free]) for side in (0, 1))
    best, failed = None, ""
    scale, inside = np.minimum(high - low, 1.0), 1e-9 * (high - low)
    for start in _starts(shape, points):
        result = least_squares(
            partial(points.residuals, shape), np.clip(start, low + inside, high - inside),
            jac=partial(points.gradient, shape), bounds=(low, high), x_scale=scale,
            max_nfev=MOST_EVALUATIONS, xtol=TOLERANCE, ftol=TOLERANCE, gtol=TOLERANCE,
        )  # fmt: skip
        if result.status <= 0:
            failed = result.message
        elif best is None or result.cost < best.cost:
            best = result
    if best is None:
        unknown = np.full(len(low), math.nan)
        return Fit(shape, points, unknown, math.nan, f"did not converge: {failed}", converged=False)
    names, margin = np.array(shape.parameters)[list(shape.free)], AT_BOUND * (high - low)
    at_bound = [*names[best.x - low < margin], *names[high - best.x < margin]]
    note = f"at the bound of its {' and '.join(at_bound)}" if at_bound else ""
    return Fit(shape, points, best.x, float(2 * best.cost), note)


def _starts(shape: Shape, points: Points) -> list[Array]:
    """Return the best parameters on a grid of the nonlinear ones, one set for each part of the rates."""
    x, root = points.x, np.sqrt(points.weights)
    y = root * points.y
    rates = np.geomspace(*shape.bounds[2], 3 * STARTS)
    grid = rates[:, None]
    if shape.kind == "sigmoid":
        middles = np.linspace(*shape.bounds[3], 21)
        grid = np.stack([np.repeat(rates, len(middles)), np.tile(middles, len(rates))], axis=1)
    basis = root * np.stack([np.stack(shape._basis(x, *point)) for point in grid])  # (G, 2, R)
    linear = np.array([[math.nan if value is None else value for value in shape.fixed[:2]]] * len(grid))
    open_ = [i for i in (0, 1) if shape.fixed[i] is None]
    target = y - np.einsum("gi,gir->gr", np.nan_to_num(linear), basis)
    if open_:
        part = basis[:, open_]
        normal = part @ part.swapaxes(1, 2) + 1e-9 * np.eye(len(open_))
        linear[:, open_] = np.linalg.solve(normal, np.einsum("gir,gr->gi", part, target)[..., None])[..., 0]
    for i in open_:
        linear[:, i] = np.clip(linear[:, i], *shape.bounds[i])
    squares = ((y - np.einsum("gi,gir->gr", linear, basis)) ** 2).sum(axis=1)
    parameters = np.concatenate([linear, grid], axis=1)[:, list(shape.free)]
    starts = []
    for part in np.array_split(rates, STARTS):
        (there,) = np.nonzero((grid[:, 0] >= part[0]) & (grid[:, 0] <= part[-1]))
        starts.append(parameters[there[squares[there].argmin()]])
    return starts


def shapes_for(x: Array, people: float | None) -> list[Shape]:
    """Return the shapes to compare; `people`: accuracy of people, or None."""
    shapes = [line(x), sigmoid(x, CHANCE, 1.0, "sigmoid from .5 to 1"), sigmoid(x), power_law(x)]
    if people is not None and people > CHANCE:
        shapes.insert(2, sigmoid(x, CHANCE, people, "sigmoid from .5 to people"))
    return shapes


def preferred(fits: Sequence[Fit]) -> Fit | None:
    """Return the fit with the lowest AICc; None where none has one."""
    compared = [fit for fit in fits if not math.isnan(fit.aicc)]
    return min(compared, key=lambda fit: fit.aicc) if compared else None


@dataclass(frozen=True)
class UnitFits:
    """All shapes fitted to the runs of a group in one unit."""

    group: str
    level: str
    name: str
    design: Design
    fits: Sequence[Fit]


def unit_fits(
    judged: Judgements, people: pd.DataFrame, levels: Sequence[str] = ("overall", "phenomenon", "paradigm")
) -> list[UnitFits]:
    """Fit all shapes in all units of the requested levels, for groups with MIN_SIZES sizes or more.

    `people`: level, name, accuracy (words_to_people.people_accuracy).
    """
    units = units_of(judged.pairs)
    known = people.set_index(["level", "name"])["accuracy"].to_dict()
    found = []
    for fit in fit_groups(judged, units, "t"):
        x = fit.design.x
        if len(fit.design.counts) < MIN_SIZES or fit.design.trajectory:
            continue
        for u, (level, name) in enumerate(units.table[["level", "name"]].itertuples(index=False)):
            if level in levels:
                shapes = shapes_for(x, known.get((level, name)))
                fits = [fit_shape(shape, x, fit.y[:, u], fit.design.weights) for shape in shapes]
                found.append(UnitFits(fit.group, level, name, fit.design, fits))
    return found


def shape_table(fitted: Sequence[UnitFits]) -> pd.DataFrame:
    """Return one row per group, unit and shape.

    Columns: parameters of the shape (midpoint in log2 words, intercept at the smallest size), runs, sizes, parameters
    (with the variance), squares, aicc, above (AICc above the lowest), preferred, converged, note.
    """
    rows = []
    for unit in fitted:
        best, sizes = preferred(unit.fits), len(unit.design.counts)
        for of in unit.fits:
            row = {"group": unit.group, "level": unit.level, "name": unit.name, "shape": of.shape.name, "runs": of.runs}
            row |= {"sizes": sizes} | dict(zip(of.shape.parameters, of.shape.full(of.free), strict=True))
            row |= {"parameters": len(of.free) + 1, "squares": of.squares, "aicc": of.aicc}
            row |= {"above": of.aicc - best.aicc if best else math.nan, "preferred": of is best}
            rows.append({**row, "converged": of.converged, "note": of.note or _few(of)})
    columns = ["group", "level", "name", "shape", "chance", "ceiling", "rate", "midpoint", "gap", "intercept", "slope"]
    columns += ["runs", "sizes", "parameters", "squares", "aicc", "above", "preferred", "converged", "note"]
    return pd.DataFrame(rows).reindex(columns=columns)


def _few(fit: Fit) -> str:
    note = f"not compared: {fit.runs} runs are too few for {len(fit.free) + 1} parameters"
    return note if fit.converged and math.isnan(fit.aicc) else ""
