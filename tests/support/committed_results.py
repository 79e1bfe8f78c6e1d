"""Studies in analysis/results/, analysed as far as the accuracies of their runs allow.

    python -m tests.support.committed_results   rewrites slopes.csv and slope-differences.csv of blimp_cpu
    python -m tests.support.committed_results demo      copies the tables of the demo, after `make demo`
    python -m tests.support.committed_results again STUDY   the limits of blimp_small or blimp_long, from its points.csv
    python -m tests.support.committed_results STUDY     those of another study, from reports/STUDY

A study commits accuracies.csv and runs.csv, the long table (analysis/study/long_table.py), so that it can be analysed again when
its run folders are gone. Studies that were run earlier have points.csv instead: accuracies of phenomena without
paradigms.
`committed_accuracies` reads either.

The tables of blimp_small, of the study of families and of blimp_long are those that `python -m analysis` made of their
score files, which are gone. When the intervals of two runs a size changed, `again` computed those of blimp_small and
blimp_long from points.csv, with runs of one size and seed as runs on one sample, as manifests showed; what needs
judgements of single pairs (intervals over new pairs) is left out, and the lack-of-fit test stays as it was. Chance in
single judgements is then that of binomials: limits are as in a report, or wider. In the study of families (six of 78
rows) limits stand on the higher floor that slopes had before, and are too wide.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.comparisons import compare_slopes
from analysis.curves.fit import Curves, fit_curves
from analysis.curves.fit.groups import with_least_runs
from analysis.exhibits.tables.slopes import slope_table, with_published
from analysis.sources.read import read_source
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from analysis.study.long_table.collect import PROBLEMS
from analysis.study.long_table.judgements import Judgements
from analysis.study.long_table import accuracies, runs
from eval.scores.files import read_items, read_scores
from pairscale.command.compose import compose
from pairscale.tables import write_csv
from tests.support import ROOT

RESULTS = ROOT / "analysis" / "results"
STUDY = "blimp_cpu"
SMALL = "blimp_small"
FAMILIES = "blimp_families_small"
LONG = "blimp_long"
GPU = "blimp_gpu"
PAIRED = (SMALL, LONG, GPU)  # runs of one size and seed trained on one sample
DEMO = "demo"  # has only the source of the output of `make demo`: points.csv, runs.csv and minimal-pair.csv
PARADIGM = "distractor_agreement_relational_noun"  # of the pair in minimal-pair.csv


def config(study: str = STUDY) -> CurvesConfig:
    """Return the settings of the analysis of a study: the default ones, but for those of its experiment."""
    return compose("analysis", [f"experiment={study}"] if study == GPU else []).analysis


def committed_accuracies(study: str = STUDY) -> pd.DataFrame:
    """Return the long table of accuracies of a committed study; of PAIRED, with the samples that runs share."""
    older = not (RESULTS / study / "accuracies.csv").exists()
    columns = OutcomeColumns(n="n_pairs") if older else OutcomeColumns()
    benchmark = "toy" if study == DEMO else "blimp"
    table = read_source("table", str(RESULTS / study), columns, ResultsConfig(benchmark=benchmark)).accuracies
    if older and study in PAIRED:
        table["sample"] = table["size"] + "-" + table["seed"].astype(str)
    return table


def _write_study(study: str, folder: Path, **chosen: str) -> None:
    """Write the long table of a study and its runs; points.csv, of earlier versions, goes."""
    (RESULTS / study).mkdir(exist_ok=True)
    write_csv(RESULTS / study / "accuracies.csv", accuracies(study, folder=folder, **chosen))
    write_csv(RESULTS / study / "runs.csv", runs(study, folder=folder))
    (RESULTS / study / "points.csv").unlink(missing_ok=True)


def judgements_of(study: str = STUDY) -> Judgements:
    """Return judgements of the study's runs, from runs.csv and points.csv.

    The files have accuracies of phenomena, not of paradigms. Each paradigm gets the accuracy of its phenomenon, so that
    the means over paradigms, for phenomena and overall, are those of the runs.
    """
    runs = pd.read_csv(RESULTS / study / "runs.csv", index_col="run").assign(manifest=None)
    texts = [f"{size}-{seed}" if study in PAIRED else "" for size, seed in zip(runs["size"], runs["seed"], strict=True)]
    runs["manifest"] = [{"corpus": {"sample": {"digest": text}}} for text in texts]
    points = pd.read_csv(RESULTS / study / "points.csv")
    points = points[points["level"] == "phenomenon"]
    phenomena = points.drop_duplicates("name").sort_values("name").set_index("name")
    accuracy = points.pivot(index="run", columns="name", values="accuracy").loc[runs.index, phenomena.index].to_numpy()
    number = phenomena["paradigms"].to_numpy()
    names = np.repeat(phenomena.index, number)
    pairs = pd.DataFrame({"paradigm": [f"{name}_{i:02}" for i, name in enumerate(names)], "phenomenon": names})
    pairs["n_pairs"] = np.repeat(phenomena["n_pairs"].to_numpy() // number, number)
    outcome = np.repeat(accuracy, number, axis=1)
    none = np.zeros_like(outcome)
    digest = str(points["benchmark_digest"].iloc[0])
    benchmark = "toy" if study == DEMO else "blimp"
    return Judgements(
        benchmark, "lp", digest, {}, runs, pairs, outcome, none, none, pd.DataFrame(columns=list(PROBLEMS))
    )


def analysed(study: str = STUDY) -> tuple[Curves, pd.DataFrame]:
    """Return the curves, overall and of phenomena, and the differences between the slopes of models."""
    judgements, settings = judgements_of(study), config(study)
    fitted = with_least_runs(judgements, settings.least_runs)
    curves = fit_curves(fitted, settings, shown=judgements)
    slopes = with_published(curves.slopes, judgements.runs, judgements.label)
    unknown = {"low_new_pairs": np.nan, "high_new_pairs": np.nan}  # judgements of single pairs are not committed
    tables = slopes.assign(**unknown), curves.accuracies, curves.points
    differences = compare_slopes(fitted, settings)
    differences = differences.drop(columns=[name for name in differences if "new_pairs" in name])
    committed = [table[table["level"] != "paradigm"].reset_index(drop=True) for table in (*tables, differences)]
    return Curves(*committed[:3], curves.lines), committed[3]


def reported(study: str) -> tuple[Curves, pd.DataFrame]:
    """Return `analysed` with what only the report of the study can know: intervals, lack of fit, differences.

    Where runs of a size agree by chance, intervals are at least as wide as few pairs leave them, which needs pairs.
    """
    curves, _ = analysed(study)
    keys, known = ["group", "name"], ["low", "high", "rank", "rank_low", "rank_high", "lack_of_fit"]
    table = pd.read_csv(RESULTS / study / "slopes.csv").set_index(keys)
    curves.slopes[known] = table.loc[pd.MultiIndex.from_frame(curves.slopes[keys]), known].to_numpy()
    texts = dict.fromkeys(("from_size", "to_size", "note"), str)
    differences = pd.read_csv(RESULTS / study / "slope-differences.csv", dtype=texts)
    return curves, differences.fillna({"note": ""})


def write() -> None:
    """Write the tables of blimp_cpu."""
    curves, differences = analysed()
    folder, provenance = RESULTS / STUDY, {"scores": "lp", "ties": "wrong", "benchmark_digest": judgements_of().digest}
    write_csv(folder / "slopes.csv", slope_table(curves).assign(**provenance))
    write_csv(folder / "slope-differences.csv", differences.assign(**provenance))


def write_again(study: str) -> None:
    """Write the limits, ranks and comparisons of a study of PAIRED that follow from the accuracies of its runs."""
    folder, keys = RESULTS / study, ["group", "name"]
    curves, differences = analysed(study)
    table = pd.read_csv(folder / "slopes.csv")
    computed = slope_table(curves).set_index(keys).loc[pd.MultiIndex.from_frame(table[keys])]
    for name in ("low", "high", "low_new_pairs", "high_new_pairs", "rank_low", "rank_high", "method"):
        table[name] = computed[name].to_numpy()
    write_csv(folder / "slopes.csv", table)
    former = pd.read_csv(folder / "slope-differences.csv")
    provenance = {name: former[name].iloc[0] for name in ("scores", "benchmark_digest")}
    write_csv(folder / "slope-differences.csv", differences.assign(**provenance))


def copy(study: str, report: Path) -> None:
    """Copy the tables of a study's report on BLiMP, and write its accuracies by paradigm."""
    for name in ("slopes", "slope-differences"):
        (source,) = report.glob(f"blimp*-{name}.csv")
        table = pd.read_csv(source)
        (RESULTS / study).mkdir(exist_ok=True)
        write_csv(RESULTS / study / f"{name}.csv", table[table["level"] != "paradigm"] if "level" in table else table)
    _write_study(study, Path("runs"), benchmark="blimp", method="lp")


def copy_demo(demo: Path = Path("runs/demo")) -> None:
    """Write the accuracies of a demo, and the scores of the first pair of a paradigm by one model at each size."""
    folder = RESULTS / DEMO
    _write_study(DEMO, demo.parent)
    table = pd.read_csv(folder / "runs.csv", index_col="run")
    table = table[(table["model"] == "lstm_demo") & (table["seed"] == 1)].sort_values("sample_words")
    rows = []
    for run, size in table["size"].items():
        (path,) = (demo / str(run) / "scores").glob("*/lp.parquet")
        scores, pairs = read_scores(path)[0], read_items(path.parent)[0]
        score = scores[scores["paradigm"] == PARADIGM].iloc[0]
        pair = pairs.set_index(["paradigm", "pair_id"]).loc[(PARADIGM, score["pair_id"])]
        sentences = {f"{side}_sentence": pair[side] for side in ("good", "bad")}
        rows.append({"run": run, "size": size, "paradigm": PARADIGM, **sentences, **score[["good", "bad"]]})
    write_csv(folder / "minimal-pair.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            write()
        case ["demo"]:
            copy_demo()
        case ["again", name] if name in (SMALL, LONG):
            write_again(name)
        case [name]:
            copy(name, Path("reports") / name)
