"""Published accuracies, to stand beside ours and never to be mixed with them (sources and licences: NOTICE)."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

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
