"""Compute SG scores (Hu et al. 2020) from the success of items.

An item succeeds if the first prediction of its suite is true. The published results don't include other predictions, as
the results for fgd_hierarchy show, because its second prediction requires equal surprisals. A suite's score is the
share of its items that succeed.
"""

from typing import Any

import numpy as np
import pandas as pd

from eval.diagnostics.measures import MEASURES
from pairscale.shares import wilson

OVERALL, CIRCUIT, SUITE, PREDICTION, COMPARISON = "overall", "circuit", "suite", "prediction", "comparison"
SG_SCORE, ALL_SUITES, ALL_ITEMS = "SG score", "all suites", "all items"


def measures(success: pd.DataFrame) -> pd.DataFrame:
    """Compute the scores of one model. `success` has the columns of eval.scores.schemas.SUCCESS.

    Returns the columns MEASURES (eval.diagnostics.measures) for these levels:
        overall      SG score (mean over the suites in circuits, as in the authors' figures), mean over all suites, and
                     share of all items
        circuit      mean over the circuit's suites
        suite        share of the suite's items
        prediction   the same for each further prediction of a suite ("suite 2")
        comparison   the same for each part of a prediction with several parts ("suite 1.2: formula")

    `low` and `high` are Wilson's 95% confidence interval for new items of these suites. `ties` is the number of
    comparisons of equal surprisals, which are counted as failures. `unknown` is the number of items with `<unk>` in a
    region of the formula, and `known` is the score without these items.
    """
    whole = success[success["comparison"].isna()]
    first, further = whole[whole["prediction"] == 1], whole[whole["prediction"] > 1]
    parts = success[success["comparison"].notna()].astype({"comparison": int})
    numbered = [rows["suite"] + " " + rows["prediction"].astype(str) for rows in (further, parts)]
    levels: list[tuple[str, pd.DataFrame, Any]] = [  # level, rows, and the names by which rows are grouped
        (OVERALL, first.dropna(subset="circuit"), SG_SCORE),
        (OVERALL, first, ALL_SUITES),
        (OVERALL, first.assign(suite=ALL_ITEMS), ALL_ITEMS),
        (CIRCUIT, first, first["circuit"]),
        (SUITE, first, first["suite"]),
        (PREDICTION, further, numbered[0]),
        (COMPARISON, parts, numbered[1] + "." + parts["comparison"].astype(str) + ": " + parts["formula"]),
    ]
    groups = ((level, *group) for level, rows, names in levels for group in rows.assign(name=names).groupby("name"))
    return pd.DataFrame([_score(*group) for group in groups], columns=list(MEASURES))


def _score(level: str, name: object, items: pd.DataFrame) -> dict[str, object]:
    """Return one row of scores. Its accuracy is the mean of the suites' shares of successful items."""
    known = items[items["unk"] == 0]
    by_suite = items.groupby("suite")["success"].agg(["mean", "size"])
    accuracy = float(by_suite["mean"].mean())
    weight = len(by_suite) ** 2 / (1 / by_suite["size"]).sum()  # effective number of items
    low, high = wilson(accuracy, weight)
    return {
        "level": level, "name": name, "items": len(items), "accuracy": accuracy, "low": low, "high": high,
        "ties": int(items["tie"].sum()), "trials": 0, "sd": np.nan,
        "unknown": len(items) - len(known), "known_items": len(known),
        "known": known.groupby("suite")["success"].mean().mean(),
    }  # fmt: skip
