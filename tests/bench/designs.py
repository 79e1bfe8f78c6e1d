"""Coverage of the default 95% intervals in 46 designs of studies, by a simulator that shares no code with the analysis.

    python tests/bench/designs.py [--studies N] [--resamples N] [--designs NAME ...] [--processes N] [--csv FILE]

Studies are those of tests/support/independent_studies.py. They are analysed as a user's are: the limits are those that
stand in slopes.csv and slope-differences.csv of a report. One row for each design, quantity (the slope of model a, and
the difference of the models), question (these pairs, new pairs too) and unit: overall, both phenomena, four paradigms.
Designs of overlapping samples and of sizes of one run are there twice, the second time with the conservative limits
that the default leaves out: of the former with analysis.cautioned_limits=conservative, of the latter with
analysis.least_runs=1, too.
With 1,000 studies the standard error of a coverage of 95% is .7%. Each design has random numbers of its own. Some 17
CPU minutes.
"""

import argparse
import sys
import zlib
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.config import CONSERVATIVE, CurvesConfig
from analysis.curves.comparisons import difference_cautions, same_draws, slope_difference
from analysis.curves.designs import design_of
from analysis.curves.groups import ROUGH, cautions, cautions_left, fit_group, rows_of, slope_limits, with_least_runs
from analysis.curves.intervals import Interval, resampled_accuracies
from analysis.curves.units import units_of
from analysis.study.judgements import Judgements
from tests.support.bench_tables import write_designs
from tests.support.independent_studies import MODELS, TWO_VALUED, UNRELATED, IndependentStudies, Study

FILE = Path(__file__).parents[2] / "analysis" / "results" / "designs_coverage.csv"
CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=200, seed=1)
LOWEST, HIGHEST = 0.93, 0.97
QUESTIONS = {"these pairs": ("low", "high"), "new pairs too": ("low_new_pairs", "high_new_pairs")}
Key = tuple[str, str]  # quantity, question
KEYS = ["design", "runs", "quantity", "question", "level", "name"]

S, L = 0.08, 0.4  # deviations between runs in probits: L is five times S
LATE = (("p", 0.52, 0.03), ("p", 0.55, 0.02), ("q", 0.5, 0.035), ("q", 0.55, 0.01))
CEILING = (("p", 0.997, 0.0), ("p", 0.985, 0.001), ("q", 0.9, 0.01), ("q", 0.96, 0.003))
EARLY = (("p", 0.97, 0.0033), ("p", 0.98, 0.0022), ("q", 0.9, 0.011), ("q", 0.95, 0.0055))
FALLS4, RISES4 = (0.24, 0.18, 0.12, 0.08), (0.08, 0.12, 0.18, 0.24)
FALLS6, RISES6 = (0.16, 0.14, 0.12, 0.11, 0.1, 0.08), (0.08, 0.1, 0.11, 0.12, 0.14, 0.16)

DESIGNS = {
    "4x5 line": IndependentStudies((5,) * 4),
    "10x5 line": IndependentStudies((5,) * 10),
    "3x5 line": IndependentStudies((5,) * 3),
    "4x5 line, spread falls": IndependentStudies((5,) * 4, spread=FALLS4),
    "4x5 sigmoid, spread rises": IndependentStudies((5,) * 4, "sigmoid", RISES4),
    "4x5 late": IndependentStudies((5,) * 4, "late", paradigms=LATE),
    "4x5 line, x5 at the smallest": IndependentStudies((5,) * 4, spread=(L, S, S, S)),
    "4x5 line, x5 at the largest": IndependentStudies((5,) * 4, spread=(S, S, S, L)),
    "4x5 line, x5 at both ends": IndependentStudies((5,) * 4, spread=(L, S, S, L)),
    "4x5 no difference": IndependentStudies((5,) * 4, gains=(1.0, 1.0)),
    "4x5 same texts": IndependentStudies((5,) * 4, same_texts=True),
    "4x5 same texts, no difference": IndependentStudies((5,) * 4, gains=(1.0, 1.0), same_texts=True),
    "4x3 line": IndependentStudies((3,) * 4),
    "4x3 sigmoid, spread falls": IndependentStudies((3,) * 4, "sigmoid", FALLS4),
    "4x3 late": IndependentStudies((3,) * 4, "late", paradigms=LATE),
    "4x3 line, x5 at the smallest": IndependentStudies((3,) * 4, spread=(L, S, S, S)),
    "4x3 line, x5 at the largest": IndependentStudies((3,) * 4, spread=(S, S, S, L)),
    "4x2 line": IndependentStudies((2,) * 4),
    "4x2 sigmoid": IndependentStudies((2,) * 4, "sigmoid"),
    "4x2 late": IndependentStudies((2,) * 4, "late", paradigms=LATE),
    "4x2 line, two-valued effects": IndependentStudies((2,) * 4, effects=TWO_VALUED),
    "4x2 line, x5 at the smallest": IndependentStudies((2,) * 4, spread=(L, S, S, S)),
    "4x2 line, x5 at the largest": IndependentStudies((2,) * 4, spread=(S, S, S, L)),
    "4x2 line, x5 at both ends": IndependentStudies((2,) * 4, spread=(L, S, S, L)),
    "4x2 same texts, no difference": IndependentStudies((2,) * 4, gains=(1.0, 1.0), same_texts=True),
    "4x2 line, x5 at the largest in q": IndependentStudies((2,) * 4, spread=(*[(S,) * 4] * 3, (S, S, L, L))),
    "10x2 line": IndependentStudies((2,) * 10),
    "10x2 late, x5 at the largest": IndependentStudies((2,) * 10, "late", (*[S] * 9, L), paradigms=LATE),
    "5,5,5,1 line, x5 at the largest": IndependentStudies((5, 5, 5, 1), spread=(S, S, S, L)),
    "1,5,5,5 line, x5 at the smallest": IndependentStudies((1, 5, 5, 5), spread=(L, S, S, S)),
    "5,5,5,1 line": IndependentStudies((5, 5, 5, 1)),
    "5,5,5,1 late, x5 at the largest": IndependentStudies((5, 5, 5, 1), "late", (S, S, S, L), paradigms=LATE),
    "1,5,5,5 late, x5 at the smallest": IndependentStudies((1, 5, 5, 5), "late", (L, S, S, S), paradigms=LATE),
    "5,5,5,3,3,1 late, spread falls": IndependentStudies((5, 5, 5, 3, 3, 1), "late", FALLS6, paradigms=LATE),
    "4,3,3,3,3,1 late, spread rises": IndependentStudies((4, 3, 3, 3, 3, 1), "late", RISES6, paradigms=LATE),
    "4x5 nested": IndependentStudies((5,) * 4, nested=True),
    "10x5 nested": IndependentStudies((5,) * 10, nested=True),
    "5,5,5,3 nested": IndependentStudies((5, 5, 5, 3), nested=True),
    "10x5 overlap up to 77%": IndependentStudies((5,) * 10, overlap=0.77),
    "10x5 overlap up to 77%, sizes unrelated": IndependentStudies((5,) * 10, overlap=0.77, blocks=UNRELATED),
    "10x5 overlap up to 77%, all by text": IndependentStudies((5,) * 10, overlap=0.77, text=1.0),
    "4x2 ceiling, 10 pairs": IndependentStudies((2,) * 4, pairs=10, paradigms=CEILING),
    "4x5 ceiling, 10 pairs": IndependentStudies((5,) * 4, pairs=10, paradigms=CEILING),
    "4x5 ceiling, 100 pairs": IndependentStudies((5,) * 4, paradigms=CEILING),
    "4x3 early ceiling, 100 pairs": IndependentStudies((3,) * 4, "early", paradigms=EARLY),
    "10x5 early ceiling, 100 pairs": IndependentStudies((5,) * 10, "early", paradigms=EARLY),
}


ASKED = ", conservative limits"  # that a user asks for
NAMES = [*DESIGNS, *(name + ASKED for name, cell in DESIGNS.items() if 1 in cell.counts or cell.overlap)]


def judgements_of(study: Study) -> Judgements:
    """Return a study's judgements as the analysis reads them: the runs of model a, then those of model b."""
    cell = study.cell
    words = np.round(np.exp2(cell.x[cell.size])).astype(int)
    parts = []
    for model in MODELS:
        texts = [
            f"{seed}-{size}" + ("" if cell.same_texts else f"-{model}")
            for seed, size in zip(cell.seed, words, strict=True)
        ]
        parts.append(pd.DataFrame({
            "study": "simulated", "group": model, "size": words.astype(str), "seed": cell.seed, "sample_words": words,
            "nested": cell.nested, "overlap": cell.shares[cell.size],
            "manifest": [{"corpus": {"sample": {"digest": text}}} for text in texts],
        }))  # fmt: skip
    runs = pd.concat(parts, ignore_index=True)
    runs.index = pd.Index([f"{run.group}-{run.size}-{run.seed}" for run in runs.itertuples()])
    pairs = pd.DataFrame({
        "phenomenon": np.repeat([phenomenon for phenomenon, *_ in cell.paradigms], cell.pairs),
        "paradigm": np.repeat(cell.names, cell.pairs),
        "pair_id": np.tile([f"{p:03d}" for p in range(cell.pairs)], len(cell.names)),
    })  # fmt: skip
    outcome = outcome_of(study)
    none = np.zeros(outcome.shape, dtype=bool)
    return Judgements("simulated", "lp", "", {}, runs, pairs, outcome, none, none, pd.DataFrame())


def outcome_of(study: Study) -> np.ndarray:
    """Return (2R, pairs) outcomes: the runs of model a, then those of model b."""
    return study.correct.reshape(2 * len(study.cell.size), -1).astype(np.float32)


class Limits:
    """The limits that the analysis gives in studies of one design, whose runs and pairs are the same in each.

    Equal to those of the tables of a report (tests/bench/test_designs.py), which take ten times as long to make.
    """

    def __init__(self, judged: Judgements) -> None:
        self.units = units_of(judged.pairs)
        self.rows = [rows_of(judged, model) for model in MODELS]
        self.runs = [judged.runs.iloc[rows] for rows in self.rows]
        self.designs = [design_of(runs) for runs in self.runs]

    def of(
        self, outcome: np.ndarray, config: CurvesConfig
    ) -> tuple[str, dict[Key, tuple[np.ndarray, np.ndarray]], dict[str, np.ndarray]]:
        """Return the interval of model a's slopes, low and high of every quantity, and the cautions on them, (U,)
        each; outcome (2R, P). Limits that the default leaves out are there.
        """
        a, b = fits = [
            fit_group(model, outcome[rows], design, self.units, config.interval)
            for model, rows, design in zip(MODELS, self.rows, self.designs, strict=True)
        ]
        resampled = None
        if a.method == Interval.BOOTSTRAP:
            rng = np.random.default_rng([config.seed, 0])
            resampled = resampled_accuracies(a.outcome, self.units.bounds, config.resamples, rng)
        slope = slope_limits(a, config, resampled)
        difference = slope_difference(a, b, config, same_draws(*self.runs, fits))
        limits = {("slope", question): (slope[2 * i], slope[2 * i + 1]) for i, question in enumerate(QUESTIONS)}
        for question, (low, high) in QUESTIONS.items():
            limits["difference", question] = (difference[low], difference[high])
        return a.method.rule, limits, {"slope": cautions(a), "difference": difference_cautions(a, b)}


def simulate(name: str, studies: int, config: CurvesConfig = CONFIG, seed: int = 1) -> pd.DataFrame:
    """Return KEYS, interval, studies, covered (of those with limits), none (share without), caution (share of studies
    whose report has limits with a caution), left_out (kinds of cautions for which limits are left out),
    covered_left_out (of these), standard_error, width (median).
    """
    cell, least = DESIGNS[name.removesuffix(ASKED)], 2
    if name.endswith(ASKED):
        least, config = 1, replace(config, cautioned_limits=CONSERVATIVE)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    every = judgements_of(cell.draw(rng))
    judged = with_least_runs(every, least)
    rows = every.runs.index.get_indexer(judged.runs.index)
    analysis = Limits(judged)
    units = list(analysis.units.table[["level", "name"]].itertuples(index=False, name=None))
    covered, width, reasons = defaultdict(list), defaultdict(list), defaultdict(list)
    for _ in range(studies):
        study = cell.draw(rng)
        truths = {
            (quantity, question): of for (quantity, model, question), of in study.truths(least).items() if model != "b"
        }
        outcome = outcome_of(study)[rows]
        method, limits, on_limits = analysis.of(outcome, replace(config, seed=int(rng.integers(2**32))))
        for key, (low, high) in limits.items():
            truth = np.array([truths[key][unit] for unit in units])
            covered[key].append(np.where(np.isfinite(low), (low <= truth) & (truth <= high), np.nan))
            width[key].append(high - low)
            reasons[key].append(on_limits[key[0]])
    runs, rows = ",".join(map(str, cell.counts)), []
    for key in covered:
        held, wide, of = (np.stack(by[key]) for by in (covered, width, reasons))  # (studies, U)
        kept, left_out = (text != "" for text in cautions_left(of, config))
        kinds = np.char.partition(of, ":")[..., 0]
        for u, unit in enumerate(units):
            known = ~np.isnan(held[:, u]) & ~left_out[:, u]
            share = held[known, u].mean() if known.any() else np.nan
            rows.append({
                **dict(zip(KEYS, (name, runs, *key, *unit), strict=True)), "interval": str(method), "studies": studies,
                "covered": share, "none": 1 - known.mean(),
                "caution": kept[:, u].mean(),
                "left_out": ", ".join(kind for kind in (CONSERVATIVE, ROUGH) if kind in kinds[left_out[:, u], u]),
                "covered_left_out": held[left_out[:, u], u].mean() if left_out[:, u].any() else np.nan,
                "standard_error": np.sqrt(share * (1 - share) / max(known.sum(), 1)),
                "width": np.median(wide[known, u]) if known.any() else np.nan,
            })  # fmt: skip
    return pd.DataFrame(rows).round(
        {"covered": 4, "none": 4, "caution": 3, "covered_left_out": 4, "standard_error": 4, "width": 5}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=CONFIG.resamples)
    parser.add_argument("--designs", nargs="+", choices=NAMES, metavar="NAME", help="all of them if left out")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--csv", type=Path, default=FILE, help="file whose rows of these designs are replaced")
    arguments = parser.parse_args()
    one = partial(simulate, studies=arguments.studies, config=replace(CONFIG, resamples=arguments.resamples))
    with ProcessPoolExecutor(arguments.processes) as pool:
        for part in pool.map(one, arguments.designs or NAMES):
            write_designs(arguments.csv, part, NAMES)
            few, many = (part["covered"] < LOWEST).sum(), (part["covered"] > HIGHEST).sum()
            Console().print(
                f"{part['design'].iloc[0]}: {len(part)} rows, {few} below {LOWEST}, {many} above {HIGHEST}",
                markup=False,
            )


if __name__ == "__main__":
    main()
