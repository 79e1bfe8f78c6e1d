"""The hierarchical model beside the default: coverage, widths, time, memory, effective draws and divergences.

    python tests/bench/hierarchical.py [--grids N] [--models N] [--studies N] [--designs NAME ...] [--processes N]
        [--csv FILE]

Studies are those of tests/support/simulated_judgements.py: `--grids` published ones (ten sizes from 125k to 64M words,
five seeds, BLiMP's 67 paradigms of 1,000 pairs in its 12 phenomena, whose levels and gains each grid draws anew), and
`--studies` of each design of tests/bench/coverage.py, or of a small grid (SMALL). Intervals of both analyses are of
slopes over new runs, for these pairs. One row for each design and level, written after each study: covered: of all
units of the level together; worst: of the unit with the lowest coverage; width: mean.
"""

import argparse
import resource
import sys
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.config import CurvesConfig
from analysis.curves.groups import fit_group, slope_limits
from analysis.curves.hierarchical.checks import diagnose
from analysis.curves.hierarchical.counts import counts_of
from analysis.curves.hierarchical.posterior import Posterior, slope_rows
from analysis.curves.hierarchical.sampling import Sampling
from analysis.curves.units import Units, units_of
from analysis.study.judgements import Judgements
from tests.bench.coverage import DESIGNS
from tests.support.bench_tables import write_designs
from tests.support.simulated_judgements import SimulatedJudgements

RESULTS = Path(__file__).parents[2] / "analysis" / "results" / "hierarchical_coverage.csv"
CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=1000, seed=1)
PHENOMENA = (2, 9, 7, 5, 8, 2, 7, 2, 8, 7, 4, 6)  # paradigms of each of BLiMP's
SMALL_PHENOMENA = (4,) * 5
GRID = "10x5 published grid"
SMALL = "4x3 grid of 20 paradigms"  # four paradigms of 200 pairs in each of five phenomena
NAMES = [GRID, *(f"{GRID}, {models} models" for models in range(2, 10)), SMALL, *DESIGNS]  # order of the table


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
    none = np.zeros((1, 1), dtype=bool)
    return Judgements("b", "lp", "d", {}, runs, pairs, np.concatenate(outcomes), none, none, pd.DataFrame())


def sampled(judged: Judgements, sampling: Sampling) -> Posterior:
    counts = counts_of(judged)
    assert not isinstance(counts, str), counts
    *_, (_, posterior) = sampling.sample(counts)
    assert posterior is not None
    return posterior


def simulate(number: int, name: str, models: int, sampling: Sampling) -> pd.DataFrame:
    """Return a row for each unit of a design's simulated study of models of the same truth, with both intervals."""
    rng = np.random.default_rng([1, zlib.crc32(name.encode()), number])
    cell = DESIGNS.get(name) or grid(rng, small=name == SMALL)
    draws = [cell.draw(rng, pairs) for pairs in [cell.draw_pairs(rng)] for _ in range(models)]
    started, cpu = time.perf_counter(), time.process_time()
    posterior = sampled(judged_of(cell, [outcome for outcome, _ in draws]), sampling)
    table = slope_rows(posterior, CONFIG.confidence)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    fits = [fit_group("one", outcome, cell.design, cell.units, CONFIG.interval) for outcome, _ in draws]
    low, high = (np.concatenate([slope_limits(fit, CONFIG)[end] for fit in fits]) for end in (0, 1))
    quality = diagnose(posterior, table)
    return table[["level", "name", "group", "low", "high"]].assign(
        truth=np.concatenate([cell.slope_of(expected) for _, expected in draws]), default_low=low, default_high=high,
        seconds=seconds, cpu=cpu, divergences=posterior.divergences, r_hat=quality.r_hat, effective=quality.effective,
        refused=quality.refused != "", draws=posterior.number, steps=posterior.steps, number=number,
        peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    )  # fmt: skip


def summary(name: str, studies: list[pd.DataFrame]) -> pd.DataFrame:
    """Return a row for each level; coverage of units without a default interval is NaN."""
    table = pd.concat(studies, ignore_index=True)
    rows = []
    for level, of in table.groupby("level", sort=False):
        inside = of["low"].le(of["truth"]) & of["truth"].le(of["high"])
        default = (of["default_low"].le(of["truth"]) & of["truth"].le(of["default_high"])).astype(float)
        default[of["default_low"].isna()] = np.nan
        one = of.drop_duplicates(["number"])
        rows.append({
            "design": name, "level": level, "units": len(of) // len(studies), "studies": len(studies),
            "covered": inside.mean(), "worst": inside.groupby(of["name"]).mean().min(),
            "default_covered": default.mean(), "default_worst": default.groupby(of["name"]).mean().min(),
            "width": (of["high"] - of["low"]).mean(), "default_width": (of["default_high"] - of["default_low"]).mean(),
            "draws": int(one["draws"].iloc[0]), "least_effective": one["effective"].min(),
            "most_r_hat": one["r_hat"].max(),
            "divergences": one["divergences"].sum(), "refused": one["refused"].sum(),
            "median_seconds": one["seconds"].median(), "median_cpu_seconds": one["cpu"].median(),
            "peak_gib": one["peak"].max(),
        })  # fmt: skip
    return pd.DataFrame(rows).round(
        {"covered": 4, "worst": 3, "default_covered": 4, "default_worst": 3, "width": 5, "default_width": 5,
         "least_effective": 0, "most_r_hat": 3, "median_seconds": 0, "median_cpu_seconds": 0, "peak_gib": 2}
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", type=int, default=0)
    parser.add_argument("--models", type=int, default=1, choices=range(1, 10), help="of each grid, on the same pairs")
    parser.add_argument("--studies", type=int, default=10)
    parser.add_argument("--designs", nargs="*", default=[], choices=[SMALL, *DESIGNS], metavar="NAME")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--processes", type=int, default=1, help="studies at a time, with one thread each if several")
    parser.add_argument("--csv", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    threads = 2 if arguments.processes == 1 else 1
    sampling = Sampling(arguments.chains, arguments.warmup, arguments.draws, threads=threads)
    grids = GRID if arguments.models == 1 else f"{GRID}, {arguments.models} models"
    work = [(grids, arguments.grids, arguments.models)] if arguments.grids else []
    work += [(name, arguments.studies, 1) for name in arguments.designs]
    # Spawned: the threads of JAX do not survive a fork.
    with ProcessPoolExecutor(arguments.processes, get_context("spawn")) as pool:
        for name, number, models in work:
            studies: list[pd.DataFrame] = []
            for study in pool.map(partial(simulate, name=name, models=models, sampling=sampling), range(number)):
                studies.append(study)
                write_designs(arguments.csv, part := summary(name, studies), NAMES)
            print(part.to_string(), flush=True)


if __name__ == "__main__":
    main()
