"""Sections on single pairs: the hardest ones, and those that are learned, lost or undecided."""

import pandas as pd

from analysis.formats import signed_text
from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit
from analysis.sections import section
from eval.benchmarks.known_items import REASONS, faulty_pairs

HARDEST = 2  # pairs per paradigm
_KEY = ["phenomenon", "paradigm", "pair_id"]


@section(order=60)
def hardest_pairs(results: BenchmarkResults) -> Exhibit | None:
    """The pairs of each paradigm that the largest models get wrong most often."""
    if results.read_pairs is None:
        return None
    main = results.largest[results.largest["method"].isin(results.method.split(" or "))]
    pairs = results.read_pairs(list(main["run"].unique()))
    if pairs.empty:
        return None
    table = hardest(pairs, HARDEST)
    table = table[table["accuracy"] < 1].reset_index(drop=True)
    if table.empty:
        return None
    faults = faulty_pairs(results.benchmark, table)
    if len(faults):
        known = faults.assign(fault=faults["reason"].map(REASONS))[["paradigm", "pair_id", "fault"]]
        table = table.merge(known, on=["paradigm", "pair_id"], how="left").rename(columns={"fault": "known fault"})
    wrong = int((table["accuracy"] == 0).sum())
    shown = table.rename(columns={"pair_id": "pair"})
    order = ["paradigm", "pair", "good", "bad", "accuracy", "margin", *(["known fault"] if len(faults) else [])]
    return Exhibit(
        "hardest-pairs",
        "The hardest pairs",
        f"The {HARDEST} pairs of each paradigm that the runs at the largest sizes get wrong most often, and by the "
        "widest margin.",
        shown[order],
        cells={"margin": signed_text, "pair": str},
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
    judged = pairs.assign(margin=margin / margin.groupby(pairs["run"]).transform("std"))
    by_curve = judged.groupby([*_KEY, "curve"], as_index=False, sort=True)[["correct", "margin"]].mean()
    means = by_curve.groupby(_KEY, as_index=False, sort=True)[["correct", "margin"]].mean()
    means = means.rename(columns={"correct": "accuracy"})
    means = means.sort_values(["phenomenon", "paradigm", "accuracy", "margin"], kind="stable")
    table = means.groupby("paradigm", sort=False).head(each)
    texts = pairs.drop_duplicates(["paradigm", "pair_id"])[["paradigm", "pair_id", "good", "bad"]]
    return table.merge(texts, on=["paradigm", "pair_id"], how="left").reset_index(drop=True)


@section(order=65, default=False)
def learned_pairs(results: BenchmarkResults) -> Exhibit | None:
    """How many pairs are learned and lost between the smallest and the largest size, and how far seeds agree."""
    if results.read_pairs is None or results.accuracies["sample_words"].nunique() < 2:
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
    tables = []
    for curve, rows in pairs.groupby("curve", sort=False):
        sizes = sorted(rows["sample_words"].unique())
        if len(sizes) < 2:
            continue
        small, large = (
            rows[rows["sample_words"] == size].groupby(["paradigm", "pair_id"], sort=False)["correct"].mean()
            for size in (sizes[0], sizes[-1])
        )
        runs = rows.loc[rows["sample_words"] == sizes[-1], "run"].nunique()
        table = pd.DataFrame({"small": small, "large": large}).dropna()
        table["learned"] = (table["small"] < 0.5) & (table["large"] > 0.5)
        table["lost"] = (table["small"] > 0.5) & (table["large"] < 0.5)
        table["disagreement"] = (
            2 * table["large"] * (1 - table["large"]) * (runs / (runs - 1) if runs > 1 else float("nan"))
        )
        means = table.groupby("paradigm", sort=True)[["learned", "lost", "disagreement"]].mean().reset_index()
        tables.append(means.assign(curve=curve)[["paradigm", "curve", "learned", "lost", "disagreement"]])
    return pd.concat(tables, ignore_index=True).dropna(axis="columns", how="all") if tables else pd.DataFrame()
