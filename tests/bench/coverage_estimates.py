"""Coverage of 95% intervals for estimates other than slopes, in simulated studies.

    python tests/bench/coverage_estimates.py [--studies N] [--csv FILE] [QUANTITY ...]

A quantity is a function of a number of studies and a generator; it yields rows: design, interval, covered (share of
studies whose interval contains the truth), studies, and a remark. With 500 studies the standard error of
a coverage of 95% is 1%. tests/bench/coverage.py has the slopes.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.config import CurvesConfig
from analysis.curves.designs import Design
from analysis.curves.mixed_models import fit_binomial
from analysis.curves.robustness.averaged_shapes import ACCURACY, CEILING, SLOPE, averaged_table
from analysis.curves.shapes import unit_fits
from analysis.curves.units import units_of
from analysis.curves.words_to_people import PublishedPeople, people_accuracy, words_to_people
from analysis.measures.methods import compare_methods, crossed_mean, equivalent
from analysis.study.judgements import Judgements
from eval.scores.accuracy import stratified_trials
from pairscale.shares import wilson
from tests.support.bench_tables import write_designs

FILE = Path(__file__).parents[2] / "analysis" / "results" / "coverage_estimates.csv"
COLUMNS = ["quantity", "design", "interval", "studies", "covered", "told"]
CONFIG = CurvesConfig("lp", "auto", 0.95, 200, 1)
ASKED = PublishedPeople(pairs=5, judgements=20, correlation=0.12)  # as BLiMP's people were
PEOPLE, PARADIGMS = 0.9, 20  # their true accuracy, and the number of paradigms that they judged
WORDS = (125_000 * 2.0 ** np.repeat(np.arange(8), 2)).astype(int)  # eight sizes of two runs
DOUBLINGS = np.log2(WORDS / WORDS[0])
NO_PEOPLE = pd.DataFrame(columns=["level", "name", "accuracy"])
EQUIVALENCE_MARGIN, EQUIVALENCE_PAIRS = 0.05, 200
Rows = Iterator[dict[str, object]]


def judged_from(accuracies: np.ndarray, pairs: int = 1000) -> Judgements:
    """Return judgements of one paradigm by runs of these accuracies at WORDS."""
    runs = pd.DataFrame(
        {"study": "s", "group": "g", "size": WORDS.astype(str), "seed": np.tile([1, 2], 8), "sample_words": WORDS,
         "nested": False}
    )  # fmt: skip
    table = pd.DataFrame({"phenomenon": "p", "paradigm": "p_1", "pair_id": [f"{i:04d}" for i in range(pairs)]})
    outcome = ((np.arange(pairs) + 0.5) / pairs < accuracies[:, None]).astype(np.float32)
    flat = np.zeros(outcome.shape, dtype=bool)
    return Judgements("b", "lp", "d", {}, runs, table, outcome, flat, flat, pd.DataFrame())


def simulated_people(rng: np.random.Generator) -> pd.DataFrame:
    """Return the accuracy of simulated people on PARADIGMS paradigms; agreement with pairs is beta-distributed."""
    total = (1 - ASKED.correlation) / ASKED.correlation
    agreement = rng.beta(PEOPLE * total, (1 - PEOPLE) * total, (PARADIGMS, ASKED.pairs))
    shares = rng.binomial(ASKED.judgements, agreement).mean(axis=1) / ASKED.judgements
    names = [f"p_{k:02d}" for k in range(PARADIGMS)]
    published = pd.DataFrame({"level": "paradigm", "name": names, "model": "people", "accuracy": shares})
    units = units_of(pd.DataFrame({"phenomenon": "p", "paradigm": names, "pair_id": "0"})).table
    people = people_accuracy(published, units, ASKED)
    return people[people["level"] == "overall"]


CURVES = {  # accuracy after doublings of the smallest size, and the doublings after which it reaches people
    "line": (lambda d: 0.55 + 0.03 * d, 35 / 3),
    "sigmoid to .95": (lambda d: 0.5 + 0.45 * expit(0.9 * (d - 5)), 5 + np.log(8) / 0.9),
    "sigmoid to .92": (lambda d: 0.5 + 0.42 * expit(0.9 * (d - 3)), 3 + np.log(20) / 0.9),
    "power law to 1": (lambda d: 1 - 0.45 * np.exp2(-0.25 * d), np.log2(4.5) / 0.25),
    "power law to .93": (lambda d: 0.93 - 0.4 * np.exp2(-0.5 * d), np.log2(40 / 3) / 0.5),
}


def words(studies: int, rng: np.random.Generator) -> Rows:
    """Yield log2(words) to people of the line (Fieller) and of the shape preferred by AICc (profile), one paradigm."""
    for name, (curve, doublings) in CURVES.items():
        truth = np.log2(WORDS[0]) + doublings
        covers: dict[str, list[bool]] = {}
        statuses: dict[str, Counter[str]] = {}
        for _ in range(studies if name == "line" else max(studies // 5, 1)):  # a profile takes a second
            judgements = judged_from(curve(DOUBLINGS) + rng.normal(0, 0.01, len(WORDS)))
            table = words_to_people(judgements, CONFIG, simulated_people(rng))
            for row in table[table["level"] == "overall"].to_dict("records"):
                kind = "line" if row["fit"] == "line" else "preferred shape"
                statuses.setdefault(kind, Counter())[row["status"]] += 1
                low, high = (np.log2(row[end]) if row[end] > 0 else -np.inf for end in ("low", "high"))
                covers.setdefault(kind, []).append(bool(low <= truth <= high))
        for kind, of in covers.items():
            remark = ", ".join(f"{status} {count}" for status, count in statuses[kind].most_common())
            if kind == "preferred shape" or name == "line":  # the line fits no other curve
                interval = "Fieller" if kind == "line" else "profile"
                yield {"design": f"{name}, {kind}", "interval": interval, "studies": len(of), "covered": np.mean(of),
                       "told": remark}  # fmt: skip


def log_odds(studies: int, rng: np.random.Generator) -> Rows:
    """Yield slopes of the binomial model: random paradigms and runs, 100 pairs a paradigm."""
    usual = {"sizes": 4, "seeds": 2, "paradigms": 8, "level": 1.0, "slope": 0.4, "slope_sd": 0.1, "run_sd": 0.2}
    designs = {
        "4x2, 8 paradigms": {},
        "4x2, near the ceiling": {"level": 4.5, "slope": 0.8},
        "4x5, near the ceiling": {"level": 4.5, "slope": 0.8, "seeds": 5},
        "10x5": {"sizes": 10, "seeds": 5, "slope": 0.2},
        "4x2, paradigms differ": {"slope_sd": 0.3},
        "4x2, runs differ": {"run_sd": 0.5},
        "4x2, 3 paradigms": {"paradigms": 3},
        "4x2, one paradigm": {"paradigms": 1, "slope_sd": 0.0},
        "8x1": {"sizes": 8, "seeds": 1, "slope": 0.2},
    }
    for name, changes in designs.items():
        d = usual | changes
        size, seed = (g.ravel() for g in np.meshgrid(range(int(d["sizes"])), range(int(d["seeds"])), indexing="ij"))
        design = Design(17.0 + size, size, seed, nested=False)
        x, k, estimates = design.x - design.x.mean(), int(d["paradigms"]), []
        for _ in range(studies):
            logits = rng.normal(d["level"], 1 if k > 1 else 0, k) + np.outer(
                x, rng.normal(d["slope"], d["slope_sd"], k)
            )
            logits = logits + rng.normal(0, d["run_sd"], (len(x), 1)) + rng.normal(0, 0.1, (len(x), k))
            right = rng.binomial(100, expit(logits)).astype(float)
            estimates.append(fit_binomial(design, right, np.full(k, 100)))
        table = pd.DataFrame(estimates).dropna(subset="slope")
        covered = ((table["low"] < d["slope"]) & (d["slope"] < table["high"])).mean()
        remark = f"true {d['slope']}, mean {table['slope'].mean():.3f}, {studies - len(table)} without a slope"
        yield {"design": name, "interval": "jackknife", "studies": len(table), "covered": covered, "told": remark}


def methods(studies: int, rng: np.random.Generator) -> Rows:
    """Yield the difference of two equal methods, with random effects of pairs and runs (only pairs for one run)."""
    for runs, run_sd in ((1, 0.0), (2, 0.25), (3, 0.25), (5, 0.25), (5, 0.05)):
        covers = []
        for _ in range(studies):
            common = rng.normal(0.7, 1, 400) + rng.normal(0, 0.2, (runs, 1))
            logits = [common + rng.normal(0, 0.7, 400) + rng.normal(0, run_sd, (runs, 1)) for _ in "ab"]
            one, other = ((rng.uniform(size=of.shape) < expit(of)).astype(float) for of in logits)
            difference, error, degrees, _ = crossed_mean(one - other, list(np.repeat(list("abcdefgh"), 50)))
            covers.append(abs(difference) < student.ppf(0.975, degrees) * error)
        named = f"{runs} run{'s' * (runs > 1)}, spread {run_sd}, 8 paradigms of 50 pairs"
        yield {
            "design": named,
            "interval": "crossed t",
            "studies": studies,
            "covered": np.mean(covers),
            "told": "equal",
        }


def equivalence(studies: int, rng: np.random.Generator) -> Rows:
    """Yield how seldom methods are called equivalent that differ by the margin itself; covered: not called so."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    paradigms = list(np.repeat(list("abcdefgh"), EQUIVALENCE_PAIRS))
    index = pd.MultiIndex.from_arrays([paradigms, range(len(paradigms))], names=["paradigm", "pair_id"])
    for runs, run_sd in ((1, 0.0), (3, 0.25), (5, 0.25), (5, 0.05)):
        spread = np.sqrt(1 + 0.7**2 + 0.2**2 + run_sd**2)

        def mean(level: float, spread: float = spread) -> float:
            return float(expit(level + spread * nodes) @ weights / weights.sum())

        levels = 0.7, brentq(lambda level, mean=mean: mean(level) - mean(0.7) - EQUIVALENCE_MARGIN, 0, 3)
        columns = pd.MultiIndex.from_product([["one", "other"], [f"run{r}" for r in range(runs)]])
        columns.names = ["method", "run"]
        groups = pd.Series("g", index=columns.get_level_values("run").unique())
        called = []
        for _ in range(studies):
            common = rng.normal(0, 1, len(paradigms)) + rng.normal(0, 0.2, (runs, 1))
            logits = [level + common + rng.normal(0, 0.7, len(paradigms)) + rng.normal(0, run_sd, (runs, 1))
                      for level in levels]  # fmt: skip
            right = np.concatenate([rng.uniform(size=of.shape) < expit(of) for of in logits])
            outcomes = pd.DataFrame(right.T.astype(float), index, columns)
            called.append(bool(equivalent(compare_methods(outcomes, groups, margin=EQUIVALENCE_MARGIN)).iloc[0]))
        named = f"{runs} run{'s' * (runs > 1)}, spread {run_sd}, 8 paradigms of {EQUIVALENCE_PAIRS} pairs"
        yield {"design": named, "interval": "two one-sided t", "studies": studies, "covered": 1 - np.mean(called),
               "told": f"apart by the margin, {EQUIVALENCE_MARGIN}"}  # fmt: skip


def averaged_shapes(studies: int, rng: np.random.Generator) -> Rows:
    """Yield accuracies and slopes at both ends, and the ceiling, averaged over shapes, of curves of known shape."""
    ceilings = {"sigmoid to .95": 0.95, "sigmoid to .92": 0.92, "power law to .93": 0.93}
    for name, (curve, _) in CURVES.items():
        ends = DOUBLINGS.min(), DOUBLINGS.max()
        truth = {(ACCURACY, end): curve(end) for end in ends}
        truth |= {(SLOPE, end): (curve(end + 1e-4) - curve(end - 1e-4)) / 2e-4 for end in ends}
        truth |= {(CEILING, np.nan): ceilings[name]} if name in ceilings else {}
        covers: dict[str, list[float]] = {}
        for _ in range(studies):
            judged = judged_from(curve(DOUBLINGS) + rng.normal(0, 0.01, len(WORDS)))
            table = averaged_table(unit_fits(judged, NO_PEOPLE, ["overall"]), 0.95)
            for (quantity, end), true in truth.items():
                at = table[table["quantity"] == quantity]
                row = at[np.isclose(np.log2(at["words"] / WORDS[0]), end)] if np.isfinite(end) else at
                low, high = row[["low", "high"]].iloc[0]
                place = {ends[0]: " at the smallest size", ends[1]: " at the largest"}.get(end, "")
                covers.setdefault(quantity + place, []).append(float(low <= true <= high) if low == low else np.nan)
        for quantity, of in covers.items():
            yield {"design": f"{name}, {quantity}", "interval": "averaged over shapes", "studies": len(of),
                   "covered": np.nanmean(of) if np.isfinite(of).any() else np.nan,
                   "told": f"without limits {np.isnan(of).sum()}"}  # fmt: skip


def overall(studies: int, rng: np.random.Generator) -> Rows:
    """Yield accuracy over fixed paradigms: Wilson's interval with effective trials, and as if all pairs were alike."""
    equally = np.full((12, 1), 1 / 12)
    for pairs in (10, 100, 1000):
        truth = np.array([0.2, 0.35, 0.5, 0.5, 0.6, 0.75, 0.85, 0.9, 0.95, 0.98, 0.99, 1.0])
        shares = rng.binomial(pairs, truth, (10 * studies, 12)) / pairs
        trials = stratified_trials(shares, np.full(12, pairs), equally)[:, 0]
        for interval, counts in (
            ("Wilson, effective trials", trials),
            ("Wilson, all pairs", np.full(len(trials), 12 * pairs)),
        ):
            ends = np.array([wilson(share, n) for share, n in zip(shares.mean(axis=1), counts, strict=True)])
            covered = ((ends[:, 0] < truth.mean()) & (truth.mean() < ends[:, 1])).mean()
            yield {"design": f"12 paradigms of {pairs} pairs", "interval": interval, "studies": len(shares),
                   "covered": covered, "told": f"mean width {np.ptp(ends, axis=1).mean():.4f}"}  # fmt: skip


QUANTITIES: dict[str, Callable[[int, np.random.Generator], Rows]] = {
    "log2 words to people": words,
    "slope in log-odds": log_odds,
    "difference of methods": methods,
    "equivalence of methods": equivalence,
    "averaged shapes": averaged_shapes,
    "overall accuracy": overall,
}


def coverage(studies: int, names: list[str], progress: Callable[[dict[str, object]], None]) -> pd.DataFrame:
    """Return COLUMNS of these quantities."""
    rows = []
    for name in names:
        for row in QUANTITIES[name](studies, np.random.default_rng(1)):
            rows.append({"quantity": name, **row, "covered": round(float(row["covered"]), 4)})
            progress(rows[-1])
    return pd.DataFrame(rows, columns=COLUMNS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quantity", nargs="*", choices=[*QUANTITIES, []], help="all, unless some are named")
    parser.add_argument("--studies", type=int, default=500)
    parser.add_argument("--csv", type=Path, default=FILE, help="file whose rows of these are replaced")
    arguments = parser.parse_args()
    console = Console(highlight=False)

    def progress(row: dict[str, object]) -> None:
        console.print(*(str(row[name]) for name in COLUMNS), sep=" | ", markup=False, soft_wrap=True)

    table = coverage(arguments.studies, arguments.quantity or list(QUANTITIES), progress)
    write_designs(arguments.csv, table, list(QUANTITIES), "quantity")


if __name__ == "__main__":
    main()
