"""Coverage of the 95% intervals of ablations, and false alarms, in simulated studies of known truth.

    python tests/bench/ablation_coverage.py [--studies N] [--designs NAME ...] [--processes N] [--csv FILE]

One row for each design, quantity and level; "worst phenomenon" is the phenomenon with the lowest coverage. Studies are
those of tests/support/simulated_judgements.py, with a second set of runs that shares a part of the variance between
runs, as samples cut from one permutation do. Quantities:

    effect            treatment minus control, whose gains are twice as large
    no effect         the same of a treatment that changes nothing: 1 - covered are false alarms
    share             of what the control learned that the treatment knows (Fieller); none: studies without a share
    not equivalent    a true difference at the margin: covered is the share of studies that do not call it equivalent
"""

import argparse
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.config import CurvesConfig
from analysis.curves.ablations import CHANCE, difference, surviving_share
from analysis.curves.coverage import counts_text
from pairscale.files import write_text
from tests.support.simulated_judgements import SimulatedJudgements

FILE = Path(__file__).parents[2] / "analysis" / "results" / "ablation_coverage.csv"
CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=300, seed=1)
LEVELS = {"overall": [0], "worst phenomenon": [1, 2], "paradigm": [3]}  # rows of Units.table
THESE, NEW = "these pairs", "new pairs too"
CEILING = ((0.997, 0.0), (0.99, 0.0005), (0.9, 0.01), (0.98, 0.001))
KEYS = ["design", "runs", "shared", "pairs", "quantity", "question", "level"]


@dataclass(frozen=True)
class Study:
    """A design: control runs, and the share of the variance between runs that treatment and control have in common."""

    control: SimulatedJudgements
    shared: float = 0.8

    @property
    def treatment(self) -> SimulatedJudgements:
        """Half the gains of the control."""
        return replace(self.control, paradigms=tuple((start, gain / 2) for start, gain in self.control.paradigms))


DESIGNS = {
    "3x3, spread falls": Study(SimulatedJudgements(3, 3)),
    "3x3, spread rises": Study(SimulatedJudgements(3, 3, run_sd=(0.12, 0.35))),
    "3x3, x5 at the smallest": Study(SimulatedJudgements(3, 3, run_sd=(0.4, 0.08, 0.08))),
    "3x3, nothing shared": Study(SimulatedJudgements(3, 3), 0.0),
    "3x3, nearly all shared": Study(SimulatedJudgements(3, 3), 0.99),
    "3x2": Study(SimulatedJudgements(2, 3)),
    "1x5": Study(SimulatedJudgements(5, 1)),
    "4x5": Study(SimulatedJudgements(5, 4)),
    "5,3,2": Study(SimulatedJudgements((5, 3, 2), 3)),
    "3x3, 10 pairs": Study(SimulatedJudgements(3, 3, pairs=10)),
    "3x3, ceiling": Study(SimulatedJudgements(3, 3, paradigms=CEILING)),
    "3x3, ceiling, 10 pairs": Study(SimulatedJudgements(3, 3, pairs=10, paradigms=CEILING)),
    "4x5, ceiling, 10 pairs": Study(SimulatedJudgements(5, 4, pairs=10, paradigms=CEILING)),
    "3x5, nested": Study(SimulatedJudgements(5, 3, nested=True)),
    "3x3, overlap up to 50%": Study(SimulatedJudgements(3, 3, overlap=0.5)),
}


@dataclass(frozen=True)
class Limits:
    """Limits and true value of one quantity in all units, each (U,); NaN where there is no interval."""

    quantity: str
    question: str
    low: np.ndarray
    high: np.ndarray
    truth: np.ndarray


def draw(study: Study, rng: np.random.Generator, config: CurvesConfig = CONFIG) -> Iterator[Limits]:
    """Simulate one study and yield its limits."""
    control, units, design = study.control, study.control.units, study.control.design
    pairs, runs = control.draw_pairs(rng), control.draw_runs(rng)
    compared, of_control = control.draw(rng, pairs, runs)
    for name, treatment in (("effect", study.treatment), ("no effect", control)):
        own = treatment.draw_runs(rng)
        treated, of_treatment = treatment.draw(
            rng, pairs, np.sqrt(study.shared) * runs + np.sqrt(1 - study.shared) * own
        )
        means = [expected.mean(axis=0) @ units.weights for expected in (of_treatment, of_control)]
        over_pairs = [cell.expected.mean(axis=0) @ units.weights for cell in (treatment, control)]
        truth = means[0] - means[1]
        columns = difference(treated, compared, design, units, config)
        yield Limits(name, THESE, columns["low"], columns["high"], truth)
        yield Limits(name, NEW, columns["low_new_pairs"], columns["high_new_pairs"], over_pairs[0] - over_pairs[1])
        if name == "no effect":
            continue
        share = surviving_share(treated, compared, design, units, config)
        true_share = (means[0] - CHANCE) / (means[1] - CHANCE)
        yield Limits("share", THESE, share["share_low"], share["share_high"], true_share)
        retained = np.full(len(truth), np.nan)  # of the overall accuracy alone, as each unit needs a margin of its own
        if truth[0]:
            at_margin = difference(treated, compared, design, units, replace(config, ablation_margin=abs(truth[0])))
            retained[0] = at_margin["p_tost"][0] >= 0.05
        yield Limits("not equivalent", THESE, retained - 0.5, retained + 0.5, np.ones(len(truth)))


def simulate(name: str, studies: int, seed: int = 1) -> pd.DataFrame:
    """Return KEYS, studies, covered (share of those with limits), none (share without), width (median) of a design."""
    study = DESIGNS[name]
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    covers, widths = defaultdict(list), defaultdict(list)
    for _ in range(studies):
        for limits in draw(study, rng):
            inside = ((limits.low <= limits.truth) & (limits.truth <= limits.high)).astype(float)
            key = limits.quantity, limits.question
            covers[key].append(np.where(np.isfinite(limits.low), inside, np.nan))
            widths[key].append(limits.high - limits.low)
    rows = []
    for (quantity, question), of in covers.items():
        covered, width = np.stack(of), np.stack(widths[quantity, question])
        shares = [np.mean(one[~np.isnan(one)]) if (~np.isnan(one)).any() else np.nan for one in covered.T]
        for level, units in LEVELS.items():
            unit = min(units, key=lambda unit: np.inf if np.isnan(shares[unit]) else shares[unit])
            limited = ~np.isnan(covered[:, unit])
            rows.append({
                "design": name, "runs": counts_text(study.control.design.counts), "shared": study.shared,
                "pairs": study.control.pairs, "quantity": quantity, "question": question, "level": level,
                "studies": studies, "covered": shares[unit], "none": 1 - limited.mean(),
                "width": np.median(width[limited, unit]) if limited.any() else np.nan,
            })  # fmt: skip
    return pd.DataFrame(rows)


def coverage(studies: int, names=None, processes: int = 1, progress=lambda part: None) -> pd.DataFrame:
    """Simulate all designs, or those of `names`; return KEYS, studies, covered, none, standard_error, width."""
    parts = []
    with ProcessPoolExecutor(processes) as pool:
        for part in pool.map(partial(simulate, studies=studies), names or list(DESIGNS)):
            parts.append(part)
            progress(part)
    table = pd.concat(parts, ignore_index=True)
    error = np.sqrt(table["covered"] * (1 - table["covered"]) / (table["studies"] * (1 - table["none"])))
    columns = [*KEYS, "studies", "covered", "none", "standard_error", "width"]
    return table.assign(standard_error=error.round(4), width=table["width"].round(5))[columns].round(
        {"covered": 4, "none": 4}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--designs", nargs="+", choices=list(DESIGNS), metavar="NAME", help="all of them if left out")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--csv", type=Path, default=FILE, help="file for the table")
    arguments = parser.parse_args()
    console = Console()

    def progress(part: pd.DataFrame) -> None:
        known = part[part["none"] < 1]
        outside = known[~known["covered"].between(0.93, 0.97)]
        console.print(
            f"{part['design'].iloc[0]}: {len(known)} rows, not between .93 and .97: {len(outside)}", markup=False
        )

    table = coverage(arguments.studies, arguments.designs, arguments.processes, progress)
    write_text(arguments.csv, table.to_csv(index=False, lineterminator="\n"))
    console.print(f"{arguments.csv}", markup=False)


if __name__ == "__main__":
    main()
