"""Sections of the report, and the registry of what fills them.

The exhibits of a benchmark come from functions registered by `contributes(order)`, each in the file of its subject: a
further one is a further file (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.curves.fit import Curves
from analysis.exhibits.exhibit import Exhibit
from analysis.sections.people import People
from analysis.study.collect import Study
from analysis.study.judgements import Judgements

CURVES = "Learning curves on minimal pairs"  # kinds of sections
MODELS = "Models on minimal pairs"
DIAGNOSTICS = "Psycholinguistic diagnostics"
PEOPLE = "people"
OVERALL = "overall"


@dataclass
class Section:
    """One benchmark in the report.

    curves: slopes with the columns of tables.slopes.with_published. published: accuracies of others on this benchmark
    (eval.published): level, name, model, accuracy; may be empty. tables: of analysis.exhibits.tables.curves. asked:
    people who answered a questionnaire; the people of `published` are then these. found: findings (subject, sentence).
    first: exhibits before the curves; exhibits: those after them.
    """

    judged: Judgements
    curves: Curves
    published: pd.DataFrame
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    asked: People | None = None
    found: list[tuple[str, str]] = field(default_factory=list)
    first: list[Exhibit] = field(default_factory=list)
    exhibits: list[Exhibit] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.judged.label

    @property
    def people(self) -> float | None:
        """Overall accuracy of people, where it is known."""
        rows = self.published
        rows = rows[(rows["model"] == PEOPLE) & (rows["level"] == OVERALL)]
        return float(rows["accuracy"].iloc[0]) if len(rows) else None


@dataclass(frozen=True)
class Report:
    """The whole that a section is part of. sections: by label, in order; several: True if of several studies."""

    study: Study
    config: AnalysisConfig
    sections: Mapping[str, Section]
    several: bool = False

    @property
    def confidence(self) -> float:
        return self.config.analysis.confidence

    @property
    def from_files(self) -> bool:
        """True if scores are read from run folders, with the judgements of pairs and the sentences."""
        return self.config.source == "files"


Maker = Callable[[Section, Report], list[Exhibit]]
_MAKERS: dict[str, tuple[int, Maker]] = {}


def contributes(order: int) -> Callable[[Maker], Maker]:
    """Register a function that makes exhibits of every section; `order`: its place, below 0 before the curves."""

    def register(make: Maker) -> Maker:
        _MAKERS[f"{make.__module__}.{make.__qualname__}"] = order, make
        return make

    return register


def fill(section: Section, report: Report) -> None:
    """Make the exhibits of a section, in their order."""
    package = __name__.rpartition(".")[0]
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        import_module(module.name)
    for order, make in sorted(_MAKERS.values(), key=lambda made: made[0]):
        (section.first if order < 0 else section.exhibits).extend(make(section, report))


@dataclass
class TableSection:
    """A benchmark in the report without curves: a diagnostic, or models that have no place on one.

    kind: heading of the page that it stands under. file: beginning of its files' names, and its place on the page.
    runs: with `group` and `manifest`, and the columns of Study.runs that are known of them. made_by: columns by which
    each table says what it was made of. The rest as in `Section`.
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
