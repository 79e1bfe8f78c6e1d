"""The block of docs/results.md on people's judgements and reading times (analysis/results/people_small/)."""

import re
from collections.abc import Callable

import pandas as pd

from tests.support.committed_results import RESULTS

FOLDER = RESULTS / "people_small"
CURVE = ["curve", "size"]
TABLES = {  # heading: table, rows of it, column of the value, decimals
    "SG score": ("syntaxgym-sizes", {"measure": "SG score"}, "score", 2),
    "SLOR and ratings, Lau et al.": ("ratings_lau-sizes", {"measure": "Pearson", "score": "slor"}, "value", 2),
    "SLOR and ratings, *LI*": ("ratings_li-sizes", {"measure": "Pearson", "score": "slor"}, "value", 2),
    "reading times": ("reading-deltas", {}, "delta (1/1000 nats)", 1),
}


def people_small() -> str:
    """Return a row for each curve and size, with a value and its interval for each kind of data."""
    columns = {}
    for heading, (name, rows, value, decimals) in TABLES.items():
        table = pd.read_csv(FOLDER / f"{name}.csv")
        for column, wanted in rows.items():
            table = table[table[column] == wanted]
        columns[heading] = table.set_index(CURVE)[[value, "low", "high"]].apply(
            lambda row, decimals=decimals: _cell(*row, decimals=decimals), axis=1
        )
    cells = pd.DataFrame(columns).reindex(next(iter(columns.values())).index)
    lines = [f"| model | words | {' | '.join(TABLES)} |", f"| --- | ---: |{' ---: |' * len(TABLES)}"]
    lines += [f"| {curve} | {size} | {' | '.join(row)} |" for (curve, size), *row in cells.itertuples()]
    return "\n".join([*lines, "", "With 95% intervals; two runs of each model at each size."])


def _cell(value: float, low: float, high: float, decimals: int) -> str:
    texts = [re.sub(r"^(-?)0\.", r"\1.", f"{number:.{decimals}f}").replace("-", "−") for number in (value, low, high)]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


PEOPLE_BLOCKS: dict[str, Callable[[], str]] = {"people_small": people_small}
