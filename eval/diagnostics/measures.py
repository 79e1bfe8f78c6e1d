"""The measures that the paper reports of diagnostics (Ettinger 2020), from cloze files: pure functions over DataFrames.

accuracy@k       share of contexts whose expected word (one of several) is among the k most probable whole words
sensitivity      share of items where the fitting word, or context, has the higher probability
sensitivity>.01  the same, by more than THRESHOLD of probability

A word that the model cannot express counts as wrong; `known` is the share without such items.
"""

import numpy as np
import pandas as pd

from eval.diagnostics.diagnostic import diagnostics
from pairscale.shares import wilson

THRESHOLD = 0.01  # sections 7.2, 8.2 and 9.2
AT = (1, 5)
MEASURES = (
    "level", "name", "items", "accuracy", "low", "high", "ties", "trials", "sd", "unknown", "known_items", "known",
)  # fmt: skip

OUTCOMES = ["level", "name", "trial", "item", "right", "tie", "known"]


def measures(benchmark: str, cloze: pd.DataFrame) -> pd.DataFrame:
    """Return all that the paper reports of one diagnostic (cprag, role, neg), in the order of its tables.

    `cloze` has the columns of eval.scores.schemas.CLOZE. Returns MEASURES: level (accuracy@1, ...), name (of the
    condition or part), items, accuracy (0 to 1), low, high (Wilson's 95% interval over new items), ties (of
    sensitivity, counted as wrong: `>` in the paper; contexts that are one to a model, as <unk> can make them), trials
    and sd (of conditions drawn at random: accuracy is the mean over trials, sd that of the trials, as published the one
    that divides by their number), unknown (items with a word that the model cannot express), accuracy without them.
    """
    outcomes = diagnostics()[benchmark].outcomes(cloze)
    rows = []
    for (level, name), group in outcomes.groupby(["level", "name"], sort=False):
        drawn = group["trial"].notna().any()
        by_trial = group.groupby("trial")["right"].mean() if drawn else pd.Series([group["right"].mean()])
        items, accuracy = group["item"].nunique(), float(by_trial.mean())
        known = group[group["known"]]
        low, high = wilson(accuracy, items)
        rows.append(
            {
                "level": level, "name": name, "items": items, "accuracy": accuracy, "low": low, "high": high,
                "ties": int(group["tie"].sum()),
                "trials": len(by_trial) if drawn else 0, "sd": float(by_trial.std(ddof=0)) if drawn else np.nan,
                "unknown": group.loc[~group["known"], "item"].nunique(), "known_items": known["item"].nunique(),
                "known": float(known["right"].mean()) if len(known) else np.nan,
            }
        )  # fmt: skip
    return pd.DataFrame(rows, columns=list(MEASURES))


def inexpressible(cloze: pd.DataFrame) -> pd.DataFrame:
    """Return the words that the model cannot express: columns item, role, candidate, in the order of `cloze`."""
    return cloze.loc[~cloze["expressible"], ["item", "role", "candidate"]].drop_duplicates(ignore_index=True)


def by_role(cloze: pd.DataFrame, index: str | list[str]) -> pd.DataFrame:
    """Return probabilities, a column per role."""
    return cloze.assign(group=cloze["group"].fillna("")).pivot(index=index, columns="role", values="prob")


def accuracy_outcomes(expected: pd.DataFrame, names: pd.Series) -> pd.DataFrame:
    """Return the outcomes (OUTCOMES) of each context at each k of AT; `names`: the part that each row belongs to."""
    rows = expected.assign(name=names, trial=expected["trial"].astype("float64"))
    best = rows.groupby(["name", "trial", "item"], sort=False, dropna=False, as_index=False).agg(
        rank=("rank", "min"), known=("expressible", "any")
    )
    return pd.concat([best.assign(level=f"accuracy@{k}", right=best["rank"] <= k, tie=False) for k in AT])[OUTCOMES]


def sensitivity_outcomes(margin: pd.Series, name: str) -> pd.DataFrame:
    """Return the outcomes of items; `margin`: by how much the better one is more probable, NaN if unknown."""
    rows = pd.DataFrame({"margin": margin.to_numpy(), "item": [f"{at}:{i}" for at, i in enumerate(margin.index)]})
    rows = rows.assign(name=name, trial=np.nan, tie=rows["margin"] == 0, known=rows["margin"].notna())
    levels = (("sensitivity", 0.0), (f"sensitivity>{THRESHOLD:.2f}".replace("0.", "."), THRESHOLD))
    return pd.concat([rows.assign(level=level, right=rows["margin"] > limit) for level, limit in levels])[OUTCOMES]


def joined(*parts: pd.DataFrame) -> pd.DataFrame:
    """Return outcomes by level, each with its parts in order."""
    outcomes = pd.concat(parts, ignore_index=True)
    return outcomes.iloc[pd.factorize(outcomes["level"])[0].argsort(kind="stable")]
