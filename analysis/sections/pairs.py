"""The section on single pairs: the hardest ones."""

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
