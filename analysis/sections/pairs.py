"""Report the hardest pairs."""

import pandas as pd

from analysis.report.benchmark import BenchmarkResults
from analysis.report.exhibit import Exhibit, for_readers
from analysis.sections import section
from eval.benchmarks.known_items import REASONS, faulty_pairs

HARDEST = 2  # pairs per paradigm
_KEY = ["phenomenon", "paradigm", "pair_id"]


@section(order=60)
def hardest_pairs(results: BenchmarkResults) -> Exhibit | None:
    """Show the pairs of each paradigm that the models at the largest sizes get wrong most often."""
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
    about = map(results.studies.metadata_of, results.studies.files.query("benchmark == @results.label")["path"])
    texts = "good bad" if all(of["benchmark"].get("show_texts", True) for of in about) else ""
    return Exhibit(
        "hardest-pairs",
        "The hardest pairs",
        f"The table lists the {HARDEST} pairs of each paradigm that the runs at the largest sizes get wrong most "
        "often. If two pairs are wrong equally often, the one with the lower margin comes first.",
        for_readers(table, f"paradigm pair_id {texts} accuracy margin reason"),
        cells={"pair": str},
        takeaways=[("", f"{wrong} of these {len(table)} pairs are wrong in all of these runs.")],
        definitions={
            "Margin": "The good sentence's score minus the bad one's, divided by the standard deviation of a run's "
            "differences (mean over runs)."
        },
    )


def hardest(pairs: pd.DataFrame, each: int) -> pd.DataFrame:
    """Return the pairs that are wrong most often. Among equals, those with the lowest margins are returned.

    Args:
        pairs: Rows of `analysis.pairs`.
        each: The number of pairs to return per paradigm.

    Returns:
        The columns phenomenon, paradigm, pair_id, accuracy, margin, good and bad. Accuracy and margin are averaged
        first over runs and then over curves.
    """
    margin = pairs["good_score"] - pairs["bad_score"]
    judged = pairs.assign(accuracy=pairs["correct"], margin=margin / margin.groupby(pairs["run"]).transform("std"))
    by_curve = judged.groupby([*_KEY, "curve"])[["accuracy", "margin"]].mean()
    means = by_curve.groupby(_KEY).mean().reset_index().sort_values([*_KEY[:2], "accuracy", "margin"], kind="stable")
    table = means.groupby("paradigm", sort=False).head(each)
    texts = pairs.drop_duplicates(_KEY[1:])[[*_KEY[1:], "good", "bad"]]
    return table.merge(texts, on=_KEY[1:], how="left")
