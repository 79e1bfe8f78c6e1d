"""Coverage of the analysis's 95% intervals in simulated studies of known truth.

    python tests/bench/coverage.py [--studies N] [--resamples N] [--designs NAME ...] [--processes N] [--csv FILE]

One row for each design, quantity and level; "worst phenomenon" is the phenomenon with the lowest coverage. With
1,000 studies the standard error of a coverage of 95% is .7%. Each design has random numbers of its own, so its rows are
the same whatever other designs are simulated. Studies are those of tests/support/simulated_judgements.py: pairs crossed
with runs, a spread between runs of any pattern, accuracies expected at the sizes on a line, a sigmoid or a curve that
rises late (whose slope is that of the line through them, sizes weighted equally). QUANTITIES has a function for each
quantity, which yields rows; a function added there adds a quantity. Limits of slopes and of their differences are those
of a report that keeps conservative ones: none: share of studies without limits, as where they would be rough.
"""

import argparse
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.config import CONSERVATIVE, CurvesConfig
from analysis.curves.comparisons import difference_cautions, slope_difference
from analysis.curves.coverage import DESIGN, FILE, counts_text
from analysis.curves.fit import CHANCE, inverse_trials, onset, spread_limits
from analysis.curves.groups import GroupFit, cautions, cautions_left, fit_group, slope_limits
from analysis.curves.intervals import Interval, judgement_floor, lack_of_fit, resampled_accuracies, run_terms, t_limits
from analysis.curves.words_to_people import line_reaches, slope_quantile
from tests.support.bench_tables import write_designs
from tests.support.simulated_judgements import SimulatedJudgements

PEOPLE = 0.93  # their true accuracy in each unit
ASKED = 100  # judgements of people of each paradigm
LEVELS = {"overall": [0], "worst phenomenon": [1, 2], "paradigm": [3]}  # rows of Units.table
KEYS = [*DESIGN, "quantity", "question", "level", "interval", "used"]
THESE, NEW = "these pairs", "new pairs too"
SHARED = 0.5  # share of the variance between runs that the same text gives two models
CONFIG = CurvesConfig(
    method="lp", interval="auto", confidence=0.95, resamples=300, seed=1, cautioned_limits=CONSERVATIVE
)
LATE = ((0.45, 0.03), (0.5, 0.03), (0.55, 0.02), (0.5, 0.01))
CEILING = ((0.997, 0.0), (0.99, 0.0005), (0.9, 0.01), (0.98, 0.001))

DESIGNS = {
    "4x5 line, spread falls": SimulatedJudgements(5, 4),
    "4x5 sigmoid, spread rises": SimulatedJudgements(5, 4, "sigmoid", (0.12, 0.35)),
    "10x5 line, spread falls": SimulatedJudgements(5, 10),
    "3x5 line, spread falls": SimulatedJudgements(5, 3),
    "4x2 line, spread falls": SimulatedJudgements(2, 4),
    "4x2 line, spread rises": SimulatedJudgements(2, 4, run_sd=(0.12, 0.35)),
    "4x2 sigmoid, spread falls": SimulatedJudgements(2, 4, "sigmoid"),
    "10x2 line, spread falls": SimulatedJudgements(2, 10),
    "4x2 line, spread at both ends": SimulatedJudgements(2, 4, run_sd=(0.4, 0.08, 0.08, 0.4)),
    "4x3 line, x5 at the smallest": SimulatedJudgements(3, 4, run_sd=(0.4, 0.08, 0.08, 0.08)),
    "4x5 line, x5 at the smallest": SimulatedJudgements(5, 4, run_sd=(0.4, 0.08, 0.08, 0.08)),
    "4x2 line, x5 at the largest": SimulatedJudgements(2, 4, run_sd=(0.08, 0.08, 0.08, 0.4)),
    "5,5,5,2 line, x3 at the largest": SimulatedJudgements((5, 5, 5, 2), 4, run_sd=(0.12, 0.12, 0.12, 0.36)),
    "4x1 line, spread falls": SimulatedJudgements(1, 4),
    "5,5,1 line, x2 at the largest": SimulatedJudgements((5, 5, 1), 3, run_sd=(0.15, 0.15, 0.3)),
    "5,5,5,1 line, x5 at the largest": SimulatedJudgements((5, 5, 5, 1), 4, run_sd=(0.08, 0.08, 0.08, 0.4)),
    "1,5,5,5 line, x5 at the smallest": SimulatedJudgements((1, 5, 5, 5), 4, run_sd=(0.4, 0.08, 0.08, 0.08)),
    "5,5,5,3,3,1 late, spread falls": SimulatedJudgements((5, 5, 5, 3, 3, 1), 6, "late", (0.2, 0.1), paradigms=LATE),
    "4,3,3,3,3,1 late, spread rises": SimulatedJudgements((4, 3, 3, 3, 3, 1), 6, "late", (0.1, 0.2), paradigms=LATE),
    "4x5 nested": SimulatedJudgements(5, 4, nested=True),
    "10x5 nested": SimulatedJudgements(5, 10, nested=True),
    "5,5,5,3 nested": SimulatedJudgements((5, 5, 5, 3), 4, nested=True),
    "10x5 overlap up to 77%": SimulatedJudgements(5, 10, overlap=0.77),
    "4x2 ceiling, 10 pairs": SimulatedJudgements(2, 4, pairs=10, paradigms=CEILING),
    "4x5 ceiling, 10 pairs": SimulatedJudgements(5, 4, pairs=10, paradigms=CEILING),
    "4x5 ceiling, 100 pairs": SimulatedJudgements(5, 4, paradigms=CEILING),
}
# Runs of each size of another group, which is compared with the design.
OTHER_RUNS = {"4x5 line, spread falls": [(5, 5, 5, 1), (1, 1, 1, 1)]}


@dataclass(frozen=True)
class Draw:
    """A simulated study with its fit."""

    design: str
    cell: SimulatedJudgements
    config: CurvesConfig
    rng: np.random.Generator
    pairs: tuple[np.ndarray, np.ndarray]
    runs: np.ndarray
    outcome: np.ndarray
    expected: np.ndarray  # (S, K) accuracies over new runs, for these pairs
    fit: GroupFit

    @property
    def units(self):
        return self.cell.units

    def another_study(
        self, cell: SimulatedJudgements, runs: np.ndarray, pairs=None
    ) -> tuple[GroupFit, np.ndarray, np.ndarray]:
        """Simulate another study by `runs`, on these or other pairs; return fit, outcomes, expected accuracies."""
        outcome, expected = cell.draw(self.rng, self.pairs if pairs is None else pairs, runs)
        return self.fitted(outcome), outcome, expected

    def fitted(self, outcome: np.ndarray) -> GroupFit:
        return fit_group("other", outcome, self.cell.design, self.units, self.config.interval)

    @cached_property
    def floor(self) -> np.ndarray:
        """(S, U) variance of the means of sizes due to chance in single judgements."""
        design, sizes = self.cell.design, range(self.cell.sizes)
        of_size = [np.where(design.size == s, design.weights, 0) for s in sizes]
        return np.stack([judgement_floor(self.outcome, c, design.size, self.units) for c in of_size])


@dataclass(frozen=True)
class Limits:
    """Interval limits and true value of one quantity in all units, each (U,)."""

    quantity: str
    question: str
    interval: str
    low: np.ndarray
    high: np.ndarray
    truth: np.ndarray
    used: bool = True  # by the analysis; the others are for comparison
    outside: np.ndarray | bool = False  # the confidence set is the complement of the interval


def given(limits: np.ndarray, reasons: np.ndarray, config: CurvesConfig) -> np.ndarray:
    """Return the limits that a report has, NaN where it leaves them out; `reasons`: cautions of the units."""
    _, left_out = cautions_left(reasons, config)
    return np.where(left_out == "", limits, np.nan)


def slopes(draw: Draw) -> Iterator[Limits]:
    cell, fit, config = draw.cell, draw.fit, draw.config
    truth = cell.slope_of(draw.expected)
    resampled = None
    if fit.method == Interval.BOOTSTRAP:
        generator = np.random.default_rng([config.seed, 0])
        resampled = resampled_accuracies(draw.outcome, draw.units.bounds, config.resamples, generator)
    limits = [given(of, cautions(fit), config) for of in slope_limits(fit, config, resampled)]
    yield Limits("slope", THESE, fit.method.rule, limits[0], limits[1], truth)
    yield Limits("slope", NEW, fit.method.rule, limits[2], limits[3], cell.slope_new_pairs)
    for method in (Interval.T_SIZES, Interval.T_HC3, Interval.T_HC2):
        if method != fit.method.rule and ((cell.design.counts > 1).all() or method == Interval.T_HC3):
            terms = run_terms(method, cell.design, cell.design.contrast)
            ends = t_limits(fit.line.slope, np.sqrt(terms.variance(fit.y)), terms.degrees(fit.y), config.confidence)
            yield Limits("slope", THESE, method, *ends, truth, used=False)
    x, runs = cell.design.x, len(fit.y)
    centred = x - x.mean()
    slope = centred @ fit.y / (centred**2).sum()
    residual = ((fit.y - fit.y.mean(axis=0) - np.outer(centred, slope)) ** 2).sum(axis=0)
    ends = t_limits(slope, np.sqrt(residual / (runs - 2) / (centred**2).sum()), np.full(len(slope), runs - 2.0), 0.95)
    yield Limits("slope", THESE, "t interval, one spread", *ends, truth, used=False)


@cache
def half_as_steep(cell: SimulatedJudgements) -> SimulatedJudgements:
    return replace(cell, paradigms=tuple((start, gain / 2) for start, gain in cell.paradigms))


def differences(draw: Draw) -> Iterator[Limits]:
    """Yield differences from a model with half the slopes, and from the same model (false alarms: 1 - coverage)."""
    cell, design = draw.cell, draw.cell.design
    shallower = half_as_steep(cell)
    draws = cell.design.cluster.max() + 1
    apart, same = np.full(draws, -1), np.arange(draws)
    fresh = cell.draw_runs(draw.rng)
    shared = np.sqrt(SHARED) * draw.runs + np.sqrt(1 - SHARED) * cell.draw_runs(draw.rng)
    others = [
        ("difference of slopes", shallower, fresh, apart), ("difference, same model", cell, fresh, apart),
        ("difference, same texts", cell, shared, same),
    ]  # fmt: skip
    for name, other, runs, pairing in others:
        if name == "difference, same texts" and cell.overlap:
            continue
        fit, outcome, expected = draw.another_study(other, runs)
        reasons = difference_cautions(draw.fit, fit)
        limits = slope_difference(draw.fit, fit, draw.config, pairing)
        limits = {end: given(of, reasons, draw.config) for end, of in limits.items()}
        truth = cell.slope_of(draw.expected) - cell.slope_of(expected)
        yield Limits(name, THESE, fit.method.rule, limits["low"], limits["high"], truth)
        truth = cell.slope_new_pairs - other.slope_new_pairs
        yield Limits(name, NEW, fit.method.rule, limits["low_new_pairs"], limits["high_new_pairs"], truth)
    for runs in OTHER_RUNS.get(draw.design, []):
        yield unequal_runs(draw, replace(cell, seeds=runs))
    if not design.nested and not cell.overlap:
        other_pairs = cell.draw_pairs(draw.rng)
        _, outcome, expected = draw.another_study(cell, draw.runs, other_pairs)
        units = replace(draw.units, differences=True)
        change = fit_group("change", outcome - draw.outcome, design, units, draw.config.interval)
        ends = t_limits(change.line.slope, change.errors.runs, change.errors.degrees, draw.config.confidence)
        truth = cell.slope_of(expected) - cell.slope_of(draw.expected)
        yield Limits("matched slopes", THESE, change.method.rule, *ends, truth)


def unequal_runs(draw: Draw, other: SimulatedJudgements) -> Limits:
    """Compare the model with itself with other numbers of runs, which choose the method of both."""
    outcome, expected = other.draw(draw.rng, draw.pairs)
    first, second = (
        fit_group("g", of, cell.design, draw.units, draw.config.interval, other.design)
        for cell, of in ((draw.cell, draw.outcome), (other, outcome))
    )
    apart = np.full(len(outcome), -1)
    limits = slope_difference(first, second, draw.config, apart)
    truth = draw.cell.slope_of(draw.expected) - other.slope_of(expected)
    name = f"difference, same model of {counts_text(other.design.counts)} runs"
    return Limits(name, THESE, second.method.rule, limits["low"], limits["high"], truth)


def accuracies(draw: Draw) -> Iterator[Limits]:
    cell, size = draw.cell, draw.cell.design.size
    per_trial = inverse_trials(draw.outcome, size, draw.units)
    _, low, high = spread_limits(draw.fit.y, size, draw.config.confidence, per_trial, cell.design.overlap)
    truth = draw.expected @ draw.units.weights
    for name, s in (("smallest", 0), ("largest", cell.sizes - 1)):
        yield Limits(f"accuracy at the {name} size", THESE, "Wilson, Student", low[s], high[s], truth[s])
    level = np.full(len(low[0]), CHANCE)
    words = np.exp2(cell.at)
    onsets = np.nan_to_num(onset(words, low, level), nan=np.inf)
    true = np.nan_to_num(onset(words, truth, level), nan=np.inf)
    misses = np.where(onsets >= true, 0.0, 1.0)  # an onset must not be smaller than the true one
    yield Limits("onset", THESE, "lower limits of accuracies", misses - 0.5, misses + 0.5, np.zeros(len(misses)))


def fits(draw: Draw) -> Iterator[Limits]:
    """Yield the test of lack of fit where the truth is a line; coverage is the share not rejected."""
    if draw.cell.shape == "line":
        p = lack_of_fit(draw.fit.method, draw.fit.y, draw.cell.design, draw.floor)
        yield Limits("lack of fit", THESE, "ANOVA-type", 0.05 - p, p * 0 + 1, np.zeros(len(p)))


def words(draw: Draw) -> Iterator[Limits]:
    """Yield log2(words) at which the line reaches people."""
    cell = draw.cell
    if cell.shape != "line" or cell.overlap or cell.paradigms is CEILING:
        return
    people = draw.rng.binomial(ASKED, PEOPLE, size=len(cell.paradigms)) / ASKED
    share = (ASKED * people + 2) / (ASKED + 4)
    error = np.sqrt((share * (1 - share) / (ASKED + 4)) @ cell.units.weights**2)
    _, low, high, bounded = line_reaches(
        draw.fit, people @ cell.units.weights, error, slope_quantile(draw.fit, draw.config)
    )
    level = draw.expected.mean(axis=0) @ cell.units.weights
    at = cell.at.mean() + (PEOPLE - level) / cell.slope_of(draw.expected)
    yield Limits("log2 words to people", THESE, "Fieller", low, high, at, outside=~bounded)


QUANTITIES = (slopes, differences, accuracies, fits, words)


def simulate(name: str, studies: int, config: CurvesConfig = CONFIG, seed: int = 1) -> pd.DataFrame:
    """Return KEYS, studies, covered (share of those with limits), none (share without), width (median) of a design."""
    cell = DESIGNS[name]
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    covers, width = defaultdict(list), defaultdict(list)
    for _ in range(studies):
        pairs, runs = cell.draw_pairs(rng), cell.draw_runs(rng)
        outcome, expected = cell.draw(rng, pairs, runs)
        fit = fit_group("one", outcome, cell.design, cell.units, config.interval)
        at_study = replace(config, seed=int(rng.integers(2**32)))
        draw = Draw(name, cell, at_study, rng, pairs, runs, outcome, expected, fit)
        for limits in (limits for quantity in QUANTITIES for limits in quantity(draw)):
            inside = (limits.low <= limits.truth) & (limits.truth <= limits.high)
            inside = np.where(limits.outside, ~inside, inside)
            limited = np.isfinite(limits.low) | (limits.interval == "Fieller")
            key = (limits.quantity, limits.question, limits.interval, limits.used)
            covers[key].append(np.where(limited, inside, np.nan))
            width[key].append(limits.high - limits.low)
    samples = "nested" if cell.nested else "overlapping" if cell.overlap else "independent"
    rows = []
    for (quantity, question, interval, in_use), of in covers.items():
        limits = np.stack(of)  # (studies, U)
        limited = ~np.isnan(limits)
        covered = np.where(limited, limits, 0).sum(axis=0) / np.where(limited.any(axis=0), limited.sum(axis=0), np.nan)
        for level, units in LEVELS.items():
            u = min(units, key=lambda unit: np.inf if np.isnan(covered[unit]) else covered[unit])
            wide = np.stack(width[quantity, question, interval, in_use])[limited[:, u], u]
            rows.append({
                "design": name, "runs": counts_text(cell.design.counts), "samples": samples, "pairs": cell.pairs,
                "quantity": quantity, "question": question, "level": level, "interval": interval, "used": in_use,
                "studies": studies, "covered": covered[u], "none": 1 - limited[:, u].mean(),
                "width": np.median(wide) if len(wide) else np.nan,
            })  # fmt: skip
    return pd.DataFrame(rows)


def coverage(
    studies: int, resamples: int = CONFIG.resamples, names=None, processes: int = 1, progress=lambda part: None
) -> pd.DataFrame:
    """Simulate all designs, or those of `names`; return KEYS, studies, covered, none, standard_error, width."""
    config = replace(CONFIG, resamples=resamples)
    names_to_run = [name for name in DESIGNS if not names or name in names]
    parts = []
    with ProcessPoolExecutor(processes) as pool:
        for part in pool.map(partial(simulate, studies=studies, config=config), names_to_run):
            parts.append(part)
            progress(part)
    table = pd.concat(parts, ignore_index=True)
    error = np.sqrt(table["covered"] * (1 - table["covered"]) / (table["studies"] * (1 - table["none"])))
    columns = [*KEYS, "studies", "covered", "none", "standard_error", "width"]
    return table.assign(standard_error=error.round(4), width=table["width"].round(5))[columns].round({"covered": 4})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=CONFIG.resamples)
    parser.add_argument("--designs", nargs="+", choices=list(DESIGNS), metavar="NAME", help="all of them if left out")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--csv", type=Path, default=FILE, help="file whose rows of these designs are replaced")
    arguments = parser.parse_args()
    console = Console()

    def progress(part: pd.DataFrame) -> None:
        used = part[part["used"] & (part["none"] < 1)]
        low = used[used["covered"] < 0.93]
        console.print(f"{part['design'].iloc[0]}: {len(used)} rows, below .93: {len(low)}", markup=False)

    table = coverage(arguments.studies, arguments.resamples, arguments.designs, arguments.processes, progress)
    write_designs(arguments.csv, table, list(DESIGNS))
    console.print(f"{arguments.csv}", markup=False)


if __name__ == "__main__":
    main()
