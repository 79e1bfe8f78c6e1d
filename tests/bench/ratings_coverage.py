"""Coverage of the 95% intervals of agreement with ratings, in simulated studies of known agreement.

    python tests/bench/ratings_coverage.py [--studies N] [--processes N] [--csv FILE]

A run's score of a sentence is a common part, a part of the run and sentence alone, and runs differ in how much they
have of what people judge; ratings are continuous, means of ten answers from 1 to 4, or heavy-tailed. The truths are
means over 200,000 sentences, over 200 runs (in every other study), or both; of accuracy and MCC, whose thresholds are
chosen on four fifths of a study's sentences, means over as many samples of that size as there are. One row for each
design, measure and question: covered, none (share without an interval), width (median). With 1,000 studies the standard
error of a coverage of 95% is .7%.
"""

import argparse
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from scipy.stats import rankdata

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.curves.graded.agreement import Contrast
from eval.ratings.measures import ACCURACY, AUC, MCC, PEARSON, SCALES, SPEARMAN
from eval.ratings.statistics import Statistic, auc, pearson, share, spearman, thresholded
from pairscale.files import write_text

FILE = Path(__file__).parents[2] / "analysis" / "results" / "ratings_coverage.csv"
QUESTIONS = {"items": "new sentences", "runs": "new runs", "both": "both"}
MANY_SENTENCES, MANY_RUNS = 200_000, 200
FOLDS, TESTED = 5, 4000  # of thresholds; sentences of the population that one threshold is tried on


@dataclass(frozen=True)
class SimulatedRatings:
    """A design: `runs` runs of one size, on `sentences` sentences.

    agreement: mean weight of what people judge in a score of variance about 1; spread: its deviation over runs.
    alone: share of the rest that is of the run and sentence alone. kind: of the ratings. paired: sentences come in
    pairs, a good and a bad one, that share half of their scores' rest.
    """

    runs: int = 5
    sentences: int = 250
    agreement: float = 0.3
    spread: float = 0.05
    alone: float = 0.3
    kind: str = "continuous"
    paired: bool = False

    def draw_sentences(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what people judge (S,), their ratings (S,), and the common rest of scores (S,)."""
        judged, rest = rng.standard_normal(count), rng.standard_normal(count)
        if self.paired:
            half = count // 2
            judged = rng.standard_normal(count) + np.tile([0.7, -0.7], half)
            rest = (np.repeat(rng.standard_normal(half), 2) + rest) / np.sqrt(2)
        noise = rng.standard_normal(count)
        match self.kind:
            case "continuous":
                ratings = judged + 0.3 * noise
            case "heavy tails":
                rest = rng.standard_t(4, count)
                ratings = judged + rng.standard_t(4, count)
            case _:  # means of ten answers from 1 to 4
                answers = np.round(2.5 + judged[:, None] + rng.standard_normal((count, 10)))
                ratings = np.clip(answers, 1, 4).mean(axis=1)
        return judged, ratings, rest

    def weights(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return self.agreement + self.spread * rng.standard_normal(count)

    def scores(self, judged, rest, weights, rng):
        """Return (R, S) scores of runs of those weights."""
        alone = rng.standard_normal((len(weights), len(judged)))
        other = np.sqrt(1 - self.alone) * rest + np.sqrt(self.alone) * alone
        w = weights[:, None]
        return w * judged + np.sqrt(np.maximum(1 - w**2, 0.01)) * other


DESIGNS = {
    "5 runs, 250 sentences": SimulatedRatings(),
    "3 runs, 250 sentences": SimulatedRatings(runs=3),
    "10 runs, 250 sentences": SimulatedRatings(runs=10),
    "5 runs, 50 sentences": SimulatedRatings(sentences=50),
    "5 runs, 1,450 sentences": SimulatedRatings(sentences=1450),
    "no agreement": SimulatedRatings(agreement=0.0, spread=0.02),
    "high agreement": SimulatedRatings(agreement=0.8, spread=0.03),
    "runs alike": SimulatedRatings(spread=0.0, alone=0.1),
    "runs far apart": SimulatedRatings(spread=0.15),
    "ratings from 1 to 4": SimulatedRatings(kind="answers"),
    "heavy tails": SimulatedRatings(kind="heavy tails"),
    "ratings from 1 to 4, 50 sentences": SimulatedRatings(kind="answers", sentences=50),
    "pairs": SimulatedRatings(paired=True, kind="answers"),
}


def units_of(count: int, design: SimulatedRatings) -> np.ndarray:
    """Return the number (S,) of the unit of each sentence: of its pair where there are any."""
    return np.arange(count) // (2 if design.paired else 1)


def folds_of(count: int, design: SimulatedRatings, rng: np.random.Generator) -> np.ndarray:
    """Return the fold (S,) of each sentence, both sentences of a pair in one."""
    units = units_of(count, design)
    return (rng.permutation(units.max() + 1) % FOLDS)[units]


def called(scores, good, fold) -> Iterator[tuple[str, Statistic]]:
    """Yield accuracy and MCC by thresholds of the other folds."""
    of = thresholded(scores, good, fold)
    yield ACCURACY, share(of == good)
    yield MCC, pearson(of.astype(np.float64), good.astype(np.float64))


def statistics(scores, ratings, good) -> Iterator[tuple[str, Statistic]]:
    """Yield each measure without a threshold, with its influences."""
    yield PEARSON, pearson(scores, ratings)
    yield SPEARMAN, spearman(scores, ratings)
    yield AUC, auc(scores, good)


def expected_by_threshold(scores, good, design: SimulatedRatings) -> dict[str, float]:
    """Return the accuracy and MCC of one run (S,) that samples of the design's size expect, on their scales."""
    training = design.sentences * (FOLDS - 1) // FOLDS // 2 * 2
    step = training + TESTED
    fold = (np.arange(step) >= training).astype(np.int64)
    values: dict[str, list[float]] = {ACCURACY: [], MCC: []}
    for start in range(0, len(scores) - step, step):
        part, labelled = scores[None, start : start + step], good[start : start + step]
        of, right = thresholded(part, labelled, fold)[:, training:], labelled[training:]
        for measure, statistic in (
            (ACCURACY, share(of == right)),
            (MCC, pearson(of.astype(np.float64), right.astype(np.float64))),
        ):
            values[measure].append(np.nan_to_num(statistic.value[0]))  # all called good, or all bad: no correlation
    return {measure: float(SCALES[measure].forth(np.asarray(np.mean(of)))) for measure, of in values.items()}


def values(scores, ratings, good, fold) -> dict[str, np.ndarray]:
    """Return each measure of (R, S) scores, from their ranks and without influences, which take longer."""
    by_threshold = {name: np.nan_to_num(of.value) for name, of in called(scores, good, fold)}
    ranks = rankdata(scores, axis=1)
    below = ranks[:, good].mean(axis=1) - (good.sum() + 1) / 2
    of_ranks = pearson(ranks, rankdata(ratings)).value
    return {PEARSON: pearson(scores, ratings).value, SPEARMAN: of_ranks, AUC: below / (~good).sum(), **by_threshold}


def labels(ratings: np.ndarray, design: SimulatedRatings) -> np.ndarray:
    """Return which sentences count as good: every other one of pairs, else a rating above the population's middle."""
    if design.paired:
        return np.tile([True, False], len(ratings) // 2)
    return ratings > (2.5 if design.kind == "answers" else 0)


def simulate(name: str, studies: int) -> pd.DataFrame:
    """Return the rows of a design."""
    design = DESIGNS[name]
    rng = np.random.default_rng([1, zlib.crc32(name.encode())])
    # Statistics over a population of sentences of runs of any weight, by interpolation: truths of "new sentences".
    judged, ratings, rest = design.draw_sentences(MANY_SENTENCES, rng)
    reach = 4.5 * design.spread + 1e-6
    grid = np.linspace(design.agreement - reach, design.agreement + reach, 15).clip(-0.97, 0.97)
    by_weight = {}
    for weight in grid:
        many = design.scores(judged, rest, np.asarray([weight]), rng)
        good = labels(ratings, design)
        expected = {name: float(SCALES[name].forth(of.value)[0]) for name, of in statistics(many, ratings, good)}
        for measure, of in (expected | expected_by_threshold(many[0], good, design)).items():
            by_weight.setdefault(measure, []).append(of)
    fits = {measure: np.polynomial.Polynomial.fit(grid, values, 4) for measure, values in by_weight.items()}
    grand = {measure: fit(design.weights(200_000, rng)).mean() for measure, fit in fits.items()}
    held: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for study in range(studies):
        judged, ratings, rest = design.draw_sentences(design.sentences, rng)
        good = labels(ratings, design)
        if not 1 < good.sum() < len(good) - 1:
            continue
        weights = design.weights(design.runs, rng)
        scores = design.scores(judged, rest, weights, rng)
        over_runs, fold = {}, folds_of(len(good), design, rng)
        if study % 2 == 0:
            many = design.scores(judged, rest, design.weights(MANY_RUNS, rng), rng)
            over_runs = {name: SCALES[name].forth(of).mean() for name, of in values(many, ratings, good, fold).items()}
        units = units_of(len(good), design)
        for measure, of in chain(statistics(scores, ratings, good), called(scores, good, fold)):
            contrast = Contrast.of(of.by(units).mapped(SCALES[measure]), np.full(design.runs, 1 / design.runs), None)
            limits = contrast.limits(0.95)
            truths = {"items": fits[measure](weights).mean(), "both": grand[measure]}
            pairs = {"items": (limits.low_items, limits.high_items), "both": (limits.low_both, limits.high_both)}
            if measure in over_runs:
                truths["runs"], pairs["runs"] = over_runs[measure], (limits.low, limits.high)
            for question, truth in truths.items():
                low, high = pairs[question]
                inside = np.nan if np.isnan(low) else float(low <= truth <= high)
                held.setdefault((measure, question), []).append((inside, high - low))
    rows = []
    for (measure, question), of in held.items():
        covered, widths = np.asarray(of).T
        rows.append(
            {"design": name, "measure": measure, "interval for": QUESTIONS[question], "studies": len(of),
             "covered": np.nanmean(covered), "none": np.isnan(covered).mean(), "width": np.nanmedian(widths)}
        )  # fmt: skip
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--csv", type=Path, default=FILE)
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.processes) as pool:
        table = pd.concat(pool.map(partial(simulate, studies=arguments.studies), DESIGNS), ignore_index=True)
    write_text(arguments.csv, table.to_csv(index=False, float_format="%.4f", lineterminator="\n"))
    Console(width=120).print(table.to_string())
    outside = table[~table["covered"].between(0.93, 0.97)]
    print(f"{len(table) - len(outside)} of {len(table)} intervals cover 93% to 97%")


if __name__ == "__main__":
    main()
