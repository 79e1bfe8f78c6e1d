"""Agreement with people in the terminal: a row for each score, a column for each measure."""

import pandas as pd
from rich.table import Table
from rich.text import Text

from eval.ratings.sentences import Ratings
from pairscale.tables import plain_table

_SHOWN = 2  # measures whose intervals the terminal has room for


def ratings_table(title: str, measures: pd.DataFrame, ratings: Ratings) -> Table:
    """Return a row for each score with its measures (RatingsWork.measures) and the limits of the first of them."""
    pairs = f" in {ratings.pairs:,} pairs" if ratings.pairs else ""
    caption = (
        f"{len(ratings.rows):,} sentences{pairs}; 95% intervals: for new ones of this kind; morcela, accuracy and MCC "
        "are cross-validated"
    )
    table = plain_table(title, Text(caption))
    table.add_column("score", no_wrap=True)
    names = list(dict.fromkeys(measures["level"]))
    for number, name in enumerate(names):
        table.add_column(name, justify="right")
        if number < _SHOWN:
            table.add_column("95%", justify="right", no_wrap=True)
    for score, of in measures.groupby("name", sort=False):
        cells = []
        for number, row in enumerate(of.set_index("level").reindex(names).itertuples()):
            cells.append(f"{row.accuracy:.3f}")
            if number < _SHOWN:
                cells.append(f"{row.low:.2f} to {row.high:.2f}")
        table.add_row(Text(str(score)), *cells)
    return table
