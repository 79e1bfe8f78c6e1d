"""Blocks of docs/guides/acquisition.md, from committed accuracies and the table of simulated studies."""

import pandas as pd

from analysis.curves.acquisition.acquisition import Acquisition, acquire
from analysis.curves.acquisition.orders import ACQUISITION
from analysis.exhibits.sentences.acquisition import order_sentence, rank_sentence, shape_sentence, size_sentence
from tests.support import wrapped
from tests.support.committed_results import LONG, RESULTS, config, judgements_of

LEVEL = "phenomenon"
FILE = RESULTS / "acquisition_coverage.csv"


def acquisition_of(study: str = LONG) -> Acquisition:
    """Return the acquisition of a committed study; its paradigms are not known, only its phenomena."""
    found = acquire(judgements_of(study), config())
    assert found is not None
    return found


def sentences() -> str:
    """Return what the report of LONG says of each model, and of both."""
    of = acquisition_of()
    lines = []
    for group, sizes in _of_level(of.sizes).groupby("group", sort=False):
        ranks, shapes = (part[part["group"] == group] for part in (_of_level(of.ranks), _of_level(of.shapes)))
        last = ranks[ranks["words"] == ranks["words"].max()]
        texts = [size_sentence(sizes, LEVEL), rank_sentence(last, LEVEL), shape_sentence(shapes, LEVEL)]
        lines.append(f"**{group}**: {' '.join(text[:1].upper() + text[1:] for text in texts if text)}")
    between = _of_level(of.orders)
    between = between[between["group"] != between["other"]]
    for _, row in pd.concat([between[between["size"] != ACQUISITION].tail(1), between.tail(1)]).iterrows():
        lines.append(f"**{row['group']} and {row['other']}**: {order_sentence(row, LEVEL, config().confidence)}")
    return "\n>\n".join(wrapped(line, "> ") for line in lines)


def _of_level(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["level"] == LEVEL]


def coverage() -> str:
    """Return how often intervals contain the truth, and how often shapes get their names."""
    table = pd.read_csv(FILE)
    lines = [
        "| interval, should hold 95% | designs | lowest | highest | median |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for quantity, of in table[table["part"] != "turns"].groupby("quantity", sort=False):
        known = of["rate"].dropna()
        if len(known):
            rates = " | ".join(f"{rate:.1%}" for rate in (known.min(), known.max(), known.median()))
            lines.append(f"| {quantity} | {len(known)} | {rates} |")
    columns = ["called U", "called inverted U", "called rises", "called falls", "some turn", "GAM turns"]
    turns = table[table["part"] == "turns"].pivot(index="design", columns="quantity", values="rate")
    turns = turns.loc[table.loc[table["part"] == "turns", "design"].drop_duplicates(), columns]
    lines += ["", f"| curve | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    lines += [f"| {design} | {' | '.join(f'{rate:.1%}' for rate in row)} |" for design, row in turns.iterrows()]
    text = (
        "Shares of paradigms that get a name; some turn: of studies in which any of the eight paradigms gets one; GAM "
        "turns: of paradigms whose smooth climbs and drops by a point. Rows of sizes tell apart those that lie within, "
        f"before and beyond the sizes of a study. {table['studies'].max():,} simulated studies a design."
    )
    return "\n".join([*lines, "", wrapped(text)])


ACQUISITION_BLOCKS = {"acquisition of blimp_long": sentences, "coverage of acquisition": coverage}
