"""Hand labels of the constructions in sentences of UD English EWT (CC BY-SA 4.0), of which only the names are here.

`construction_labels.csv` has for each sentence the constructions that are present, those that are doubtful, and why.
One annotator, a language model, read the text of each sentence with the descriptions of the constructions, and saw
neither trees nor patterns, but knows Universal Dependencies, which may have shaped its judgements. The sets:

- random: 200 sentences of the test split, `draw(..., 200, seed=2026)`
- fresh: 100 sentences of the development split, `draw(..., 100, seed=2027)`
- enriched:CONSTRUCTION: sentences of any split that have words which often come with a rare construction, such as
  "there" or "at least"; labelled for all constructions. What is measured on them holds for such sentences only.

The file is never changed. `construction_corrections.csv` has the labels that were plainly mistakes, with reasons; they
were made after the patterns were run, as a look at disagreements shows the reader's mistakes, too.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

LABELS = Path(__file__).with_suffix(".csv")
CORRECTIONS = LABELS.with_name("construction_corrections.csv")
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


@dataclass(frozen=True)
class Correction:
    """A label that is wrong: the construction is `label` (present, absent or doubtful)."""

    sentence: str
    construction: str
    label: str
    reason: str


def read_corrections(path: Path = CORRECTIONS) -> list[Correction]:
    """Return the corrections of labels."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Correction(**row) for row in csv.DictReader(file)]


def corrected(labels: Sequence[Labels], corrections: Sequence[Correction]) -> list[Labels]:
    """Return the labels with corrections. Raises KeyError for a correction of a sentence without labels."""
    by_name = {one.sentence: one for one in labels}
    for one in corrections:
        old, name = by_name[one.sentence], frozenset([one.construction])
        present, doubtful = old.present - name, old.doubtful - name
        present |= name if one.label == "present" else frozenset()
        doubtful |= name if one.label == "doubtful" else frozenset()
        by_name[one.sentence] = replace(old, present=present, doubtful=doubtful)
    return [by_name[one.sentence] for one in labels]
