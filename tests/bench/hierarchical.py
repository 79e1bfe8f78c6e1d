"""The hierarchical model beside the default: coverage, widths, time, memory, effective draws and divergences.

    python tests/bench/hierarchical.py [--grids N] [--models N] [--studies N] [--designs NAME ...] [--processes N]
        [--together N] [--csv FILE]

Studies are those of tests/support/simulated_judgements.py: `--grids` published ones (ten sizes from 125k to 64M words,
five seeds, BLiMP's 67 paradigms of 1,000 pairs in its 12 phenomena, whose levels and gains each grid draws anew), and
`--studies` of each design (those of tests/bench/coverage.py, and more with one run a size), or of a small grid (SMALL).
Intervals of both analyses are of slopes over new runs, for these pairs, of the sizes that the model keeps, and of their
differences between `--models`, of which every second gains half as much. One row for each design, quantity and level,
written after each study: covered: of the intervals that stand in a report, of all units of the level together; worst:
of the unit with the lowest coverage; none: share of intervals that are left out by default, for their caution;
covered_left_out: of these; width: mean, of all; default_covered, default_width: of the default analysis, also of limits
that it leaves out.
"""

import argparse
import resource
import sys
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.config import CurvesConfig
from analysis.curves.comparisons import slope_difference
from analysis.curves.groups import fit_group, slope_limits
from analysis.curves.hierarchical.checks import diagnose
from analysis.curves.hierarchical.counts import Counts, counts_of, without_lone_runs
from analysis.curves.hierarchical.posterior import Posterior, difference_rows, slope_rows
from analysis.curves.hierarchical.sampling import Sampling
from analysis.curves.units import Units, units_of
from analysis.simulation.coverage import slope_of
from analysis.study.judgements import Judgements
from tests.bench.coverage import DESIGNS as COVERAGE_DESIGNS
from tests.bench.coverage import LATE, half_as_steep
from tests.support.bench_tables import write_designs
from tests.support.simulated_judgements import SimulatedJudgements

RESULTS = Path(__file__).parents[2] / "analysis" / "results" / "hierarchical_coverage.csv"
CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=1000, seed=1)
PHENOMENA = (2, 9, 7, 5, 8, 2, 7, 2, 8, 7, 4, 6)  # paradigms of each of BLiMP's
SMALL_PHENOMENA = (4,) * 5
GRID = "10x5 published grid"
SMALL = "4x3 grid of 20 paradigms"  # four paradigms of 200 pairs in each of five phenomena
DESIGNS = {
    **COVERAGE_DESIGNS,
    "4x1 line, x5 at the largest": SimulatedJudgements(1, 4, run_sd=(0.08, 0.08, 0.08, 0.4)),
    "4x1 late, spread falls": SimulatedJudgements(1, 4, "late", (0.2, 0.1), paradigms=LATE),
    "5,1,1,1 line, x5 at the largest": SimulatedJudgements((5, 1, 1, 1), 4, run_sd=(0.08, 0.08, 0.08, 0.4)),
    "5,1,1,1 late, spread falls": SimulatedJudgements((5, 1, 1, 1), 4, "late", (0.2, 0.1), paradigms=LATE),
}


def named(design: str, models: int) -> str:
    """Name a design of several models."""
    return design if models == 1 else f"{design}, {models} models"


NAMES = [named(design, models) for design in (GRID, SMALL, *DESIGNS) for models in range(1, 10)]  # order of the table


@dataclass(frozen=True)
class Grid(SimulatedJudgements):
    """One model on paradigms, sorted by phenomenon; phenomena: paradigms of each."""

    phenomena: tuple[int, ...] = PHENOMENA

    @cached_property
    def units(self) -> Units:
        names = [f"phenomenon_{p:02d}" for p, count in enumerate(self.phenomena) for _ in range(count)]
        rows = [(name, f"paradigm_{k:02d}", str(p)) for k, name in enumerate(names) for p in range(self.pairs)]
        return units_of(pd.DataFrame(rows, columns=["phenomenon", "paradigm", "pair_id"]))


def grid(rng: np.random.Generator, small: bool = False) -> Grid:
    """Draw a grid: paradigms with levels and gains about those of their phenomenon."""
    phenomena = SMALL_PHENOMENA if small else PHENOMENA
    of = np.repeat(np.arange(len(phenomena)), phenomena)
    start = np.clip(rng.normal(0.58, 0.04, len(phenomena))[of] + rng.normal(0, 0.08, len(of)), 0.35, 0.8)
    gain = rng.normal(0.015, 0.008, len(phenomena))[of] + rng.normal(0, 0.01, len(of))
    gain = np.clip(gain, (0.25 - start) / 9, (0.97 - start) / 9)
    paradigms = tuple(zip(start.tolist(), gain.tolist(), strict=True))
    return (
        Grid(3, 4, pairs=200, paradigms=paradigms, phenomena=phenomena)
        if small
        else (Grid(5, 10, pairs=1000, paradigms=paradigms, phenomena=phenomena))
    )


def judged_of(cell: SimulatedJudgements, outcomes: list[np.ndarray]) -> Judgements:
    """Return the judgements of one design by the runs of one model or more."""
    design, units = cell.design, cell.units
    runs = pd.concat([
        pd.DataFrame({
            "group": f"model {number}", "size": [str(s) for s in design.size], "seed": design.seed,
            "sample_words": np.exp2(design.x), "nested": design.nested,
            "overlap": 0.0 if design.overlap is None else design.overlap,
        })
        for number in range(len(outcomes))
    ], ignore_index=True).rename(index=lambda number: f"run{number}")  # fmt: skip
    paradigms = units.table[units.table["level"] == "paradigm"]
    pairs = paradigms.loc[paradigms.index.repeat(cell.pairs), ["phenomenon", "name"]].reset_index(drop=True)
    pairs = pairs.rename(columns={"name": "paradigm"}).assign(pair_id=[f"{p}" for p in range(len(pairs))])
    outcome = np.concatenate(outcomes)
    none = np.zeros(outcome.shape, dtype=bool)
    return Judgements("b", "lp", "d", {}, runs, pairs, outcome, none, none, pd.DataFrame())


@dataclass(frozen=True)
class Study:
    """A simulated study of models of a design: of each model, outcomes and accuracies expected over new runs."""

    number: int
    cell: SimulatedJudgements
    draws: list[tuple[np.ndarray, np.ndarray]]

    @property
    def counts(self) -> Counts:
        counts = counts_of(without_lone_runs(judged_of(self.cell, [outcome for outcome, _ in self.draws]))[0])
        assert not isinstance(counts, str), counts
        return counts

    def rows(self, posterior: Posterior) -> pd.DataFrame:
        """Return a row for each quantity and unit, with both intervals."""
        slopes, differences = (of(posterior, CONFIG.confidence) for of in (slope_rows, difference_rows))
        sizes = np.unique(np.array(posterior.counts.size, dtype=int))  # those left out are of one run
        runs = np.isin(self.cell.design.size, sizes)
        design, units = self.cell.design.of(runs), self.cell.units
        fits = [fit_group("one", of[runs], design, units, CONFIG.interval) for of, _ in self.draws]
        apart = np.full(design.cluster.max() + 1, -1)
        truths = [slope_of(self.cell.at[sizes], expected[sizes], units) for _, expected in self.draws]
        limits = [slope_limits(fit, CONFIG)[:2] for fit in fits]
        for (fit, truth), (other, less) in combinations(zip(fits, truths, strict=True), 2):
            of_both = slope_difference(fit, other, CONFIG, apart)
            limits.append([of_both["low"], of_both["high"]])
            truths.append(truth - less)
        low, high = np.concatenate(limits, axis=1)
        quality = diagnose(posterior, slopes, differences)
        table = pd.concat([slopes.assign(quantity="slope"), differences.assign(quantity="difference")])
        return table[["quantity", "level", "name", "group", "low", "high"]].assign(
            truth=np.concatenate(truths), default_low=low, default_high=high,
            divergences=posterior.divergences, r_hat=quality.r_hat, effective=quality.effective,
            refused=quality.refused != "", left_out=table["caution"] != "",
            draws=posterior.number, steps=posterior.steps, number=self.number,
        )  # fmt: skip


def drawn(number: int, name: str, models: int) -> Study:
    rng = np.random.default_rng([1, zlib.crc32(named(name, models).encode()), number])
    cell = DESIGNS.get(name) or grid(rng, small=name == SMALL)
    pairs = cell.draw_pairs(rng)
    of_models = [half_as_steep(cell) if model % 2 else cell for model in range(models)]
    return Study(number, cell, [model.draw(rng, pairs) for model in of_models])


def simulate(numbers: Sequence[int], name: str, models: int, sampling: Sampling) -> list[pd.DataFrame]:
    """Return the rows of simulated studies of a design; several are sampled together."""
    studies = [drawn(number, name, models) for number in numbers]
    started, cpu = time.perf_counter(), time.process_time()
    if len(studies) > 1:
        posteriors = sampling.sample_together([study.counts for study in studies])
    else:
        *_, (_, posterior) = sampling.sample(studies[0].counts)
        assert posterior is not None
        posteriors = [posterior]
    cost = {
        "seconds": (time.perf_counter() - started) / len(studies), "cpu": (time.process_time() - cpu) / len(studies),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, "together": len(studies),
    }  # fmt: skip
    return [study.rows(posterior).assign(**cost) for study, posterior in zip(studies, posteriors, strict=True)]


def summary(name: str, studies: list[pd.DataFrame]) -> pd.DataFrame:
    """Return a row for each quantity and level; coverage of units without a default interval is NaN."""
    table = pd.concat(studies, ignore_index=True)
    rows = []
    for (quantity, level), of in table.groupby(["quantity", "level"], sort=False):
        inside = of["low"].le(of["truth"]) & of["truth"].le(of["high"])
        default = (of["default_low"].le(of["truth"]) & of["truth"].le(of["default_high"])).astype(float)
        default[of["default_low"].isna()] = np.nan
        one, left_out = of.drop_duplicates(["number"]), of["left_out"]
        given = inside[~left_out]
        rows.append({
            "design": name, "quantity": quantity, "level": level,
            "units": len(of) // len(studies), "studies": len(studies),
            "covered": given.mean(), "worst": given.groupby(of["name"]).mean().min(),
            "none": left_out.mean(), "covered_left_out": inside[left_out].mean(),
            "default_covered": default.mean(), "default_worst": default.groupby(of["name"]).mean().min(),
            "width": (of["high"] - of["low"]).mean(), "default_width": (of["default_high"] - of["default_low"]).mean(),
            "draws": int(one["draws"].iloc[0]), "least_effective": one["effective"].min(),
            "most_r_hat": one["r_hat"].max(),
            "divergences": one["divergences"].sum(), "refused": one["refused"].sum(),
            "median_seconds": one["seconds"].median(), "median_cpu_seconds": one["cpu"].median(),
            "peak_gib": one["peak"].max(), "together": one["together"].max(),
        })  # fmt: skip
    return pd.DataFrame(rows).round(
        {"covered": 4, "worst": 3, "none": 3, "covered_left_out": 4, "default_covered": 4, "default_worst": 3,
         "width": 5, "default_width": 5,
         "least_effective": 0, "most_r_hat": 3, "median_seconds": 0, "median_cpu_seconds": 0, "peak_gib": 2}
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", type=int, default=0)
    parser.add_argument("--models", type=int, default=1, choices=range(1, 10), help="of each study, on the same pairs")
    parser.add_argument("--studies", type=int, default=10)
    parser.add_argument("--designs", nargs="*", default=[], choices=[SMALL, *DESIGNS], metavar="NAME")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--processes", type=int, default=1, help="studies at a time, with one thread each if several")
    parser.add_argument("--together", type=int, default=1, help="studies of a design that a process samples at once")
    parser.add_argument("--csv", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    threads = 2 if arguments.processes == 1 else 1
    sampling = Sampling(arguments.chains, arguments.warmup, arguments.draws, threads=threads)
    work = [(GRID, arguments.grids)] if arguments.grids else []
    work += [(name, arguments.studies) for name in arguments.designs]
    models = arguments.models
    # Spawned: the threads of JAX do not survive a fork.
    with ProcessPoolExecutor(arguments.processes, get_context("spawn")) as pool:
        for name, number in work:
            studies: list[pd.DataFrame] = []
            of_process = [range(first, number)[: arguments.together] for first in range(0, number, arguments.together)]
            for some in pool.map(partial(simulate, name=name, models=models, sampling=sampling), of_process):
                studies.extend(some)
                write_designs(arguments.csv, part := summary(named(name, models), studies), NAMES)
            print(part.to_string(), flush=True)


if __name__ == "__main__":
    main()
