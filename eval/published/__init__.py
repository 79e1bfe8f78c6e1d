"""Published accuracies, to stand beside ours and never to be mixed with them (sources and licences: NOTICE)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

OVERALL = "overall"
COLUMNS = ("level", "name", "model", "accuracy")
_BY_PHENOMENON = {"climp": 16}  # paradigms of benchmarks whose accuracies are published by phenomenon alone


def read_published(benchmark: str, columns: Sequence[str] = COLUMNS) -> pd.DataFrame:
    """Columns level (paradigm, phenomenon, overall), name, model, accuracy (0 to 1); no rows where there are none.

    Phenomena have our names. The model `people` is the share of single persons' forced choices that were right. Of
    diagnostics, level and name are those of eval.diagnostics.measures; there is an sd too, of conditions drawn at
    random. Of SyntaxGym they are those of eval.syntaxgym.measures.
    """
    path = Path(__file__).with_name(f"{benchmark}.csv")
    if not path.exists():
        return pd.DataFrame(columns=list(columns)).astype({"accuracy": float})
    return pd.read_csv(path)[list(columns)]


def number_of_paradigms(benchmark: str) -> int | None:
    """Return how many paradigms a benchmark has that published accuracies are of; None where it is not known."""
    by_paradigm = read_published(benchmark).query("level == 'paradigm'")["name"].nunique()
    return by_paradigm or _BY_PHENOMENON.get(benchmark)


def on_paradigms(published: pd.DataFrame, phenomena: Mapping[str, str]) -> pd.DataFrame:
    """Return published accuracies on the paradigms of a study (`phenomena`: paradigm -> phenomenon), means over them.

    Means over other paradigms than the study's would not compare with its own. A phenomenon, or the whole, has a row
    only where all of its paradigms are published. Rows of a model stay as they are if the study has all of its
    paradigms, and if it has none of them: accuracies that are known by phenomenon alone.
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
    """Return the rows of level paradigm, and their means over phenomena and overall.

    `phenomena`: paradigm -> phenomenon. Raises KeyError for a paradigm without one.
    """
    rows = accuracies[accuracies["level"] == "paradigm"]
    named = rows.assign(phenomenon=[phenomena[name] for name in rows["name"]], overall=OVERALL)
    means = []
    for level in ("phenomenon", OVERALL):
        mean = named.groupby([level, "model"], sort=False)["accuracy"].mean().rename_axis(["name", "model"])
        means.append(mean.reset_index().assign(level=level))
    return pd.concat([rows, *means], ignore_index=True)[list(COLUMNS)]
