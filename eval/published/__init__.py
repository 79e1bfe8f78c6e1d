"""Read published accuracies, which we compare with ours but never mix with them. NOTICE lists sources and licences."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

OVERALL = "overall"
COLUMNS = ("level", "name", "model", "accuracy")
_BY_PHENOMENON = {"climp": 16}  # numbers of paradigms, for benchmarks with accuracies published only by phenomenon


def read_published(benchmark: str, columns: Sequence[str] = COLUMNS) -> pd.DataFrame:
    """Read the published accuracies of a benchmark. If there are none, the table is empty.

    Returns:
        The columns level (paradigm, phenomenon, overall), name, model and accuracy (0 to 1). Phenomena have the names
        that we use. The model `people` is the human baseline, which is the share of individual people's forced choices
        that were correct. For diagnostics and SyntaxGym, levels and names are the same as in eval.diagnostics.measures
        and eval.syntaxgym.measures. Diagnostics also have the column sd for conditions that are drawn at random.
    """
    path = Path(__file__).with_name(f"{benchmark}.csv")
    if not path.exists():
        return pd.DataFrame(columns=list(columns)).astype({"accuracy": float})
    return pd.read_csv(path)[list(columns)]


def number_of_paradigms(benchmark: str) -> int | None:
    """Return the number of paradigms that a benchmark's published accuracies cover, or None if it isn't known."""
    by_paradigm = read_published(benchmark).query("level == 'paradigm'")["name"].nunique()
    return by_paradigm or _BY_PHENOMENON.get(benchmark)


def on_paradigms(published: pd.DataFrame, phenomena: Mapping[str, str]) -> pd.DataFrame:
    """Recompute published means over a study's paradigms. `phenomena` maps paradigms to phenomena.

    Means over other paradigms wouldn't be comparable with the study's. A phenomenon, or the overall mean, only has a
    row if all of its paradigms are published. The rows of a published model are left unchanged if its paradigms are
    the same as the study's, or if the study has none of them. One example are accuracies published only by phenomenon.
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
    """Return the rows of the level paradigm, and their means by phenomenon and overall.

    `phenomena` maps paradigms to phenomena. Raises KeyError if a paradigm is missing in it.
    """
    rows = accuracies[accuracies["level"] == "paradigm"]
    named = rows.assign(phenomenon=[phenomena[name] for name in rows["name"]], overall=OVERALL)
    means = []
    for level in ("phenomenon", OVERALL):
        mean = named.groupby([level, "model"], sort=False)["accuracy"].mean().rename_axis(["name", "model"])
        means.append(mean.reset_index().assign(level=level))
    return pd.concat([rows, *means], ignore_index=True)[list(COLUMNS)]
