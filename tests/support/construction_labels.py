"""Hand labels of the constructions in sentences of UD English EWT (CC BY-SA 4.0), of which only the names are here.

`construction_labels.csv` has for each sentence the constructions that are present, those that are doubtful, and why.
One annotator, a language model, read the text of each sentence with the descriptions of the constructions, and saw
neither trees nor patterns. The sets:

- random: 200 sentences of the test split, `draw(..., 200, seed=2026)`
- fresh: 100 sentences of the development split, `draw(..., 100, seed=2027)`
- enriched:CONSTRUCTION: sentences of any split that have words which often come with a rare construction, such as
  "there" or "at least"; labelled for all constructions. What is measured on them holds for such sentences only.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LABELS = Path(__file__).with_suffix(".csv")
LENGTHS = range(8, 41)  # in words, of the sentences of a random draw


@dataclass(frozen=True)
class Labels:
    """The constructions of one sentence, as its reader saw them."""

    sentence: str  # sent_id of the treebank
    split: str
    set: str
    present: frozenset[str]
    doubtful: frozenset[str]
    note: str


def read_labels(path: Path = LABELS) -> list[Labels]:
    """Return the labels of every sentence."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Labels(
                row["sentence"],
                row["split"],
                row["set"],
                frozenset(row["present"].split()),
                frozenset(row["doubtful"].split()),
                row["note"],
            )
            for row in csv.DictReader(file)
        ]


def draw(lengths: Iterable[tuple[str, int]], count: int, seed: int) -> list[str]:
    """Return the names of `count` random sentences of medium length, given all names with lengths in words."""
    return random.Random(seed).sample(sorted(name for name, length in lengths if length in LENGTHS), count)
