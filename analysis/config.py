"""Configuration of the analysis (values: conf/base.yaml)."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from corpora.config import NOT_IN_DIGEST
from eval.config import EvalConfig
from pairscale.command.schemas import store_schemas
from pairscale.errors import ConfigError, check_above, check_between, check_choice, check_seed

INTERVALS = ("auto", "bootstrap", "t")
SOURCES = ("files", "wandb")


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

    def __post_init__(self) -> None:
        check_choice("analysis.interval", self.interval, INTERVALS)
        if not 0 < self.confidence < 1:
            raise ConfigError(f"analysis.confidence={self.confidence}: must lie between 0 and 1")
        check_between("analysis.resamples", self.resamples, 1, 10**6)
        check_seed("analysis.seed", self.seed)
        if self.people_correlation is not None and not 0 <= self.people_correlation <= 1:
            raise ConfigError(f"analysis.people_correlation={self.people_correlation}: must lie between 0 and 1")
        check_above("analysis.equivalence_margin", self.equivalence_margin, 0)


@dataclass
class AnalysisConfig(EvalConfig):
    """The whole configuration, of which each command uses its part."""

    analysis: CurvesConfig = field(default=MISSING, metadata=NOT_IN_DIGEST)
    source: str = field(default=MISSING, metadata=NOT_IN_DIGEST)  # where the study is read from: run folders, or W&B
    project: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # source=wandb: ENTITY/PROJECT
    published: bool = field(default=False, metadata=NOT_IN_DIGEST)  # the papers' own results instead of a study's

    # analysis.status: a run, or failed, missing or study, to be removed; yes: without asking
    remove: str | None = field(default=None, metadata=NOT_IN_DIGEST)
    yes: bool = field(default=False, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("source", self.source, SOURCES)


store_schemas(None, root_schema=AnalysisConfig)
