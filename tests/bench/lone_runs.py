"""How wide the interval of a slope must be where a size has one run, by what is taken for granted.

    python tests/bench/lone_runs.py [--draws N] [--csv FILE]

Sizes equally far apart in log2 words; runs are independent and normal, those of the single run's size vary as much as
the others or `apart` times as much. Curves are lines, or bend by up to BENDS times the deviation between runs over the
whole grid: late, early or evenly. needed: the smallest multiple of the HC2 error, as the analysis estimates it, that
holds the slope in 95% of studies at the worst of these curves; used: the multiple of the analysis at 95%.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.curves.designs import Design
from analysis.curves.intervals import Interval, run_terms
from pairscale.files import write_text

FILE = Path(__file__).parents[2] / "analysis" / "results" / "lone_runs.csv"
DESIGNS = ((5, 5, 5, 1), (1, 5, 5, 5), (5, 5, 1), (5, 5, 5, 3, 3, 1), (1, 1, 1, 1))
SHAPES = (lambda at: at**3, lambda at: 1 - (1 - at) ** 3, lambda at: at**2)  # late, early, evenly; 0 to 1 over the grid
BENDS = {"line": (0.0,), "bent": (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 16.0, 20.0)}
LEVEL = 0.95


def needed(design: Design, bends: tuple[float, ...], deviation: np.ndarray, draws: int) -> float:
    """Return the multiple of the error that is needed; deviation (R,) of runs."""
    terms, contrast = run_terms(Interval.T_HC2, design, design.contrast), design.contrast
    error = np.random.default_rng(0).normal(size=(len(contrast), draws)) * deviation[:, None]
    at = (design.x - design.x.min()) / np.ptp(design.x)
    curves = [bend * shape(at) for bend in bends for shape in SHAPES]
    ratios = (np.abs(contrast @ error) / np.sqrt(terms.variance(error + curve[:, None])) for curve in curves)
    return max(float(np.quantile(ratio, LEVEL)) for ratio in ratios)


def table(draws: int) -> pd.DataFrame:
    """Return a row for each design, kind of curve and spread of the single run."""
    rows = []
    for counts in DESIGNS:
        size = np.repeat(np.arange(len(counts)), counts)
        design = Design(3.0 * size, size, np.concatenate([np.arange(count) for count in counts]), False)
        terms = run_terms(Interval.T_HC2, design, design.contrast)
        # The degrees of HC2 are the same for any accuracies.
        used = student.ppf(0.5 + LEVEL / 2, terms.degrees(np.eye(len(size))[:, :1])[0])
        for curve, bends in BENDS.items():
            for apart in (1.0, 3.0, 5.0):
                deviation = np.where(size == np.argmin(counts), apart, 1.0)
                rows.append({
                    "runs": ",".join(map(str, counts)), "curve": curve, "apart": apart,
                    "needed": needed(design, bends, deviation, draws), "used": used,
                })  # fmt: skip
    return pd.DataFrame(rows).round({"needed": 2, "used": 2})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40_000)
    parser.add_argument("--csv", type=Path, default=FILE)
    arguments = parser.parse_args()
    rows = table(arguments.draws)
    write_text(arguments.csv, rows.to_csv(index=False, lineterminator="\n"))
    print(rows.to_string())


if __name__ == "__main__":
    main()
