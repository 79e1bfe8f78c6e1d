"""SG scores (Hu et al. 2020), from the success of items: pure functions over DataFrames.

An item succeeds if the first prediction of its suite holds: the published results count no other one, as those of
fgd_hierarchy show, whose second asks for equal surprisals. A suite's score is the share of its items that succeed.
"""

import numpy as np
import pandas as pd

from eval.diagnostics.measures import MEASURES
from pairscale.shares import wilson

OVERALL, CIRCUIT, SUITE, PREDICTION, COMPARISON = "overall", "circuit", "suite", "prediction", "comparison"
SG_SCORE, ALL_SUITES, ALL_ITEMS = "SG score", "all suites", "all items"


def measures(success: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of one model; `success` has the columns of eval.scores.schemas.SUCCESS.

    Columns MEASURES (eval.diagnostics.measures), by level:
        overall      SG score: mean over the suites in circuits, as the authors' figures; all suites; all items: the
                     share of these
        circuit      mean over its suites
        suite        share of its items
        prediction   the same of the further predictions of a suite ("suite 2")
        comparison   the same of each part of a prediction that joins several ("suite 1.2: formula")

    low, high: Wilson's 95% interval for new items of these suites. ties: comparisons of equal surprisals, which are no
    success. unknown: items with `<unk>` in a region that the formula names; known: the score without these.
    """
    whole = success[success["comparison"].isna()]
    first = whole[whole["prediction"] == 1]
    rows = []
    if first["circuit"].notna().any():
        rows.append(_score(OVERALL, SG_SCORE, first[first["circuit"].notna()]))
    rows += [_score(OVERALL, ALL_SUITES, first), _score(OVERALL, ALL_ITEMS, first.assign(suite=ALL_ITEMS))]
    rows += [_score(CIRCUIT, name, group) for name, group in first.groupby("circuit")]
    rows += [_score(SUITE, name, group) for name, group in first.groupby("suite")]
    for (suite, number), group in whole[whole["prediction"] > 1].groupby(["suite", "prediction"]):
        rows.append(_score(PREDICTION, f"{suite} {number}", group))
    parts = success[success["comparison"].notna()].astype({"comparison": int})
    rows += [
        _score(COMPARISON, f"{suite} {number}.{part}: {group['formula'].iloc[0]}", group)
        for (suite, number, part), group in parts.groupby(["suite", "prediction", "comparison"])
    ]
    return pd.DataFrame(rows, columns=list(MEASURES))


def _score(level: str, name: object, items: pd.DataFrame) -> dict[str, object]:
    """Return a row: the mean over suites of the shares of items."""
    known = items[items["unk"] == 0]
    by_suite = items.groupby("suite")["success"].agg(["mean", "size"])
    accuracy = float(by_suite["mean"].mean())
    weight = len(by_suite) ** 2 / (1 / by_suite["size"]).sum()  # items, if each weighed as much as the others
    low, high = wilson(accuracy, weight)
    return {
        "level": level, "name": name, "items": len(items), "accuracy": accuracy, "low": low, "high": high,
        "ties": int(items["tie"].sum()), "trials": 0, "sd": np.nan,
        "unknown": len(items) - len(known), "known_items": len(known),
        "known": float(known.groupby("suite")["success"].mean().mean()) if len(known) else np.nan,
    }  # fmt: skip
