"""Type of the group `questionnaire` (values and meanings: conf/questionnaire/default.yaml)."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from pairscale.command.schemas import Seed, Share

Few = Annotated[int, Meta(ge=0, le=10**6)]
Some = Annotated[int, Meta(ge=1, le=10**6)]


@dataclass(kw_only=True)
class QuestionnaireConfig:
    """The questions of `python -m eval.questionnaire`, and which answers count."""

    folder: str
    per_paradigm: Some
    pairs: Some
    raters: Some
    seed: Seed
    checks: Few
    language: str | None = None
    texts: str | None = None
    max_failed_checks: Few
    native_only: bool
    threshold: Share
