"""The studies in analysis/results/, as the tables of a report.

    python -m tests.support.committed_results STUDY     commits the accuracies and runs of runs/STUDY
    python -m tests.support.committed_results demo      also the minimal pair that README shows, after `make demo`

A study commits accuracies.csv and runs.csv, its long tables, so that it can be analysed when its run folders are gone.
Those of older studies give accuracies overall and in each phenomenon, without paradigms. Where runs of one size and
seed were trained on one sample, as their manifests said, `sample` names it by size and seed, since digests weren't
kept. Their slopes.csv and slope-differences.csv contain the intervals of earlier versions; only comparisons with these
versions (tests/bench/old_and_new_slopes.py) read them.
"""

import sys
from pathlib import Path

import pandas as pd

from analysis import accuracies, runs
from analysis.report.benchmark import BenchmarkResults
from analysis.sources.read import read_source
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from eval.published import read_published
from eval.scores.files import read_items, read_scores
from pairscale.command.compose import compose
from pairscale.tables import write_csv
from tests.support import ROOT

RESULTS = ROOT / "analysis" / "results"
CPU, SMALL, FAMILIES, LONG, GPU = "blimp_cpu", "blimp_small", "blimp_families_small", "blimp_long", "blimp_gpu"
ABLATION, DEMO = "ablation_small", "demo"
PARADIGM = "distractor_agreement_relational_noun"  # of the pair in minimal-pair.csv


def committed_tables(study: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the long table of accuracies of a committed study, and its table of runs."""
    found = read_source("table", str(RESULTS / study), OutcomeColumns(), ResultsConfig())
    return found.accuracies, found.runs


def committed_accuracies(study: str) -> pd.DataFrame:
    """Return the long table of accuracies of a committed study."""
    return committed_tables(study)[0]


def committed_results(study: str) -> BenchmarkResults:
    """Return a committed study as its report has it, beside the published accuracies of the whole benchmark."""
    table, of_runs = committed_tables(study)
    benchmark = str(table["benchmark"].iloc[0])
    options = compose("analysis", []).analysis
    results = BenchmarkResults(benchmark, table, of_runs, options)
    if study != DEMO:  # older tables name no paradigms, but these studies scored all of BLiMP's
        results.published = read_published(benchmark)
    return results


def commit(study: str, folder: Path = Path("runs")) -> None:
    """Write the accuracies and the runs of a study."""
    benchmark = None if study == DEMO else "blimp"
    (RESULTS / study).mkdir(exist_ok=True)
    write_csv(RESULTS / study / "accuracies.csv", accuracies(study, benchmark=benchmark, method="lp", folder=folder))
    write_csv(RESULTS / study / "runs.csv", runs(study, folder=folder))


def commit_pair(demo: Path = Path("runs/demo")) -> None:
    """Write the scores that one model of the demo gives to the first pair of PARADIGM, at each size."""
    table = runs(demo.name, folder=demo.parent).set_index("run")
    table = table[(table["model"] == "lstm_demo") & (table["seed"] == 1)].sort_values("sample_words")
    rows = []
    for run, size in table["size"].items():
        (path,) = (demo / str(run) / "scores").glob("*/lp.parquet")
        scores, pairs = read_scores(path)[0], read_items(path.parent)[0]
        score = scores[scores["paradigm"] == PARADIGM].iloc[0]
        pair = pairs.set_index(["paradigm", "pair_id"]).loc[(PARADIGM, score["pair_id"])]
        sentences = {f"{side}_sentence": pair[side] for side in ("good", "bad")}
        rows.append({"run": run, "size": size, "paradigm": PARADIGM, **sentences, **score[["good", "bad"]]})
    write_csv(RESULTS / DEMO / "minimal-pair.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    commit(sys.argv[1])
    if sys.argv[1] == DEMO:
        commit_pair()
