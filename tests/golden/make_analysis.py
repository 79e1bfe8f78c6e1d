"""Numbers of the analysis before it was rewritten, which the new functions must reproduce.

    python tests/golden/make_analysis.py    at commit a9663e9a, which still has the old functions

It writes next to itself:

accuracies.csv    a simulated study as the long table: three curves, six paradigms in three phenomena, ties, `<unk>`
slopes.csv        slopes and intercepts of its curves
differences.csv   differences of these slopes
statements.csv    what papers state about their own numbers, what follows from these numbers, and whether they agree

The old slopes and differences of the committed studies are in analysis/results/. tests/analysis/test_golden.py compares
the new results with all of them and states the tolerances. The old code gave each size the same weight and the new code
each run, so only curves with as many runs at each size have the same slopes: `ngram` has other numbers of runs.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.comparisons import compare_slopes
from analysis.curves.fit import ALL_PAIRS, fit_curves
from analysis.papers.papers import reproduce
from analysis.study.judgements import Judgements

FOLDER = Path(__file__).parent
PARADIGMS = {("agreement", "a_1"): 40, ("agreement", "a_2"): 25, ("binding", "b_1"): 30, ("islands", "i_1"): 20,
             ("islands", "i_2"): 35, ("islands", "i_3"): 50}  # fmt: skip
CURVES = {"lstm": ((3, 3, 3, 3), 0.040), "txl": ((3, 3, 3, 3), 0.025), "ngram": ((4, 3, 2, 2), 0.010)}
SIZES = (125_000, 500_000, 2_000_000, 8_000_000)
CONFIG = CurvesConfig(method="lp", interval="t", confidence=0.95, resamples=100, seed=1)


def simulated() -> Judgements:
    """Return judgements of single pairs; seeds of lstm and txl trained on the same samples."""
    rng = np.random.default_rng(49)
    runs = pd.DataFrame(
        [
            {"study": "golden", "group": curve, "model": curve, "size": f"{words // 1000}k", "sample_words": words,
             "seed": seed, "nested": False, "manifest": {"corpus": {"sample": {"digest": f"{words}-{seed}"}}}}
            for curve, (counts, _) in CURVES.items()
            for words, count in zip(SIZES, counts, strict=True)
            for seed in range(1, count + 1)
        ]
    )  # fmt: skip
    runs.index = pd.Index([f"{row.group}-{row.size}-s{row.seed}" for row in runs.itertuples()], name="run")
    pairs = pd.DataFrame(
        [(*names, f"{i:03}") for names, count in PARADIGMS.items() for i in range(count)],
        columns=["phenomenon", "paradigm", "pair_id"],
    )
    doublings = np.log2(runs["sample_words"].to_numpy() / SIZES[0])
    gain = np.asarray([CURVES[curve][1] for curve in runs["group"]])
    level = 0.52 + gain * doublings + rng.normal(0, 0.03, len(runs))
    outcome = rng.uniform(size=(len(runs), len(pairs))) < level[:, None] + rng.normal(0, 0.08, len(pairs))
    tie = (rng.uniform(size=outcome.shape) < 0.02) & ~outcome
    unk = rng.uniform(size=outcome.shape) < 0.1 / (1 + doublings[:, None])
    return Judgements("golden", "lp", "d", {}, runs, pairs, outcome.astype(np.float32), tie, unk, pd.DataFrame())


def long_table(judged: Judgements) -> pd.DataFrame:
    """Return the accuracies of the study as `analysis.accuracies` gives them."""
    rows = []
    for r, (run, row) in enumerate(judged.runs.iterrows()):
        for (phenomenon, paradigm), count in PARADIGMS.items():
            of = (judged.pairs["paradigm"] == paradigm).to_numpy()
            correct = int(judged.outcome[r, of].sum())
            rows.append({
                "study": "golden", "run": run, "curve": row["group"], "model": row["model"], "size": row["size"],
                "sample_words": row["sample_words"], "seed": row["seed"], "unit": "words", "nested": False,
                "sample": row["manifest"]["corpus"]["sample"]["digest"], "baseline": "", "benchmark": "golden",
                "phenomenon": phenomenon, "paradigm": paradigm, "method": "lp", "pairs": count, "correct": correct,
                "accuracy": correct / count, "ties": int(judged.tie[r, of].sum()),
                "pairs_with_unk": int(judged.unk[r, of].sum()),
            })  # fmt: skip
    return pd.DataFrame(rows)


def main() -> None:
    judged = simulated()
    curves, differences = fit_curves(judged, CONFIG), compare_slopes(judged, CONFIG)
    slopes = curves.slopes[curves.slopes["pairs"] == ALL_PAIRS]
    tables = {
        "accuracies": long_table(judged),
        "slopes": slopes[["group", "level", "name", "paradigms", "n_pairs", "runs", "slope", "intercept"]],
        "differences": differences[["group", "other", "level", "name", "difference", "paired", "pairs"]],
        "statements": pd.concat([paper.checks.assign(paper=paper.name) for paper in reproduce()])[
            ["paper", "place", "statement", "relation", "value", "tolerance", "ours", "agrees", "chosen"]
        ],
    }
    for name, table in tables.items():
        table.to_csv(FOLDER / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
