"""What the report shows of one benchmark: a section of learning curves, or one of tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from analysis.curves.fit import Curves
from analysis.exhibits.exhibit import Exhibit
from analysis.sections.benchmark import study_exhibits
from analysis.sections.people import People
from analysis.sections.unknown_words import vocabulary_exhibits
from analysis.study.judgements import Judgements

CURVES = "Learning curves on minimal pairs"  # kinds of sections
MODELS = "Models on minimal pairs"
DIAGNOSTICS = "Psycholinguistic diagnostics"
PEOPLE = "people"
OVERALL = "overall"


@dataclass
class Section:
    """What the report shows of one benchmark.

    curves: its slopes have the columns of tables.with_published. published: accuracies of others on this benchmark
    (eval.published): level, name, model, accuracy; empty where there are none. more: further exhibits. first: those
    that stand before the curves. found: findings (about whom, what). asked: people who answered a questionnaire; the
    people of `published` are they then.
    """

    judged: Judgements
    curves: Curves
    published: pd.DataFrame
    more: list[Exhibit] = field(default_factory=list)
    first: list[Exhibit] = field(default_factory=list)
    found: list[tuple[str, str]] = field(default_factory=list)
    asked: People | None = None

    @cached_property
    def exhibits(self) -> list[Exhibit]:
        """What follows from accuracies alone, where the data is there, and `more`."""
        of_levels = study_exhibits(self.judged, self.curves, self.published, self.asked.label if self.asked else "")
        of_people = self.asked.exhibits() if self.asked else []
        return [*of_people, *of_levels, *vocabulary_exhibits(self.judged, self.curves), *self.more]

    @property
    def label(self) -> str:
        return self.judged.label

    @property
    def people(self) -> float | None:
        """Overall accuracy of people, where it is known."""
        rows = self.published
        rows = rows[(rows["model"] == PEOPLE) & (rows["level"] == OVERALL)]
        return float(rows["accuracy"].iloc[0]) if len(rows) else None


@dataclass
class TableSection:
    """What the report shows of one benchmark without curves: a diagnostic, or models that have no place on one.

    kind: what it is, as the head of the page says it. file: what names of its files begin with, and its place on the
    page. runs: with `group` and `manifest`, and the columns of Study.runs that are known of them. made_by: columns by
    which each table says what it was made of. The rest as in `Section`.
    """

    label: str
    file: str
    kind: str
    extent: str
    warnings: list[str]
    exhibits: list[Exhibit]
    methods: list[str]
    problems: pd.DataFrame
    runs: pd.DataFrame
    digest: str
    found: list[tuple[str, str]] = field(default_factory=list)
    made_by: dict[str, str] = field(default_factory=dict)
