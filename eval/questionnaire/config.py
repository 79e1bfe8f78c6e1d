"""Type of the group `questionnaire` (values and meanings: conf/questionnaire/default.yaml)."""

from dataclasses import dataclass

from omegaconf import MISSING

from pairscale.command.schemas import store_schemas
from pairscale.errors import ConfigError, check_between, check_seed


@dataclass
class QuestionnaireConfig:
    """The questions of `python -m eval.questionnaire`, and which answers count."""

    folder: str = MISSING
    per_paradigm: int = MISSING
    pairs: int = MISSING
    raters: int = MISSING
    seed: int = MISSING
    checks: int = MISSING
    language: str | None = None
    texts: str | None = None
    max_failed_checks: int = MISSING
    native_only: bool = MISSING
    threshold: float = MISSING

    def __post_init__(self) -> None:
        for name in ("per_paradigm", "pairs", "raters"):
            check_between(f"questionnaire.{name}", getattr(self, name), 1, 10**6)
        for name in ("checks", "max_failed_checks"):
            check_between(f"questionnaire.{name}", getattr(self, name), 0, 10**6)
        check_seed("questionnaire.seed", self.seed)
        if not 0 <= self.threshold <= 1:
            raise ConfigError(f"questionnaire.threshold={self.threshold}: must be from 0 to 1.")


store_schemas("questionnaire", questionnaire_schema=QuestionnaireConfig)
