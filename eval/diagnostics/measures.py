"""Compute the measures that Ettinger 2020 reports for diagnostics from cloze files.

accuracy@k       share of contexts for which an expected word is among the k most probable whole words
sensitivity      share of items for which the right word, or context, has the higher probability
sensitivity>.01  the same with a difference of more than .01 in probability (sections 7.2, 8.2 and 9.2)

If the model cannot express a word, this is counted as an error. `known` is the share without such items.
"""

import numpy as np
import pandas as pd

from eval.diagnostics.diagnostic import diagnostics
from pairscale.shares import wilson

MEASURES = (
    "level", "name", "items", "accuracy", "low", "high", "ties", "trials", "sd", "unknown", "known_items", "known",
)  # fmt: skip
OUTCOMES = ["level", "name", "trial", "item", "right", "tie", "known"]


def measures(benchmark: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Compute all measures that the paper reports for one diagnostic, in the order of its tables.

    Args:
        benchmark: The diagnostic (cprag, role or neg).
        rows: The model's answers, with the columns of eval.scores.schemas.CLOZE.

    Returns:
        A table with the columns MEASURES. `level` is the measure (such as accuracy@1), and `name` is the condition or
        part. `items` is the number of items. `accuracy` is from 0 to 1, and `low` and `high` are Wilson's 95%
        confidence interval for new items. `ties` is the number of ties in sensitivity, which are counted as errors.
        They can occur because `<unk>` makes two contexts the same to a model. `trials` is the number of trials, for
        conditions drawn at random. `accuracy` is then their mean, and `sd` their standard deviation, divided by n as in
        the paper. `unknown` is the number of items with a word that the model cannot express. `known_items` and `known`
        are the number and the accuracy of the other items.
    """
    keys = ["level", "name"]
    outcomes = diagnostics()[benchmark].outcomes(rows)
    outcomes = outcomes.assign(unknown=outcomes["item"].mask(outcomes["known"]))
    table = outcomes.groupby(keys, sort=False).agg(
        items=("item", "nunique"), ties=("tie", "sum"), trials=("trial", "nunique"), unknown=("unknown", "nunique")
    )
    trials = outcomes.groupby([*keys, "trial"], sort=False, dropna=False)["right"].mean().groupby(keys, sort=False)
    known = outcomes[outcomes["known"]].groupby(keys).agg(known_items=("item", "nunique"), known=("right", "mean"))
    table = table.assign(accuracy=trials.mean(), sd=trials.std(ddof=0).where(table["trials"] > 0)).join(known)
    limits = [wilson(share, items) for share, items in zip(table["accuracy"], table["items"], strict=True)]
    table[["low", "high"]] = np.asarray(limits).reshape(-1, 2)
    table = table.fillna({"known_items": 0}).astype({"known_items": int}).reset_index()
    return table.iloc[pd.factorize(table["level"])[0].argsort(kind="stable")][list(MEASURES)].reset_index(drop=True)


def by_role(cloze: pd.DataFrame, index: str | list[str]) -> pd.DataFrame:
    """Return the probabilities of candidates, with one column per role."""
    return cloze.assign(group=cloze["group"].fillna("")).pivot(index=index, columns="role", values="prob")


def accuracy_outcomes(expected: pd.DataFrame, names: pd.Series) -> pd.DataFrame:
    """Return the outcomes (OUTCOMES) of contexts for accuracy@1 and accuracy@5. `names` contains each row's part."""
    rows = expected.assign(name=names).astype({"trial": float, "rank": float})
    best = rows.groupby(["name", "trial", "item"], sort=False, dropna=False, as_index=False).agg(
        rank=("rank", "min"), known=("expressible", "any")
    )
    return pd.concat([best.assign(level=f"accuracy@{k}", right=best["rank"] <= k, tie=False) for k in (1, 5)])[OUTCOMES]


def sensitivity_outcomes(margin: pd.Series, name: str) -> pd.DataFrame:
    """Return the outcomes of items for sensitivity.

    `margin` is the difference in probability between the right and the wrong word or context, or NaN if unknown.
    """
    rows = pd.DataFrame({"margin": margin.to_numpy(), "item": [f"{at}:{i}" for at, i in enumerate(margin.index)]})
    rows = rows.assign(name=name, trial=np.nan, tie=rows["margin"] == 0, known=rows["margin"].notna())
    levels = (("sensitivity", 0.0), ("sensitivity>.01", 0.01))
    return pd.concat([rows.assign(level=level, right=rows["margin"] > limit) for level, limit in levels])[OUTCOMES]
