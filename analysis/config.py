"""Configuration of the analysis (values: conf/base.yaml)."""

import re
from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

import corpora.train_parser.config  # noqa: F401 (it registers its schema)
from analysis.measures.reading.config import ReadingConfig
from analysis.plan.config import GOALS, SLOPE, PlanConfig
from analysis.study.sources.config import OutcomeColumns, ResultsConfig
from eval.config import EvalConfig
from pairscale.command.schemas import NOT_IN_DIGEST, Texts, store_schemas
from pairscale.errors import ConfigError, check_above, check_between, check_choice, check_seed

INTERVALS = ("auto", "bootstrap", "t")
COUNT, LEAVE_OUT = FAULTY = ("count", "leave_out")
_, CONSERVATIVE, KEEP = CAUTIONED = (LEAVE_OUT, "conservative", "keep")
DEFAULT, HIERARCHICAL = "default", "hierarchical"  # analysis.model


# Pixels of each unit of length that figures may have.
_UNITS = {"in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "pt": 96 / 72}
# The least and the greatest length of each setting.
_BOUNDS = {"width": ("1in", "40in"), "height": ("0.5in", "40in"), "font_size": ("4pt", "30pt")}


COLUMN = "4.5in"  # no column of two is so wide


@dataclass
class FigureConfig:
    """The size of figures in files (SVG, PDF, PNG). Lengths are numbers with in, cm, mm or pt: 3.3in, 84mm.

    Journals state the width of their columns: 3.3in in two columns (Computational Linguistics, ACL), 6.3in across both,
    84mm and 174mm (Springer).
    """

    width: str = (
        "6.9in"  # of a whole figure; panels that do not fit go below; below 4.5in, tables are for a column, too
    )
    height: str | None = None  # of each panel of curves, at least what the names beside it need; null: by its width
    font_size: str = "8pt"  # of names and numbers beside axes and lines; all else is in proportion

    def __post_init__(self) -> None:
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not _pixels(name, least) <= self.pixels(name) <= _pixels(name, most):
                raise ConfigError(f"analysis.figure.{name}={value}: must be from {least} to {most}")

    @property
    def narrow(self) -> bool:
        """Whether figures, and so tables, are for a column of two."""
        return self.pixels("width") < _pixels("width", COLUMN)

    def pixels(self, name: str) -> float:
        """Return a setting that is not null in pixels of 1/96 inch; raises ConfigError where it is no length."""
        return _pixels(name, getattr(self, name))


def _pixels(name: str, value: str) -> float:
    length = re.fullmatch(rf"(\d+\.?\d*|\.\d+) ?({'|'.join(_UNITS)})", value)
    if not length:
        raise ConfigError(f"analysis.figure.{name}={value[:80]}: must be a number and in, cm, mm or pt, such as 3.3in")
    return float(length[1]) * _UNITS[length[2]]


@dataclass
class CurvesConfig:
    """How learning curves are fitted."""

    method: str = MISSING  # the judgement method whose scores are used
    interval: str = MISSING  # auto: crossed bootstrap with five runs a size or more, else t
    confidence: float = MISSING  # level of the intervals
    resamples: int = MISSING  # draws of the bootstrap
    seed: int = MISSING  # of the bootstrap
    # Intraclass correlation of published judgements of one pair by people; null: that of analysis/published/people.csv
    people_correlation: float | None = None
    equivalence_margin: float = 0.005  # accuracy per doubling: slopes that differ by less are called alike
    method_margin: float = 0.02  # accuracy: differences of judgement methods within it are called equivalent
    ablation_margin: float = 0.02  # accuracy: differences of ablations within it are called equivalent
    acquisition_margin: float = 0.1  # accuracy above the baseline from which a paradigm counts as acquired
    faulty_pairs: str = COUNT  # pairs that are known to be faulty: counted, as published, or left out
    cautioned_limits: str = LEAVE_OUT  # limits with a caution: left out, kept if conservative, or all kept
    least_runs: int = 2  # sizes of fewer runs are shown, but no part of lines
    new_words: bool = False  # intervals for new words too: pairs that share words are clustered by them
    children: str | None = None  # a file: words and the age at which children know them
    children_text: str | None = None  # the text of eval.surprisal whose words are compared; null: the only one
    coverage: bool = False  # simulate studies like this one: how often its intervals hold
    coverage_studies: int = 400  # simulated for it
    model: str = DEFAULT  # hierarchical: one binomial model of all accuracies, beside the default
    chains: int = 4  # of the sampler of the hierarchical model
    draws: int = 500  # of each chain, after as many to adapt
    figure: FigureConfig = field(default_factory=FigureConfig)

    def __post_init__(self) -> None:
        check_choice("analysis.model", self.model, (DEFAULT, HIERARCHICAL))
        check_between("analysis.chains", self.chains, 2, 64)
        check_between("analysis.draws", self.draws, 50, 10**5)
        check_between("analysis.coverage_studies", self.coverage_studies, 20, 10**6)
        check_between("analysis.least_runs", self.least_runs, 1, 10**6)
        check_choice("analysis.interval", self.interval, INTERVALS)
        check_choice("analysis.faulty_pairs", self.faulty_pairs, FAULTY)
        check_choice("analysis.cautioned_limits", self.cautioned_limits, CAUTIONED)
        if not 0 < self.confidence < 1:
            raise ConfigError(f"analysis.confidence={self.confidence}: must lie between 0 and 1")
        check_between("analysis.resamples", self.resamples, 1, 10**6)
        check_seed("analysis.seed", self.seed)
        if self.people_correlation is not None and not 0 <= self.people_correlation <= 1:
            raise ConfigError(f"analysis.people_correlation={self.people_correlation}: must lie between 0 and 1")
        check_above("analysis.equivalence_margin", self.equivalence_margin, 0)
        check_above("analysis.ablation_margin", self.ablation_margin, 0)
        check_above("analysis.method_margin", self.method_margin, 0)
        if not 0 < self.acquisition_margin <= 0.5:
            raise ConfigError(
                f"analysis.acquisition_margin={self.acquisition_margin}: must lie above 0 and not above 0.5"
            )
        if self.children_text is not None and self.children is None:
            raise ConfigError(f"analysis.children_text={self.children_text}: only with analysis.children=FILE")


@dataclass
class AnalysisConfig(EvalConfig):
    """The whole configuration, of which each command uses its part."""

    analysis: CurvesConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    source: str = field(default=MISSING, metadata=NOT_IN_DIGEST)  # where the study is read from
    project: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # source=wandb: ENTITY/PROJECT
    path: Texts = field(default=None, metadata=NOT_IN_DIGEST)  # others' numbers: a file, a folder, or a list of them
    columns: OutcomeColumns = field(default_factory=OutcomeColumns, metadata=NOT_IN_DIGEST)
    results: ResultsConfig = field(default_factory=ResultsConfig, metadata=NOT_IN_DIGEST)
    published: bool = field(default=False, metadata=NOT_IN_DIGEST)  # the papers' own results instead of a study's

    # analysis.reading
    times: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # a file: words, and how long they were read
    reading: ReadingConfig = field(default_factory=ReadingConfig, metadata=NOT_IN_DIGEST)

    # analysis.plan
    effect: float | None = field(default=None, metadata=NOT_IN_DIGEST)  # to be found; goal=people: a factor
    power: float = field(default=0.8, metadata=NOT_IN_DIGEST)  # share of studies that are to find it
    goal: str = field(default=SLOPE, metadata=NOT_IN_DIGEST)
    pilot: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # a study whose runs show how runs differ
    spread: float | None = field(default=None, metadata=NOT_IN_DIGEST)  # without a pilot: deviation between runs
    rate: Any = field(default=None, metadata=NOT_IN_DIGEST)  # words/s of training, or one for each model
    plan: PlanConfig = field(default_factory=PlanConfig, metadata=NOT_IN_DIGEST)

    # analysis.table: accuracies, pairs or runs
    what: str = field(default="accuracies", metadata=NOT_IN_DIGEST)

    # analysis.status: runs to remove, by name, pattern or key, or failed, missing or study; yes: without asking
    remove: Texts = field(default=None, metadata=NOT_IN_DIGEST)
    yes: bool = field(default=False, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("goal", self.goal, GOALS)
        for rate in self.rate.values() if isinstance(self.rate, dict) else [] if self.rate is None else [self.rate]:
            if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate <= 1e12:
                raise ConfigError(
                    f"rate={self.rate}: must be a number of words/s above 0, or one for each model, such as "
                    "{lstm_blimp:40000,txl:12000}"
                )


store_schemas(None, root_schema=AnalysisConfig)
