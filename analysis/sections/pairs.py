"""Sections on single pairs: the hardest ones, and those that are learned, lost or undecided."""

import pandas as pd

from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit, for_readers
from analysis.sections import section
from eval.benchmarks.known_items import REASONS, faulty_pairs

HARDEST = 2  # pairs per paradigm
_KEY = ["phenomenon", "paradigm", "pair_id"]


@section(order=60)
def hardest_pairs(results: BenchmarkResults) -> Exhibit | None:
    """The pairs of each paradigm that the largest models get wrong most often."""
    if not results.studies:
        return None
    main = results.largest[results.largest["method"].isin(results.method.split(" or "))]
    table = hardest(results.read_pairs(list(main["run"].unique())), HARDEST)
    table = table[table["accuracy"] < 1]
    if table.empty:
        return None
    faults = faulty_pairs(results.benchmark, table)
    table = table.merge(faults.assign(reason=faults["reason"].map(REASONS)), on=_KEY[1:], how="left")
    wrong = int((table["accuracy"] == 0).sum())
    return Exhibit(
        "hardest-pairs",
        "The hardest pairs",
        f"The {HARDEST} pairs of each paradigm that the runs at the largest sizes get wrong most often, and by the "
        "widest margin.",
        for_readers(table, "paradigm pair_id good bad accuracy margin reason"),
        cells={"pair": str},
        takeaways=[("", f"{wrong} of these {len(table)} pairs are wrong in every one of these runs.")],
        definitions={
            "Margin": "The good sentence's score minus the bad one's, in standard deviations of a run's differences; "
            "mean over runs."
        },
    )


def hardest(pairs: pd.DataFrame, each: int) -> pd.DataFrame:
    """Return the `each` pairs of every paradigm that are wrong most often, then by the widest margin.

    Args:
        pairs: rows of `analysis.pairs` of the runs that count.
        each: pairs per paradigm.

    Returns:
        phenomenon, paradigm, pair_id, good, bad, accuracy (the mean over curves of the mean over runs) and margin.
    """
    margin = pairs["good_score"] - pairs["bad_score"]
    judged = pairs.assign(accuracy=pairs["correct"], margin=margin / margin.groupby(pairs["run"]).transform("std"))
    by_curve = judged.groupby([*_KEY, "curve"])[["accuracy", "margin"]].mean()
    means = by_curve.groupby(_KEY).mean().reset_index().sort_values([*_KEY[:2], "accuracy", "margin"], kind="stable")
    table = means.groupby("paradigm", sort=False).head(each)
    texts = pairs.drop_duplicates(_KEY[1:])[[*_KEY[1:], "good", "bad"]]
    return table.merge(texts, on=_KEY[1:], how="left")


@section(order=65, default=False)
def learned_pairs(results: BenchmarkResults) -> Exhibit | None:
    """How many pairs are learned and lost between the smallest and the largest size, and how far seeds agree."""
    if not results.studies or results.accuracies["sample_words"].nunique() < 2:
        return None
    words = results.accuracies.groupby("curve")["sample_words"]
    ends = results.accuracies[results.accuracies["sample_words"].isin({*words.min(), *words.max()})]
    table = learned_and_lost(results.read_pairs(list(ends["run"].unique())))
    if table.empty:
        return None
    about = (
        "The share of each paradigm's pairs that most runs get wrong at the smallest size and right at the largest "
        "(learned), and the reverse (lost). Disagreement is the share of pairs that two runs of the largest size "
        "judge differently."
    )
    return Exhibit("learned-pairs", "Pairs learned and lost", about, table)


def learned_and_lost(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of pairs whose judgment changes between the smallest and the largest size.

    Args:
        pairs: rows of `analysis.pairs` of the smallest and the largest size of each curve.

    Returns:
        paradigm, curve, learned, lost, and disagreement (between two runs of the largest size; missing for one run).
    """
    words = pairs.groupby("curve")["sample_words"]
    least, most = words.transform("min"), words.transform("max")
    at = pairs["sample_words"]
    ends = pairs.assign(correct=pairs["correct"].astype(float), end=(at == most).map({True: "large", False: "small"}))
    ends = ends[((at == least) | (at == most)) & (least < most)]
    table = ends.pivot_table("correct", ["curve", "paradigm", "pair_id"], "end", sort=False).reset_index()
    table = table.reindex(columns=["curve", "paradigm", "small", "large"]).dropna()
    runs = table["curve"].map(ends[ends["end"] == "large"].groupby("curve")["run"].nunique())
    table = table.assign(
        learned=(table["small"] < 0.5) & (table["large"] > 0.5),
        lost=(table["small"] > 0.5) & (table["large"] < 0.5),
        disagreement=2 * table["large"] * (1 - table["large"]) * runs / (runs - 1).where(runs > 1),
    )
    shares = ["learned", "lost", "disagreement"]
    means = table.groupby(["curve", "paradigm"], as_index=False, sort=False)[shares].mean()
    return for_readers(means, "paradigm curve learned lost disagreement")
