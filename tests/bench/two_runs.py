"""How often limits of slopes contain the truth with two runs a size, by how their errors are estimated.

    python tests/bench/two_runs.py [--studies N] [--csv FILE]

Sizes equally far apart in log2 words; runs are independent and normal, half of their variance is the same in all
paradigms. They vary alike at all sizes, or five times as much at the largest or at both ends, in all paradigms or in
every second one; the curve is a line, or rises late by ten times the deviation between runs. Units: paradigms and their
mean. low, high: share of studies whose 95% limits contain the truth, of the unit with the least and with the most;
width: of the mean unit, median. Intervals: that in use; HC3 about the line; of each size's own spread, with degrees of
freedom of each unit's spreads or of those of all units; for each unit the closer of the second and the third, in use
before.
"""

import argparse
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.curves.designs import Design
from analysis.curves.intervals import Interval, bent, run_terms
from analysis.curves.variance import RunTerms
from pairscale.files import write_text

FILE = Path(__file__).parents[2] / "analysis" / "results" / "two_runs.csv"
SIZES, PARADIGMS = (2, 4, 10), (4, 30)
SPREADS = {"alike": [], "x5 at the largest": [-1], "x5 at both ends": [0, -1]}
BENDS = {"line": 0.0, "little": 3.0, "late": 10.0}
IN_USE, LINE, OWN, POOLED, CLOSER = "in use", "HC3", "own degrees", "pooled degrees", "closer"
LEVEL = 0.95


def design_of(sizes: int) -> Design:
    size = np.repeat(np.arange(sizes), 2)
    return Design(9.0 * size / (sizes - 1), size, np.tile(np.arange(2), sizes), False)


def terms_of(design: Design) -> dict[str, RunTerms]:
    methods = {LINE: Interval.T_HC3, OWN: Interval.T_SIZES, POOLED: Interval.T_POOLED}
    return {name: run_terms(method, design, design.contrast) for name, method in methods.items()}


def simulate(design: Design, deviation: np.ndarray, bend: float, studies: int) -> pd.DataFrame:
    """Return interval, low, high and width; deviation (S, K) of runs."""
    rng, terms = np.random.default_rng(1), terms_of(design)
    curve = bend * (design.x / design.x.max())[:, None] ** 3
    truth = design.contrast @ curve
    held, widths = defaultdict(list), defaultdict(list)
    for _ in range(studies):
        own, common = rng.normal(size=(len(design.x), deviation.shape[1])), rng.normal(size=(len(design.x), 1))
        y = curve + deviation[design.size] * np.sqrt(0.5) * (own + common)
        y = np.column_stack([y.mean(axis=1), y])
        half = {
            name: student.ppf(0.5 + LEVEL / 2, of.degrees(y)) * np.sqrt(of.variance(y)) for name, of in terms.items()
        }
        half[IN_USE] = half[POOLED if bent(terms[LINE].variance(y), terms[POOLED].variance(y)) else LINE]
        half[CLOSER] = np.minimum(half[OWN], half[LINE])
        for name, limits in half.items():
            held[name].append(np.abs(design.contrast @ y - truth) <= limits)
            widths[name].append(2 * limits[0])
    rows = []
    for name, of in held.items():
        shares = np.mean(of, axis=0)
        rows.append({"interval": name, "low": shares.min(), "high": shares.max(), "width": np.median(widths[name])})
    return pd.DataFrame(rows)


def table(studies: int) -> pd.DataFrame:
    """Return a row for each design, spread, curve and interval."""
    parts = []
    for sizes, paradigms, (spread, wide), (curve, bend) in product(SIZES, PARADIGMS, SPREADS.items(), BENDS.items()):
        if sizes == 2 and bend:
            continue
        for among in ("all", "half")[: 1 + bool(wide)]:
            deviation = np.ones((sizes, paradigms))
            deviation[wide, :: 1 if among == "all" else 2] = 5
            part = simulate(design_of(sizes), deviation, bend, studies)
            about = {"sizes": sizes, "paradigms": paradigms, "spread": spread, "among": among, "curve": curve}
            parts.append(part.assign(**about, studies=studies)[[*about, "studies", *part.columns]])
    return pd.concat(parts, ignore_index=True).round({"low": 4, "high": 4, "width": 3})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--csv", type=Path, default=FILE)
    arguments = parser.parse_args()
    rows = table(arguments.studies)
    write_text(arguments.csv, rows.to_csv(index=False, lineterminator="\n"))
    print(rows.to_string())


if __name__ == "__main__":
    main()
