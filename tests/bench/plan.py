"""Power that the planner predicts against the share of simulated studies that find the effect, in ten grids.

    python tests/bench/plan.py [--studies N] [--grids NAME ...] [--csv FILE]

Studies are simulated by tests/support/simulated_judgements.py and simulated_ablations.py (logits, or probits with an
effect that some pairs lack), which know nothing of the planner and of its own simulator. For each grid one set of pairs
is drawn; a pilot of PILOT runs a size on these pairs gives the spread (analysis/plan/pilot.py), from which power is
predicted (analysis/plan/power.py) for the true effect on these pairs. Then studies of the grid are analysed by the
functions of the analysis. The standard error of a difference is that of the simulated share.
"""

import argparse
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.config import CurvesConfig
from analysis.curves.ablations.matching import DIRECT
from analysis.curves.comparisons import slope_difference
from analysis.curves.groups import fit_group, slope_limits
from analysis.curves.words_to_people import line_reaches, slope_quantile
from analysis.plan.config import ABLATION, DIFFERENCE, PEOPLE, SLOPE
from analysis.plan.grids import Grid
from analysis.plan.pilot import only_unit, spread_of
from analysis.plan.power import Spread, power_of
from tests.support.bench_tables import write_designs
from tests.support.simulated_ablations import CONTROL, TREATMENT, SimulatedAblation
from tests.support.simulated_judgements import SimulatedJudgements

FILE = Path(__file__).parents[2] / "analysis" / "results" / "plan_power.csv"
CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=2000, seed=1)
PILOT = 1500  # runs of each size
SHARED = 0.5  # of the variance between runs, among two models' runs on one text
OF_PEOPLE, ERROR = 0.93, 0.01  # people's accuracy and its standard error
Found = Callable[[np.random.Generator], bool]


def gains(*slopes: float) -> tuple[tuple[float, float], ...]:
    """Return accuracies at 125k words, and these gains per doubling."""
    return tuple(zip((0.55, 0.6, 0.65, 0.52), slopes, strict=True))


@dataclass(frozen=True)
class Planned:
    """One grid: what is simulated, its spread and true effect, and a function that simulates a study of it."""

    grid: Grid
    spread: Spread
    effect: float
    found: Found


def grid_of(cell: SimulatedJudgements) -> Grid:
    return Grid(tuple(map(str, range(cell.sizes))), tuple(cell.at), int(np.max(cell.seeds)), cell.pairs)


def slope(cell: SimulatedJudgements, rng: np.random.Generator) -> Planned:
    """Plan for the slope of a model, overall."""
    pairs, many = cell.draw_pairs(rng), replace(cell, seeds=PILOT)
    outcome, expected = many.draw(rng, pairs)
    effect = float(cell.slope_of(expected)[0])

    def found(rng: np.random.Generator) -> bool:
        outcome, _ = cell.draw(rng, pairs)
        low, high, *_ = slope_limits(fit_group("one", outcome, cell.design, cell.units, CONFIG.interval), CONFIG)
        return bool(low[0] > 0 or high[0] < 0)

    spread = spread_of(outcome.astype(float), many.design, only_unit(cell.units, "overall"))
    return Planned(grid_of(cell), spread, effect, found)


def difference(cell: SimulatedJudgements, rng: np.random.Generator) -> Planned:
    """Plan for the difference of the slopes of two models that read the same texts; the other one has no slope."""
    other = replace(cell, paradigms=tuple((start, 0.0) for start, _ in cell.paradigms))
    pairs = cell.draw_pairs(rng)

    def both(of: SimulatedJudgements, another: SimulatedJudgements, rng: np.random.Generator):
        runs = of.draw_runs(rng)
        shared = np.sqrt(SHARED) * runs + np.sqrt(1 - SHARED) * of.draw_runs(rng)
        return of.draw(rng, pairs, runs), another.draw(rng, pairs, shared)

    many = replace(cell, seeds=PILOT)
    (outcome, expected), (outcome_other, expected_other) = both(many, replace(other, seeds=PILOT), rng)
    effect = float((cell.slope_of(expected) - cell.slope_of(expected_other))[0])

    def found(rng: np.random.Generator) -> bool:
        fits = [fit_group("g", of, cell.design, cell.units, CONFIG.interval) for of, _ in both(cell, other, rng)]
        limits = slope_difference(fits[0], fits[1], CONFIG, np.arange(len(fits[0].y)))
        return bool(limits["low"][0] > 0 or limits["high"][0] < 0)

    unit, change = only_unit(cell.units, "overall"), outcome.astype(float) - outcome_other
    spread = spread_of(change, many.design, unit)
    own = spread_of(outcome.astype(float), many.design, unit)
    return Planned(grid_of(cell), replace(spread, accuracy=own.accuracy, gain=own.gain), effect, found)


def people(cell: SimulatedJudgements, rng: np.random.Generator) -> Planned:
    """Plan for the words at which a model reaches people, to be known within a factor of 4."""
    plan = slope(cell, rng)
    pairs = cell.draw_pairs(np.random.default_rng(5))

    def found(rng: np.random.Generator) -> bool:
        fit = fit_group("one", cell.draw(rng, pairs)[0], cell.design, cell.units, CONFIG.interval)
        error = np.full(len(fit.line.slope), ERROR)
        reached = OF_PEOPLE + error * rng.normal()
        at, low, high, bounded = line_reaches(fit, reached, error, slope_quantile(fit, CONFIG))
        return bool(fit.line.slope[0] > 0 and bounded[0] and max(high[0] - at[0], at[0] - low[0]) <= 2)

    many = replace(cell, seeds=PILOT)
    spread = spread_of(many.draw(rng, pairs)[0].astype(float), many.design, only_unit(cell.units, "overall"))
    return Planned(plan.grid, replace(spread, people=OF_PEOPLE, people_error=ERROR), 4.0, found)


def ablation(cell: SimulatedAblation, rng: np.random.Generator) -> Planned:
    """Plan for the effect of an ablation on the paradigms that test the construction."""
    many = replace(cell, seeds=PILOT)
    groups, _ = many.draw(rng)
    unit = only_unit(cell.units, DIRECT)
    change = groups[TREATMENT] - groups[CONTROL]
    effect = float(((cell.population[TREATMENT] - cell.population[CONTROL]) @ unit.weights).mean())
    place = int(np.flatnonzero(cell.units.table["name"] == DIRECT)[0])

    def found(rng: np.random.Generator) -> bool:
        groups, _ = cell.draw(rng)
        low, high, *_ = cell.matched(groups[TREATMENT], groups[CONTROL]).difference().limits(CONFIG.confidence)
        return bool(low[place] > 0 or high[place] < 0)

    grid = Grid(tuple(map(str, range(cell.sizes))), tuple(17.0 + np.arange(cell.sizes)), cell.seeds, cell.pairs)
    return Planned(grid, spread_of(change, many.design, unit), effect, found)


FLAT = SimulatedJudgements(3, 4, run_sd=(0.15, 0.15), paradigms=gains(0.008, 0.009, 0.007, 0.008))
EFFECT = SimulatedAblation(effect=0.1, effect_sd=0.0)
GRIDS: dict[str, tuple[str, Callable[..., Planned], SimulatedJudgements | SimulatedAblation]] = {
    "4x3, spread falls": (SLOPE, slope, replace(FLAT, run_sd=(0.25, 0.1))),
    "4x2": (SLOPE, slope, replace(FLAT, seeds=2, run_sd=(0.08, 0.08))),
    "8x1": (SLOPE, slope, replace(FLAT, seeds=1, sizes=8)),
    "10x5": (SLOPE, slope, replace(FLAT, seeds=5, sizes=10, paradigms=gains(0.004, 0.003, 0.004, 0.003))),
    "5x3, 10 pairs": (SLOPE, slope, replace(FLAT, sizes=5, pairs=10, paradigms=gains(0.012, 0.014, 0.01, 0.012))),
    "4x3, same texts": (DIFFERENCE, difference, FLAT),
    "4x5, same texts": (DIFFERENCE, difference, replace(FLAT, seeds=5, paradigms=gains(0.006, 0.005, 0.006, 0.005))),
    "3x3": (ABLATION, ablation, EFFECT),
    "1x5": (ABLATION, ablation, replace(EFFECT, sizes=1, seeds=5)),
    "5x5": (PEOPLE, people, replace(FLAT, seeds=5, sizes=5, paradigms=gains(0.03, 0.025, 0.02, 0.03))),
}  # fmt: skip


def row(name: str, studies: int) -> dict[str, object]:
    """Return the row of one grid."""
    goal, plan, cell = GRIDS[name]
    rng = np.random.default_rng([1, zlib.crc32(f"{goal} {name}".encode())])
    planned = plan(cell, rng)
    power = power_of(goal, planned.effect, planned.grid, planned.spread, CONFIG.interval, CONFIG.confidence)
    share = np.mean([planned.found(rng) for _ in range(studies)])
    return {
        "goal": goal, "grid": name, "pairs": planned.grid.pairs, "interval": power.method,
        "effect": round(planned.effect, 5), "predicted": round(power.power, 4), "simulated": round(float(share), 4),
        "standard_error": round(float(np.sqrt(share * (1 - share) / studies)), 4), "studies": studies,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--grids", nargs="+", choices=list(GRIDS), metavar="NAME", help="all of them if left out")
    parser.add_argument("--csv", type=Path, default=FILE, help="file whose rows of these are replaced")
    arguments = parser.parse_args()
    for name in arguments.grids or list(GRIDS):
        of_grid = row(name, arguments.studies)
        Console(highlight=False).print(*of_grid.values(), sep=" | ", markup=False, soft_wrap=True)
        write_designs(arguments.csv, pd.DataFrame([of_grid]), list(GRIDS), "grid")


if __name__ == "__main__":
    main()
