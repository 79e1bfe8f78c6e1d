"""Coverage of the intervals of acquisition, and error rates of its tests of shapes, in simulated studies.

    python tests/bench/acquisition.py [--studies N] [--parts turns sizes orders] [--designs NAME ...] [--processes N]
                                      [--csv FILE]

One row for each part, design and quantity. rate: of intervals the share that contains the truth; of shapes the share of
units that get the name. "some turn": the share of studies in which any unit gets a turn, which for curves without one
is the rate of false alarms that Holm's method holds at 5%; "a turn, uncorrected" that of single units; "GAM turns" the
share of units whose smooth climbs and drops by a point. width: of the interval (median), of amounts of text in
doublings within the sizes of the study, of ranks the greatest less the least. With 500 studies the standard error of a
rate of 95% is 1%. Each design has random numbers of its own.
"""

import argparse
import gc
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.config import CurvesConfig
from analysis.curves.acquisition.orders import Pairwise, Values, correlate, rank_limits, simultaneous
from analysis.curves.acquisition.sizes import Bands, crossings, size_means
from analysis.curves.acquisition.smooths import smooth
from analysis.curves.acquisition.spread import Spread
from analysis.curves.acquisition.turns import GAM_TURN, INVERTED, SHAPES, U, shape_table
from analysis.curves.p_values import ALPHA
from pairscale.files import write_text
from tests.support import simulated_acquisition as curves
from tests.support.simulated_acquisition import SimulatedAcquisition

FILE = Path(__file__).parents[2] / "analysis" / "results" / "acquisition_coverage.csv"
CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=100, seed=1)
THRESHOLD = 0.6
SIZES, TURNS, ORDERS = "sizes", "turns", "orders"
SPREADS = {"": (0.3, 0.12), ", spread rises": (0.12, 0.3), ", one size apart": (0.1, 0.1, 0.4, 0.1, 0.1)}


def of_shape(name: str, seeds: int, spread: str = "") -> SimulatedAcquisition:
    """Return eight paradigms that all have one shape."""
    return SimulatedAcquisition(seeds, curves=(getattr(curves, name),) * 8, run_sd=SPREADS[spread])


SHAPES_OF = {"rises": "RISES", "saturates": "SATURATES", "flat": "FLAT", "falls": "FALLS", "U": "U",
             "inverted U": "INVERTED", "slight U": "SLIGHT", "near the ceiling": "CEILING"}  # fmt: skip
DESIGNS = {
    TURNS: {
        f"{name}, {seeds} seeds{spread}": of_shape(curve, seeds, spread)
        for name, curve in SHAPES_OF.items()
        for seeds, spread in ((2, ""), (3, ""), (5, ""), (3, ", spread rises"))
        if name != "falls" or seeds == 3
    }
    | {"rises, nested, 3 seeds": SimulatedAcquisition(3, nested=True, curves=(curves.RISES,) * 8),
       "flat, nested, 3 seeds": SimulatedAcquisition(3, nested=True, curves=(curves.FLAT,) * 8)},
    SIZES: {
        **{f"{seeds} seeds{spread}": SimulatedAcquisition(seeds, run_sd=of)
           for seeds in (2, 3, 5) for spread, of in SPREADS.items() if not spread or seeds == 3},
        "3 seeds, one run at the largest": SimulatedAcquisition((3, 3, 3, 3, 1)),
        "3 seeds, nested": SimulatedAcquisition(3, nested=True),
        "5 seeds, nested": SimulatedAcquisition(5, nested=True),
        "3 seeds, 10 pairs": SimulatedAcquisition(3, pairs=10),
        "3 seeds, near the ceiling": SimulatedAcquisition(3, curves=(*curves.ORDER[:4], *(curves.CEILING,) * 4)),
    },
    ORDERS: {f"{units} units, correlation {rho}, {seeds} seeds": (units, rho, seeds)
             for units in (12, 30, 67) for rho in (0.0, 0.5, 0.9) for seeds in (2, 5)},
}  # fmt: skip
KINDS = {-1: "before the smallest", 0: "within the sizes", 1: "not by the largest"}
Row = tuple[str, float, float]  # quantity, 1 where it holds (NaN: none), width


def turn_rows(cell: SimulatedAcquisition, rng: np.random.Generator) -> Iterator[Row]:
    fit, _ = cell.study(rng)
    of = (fit.units.table["level"] == "paradigm").to_numpy()
    gam = smooth(fit.y, fit.design)
    assert gam is not None
    table = shape_table(fit, gam, CONFIG)
    table = table[table["level"] == "paradigm"]
    for shape in SHAPES:
        yield f"called {shape}", float((table["shape"] == shape).mean()), np.nan
    yield "some turn", float(table["shape"].isin([U, INVERTED]).any()), np.nan
    yield "a turn, uncorrected", float((table["p_turn"] < ALPHA).mean()), np.nan
    yield "GAM turns", float(gam.turns(GAM_TURN)[of].mean()), np.nan


def size_rows(cell: SimulatedAcquisition, rng: np.random.Generator) -> Iterator[Row]:
    fit, expected = cell.study(rng)
    threshold = np.full(expected.shape[1], THRESHOLD)
    bands = Bands.of(fit, Spread(fit))
    found = crossings(fit, threshold, CONFIG.confidence, bands)
    truth = cell.crossing(expected, threshold)
    of = fit.units.table["level"].to_numpy() == "paradigm"
    clipped = [np.clip(end, cell.at[0], cell.at[-1]) for end in (found.low, found.high)]
    for u in np.flatnonzero(of):
        kind = KINDS[int(np.nan_to_num(np.sign(truth[u]) * np.isinf(truth[u])))]
        inside = float(found.low[u] <= truth[u] <= found.high[u])
        yield f"size, {kind}", inside, float(clipped[1][u] - clipped[0][u])
    new_pairs = cell.crossing(cell.expected @ cell.units.weights, threshold)
    for u in np.flatnonzero(of & np.isfinite(new_pairs)):
        yield "size, new pairs too", float(found.low_new_pairs[u] <= new_pairs[u] <= found.high_new_pairs[u]), np.nan
    yield "accuracy, overall", *_mean_held(fit, expected, bands)
    low, high = bands.limits(threshold, simultaneous(CONFIG.confidence, int(of.sum())))
    least, most = rank_limits(low[of], high[of])
    x = truth[of]
    first = 1 + (x[None, :] < x[:, None]).sum(axis=1)
    last = (x[None, :] <= x[:, None]).sum(axis=1)
    held = (least <= first) & (last <= most)
    yield "ranks by size, each", float(held.mean()), float((most - least).mean())
    yield "ranks by size, all of a study", float(held.all()), np.nan
    _, weights = size_means(cell.design)
    limits = Pairwise.of(fit, of).rank_limits(weights[-2], CONFIG.confidence)
    if np.isfinite(limits).all():
        y = expected[-2, of]
        first = 1 + (y[None, :] > y[:, None]).sum(axis=1)
        held = (limits[0] <= first) & (first <= limits[1])
        yield "ranks by accuracy, each", float(held.mean()), float((limits[1] - limits[0]).mean())
        yield "ranks by accuracy, all of a study", float(held.all()), np.nan


def _mean_held(fit, expected: np.ndarray, bands: Bands) -> tuple[float, float]:
    """Return whether the band of the whole holds its curve at the middle size."""
    middle = len(bands.x) // 2
    half = student.ppf(0.975, bands.degrees[middle, 0]) * bands.error[middle, 0]
    truth = expected[len(expected) // 2, 0]
    return float(abs(bands.curve[middle, 0] - truth) <= half), float(2 * half)


def order_rows(cell: tuple[int, float, int], rng: np.random.Generator) -> Iterator[Row]:
    """Yield limits of correlations of two models whose paradigms' accuracies are normal, with noise between runs."""
    units, rho, seeds = cell
    noise = 0.05
    true = rng.multivariate_normal([0, 0], 0.01 * np.asarray([[1, rho], [rho, 1]]), units)
    runs = true[:, :, None] + noise * rng.standard_normal((units, 2, seeds))
    variance = runs.var(axis=2, ddof=1) / seeds
    names = tuple(map(str, range(units)))
    a, b = (Values(str(i), "1M", names, -runs[:, i].mean(axis=1), variance[:, i]) for i in (0, 1))
    found = correlate(a, b, CONFIG.confidence)
    measured = rho * 0.01 / (0.01 + noise**2 / seeds)  # correlation of means over these runs
    for name, r in (("", measured), ("corrected_", rho)):
        spearman = 6 / np.pi * np.arcsin(r / 2)
        low, high = found[f"{name}low"], found[f"{name}high"]
        held = np.nan if np.isnan(low) else float(low <= spearman <= high)
        yield f"Spearman{', corrected' * bool(name)}", held, high - low
    tau = 2 / np.pi * np.arcsin(measured)
    low, high = found["kendall_low"], found["kendall_high"]
    yield "Kendall", float(low <= tau <= high), high - low


PARTS = {TURNS: turn_rows, SIZES: size_rows, ORDERS: order_rows}


def simulate(design: tuple[str, str], studies: int) -> pd.DataFrame:
    """Return the rows of a part and design: rate, none (share without an interval or test), width (median)."""
    part, name = design
    gc.freeze()  # multipletests of statsmodels collects garbage each time: among what is imported there is none
    rng = np.random.default_rng([1, zlib.crc32(f"{part} {name}".encode())])
    held, width = defaultdict(list), defaultdict(list)
    for _ in range(studies):
        for quantity, one, wide in PARTS[part](DESIGNS[part][name], rng):
            held[quantity].append(one)
            width[quantity].append(wide)
    rows = []
    for quantity, of in held.items():
        values = np.asarray(of)
        known = values[~np.isnan(values)]
        rate = known.mean() if len(known) else np.nan
        wide = np.asarray(width[quantity])
        rows.append({
            "part": part, "design": name, "quantity": quantity, "studies": studies, "cases": len(values), "rate": rate,
            "none": 1 - len(known) / len(values), "standard_error": np.sqrt(rate * (1 - rate) / studies),
            "width": np.nan if np.isnan(wide).all() else np.nanmedian(wide),
        })  # fmt: skip
    return pd.DataFrame(rows).round({"rate": 4, "none": 4, "standard_error": 4, "width": 4})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=500)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--designs", nargs="+", metavar="NAME", help="all of them if left out")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--csv", type=Path, default=FILE, help="file for the table")
    arguments = parser.parse_args()
    chosen = [
        (part, name)
        for part in arguments.parts
        for name in DESIGNS[part]
        if arguments.designs is None or name in arguments.designs
    ]
    parts = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        for table in pool.map(partial(simulate, studies=arguments.studies), chosen):
            parts.append(table)
            write_text(arguments.csv, pd.concat(parts, ignore_index=True).to_csv(index=False, lineterminator="\n"))
            Console().print(f"{table['part'].iloc[0]}: {table['design'].iloc[0]}", markup=False)


if __name__ == "__main__":
    main()
