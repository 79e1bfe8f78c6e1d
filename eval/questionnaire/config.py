"""Types of the groups `questionnaire` and `questionnaire_text` (values: conf/)."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from pairscale.command.schemas import store_schemas
from pairscale.errors import ConfigError, check_between, check_seed


@dataclass
class CheckConfig:
    """An attention check: two sentences of which everyone who reads them chooses the good one."""

    good: str = MISSING
    bad: str = MISSING


@dataclass
class TextConfig:
    """The texts of a form in one language; `introduction` and `thanks` are paragraphs."""

    title: str = MISSING
    introduction: list[str] = MISSING  # {pairs}: how many there are, with the attention checks
    native: str = MISSING  # a question that yes and no answer
    answers: list[str] = MISSING  # yes and no
    consent: str = MISSING  # stands beside the box that must be ticked
    start: str = MISSING
    question: str = MISSING  # above each pair
    keys: str = MISSING  # which keys choose
    progress: str = MISSING  # {number} of {pairs}
    no_storage: str = MISSING  # where the browser keeps nothing
    no_script: str = MISSING
    finished: str = MISSING  # heading
    thanks: list[str] = MISSING
    download: str = MISSING
    downloaded: str = MISSING  # {file}
    by_hand: str = MISSING  # heads the same answers as text, where a browser saves no file
    again: str = MISSING
    again_question: str = MISSING  # before what is there is removed
    checks: list[CheckConfig] = MISSING  # attention checks, of which each form draws some

    def __post_init__(self) -> None:
        if len(self.answers) != 2:
            raise ConfigError(f"answers={self.answers}: must be two texts, for yes and for no (in quotes)")


@dataclass
class QuestionnaireConfig:
    """The questions of `python -m eval.questionnaire`, and which answers count."""

    folder: str = MISSING
    per_paradigm: int = MISSING  # pairs to draw of each paradigm
    pairs: int = MISSING  # of a form at most, attention checks not counted
    raters: int = MISSING  # forms that each pair is on
    seed: int = MISSING  # draws the pairs and deals them out
    checks: int = MISSING  # attention checks of a form
    language: str | None = None  # of the texts; null: the benchmark's
    texts: str | None = None  # a YAML file whose texts take the place of those of the language
    by_language: dict[str, TextConfig] = field(default_factory=dict)
    max_failed_checks: int = MISSING  # answers with more are left out
    native_only: bool = MISSING  # so are those of others than native speakers
    threshold: float = MISSING  # share of a paradigm's pairs that a majority must agree with

    def __post_init__(self) -> None:
        for name in ("per_paradigm", "pairs", "raters"):
            check_between(f"questionnaire.{name}", getattr(self, name), 1, 10**6)
        for name in ("checks", "max_failed_checks"):
            check_between(f"questionnaire.{name}", getattr(self, name), 0, 10**6)
        check_seed("questionnaire.seed", self.seed)
        if not 0 <= self.threshold <= 1:
            raise ConfigError(f"questionnaire.threshold={self.threshold}: must lie between 0 and 1")


store_schemas("questionnaire", questionnaire_schema=QuestionnaireConfig)
store_schemas("questionnaire_text", questionnaire_text_schema=TextConfig)
