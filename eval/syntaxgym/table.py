"""SG scores in the terminal: overall, by circuit and by suite, beside published ones."""

import pandas as pd
from rich.table import Table
from rich.text import Text

from eval.published import read_published
from eval.scores.table import WIDTH, percent
from eval.syntaxgym.config import NAME
from eval.syntaxgym.measures import CIRCUIT, OVERALL, SUITE
from pairscale.tables import plain_table

# Of Hu et al. 2020, for terminals that have room: model -> heading.
BESIDE = {"GRNN": "GRNN", "JRNN": "JRNN", "Transformer-XL": "TXL", "GPT-2": "GPT-2"}


def scores_table(title: str, scores: pd.DataFrame, width: int = WIDTH) -> Table:
    """Return a row for each overall score, circuit and suite of `scores` (eval.syntaxgym.measures), in per cent."""
    published = read_published(NAME).to_dict("records")
    theirs = {(row["level"], row["name"], row["model"]): row["accuracy"] for row in published}
    beside = BESIDE if width >= WIDTH else {}
    caption = "per cent; 95% intervals: for new items; a tie is no success; known: items without <unk> in their regions"
    table = plain_table(title, Text(f"{caption}\n{', '.join(beside.values())}: Hu et al. 2020" if beside else caption))
    table.add_column("suites", no_wrap=True)
    for heading in ("items", "score", "95%", "ties", "known", "items", *beside.values()):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in scores[scores["level"].isin([OVERALL, CIRCUIT, SUITE])].to_dict("records"):
        cells = [f"{row['items']:,}", percent(row["accuracy"]), f"{percent(row['low'])}–{percent(row['high'])}"]
        cells.append(str(row["ties"] or ""))
        cells += [percent(row["known"]), f"{row['known_items']:,}"] if row["unknown"] else ["", ""]
        others = [percent(theirs.get((row["level"], row["name"], model))) for model in beside]
        style = None if row["level"] == SUITE else "bold"
        table.add_row(Text(str(row["name"])), *cells, *others, style=style)
    return table
