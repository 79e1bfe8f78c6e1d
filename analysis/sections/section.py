"""The report, its sections, and the registry of functions that fill them (docs/guides/extending.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from analysis.config import AnalysisConfig
from analysis.curves.ablations.ablations import Ablations
from analysis.curves.acquisition.acquisition import Acquisition
from analysis.curves.fit import Curves
from analysis.curves.hierarchical.fit import Hierarchical
from analysis.exhibits.exhibit import Exhibit, existing
from analysis.exhibits.sentences.findings import Finding
from analysis.measures.accuracies import PEOPLE
from analysis.sections.people import People
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from analysis.study.sources.source import FILES
from eval.published import OVERALL, number_of_paradigms
from pairscale.plugins import load_members

CURVES = "Learning curves on minimal pairs"  # headings of the page
MODELS = "Models on minimal pairs"
DIAGNOSTICS = "Psycholinguistic diagnostics"
SUITES = "Syntactic test suites"
RATINGS = "Graded acceptability"
READING = "Reading times"
CHILDREN = "Words and children"
PLAN = "Plan of a study"


@dataclass
class Section:
    """One benchmark in the report.

    curves: slopes with the columns of tables.slopes.with_published. published: level, name, model, accuracy of others
    (eval.published); may be empty. tables: of analysis.exhibits.tables.curves. respondents: people who answered a
    questionnaire, and are the people of `published`. baselines: of analysis.study.baselines. ablations, effects: of a
    study with interventions, and findings about them. acquisition: None without two sizes. hierarchical: None without
    analysis.model=hierarchical. findings: of each curve. pooled: of the hierarchical model. correlations,
    comparisons: findings about several. of_lines: without the sizes of few runs, if there are any. first, exhibits:
    before and after the curves.
    """

    judged: Judgements
    curves: Curves
    published: pd.DataFrame
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    respondents: People | None = None
    baselines: Judgements | None = None
    of_lines: Judgements | None = None
    ablations: Ablations | None = None
    effects: list[Finding] = field(default_factory=list)
    acquisition: Acquisition | None = None
    hierarchical: Hierarchical | None = None
    findings: list[Finding] = field(default_factory=list)
    pooled: list[Finding] = field(default_factory=list)
    correlations: list[Finding] = field(default_factory=list)
    comparisons: list[Finding] = field(default_factory=list)
    first: list[Exhibit] = field(default_factory=list)
    exhibits: list[Exhibit] = field(default_factory=list)

    @property
    def fitted(self) -> Judgements:
        """The judgements that lines are fitted to."""
        return self.judged if self.of_lines is None else self.of_lines

    @property
    def label(self) -> str:
        return self.judged.label

    @property
    def people(self) -> float | None:
        """Overall accuracy of people, or None."""
        rows = self.published[(self.published["model"] == PEOPLE) & (self.published["level"] == OVERALL)]
        return float(rows["accuracy"].iloc[0]) if len(rows) else None

    @property
    def is_part(self) -> bool:
        """True if the benchmark is known to have more paradigms than the study."""
        total = number_of_paradigms(self.label.partition("+")[0])
        return total is not None and self.judged.pairs["paradigm"].nunique() < total

    @property
    def others_on_more(self) -> str:
        """Say that published accuracies are of more paradigms than the study's, where they are not by paradigm."""
        theirs = self.published[self.published["model"] != PEOPLE] if self.respondents else self.published
        by_paradigm = set(theirs.loc[theirs["level"] == "paradigm", "name"])
        if theirs.empty or not self.is_part or (by_paradigm and by_paradigm <= set(self.judged.pairs["paradigm"])):
            return ""
        total = number_of_paradigms(self.label.partition("+")[0])
        return (
            f" Published accuracies are of all {total} paradigms of the benchmark, and not comparable with the study's "
            "accuracies, which are of a part of them."
        )


@dataclass(frozen=True)
class Report:
    """A report of one study or of several combined.

    sections: by label, in order. tables: benchmarks without curves. several: True if of several studies. commands:
    those that requested the runs.
    """

    study: Study
    config: AnalysisConfig
    sections: Mapping[str, Section]
    tables: Sequence[TableSection] = ()
    several: bool = False
    commands: Sequence[str] = ()

    @property
    def confidence(self) -> float:
        return self.config.analysis.confidence

    @property
    def from_files(self) -> bool:
        """True if scores are read from run folders, with the judgements of pairs and the sentences."""
        return self.config.source == FILES

    def file_label(self, section: Section) -> str:
        """Return the beginning of the names of a section's files: methods other than lp have files of their own."""
        method = self.config.analysis.method
        return section.label if method == "lp" else f"{section.label}-{method}"


Contribution = Callable[[Section, Report], Iterable[Exhibit | None]]
_CONTRIBUTIONS: dict[str, tuple[int, bool, Contribution]] = {}


def contributes(order: int, *, from_files: bool = False) -> Callable[[Contribution], Contribution]:
    """Register a function that returns exhibits of a section; None among them are left out.

    `order`: its place, below 0 before the curves. `from_files`: called only if scores are read from run folders.
    """

    def register(contribution: Contribution) -> Contribution:
        _CONTRIBUTIONS[f"{contribution.__module__}.{contribution.__qualname__}"] = order, from_files, contribution
        return contribution

    return register


def fill(section: Section, report: Report) -> None:
    """Add the registered exhibits to a section, in their order."""
    load_members(__name__.rpartition(".")[0])
    for order, from_files, contribution in sorted(_CONTRIBUTIONS.values(), key=lambda registered: registered[0]):
        if report.from_files or not from_files:
            (section.first if order < 0 else section.exhibits).extend(existing(contribution(section, report)))


@dataclass
class TableSection:
    """A benchmark in the report without curves: a diagnostic, suites, ratings, or pretrained models.

    kind: its heading on the page. file: beginning of its files' names, and its anchor on the page. runs: `group`,
    `manifest` and the known columns of Study.runs. made_by: columns of every table that record its origin. The rest as
    in `Section`.
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
    findings: list[Finding] = field(default_factory=list)
    made_by: dict[str, str] = field(default_factory=dict)
