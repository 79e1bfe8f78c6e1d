"""Measures of accuracies alone, of published models and of ours: BLiMP's tables 3 and 4, figures 1, 3 and 4, gaps.

`accuracies`: level (paradigm, phenomenon, overall), name, model, accuracy (0 to 1). Models keep their order.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import pearsonr

from analysis.curves.fit import ALL_PAIRS, Curves
from eval.published import OVERALL

PEOPLE = "people"
Conditions = Mapping[str, Sequence[str]]  # condition -> the paradigms whose mean it is; the first is the plain one

_DETERMINER = "determiner_noun_agreement"
_PLURAL = "plural_subject_verb_agreement"
_REGULAR = (f"{_DETERMINER}_1", f"{_DETERMINER}_2")
_IRREGULAR = (f"{_DETERMINER}_irregular_1", f"{_DETERMINER}_irregular_2")
_REGULAR_ADJECTIVE = (f"{_DETERMINER}_with_adjective_1", f"{_DETERMINER}_with_adj_2")
_IRREGULAR_ADJECTIVE = (f"{_DETERMINER}_with_adj_irregular_1", f"{_DETERMINER}_with_adj_irregular_2")

# Warstadt et al. 2020, figure 3: the paper does not name its paradigms; these give the losses that section 6.1 states.
ADJECTIVE: dict[str, Conditions] = {
    "Determiner-noun agreement": {
        "no adjective": (*_REGULAR, *_IRREGULAR),
        "adjective between": (*_REGULAR_ADJECTIVE, *_IRREGULAR_ADJECTIVE),
    }
}
# Chosen too: of the 15 choices among the four paradigms without an attractor, this alone gives the LSTM a loss of 20
# points and Transformer-XL one of 5.
ATTRACTOR: dict[str, Conditions] = {
    "Subject-verb agreement": {
        "no attractor": (f"regular_{_PLURAL}_1",),
        "relational noun": ("distractor_agreement_relational_noun",),
        "relative clause": ("distractor_agreement_relative_clause",),
    }
}
# Figure 4.
REGULARITY: dict[str, Conditions] = {
    "Determiner-noun agreement": {
        "regular": (*_REGULAR, *_REGULAR_ADJECTIVE),
        "irregular": (*_IRREGULAR, *_IRREGULAR_ADJECTIVE),
    },
    "Subject-verb agreement": {
        "regular": (f"regular_{_PLURAL}_1", f"regular_{_PLURAL}_2"),
        "irregular": (f"irregular_{_PLURAL}_1", f"irregular_{_PLURAL}_2"),
    },
}


def wide(accuracies: pd.DataFrame, level: str) -> pd.DataFrame:
    """Return accuracies of one level: a row per name, a column per model; NaN where a model lacks a name."""
    rows = accuracies[accuracies["level"] == level]
    table = rows.pivot(index="name", columns="model", values="accuracy")
    return table.reindex(index=list(dict.fromkeys(rows["name"])), columns=list(dict.fromkeys(rows["model"])))


def at_largest_size(curves: Curves) -> pd.DataFrame:
    """Return accuracies of a study's groups (as model) at each one's largest size, on all pairs."""
    at = curves.accuracies[curves.accuracies["pairs"] == ALL_PAIRS]
    largest = at[at["words"] == at.groupby("group")["words"].transform("max")]
    columns = {"level": "level", "name": "name", "group": "model", "accuracy": "accuracy"}
    return largest[list(columns)].rename(columns=columns).reset_index(drop=True)


def phenomenon_table(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return table 3: a row per phenomenon after the overall one, a column per model, phenomena sorted by name."""
    table = pd.concat([wide(accuracies, OVERALL), wide(accuracies, "phenomenon").sort_index()])
    return table.rename_axis("phenomenon", axis=0).rename_axis(None, axis=1).reset_index()


def paradigm_table(accuracies: pd.DataFrame, paradigms: pd.DataFrame) -> pd.DataFrame:
    """Return table 4: field, phenomenon and paradigm, a column per model, and the prefix methods that can judge it.

    `paradigms` has the columns paradigm, phenomenon, field, one_prefix, two_prefix.
    """
    table = wide(accuracies, "paradigm").rename_axis("paradigm", axis=0).rename_axis(None, axis=1).reset_index()
    about = paradigms[["field", "phenomenon", "paradigm", "one_prefix", "two_prefix"]]
    order = ["field", "phenomenon", "paradigm", *table.columns[1:], "one_prefix", "two_prefix"]
    joined = about.merge(table, on="paradigm", how="right", validate="one_to_one")
    return joined[order].sort_values(["phenomenon", "paradigm"], ignore_index=True)


def correlations(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return figure 1: Pearson's r of every two models' accuracies over the paradigms that both have.

    One row per ordered pair: model, other, r, low, high (`correlation`), paradigms. NaN below three paradigms, or where
    one of them does not vary.
    """
    table = wide(accuracies, "paradigm")
    rows = []
    for model, other in product(table, table):
        both = table[[model, other]].dropna() if model != other else table[[model]].dropna()
        x, y = both[model].to_numpy(), both[other].to_numpy()
        varied = len(both) > 2 and x.std() > 0 and y.std() > 0
        rows.append((model, other, *(correlation(x, y) if varied else [np.nan] * 3), len(both)))
    return pd.DataFrame(rows, columns=["model", "other", "r", "low", "high", "paradigms"])


def correlation(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[float, float, float]:
    """Return Pearson's r with its 95% limits by Fisher's transformation (scipy), which are NaN below four values."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    result = pearsonr(x, y)
    if len(x) < 4:
        return float(result.statistic), np.nan, np.nan
    limits = result.confidence_interval()
    return float(result.statistic), float(limits.low), float(limits.high)


def by_condition(accuracies: pd.DataFrame, panels: Mapping[str, Conditions]) -> pd.DataFrame:
    """Return figures 3 and 4: mean accuracy over the paradigms of each condition.

    Columns: panel, model, condition, accuracy, paradigms. A model without some paradigm of the panel has no row there.
    """
    table = wide(accuracies, "paradigm")
    rows = []
    for panel, conditions in panels.items():
        of_panel = [paradigm for paradigms in conditions.values() for paradigm in paradigms]
        for model, (condition, paradigms) in product(table, conditions.items()):
            if not table[model].reindex(of_panel).isna().any():
                mean = float(table[model].reindex(list(paradigms)).mean())
                rows.append((panel, model, condition, mean, len(paradigms)))
    columns = ["panel", "model", "condition", "accuracy", "paradigms"]
    return pd.DataFrame(rows, columns=columns).astype({"accuracy": "float64"})  # also without rows


def losses(conditions: pd.DataFrame) -> pd.DataFrame:
    """Return, per panel and model, how far the mean of the other conditions lies below the first one."""
    by_model = conditions.groupby(["panel", "model"], sort=False)["accuracy"]
    rows = [(*key, values.iloc[0] - values.iloc[1:].mean()) for key, values in by_model]
    return pd.DataFrame(rows, columns=["panel", "model", "loss"])


def pooled_loss(accuracies: pd.DataFrame, panels: Mapping[str, Conditions]) -> pd.Series:
    """Return the loss per model over all panels at once, each paradigm counting the same."""
    pooled: dict[str, list[str]] = {}
    for conditions in panels.values():
        for condition, paradigms in conditions.items():
            pooled.setdefault(condition, []).extend(paradigms)
    return losses(by_condition(accuracies, {"": pooled})).set_index("model")["loss"]


def gaps(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return how far each model lies above people (below: negative): level, name, model, gap."""
    rows = accuracies[accuracies["level"] != "paradigm"]
    people = rows[rows["model"] == PEOPLE].set_index(["level", "name"])["accuracy"]
    models = rows[rows["model"] != PEOPLE]
    pairs = models.merge(people.rename("people").reset_index(), on=["level", "name"])
    return pairs.assign(gap=pairs["accuracy"] - pairs["people"])[["level", "name", "model", "gap"]]


def against(rows: pd.DataFrame, field: str) -> pd.DataFrame:
    """Return accuracies with a column per value of `field` and a row per combination of the others.

    `rows` has accuracy and any other columns, such as model, size and unit (words or characters: Xiang et al. 2021,
    section 5). Rows with fewer than two values are left out.
    """
    keys = [column for column in rows if column not in (field, "accuracy")]
    table = rows.pivot(index=keys, columns=field, values="accuracy")
    table = table[rows[field].unique()].rename_axis(None, axis=1).reset_index()
    table = rows[keys].drop_duplicates().merge(table, on=keys)
    return table[table[rows[field].unique()].notna().sum(axis=1) > 1].reset_index(drop=True)
