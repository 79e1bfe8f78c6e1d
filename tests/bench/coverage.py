"""Measure how often 95% intervals contain the true value in simulated studies, and how wide they are.

    python tests/bench/coverage.py [--studies N]    writes analysis/results/coverage.csv, in about a minute

Each study has runs at several sizes. A run's expected accuracy is its size's accuracy plus a random effect, and it is
scored on a number of minimal pairs. The true value is the mean over new samples of this corpus and new initialisations.

Columns: design, runs (per size), pairs, quantity, method, used (by pairscale), studies, covered (share of intervals
that contain the true value), none (share of studies without an interval, because no run varies), width (mean width,
relative to an oracle that knows the estimate's standard deviation and uses the normal quantile).
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.curves.lines import ROUNDING, Line, fit_line, item_variances
from pairscale.tables import write_csv

FILE = Path(__file__).parents[2] / "analysis" / "results" / "coverage.csv"
RESAMPLES, CORPUS, PARADIGMS, CENTRE = 399, 64, 4, 0.6  # CORPUS is the number of text units to draw samples from
HC3, SEEDS, OLS = "HC3, t(R - 2)", "slopes of seeds, t(S - 1)", "OLS, t(R - 2)"
HC2, BOOTSTRAP = "HC2, Bell-McCaffrey", "bootstrap of runs"
WELCH, POOLED = "HC3, Welch", "HC3, t(2R - 4)"
RUNS_ONLY, TWO_WAY = "runs only", "runs and items"
SHAPES = {
    "line": lambda at: 0.55 + 0.25 * at,
    "late": lambda at: 0.55 + 0.25 * at**3,
    "logistic": lambda at: 0.55 + 0.25 / (1 + np.exp(-10 * (at - 0.5))),
    "ceiling": lambda at: 0.96 + 0.03 * at,
    "top": lambda at: 0.985 + 0.013 * at,
    "flat": lambda at: 0.55 + 0.0 * at,
}


@dataclass(frozen=True)
class Design:
    """A study's design, with `counts` runs at each size and standard deviations `spread` of their accuracies."""

    counts: tuple[int, ...]
    spread: tuple[float, ...] | float = 0.03
    shape: str = "line"
    pairs: int = 500
    kind: str = "normal"  # normal | heavy tails | failed runs | overlap | nested

    @cached_property
    def size(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def seed(self) -> np.ndarray:
        return np.concatenate([np.arange(count) for count in self.counts])

    @cached_property
    def x(self) -> np.ndarray:
        return 17.0 + 6 * self.size / (len(self.counts) - 1)

    @cached_property
    def deviation(self) -> np.ndarray:
        """The standard deviation of each run's accuracy (R,)."""
        return np.broadcast_to(self.spread, len(self.counts))[self.size]

    @property
    def line(self) -> Line:
        return fit_line(self.x, self.size, self.seed if self.kind == "nested" else None)

    def effects(self, rng: np.random.Generator, studies: int) -> np.ndarray:
        """Draw each run's deviation from the accuracy of its size (R, studies). The mean over new runs is 0."""
        shape, deviation = (len(self.x), studies), self.deviation[:, None]
        if self.kind == "heavy tails":
            return deviation * rng.standard_t(3, shape) / np.sqrt(3)
        if self.kind == "nested":
            seeds = self.seed.max() + 1
            tilt = rng.normal(0, 0.012, (seeds, studies))[self.seed] * (self.x - self.x.mean())[:, None]
            return 0.5 * deviation * rng.normal(size=shape) + rng.normal(0, 0.02, (seeds, studies))[self.seed] + tilt
        if self.kind == "overlap":  # the samples have 1, 2, 4, ... units of one corpus, up to 3/4 of it
            drawn = np.maximum(1, (0.75 * CORPUS * 2.0 ** (self.size - self.size.max())).astype(int))
            units = rng.normal(size=(studies, 1, CORPUS))
            order = rng.random((studies, len(self.x), CORPUS)).argsort(axis=2).argsort(axis=2)
            inside = order < drawn[None, :, None]
            text = ((units * inside).sum(axis=2) / drawn - units.mean(axis=2)).T
            return deviation * (np.sqrt(0.5) * rng.normal(size=shape) + text)
        return deviation * rng.normal(size=shape)

    def accuracies(self, rng: np.random.Generator, effects: np.ndarray) -> np.ndarray:
        """Draw the accuracies (R, studies) of runs with these effects, from binomial judgements."""
        expected = SHAPES[self.shape]((self.x - 17) / 6)[:, None] + effects
        if self.kind == "failed runs":
            expected = np.where(rng.random(expected.shape) < 0.07, 0.5, expected)
        return rng.binomial(self.pairs, np.clip(expected, 0, 1)) / self.pairs


ONE_WIDE, LAST_WIDE = (0.1, 0.01, 0.01, 0.01), (0.01, 0.01, 0.01, 0.1)
DESIGNS = {
    "10x5": Design((5,) * 10), "4x5": Design((5,) * 4), "10x2": Design((2,) * 10), "4x2": Design((2,) * 4),
    "3x2": Design((2,) * 3), "2x5": Design((5, 5)), "2x2": Design((2, 2)),
    "4x2, spread falls": Design((2,) * 4, (0.06, 0.04, 0.03, 0.02)),
    "4x3, heavy tails": Design((3,) * 4, kind="heavy tails"),
    "4x3, 7% failed runs": Design((3,) * 4, kind="failed runs"),
    "4x3, spread x10 at the smallest": Design((3,) * 4, ONE_WIDE),
    "4x5, spread x10 at the largest": Design((5,) * 4, LAST_WIDE),
    "3x2, spread x5 at the largest": Design((2,) * 3, (0.01, 0.01, 0.05)),
    "2,2,2,5 runs": Design((2, 2, 2, 5)), "5,5,5,1 runs": Design((5, 5, 5, 1)), "1,1,5,5 runs": Design((1, 1, 5, 5)),
    "6x2, late rise": Design((2,) * 6, shape="late"), "4x5, logistic": Design((5,) * 4, shape="logistic"),
    "8x1": Design((1,) * 8), "4x1": Design((1,) * 4), "8x1, late rise": Design((1,) * 8, shape="late"),
    "4x5, ceiling, 20 pairs": Design((5,) * 4, 0.005, "ceiling", 20),
    "4x2, ceiling, 20 pairs": Design((2,) * 4, 0.005, "ceiling", 20),
    "4x2, at the ceiling, 20 pairs": Design((2,) * 4, 0.002, "top", 20),
    "6x5, overlap up to 75%": Design((5,) * 6, kind="overlap"),
    "6x2, overlap up to 75%": Design((2,) * 6, kind="overlap"),
    "4x5, nested": Design((5,) * 4, kind="nested"), "4x3, nested": Design((3,) * 4, kind="nested"),
}  # fmt: skip
COMPARED = {
    "4x5": (Design((5,) * 4), Design((5,) * 4)),
    "4x2": (Design((2,) * 4), Design((2,) * 4)),
    "4x5, spread x5 in one curve": (Design((5,) * 4, 0.05), Design((5,) * 4, 0.01)),
    "4x2, spread x5 in one curve": (Design((2,) * 4, 0.05), Design((2,) * 4, 0.01)),
    "4x5 and 4x2": (Design((5,) * 4), Design((2,) * 4)),
}
ITEMS = {"4x5, 100 items": (Design((5,) * 4), 25), "4x5, 1,000 items": (Design((5,) * 4), 250),
         "4x2, 100 items": (Design((2,) * 4), 25)}  # fmt: skip


class Limits(NamedTuple):
    """A method's intervals in all studies."""

    method: str
    used: bool
    low: np.ndarray
    high: np.ndarray


def t_limits(method: str, used: bool, estimate: np.ndarray, variance: np.ndarray, degrees: float) -> Limits:
    half = student.ppf(0.975, degrees) * np.sqrt(np.where(variance > ROUNDING, variance, np.nan))
    return Limits(method, used, estimate - half, estimate + half)


def slope_limits(design: Design, y: np.ndarray, rng: np.random.Generator) -> Iterator[Limits]:
    """Yield each method's intervals for the slopes of the accuracies `y` (R, studies)."""
    line = design.line
    if design.kind == "nested":
        yield t_limits(SEEDS, True, line.slope @ y, line.variances(y)[1], line.degrees)
    plain = fit_line(design.x, design.size)
    slope = plain.slope @ y
    yield t_limits(HC3, design.kind != "nested", slope, plain.variances(y)[1], plain.degrees)
    centred = design.x - design.x.mean()
    hat = 1 / len(centred) + np.outer(centred, centred) / (centred**2).sum()
    residual, free = y - hat @ y, 1 - np.diag(hat)
    of_ols = (residual**2).sum(axis=0) / plain.degrees / (centred**2).sum()
    yield t_limits(OLS, False, slope, of_ols, plain.degrees)
    weights = plain.slope**2 / free
    form = (np.eye(len(centred)) - hat) * weights @ (np.eye(len(centred)) - hat)
    degrees = np.trace(form) ** 2 / np.trace(form @ form)
    yield t_limits(HC2, False, slope, weights @ residual**2, degrees)
    if min(design.counts) > 1:
        drawn = np.concatenate([rng.multinomial(n, np.full(n, 1 / n), RESAMPLES) for n in design.counts], axis=1)
        resampled = (drawn * plain.slope) @ y
        low, high = np.quantile(resampled, [0.025, 0.975], axis=0)
        yield Limits(BOOTSTRAP, False, np.where(high - low > 1e-12, low, np.nan), high)


def rows(design: str, one: Design, quantity: str, limits: Iterator[Limits], error: np.ndarray, truth) -> list[dict]:
    """Return the table's rows for a quantity. `error` contains each study's estimate minus the true value."""
    oracle = 2 * norm.ppf(0.975) * error.std()
    table = []
    for method, used, low, high in limits:
        known = np.isfinite(low)
        inside = ((low <= truth) & (truth <= high))[known]
        table.append({
            "design": design, "runs": ",".join(map(str, one.counts)), "pairs": one.pairs, "quantity": quantity,
            "method": method, "used": used, "studies": len(low), "covered": inside.mean().round(4),
            "none": (1 - known.mean()).round(4), "width": ((high - low)[known].mean() / oracle).round(3),
        })  # fmt: skip
    return table


def expected_slope(design: Design, rng: np.random.Generator) -> float:
    """Estimate the expected slope of new runs from many simulated runs."""
    means = np.mean([design.accuracies(rng, design.effects(rng, 2000)).mean(axis=1) for _ in range(30)], axis=0)
    of_size = np.bincount(design.size, means) / np.bincount(design.size)
    return float(design.line.slope @ of_size[design.size])


def slopes(studies: int, rng: np.random.Generator) -> list[dict]:
    table = []
    for name, design in DESIGNS.items():
        truth, y = expected_slope(design, rng), design.accuracies(rng, design.effects(rng, studies))
        table += rows(name, design, "slope", slope_limits(design, y, rng), design.line.slope @ y - truth, truth)
    return table


def differences(studies: int, rng: np.random.Generator) -> list[dict]:
    """Compare two curves with different slopes, and curves whose runs share half of their variance through samples."""
    table = []
    for name, (a, b) in COMPARED.items():
        b = replace(b, shape="flat")
        truth = expected_slope(a, rng) - expected_slope(b, rng)
        effects = [of.effects(rng, studies) for of in (a, b)]
        y = [of.accuracies(rng, effect) for of, effect in zip((a, b), effects, strict=True)]
        lines = [of.line for of in (a, b)]
        estimate = lines[0].slope @ y[0] - lines[1].slope @ y[1]
        v, w = (line.variances(of)[1] for line, of in zip(lines, y, strict=True))
        degrees = (v + w) ** 2 / (v**2 / lines[0].degrees + w**2 / lines[1].degrees)
        limits = [t_limits(WELCH, True, estimate, v + w, degrees)]
        limits.append(t_limits(POOLED, False, estimate, v + w, lines[0].degrees + lines[1].degrees))
        table += rows(name, a, "difference", iter(limits), estimate - truth, truth)
        if a.counts == b.counts:
            shared = np.sqrt(0.5) * (b.deviation / a.deviation)[:, None] * effects[0] + np.sqrt(0.5) * effects[1]
            change = y[0] - b.accuracies(rng, shared)
            limits = [t_limits(HC3, True, lines[0].slope @ change, lines[0].variances(change)[1], lines[0].degrees)]
            table += rows(name, a, "paired difference", iter(limits), lines[0].slope @ change - truth, truth)
    return table


def new_items(studies: int, rng: np.random.Generator) -> list[dict]:
    """Simulate items with individual difficulties and slopes in fixed paradigms. The true value includes new items."""
    table = []
    for name, (design, items) in ITEMS.items():
        line, paradigm = design.line, np.repeat(np.arange(PARADIGMS), items)
        estimates, variances = [], []
        centred = (design.x - design.x.mean())[:, None]
        for _ in range(studies // 2):
            level = CENTRE + rng.uniform(-0.15, 0.15, len(paradigm)) + rng.normal(0, 0.03, len(paradigm)) * centred
            expected = level + 0.02 * centred + design.effects(rng, 1)
            judged = (rng.random(expected.shape) < np.clip(expected, 0, 1)).astype(float)
            of_items, overlap = item_variances(line, judged, paradigm)
            y = judged.mean(axis=1, keepdims=True)
            of_runs = line.variances(y)[1][0]
            both = of_items.sum() / PARADIGMS**2
            two_way = max(of_runs + both - overlap.sum() / PARADIGMS**2, of_runs, both)
            estimates.append(line.slope @ y[:, 0])
            variances.append((of_runs, two_way))
        estimate, variance = np.array(estimates), np.array(variances).T
        limits = [
            t_limits(of, of == TWO_WAY, estimate, v, line.degrees)
            for of, v in zip((RUNS_ONLY, TWO_WAY), variance, strict=True)
        ]
        described = replace(design, pairs=len(paradigm))
        table += rows(name, described, "slope, new items", iter(limits), estimate - 0.02, 0.02)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=4000)
    studies, rng = parser.parse_args().studies, np.random.default_rng(1)
    table = pd.DataFrame([*slopes(studies, rng), *differences(studies, rng), *new_items(studies, rng)])
    write_csv(FILE, table)
    shown = table.assign(both=(100 * table["covered"]).round(1).astype(str) + " / " + table["width"].astype(str))
    wide = shown.pivot(index=["quantity", "design"], columns="method", values="both").fillna("-")
    print(wide.loc[list(dict.fromkeys(zip(table["quantity"], table["design"], strict=True)))].to_string())


if __name__ == "__main__":
    main()
