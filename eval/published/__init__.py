"""Published accuracies, for comparison with ours. The two are never mixed (sources and licences: NOTICE)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

OVERALL = "overall"
COLUMNS = ("level", "name", "model", "accuracy")
_BY_PHENOMENON = {"climp": 16}  # number of paradigms of benchmarks with accuracies published by phenomenon only


def read_published(benchmark: str, columns: Sequence[str] = COLUMNS) -> pd.DataFrame:
    """Read published accuracies of a benchmark. There are no rows if there are none.

    Returns:
        The columns level (paradigm, phenomenon, overall), name, model and accuracy (0 to 1). Phenomena have the names
        that we use. The model `people` is the human baseline: the share of individual people's forced choices that
        were correct. For diagnostics and SyntaxGym, level and name are those of eval.diagnostics.measures and
        eval.syntaxgym.measures. Diagnostics also have an sd for conditions that are drawn at random.
    """
    path = Path(__file__).with_name(f"{benchmark}.csv")
    if not path.exists():
        return pd.DataFrame(columns=list(columns)).astype({"accuracy": float})
    return pd.read_csv(path)[list(columns)]


def number_of_paradigms(benchmark: str) -> int | None:
    """Return the number of paradigms that a benchmark's published accuracies cover; None if it isn't known."""
    by_paradigm = read_published(benchmark).query("level == 'paradigm'")["name"].nunique()
    return by_paradigm or _BY_PHENOMENON.get(benchmark)


def on_paradigms(published: pd.DataFrame, phenomena: Mapping[str, str]) -> pd.DataFrame:
    """Recompute published means over the paradigms of a study (`phenomena`: paradigm -> phenomenon).

    Means over other paradigms wouldn't be comparable with the study's. A phenomenon, or the overall mean, only has a
    row if all of its paradigms are published. The rows of a published model are left unchanged if the study has exactly
    its paradigms, or none of them, as when accuracies are published by phenomenon only.
    """
    parts = [published[:0]]
    for _, rows in published.groupby("model", sort=False):
        known = set(rows.loc[rows["level"] == "paradigm", "name"])
        if known != set(phenomena) and not known.isdisjoint(phenomena):
            rows = means_of_paradigms(rows[rows["name"].isin(phenomena)], phenomena)
            lacking = {mean for name, of in phenomena.items() if name not in known for mean in (of, OVERALL)}
            rows = rows[(rows["level"] == "paradigm") | ~rows["name"].isin(lacking)]
        parts.append(rows)
    return pd.concat(parts, ignore_index=True)[[*published.columns]]


def means_of_paradigms(accuracies: pd.DataFrame, phenomena: Mapping[str, str]) -> pd.DataFrame:
    """Return the rows of level paradigm, and their means by phenomenon and overall.

    `phenomena` maps each paradigm to its phenomenon. Raises KeyError if a paradigm is missing in it.
    """
    rows = accuracies[accuracies["level"] == "paradigm"]
    named = rows.assign(phenomenon=[phenomena[name] for name in rows["name"]], overall=OVERALL)
    means = []
    for level in ("phenomenon", OVERALL):
        mean = named.groupby([level, "model"], sort=False)["accuracy"].mean().rename_axis(["name", "model"])
        means.append(mean.reset_index().assign(level=level))
    return pd.concat([rows, *means], ignore_index=True)[list(COLUMNS)]
