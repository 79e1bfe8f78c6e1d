"""The published results of filtered-corpus training, analysed as ablations.

    python tests/bench/filtered_corpus.py --results FOLDER [--csv FILE]

FOLDER is the folder `results` of https://github.com/CLMBRs/corpus-filtering (Patil et al. 2024, TACL 12). Its file
data/tidy_results.csv has the accuracy of each model in each paradigm of BLiMP, its perplexity, and the change from the
full corpus that the paper's figure shows (blimp_delta_all_seed_avg). Each of 15 corpora lacks what tests for one
construction. Two architectures were trained five times on each corpus, and on the full one.

The paper has no matched controls, so filtered models are compared with those on the full corpus. Its changes are
differences from the mean over all seeds of the full corpus, so runs are two independent groups here, too (Welch 1947).
The row "correlation of seeds" shows why: over seeds, a paradigm's accuracies on a filtered and on the full corpus do
not correlate, on average over paradigms and corpora.

The table has one row per architecture, corpus and unit: overall, the paradigms that test the construction (together
and one by one), the others, and the perplexity. published: the change in the authors' file. The rows "all paradigms"
compare all 67 paradigms: differ is the largest distance between our change and theirs.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

sys.path.insert(0, str(Path(__file__).parents[2]))

from analysis import ablation_effects
from analysis.curves.ablations import ALL_SIZES, DIRECT, SCOPE
from analysis.sources.published import Published, tested_paradigms
from analysis.sources.read import read_source
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from pairscale.files import write_text

FILE = Path(__file__).parents[2] / "analysis" / "results" / "filtered_corpus.csv"
TIDY = Path("data") / "tidy_results.csv"
FULL = "full"
MARGIN = 0.02  # changes of accuracy within it are called equivalent to none
KEYS = ["corpus", "arch"]
COLUMNS = [
    *KEYS, "level", "name", "paradigms", "accuracy", "other_accuracy", "difference", "low", "high", "p", "p_holm",
    "equivalent", "published", "differ",
]  # fmt: skip


def read_tidy(file: Path) -> Published:
    """Read tidy_results.csv as a study with ablations."""
    columns = OutcomeColumns(
        model="arch", size="", paradigm="blimp_benchmark", accuracy="blimp_acc", removed="corpus", tests="filter_target"
    )
    return read_source("table", file, columns, ResultsConfig("blimp", n=1000, size="66.4M", full=FULL))


def changes(file: Path, results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of accuracies, with the authors' changes beside ours."""
    found = read_tidy(file)
    direct = tested_paradigms(found.accuracies, found.runs)
    effects = ablation_effects(found.accuracies, found.runs, MARGIN, direct=direct, paired=False)
    ours = effects[effects["over"] == ALL_SIZES].rename(columns={"construction": "corpus", "base": "arch"})
    theirs = results.groupby([*KEYS, "blimp_benchmark"])["blimp_delta_all_seed_avg"].mean()

    def published(row: pd.Series) -> float:
        """Return the mean of the authors' changes over the paradigms of a unit; NaN for units that they don't have."""
        of = theirs[row["corpus"], row["arch"]]
        units = {"overall": list(of.index), DIRECT: list(direct[row["corpus"]])}
        names = [row["name"]] if row["level"] == "paradigm" else units.get(row["name"])
        return float(of[names].mean()) if names else np.nan

    ours["published"] = ours.apply(published, axis=1)
    ours["differ"] = (ours["difference"] - ours["published"]).abs()
    whole = ours[ours["level"] == "paradigm"].groupby(KEYS, sort=False)["differ"].agg(["max", "count"]).reset_index()
    whole = whole.rename(columns={"max": "differ", "count": "paradigms"}).assign(level="check", name="all paradigms")
    shown = ours[ours["level"].isin(["overall", SCOPE]) | ours["direct"]]
    return pd.concat([shown, whole], ignore_index=True)


def perplexities(results: pd.DataFrame) -> pd.DataFrame:
    """Return the changes of test perplexity, with Welch's intervals."""
    runs = results[[*KEYS, "seed", "test_ppl"]].drop_duplicates()
    rows = []
    for (corpus, arch), of in runs[runs["corpus"] != FULL].groupby(KEYS, sort=False):
        full = runs[(runs["corpus"] == FULL) & (runs["arch"] == arch)]["test_ppl"]
        test = ttest_ind(of["test_ppl"], full, equal_var=False)
        low, high = test.confidence_interval()
        rows.append({
            "corpus": corpus, "arch": arch, "level": "perplexity", "name": "test perplexity",
            "accuracy": of["test_ppl"].mean(), "other_accuracy": full.mean(),
            "difference": of["test_ppl"].mean() - full.mean(), "low": low, "high": high, "p": test.pvalue,
        })  # fmt: skip
    return pd.DataFrame(rows)


def correlation_of_seeds(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean correlation over seeds of accuracies on a filtered and on the full corpus, per architecture."""
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
    parts = [changes(folder / TIDY, results), perplexities(results), correlation_of_seeds(results)]
    table = pd.concat(parts, ignore_index=True)[COLUMNS].astype({"paradigms": "Int64"})
    numbers = ["accuracy", "other_accuracy", "difference", "low", "high", "published"]
    return table.round(dict.fromkeys(numbers, 5) | {"p": 6, "p_holm": 6, "differ": 12})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="the folder `results` of the repository")
    parser.add_argument("--csv", type=Path, default=FILE, help="file for the table")
    arguments = parser.parse_args()
    write_text(arguments.csv, filtered_corpora(arguments.results).to_csv(index=False, lineterminator="\n"))


if __name__ == "__main__":
    main()
