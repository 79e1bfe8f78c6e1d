"""Coverage of the 95% intervals of what surprisal adds to reading times, and error rates of the test for U-turns.

    python tests/bench/reading_coverage.py [--studies N] [--designs NAME ...] [--processes N] [--csv FILE]

One row for each design and quantity. rate: of intervals the share that contains the truth; of "U-turn" the share of
studies in which one is found, which for curves without a turn is that of false alarms (at most 5% by construction).
With 1,000 studies, as in the committed table, the standard error of a coverage of 95% is .7%. Studies are those of
tests/support/simulated_reading.py: times of words with noise that the words of a sentence share, and runs whose
surprisals have noise in common. Each design has random numbers of its own.
"""

import argparse
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.curves.intervals import Interval
from analysis.measures.reading.delta import BOTH, WORDS, contributions, estimate
from analysis.measures.reading.u_turn import slope, turn
from pairscale.files import write_text
from tests.support.simulated_reading import SimulatedReading

FILE = Path(__file__).parents[2] / "analysis" / "results" / "reading_coverage.csv"
CONFIDENCE = 0.95
RISES, FALLS, FLAT = (0.4, 0.5, 0.6, 0.7, 0.8), (0.8, 0.7, 0.6, 0.5, 0.4), (0.6,) * 5
SATURATES, LEVELS = (0.4, 0.55, 0.65, 0.7, 0.72), (0.4, 0.7, 0.7, 0.7, 0.7)
TURNS, LITTLE = (0.4, 0.6, 0.8, 0.6, 0.4), (0.5, 0.6, 0.7, 0.65, 0.6)
DESIGNS = {
    "rises": SimulatedReading(RISES),
    "saturates": SimulatedReading(SATURATES),
    "rises, then level": SimulatedReading(LEVELS),
    "flat": SimulatedReading(FLAT),
    "falls": SimulatedReading(FALLS),
    "turns": SimulatedReading(TURNS),
    "turns little": SimulatedReading(LITTLE),
    "rises, 2 seeds": SimulatedReading(RISES, 2),
    "rises, then level, 2 seeds": SimulatedReading(LEVELS, 2),
    "turns, 2 seeds": SimulatedReading(TURNS, 2),
    "turns little, 2 seeds": SimulatedReading(LITTLE, 2),
    "rises, runs far apart": SimulatedReading(RISES, run_sd=0.1),
    "rises, runs far apart, 2 seeds": SimulatedReading(RISES, 2, run_sd=0.1),
    "rises, sentences far apart": SimulatedReading(RISES, of_sentences=0.5),
    "rises, texts far apart": SimulatedReading(RISES, of_texts=0.4),
    "rises, 50 short texts": SimulatedReading(RISES, texts=50, sentences=6),
    "rises, 5 long texts": SimulatedReading(RISES, texts=5, sentences=60),
    "surprisal adds little": SimulatedReading((0.1, 0.2, 0.2, 0.2, 0.2)),
    "surprisal adds nothing": SimulatedReading((0.0,) * 5, run_sd=0.0),
}  # fmt: skip


def outcomes(cell: SimulatedReading, rng: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    """Simulate a study; yield each quantity with 1 where it holds, NaN where it has none, and its width."""
    difference, truths = cell.draw(rng)
    design, expected = cell.design, cell.expected()
    of_clusters = contributions(difference, cell.clusters)
    single = estimate(np.ones(1), of_clusters[:1], None, Interval.NONE, cell.nothing)
    yield "one run, over words", *_held(single.limits(WORDS, CONFIDENCE), truths[0])
    last = design.size == design.size.max()
    part = design.of(last)
    mean = estimate(np.full(last.sum(), 1 / last.sum()), of_clusters[last], part, Interval.T_SIZES, cell.nothing)
    yield "mean of the largest size, over words", *_held(mean.limits(WORDS, CONFIDENCE), truths[last].mean())
    yield "mean of the largest size, over words and runs", *_held(mean.limits(BOTH, CONFIDENCE), expected[-1])
    line = slope(of_clusters, design, over_sizes=True)
    truth = design.contrast @ np.repeat(expected, cell.seeds)
    yield "per doubling, over words", *_held(line.limits(WORDS, CONFIDENCE), design.contrast @ truths)
    yield "per doubling, over words and runs", *_held(line.limits(BOTH, CONFIDENCE), truth)
    found = turn(of_clusters, design, over_sizes=True)
    yield "U-turn", np.nan if found is None else float(found.shown), np.nan
    # Over something that differs between the runs of a size, as perplexity does.
    apart = replace(design, x=design.x + 0.1 * rng.standard_normal(len(design.x)))
    found = turn(of_clusters, apart, over_sizes=False)
    yield "U-turn over perplexity", np.nan if found is None else float(found.shown), np.nan


def _held(limits: tuple[float, float], truth: float) -> tuple[float, float]:
    low, high = limits
    return (float(low <= truth <= high) if np.isfinite(low) else np.nan), high - low


def simulate(name: str, studies: int) -> pd.DataFrame:
    """Return the rows of a design: rate, none (share of studies without an interval or test), width (median)."""
    cell = DESIGNS[name]
    rng = np.random.default_rng([1, zlib.crc32(name.encode())])
    held, width = defaultdict(list), defaultdict(list)
    for _ in range(studies):
        for quantity, one, wide in outcomes(cell, rng):
            held[quantity].append(one)
            width[quantity].append(wide)
    rows = []
    for quantity, of in held.items():
        values = np.asarray(of)
        known = values[~np.isnan(values)]
        rate = known.mean() if len(known) else np.nan
        wide = np.asarray(width[quantity])
        rows.append({
            "design": name, "sizes": len(cell.r), "seeds": cell.seeds, "words": cell.rows, "quantity": quantity,
            "studies": studies, "rate": rate, "none": 1 - len(known) / studies,
            "standard_error": np.sqrt(rate * (1 - rate) / max(1, len(known))),
            "width": np.nan if np.isnan(wide).all() else np.nanmedian(wide),
        })  # fmt: skip
    return pd.DataFrame(rows).round({"rate": 4, "none": 4, "standard_error": 4, "width": 6})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--designs", nargs="+", choices=list(DESIGNS), metavar="NAME", help="all of them if left out")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--csv", type=Path, default=FILE, help="file for the table")
    arguments = parser.parse_args()
    names, parts = arguments.designs or list(DESIGNS), []
    with ProcessPoolExecutor(arguments.processes) as pool:
        for part in pool.map(partial(simulate, studies=arguments.studies), names):
            parts.append(part)
            write_text(arguments.csv, pd.concat(parts, ignore_index=True).to_csv(index=False, lineterminator="\n"))
            Console().print(part["design"].iloc[0], markup=False)


if __name__ == "__main__":
    main()
