"""The published results of filtered-corpus training, analysed by the statistics of ablations.

    python tests/bench/filtered_corpus.py --results FOLDER [--csv FILE]

FOLDER is the folder `results` of https://github.com/CLMBRs/corpus-filtering (Patil, Jumelet, Chiu, Lapastora, Shen,
Wang, Willrich and Steinert-Threlkeld 2024, Transactions of the ACL 12), of which data/tidy_results.csv is read: the
accuracy of each model in each paradigm of BLiMP, its perplexity, and the change from the full corpus that the paper's
figure shows (blimp_delta_all_seed_avg). Each of 15 corpora lacks what tests for one construction; two architectures
were trained five times on each, and on the full corpus.

The paper has no matched controls, so filtered models are compared with those on the full corpus. Its changes are
differences from the mean over all seeds of the full corpus, not from the same seed: runs are two independent groups
here, too (Welch 1947). The row "correlation of seeds" has the reason: the correlation over seeds of a paradigm's
accuracies on a filtered and on the full corpus, on average over paradigms and corpora, which pairs would have above 0.

Writes one row for each architecture, corpus and unit: the whole benchmark, the paradigms that test the construction
(together, and one by one), the others; and the perplexity. published: the change by the authors' file. The rows "all
paradigms" compare all 67 paradigms of an architecture and corpus: differ is the largest distance of ours from theirs.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis.config import CurvesConfig
from analysis.curves.ablations.ablations import compare_ablations
from analysis.curves.ablations.effects import ALL_SIZES
from analysis.curves.ablations.matching import SCOPE
from analysis.study.long_table.judgements import Judgements
from pairscale.files import write_text

FILE = Path(__file__).parents[2] / "analysis" / "results" / "filtered_corpus.csv"
TIDY = Path("data") / "tidy_results.csv"
FULL = "full"
PAIRS = 1000  # of each paradigm of BLiMP
THEIRS = "blimp_delta_all_seed_avg"
KEYS = ["corpus", "arch"]
CONFIG = CurvesConfig(method="lp", interval="t", confidence=0.95, resamples=50, seed=1)
COLUMNS = [
    *KEYS, "level", "name", "paradigms", "first", "second", "difference", "low", "high", "p", "p_holm", "p_equivalent",
    "published", "differ",
]  # fmt: skip


def judgements_of(results: pd.DataFrame) -> Judgements:
    """Return the accuracies of all models by paradigm; no seed is shared by two corpora, so that none are pairs."""
    runs = results[[*KEYS, "seed", "corpus_tokens"]].drop_duplicates().reset_index(drop=True)
    place = {corpus: number for number, corpus in enumerate(runs["corpus"].unique())}
    full = runs["corpus"] == FULL
    runs = runs.assign(
        study="filtered corpora", size="a corpus", sample_words=runs["corpus_tokens"], nested=False, reference="words",
        training=[f"{row}" for row in runs.index], seed=100 * runs["corpus"].map(place) + runs["seed"],
        base=runs["arch"], filter=runs["corpus"].where(~full, ""), action=np.where(full, "none", "remove"),
        dose=np.where(full, "1", "0"), group=runs["arch"] + ", " + runs["corpus"],
    )  # fmt: skip
    pairs = results[["linguistics_term", "blimp_benchmark"]].drop_duplicates()
    pairs = pairs.set_axis(["phenomenon", "paradigm"], axis=1).sort_values(["phenomenon", "paradigm"])
    pairs = pairs.reset_index(drop=True).assign(n_pairs=PAIRS)
    wide = results.pivot(index=[*KEYS, "seed"], columns="blimp_benchmark", values="blimp_acc")
    order = results[[*KEYS, "seed"]].drop_duplicates()
    outcome = wide.loc[pd.MultiIndex.from_frame(order), pairs["paradigm"]].to_numpy()
    flat = np.zeros(outcome.shape)
    return Judgements("blimp", "lp", "d", {}, runs, pairs, outcome, flat, flat, pd.DataFrame())


def deltas(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of accuracies, ours beside the authors'."""
    tested = results[results["filter_target"].astype(str).str.upper() == "TRUE"]
    direct = {str(corpus): set(of) for corpus, of in tested.groupby("corpus")["blimp_benchmark"]}
    ablations = compare_ablations(judgements_of(results), direct, CONFIG)
    assert ablations is not None
    ours = ablations.differences[ablations.differences["over"] == ALL_SIZES]
    ours = ours.rename(columns={"filter": "corpus", "base": "arch"})
    theirs = results.groupby([*KEYS, "blimp_benchmark"])[THEIRS].mean().rename("published").reset_index()
    ours = ours.merge(theirs.rename(columns={"blimp_benchmark": "name"}), on=[*KEYS, "name"], how="left")
    for level, of in (("overall", None), (SCOPE, direct)):
        rows = ours["level"] == level
        rows &= True if of is None else ours["name"] == "tests the construction"
        means = [
            theirs[
                (theirs["corpus"] == corpus) & (theirs["arch"] == arch)
                & (theirs["blimp_benchmark"].isin(of[corpus]) if of else True)
            ]["published"].mean()
            for corpus, arch in ours.loc[rows, KEYS].itertuples(index=False)
        ]  # fmt: skip
        ours.loc[rows, "published"] = means
    ours["differ"] = (ours["difference"] - ours["published"]).abs()
    whole = ours[ours["level"] == "paradigm"].groupby(KEYS, sort=False)["differ"].agg(["max", "count"]).reset_index()
    whole = whole.rename(columns={"max": "differ", "count": "paradigms"}).assign(level="check", name="all paradigms")
    shown = ours[(ours["level"].isin(["overall", SCOPE])) | ours["direct"]]
    return pd.concat([shown, whole], ignore_index=True)


def perplexities(results: pd.DataFrame) -> pd.DataFrame:
    """Return the change of test perplexity, with Welch's interval."""
    runs = results[[*KEYS, "seed", "test_ppl"]].drop_duplicates()
    rows = []
    for (corpus, arch), of in runs[runs["corpus"] != FULL].groupby(KEYS, sort=False):
        full = runs[(runs["corpus"] == FULL) & (runs["arch"] == arch)]["test_ppl"]
        test = ttest_ind(of["test_ppl"], full, equal_var=False)
        low, high = test.confidence_interval(CONFIG.confidence)
        means = {"first": of["test_ppl"].mean(), "second": full.mean()}
        rows.append({
            "corpus": corpus, "arch": arch, "level": "perplexity", "name": "test perplexity", **means,
            "difference": means["first"] - means["second"], "low": low, "high": high, "p": test.pvalue,
        })  # fmt: skip
    return pd.DataFrame(rows)


def correlation_of_seeds(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean correlation over seeds of accuracies on a filtered and on the full corpus, by architecture."""
    rows = []
    for arch, of in results.groupby("arch"):
        wide = of.pivot(index="seed", columns=["corpus", "blimp_benchmark"], values="blimp_acc").sort_index()
        full = wide[FULL]
        correlations = [
            np.corrcoef(wide[corpus, name], full[name])[0, 1]
            for corpus, name in wide.columns
            if corpus != FULL and wide[corpus, name].std() > 0 and full[name].std() > 0
        ]
        rows.append({
            "corpus": "all", "arch": arch, "level": "check", "name": "correlation of seeds",
            "paradigms": len(correlations), "difference": np.mean(correlations),
        })  # fmt: skip
    return pd.DataFrame(rows)


def filtered_corpora(folder: Path) -> pd.DataFrame:
    """Return the whole table (COLUMNS) from the folder of results."""
    results = pd.read_csv(folder / TIDY, index_col=0)
    parts = [deltas(results), perplexities(results), correlation_of_seeds(results)]
    table = pd.concat(parts, ignore_index=True)[COLUMNS]
    table["paradigms"] = table["paradigms"].astype("Int64")
    numbers = ["first", "second", "difference", "low", "high", "published"]
    return table.round(dict.fromkeys(numbers, 5) | dict.fromkeys(["p", "p_holm", "p_equivalent"], 6) | {"differ": 12})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="the folder `results` of the repository")
    parser.add_argument("--csv", type=Path, default=FILE, help="file for the table")
    arguments = parser.parse_args()
    write_text(arguments.csv, filtered_corpora(arguments.results).to_csv(index=False, lineterminator="\n"))


if __name__ == "__main__":
    main()
