"""Types of the groups `questionnaire` and `questionnaire_text` (values: conf/)."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from pairscale.command.schemas import store_schemas
from pairscale.errors import ConfigError, check_between, check_name, check_seed


@dataclass
class CheckConfig:
    """An attention check: two sentences like those of the pairs; everyone who reads them chooses the good one."""

    # the sentence that everyone chooses
    good: str = MISSING
    # the same with its words in an impossible order
    bad: str = MISSING


@dataclass
class TextConfig:
    """The texts of a form in one language."""

    # what the language calls itself, on the start page
    name: str = MISSING
    # heading of the first screen, and title of the page
    title: str = MISSING
    # paragraphs of the first screen; {pairs}: how many pairs there are, attention checks among them
    introduction: list[str] = MISSING
    # paragraph on how long it takes; {minutes}: from questionnaire.pair_seconds; "": none
    duration: str = MISSING
    # paragraph on whom to ask, on the first screen and the last; "": none
    contact: str = MISSING
    # question whether the language is the person's own, which yes and no answer
    native: str = MISSING
    # the two answers to it, yes and no
    answers: list[str] = MISSING
    # stands beside the box that must be ticked
    consent: str = MISSING
    # button that begins
    start: str = MISSING
    # above each pair
    question: str = MISSING
    # which keys choose and go back, below each pair
    keys: str = MISSING
    # beside the bar; {number} of {pairs}
    progress: str = MISSING
    # button to the pair before
    back: str = MISSING
    # button that leaves the answer to a pair as it is, after a step back
    next: str = MISSING
    # note where the browser keeps nothing
    no_storage: str = MISSING
    # note where the browser runs no JavaScript
    no_script: str = MISSING
    # heading of the last screen
    finished: str = MISSING
    # paragraphs of the last screen
    thanks: list[str] = MISSING
    # button that saves the file of answers
    download: str = MISSING
    # after that; {file}: its name
    downloaded: str = MISSING
    # heads the same answers as text, where a browser saves no file
    by_hand: str = MISSING
    # button for the next person at this device
    again: str = MISSING
    # asked before their answers are removed
    again_question: str = MISSING
    # attention checks, of which each form draws some; they are written as the pairs are, with a full stop or without
    checks: list[CheckConfig] = MISSING

    def __post_init__(self) -> None:
        if len(self.answers) != 2:
            raise ConfigError(f"answers={self.answers}: must be two texts, for yes and for no (in quotes)")


@dataclass
class QuestionnaireConfig:
    """The questions of `python -m eval.questionnaire`, and which answers count."""

    # where the forms are written, in a folder for each language, beside a start page
    folder: str = MISSING
    # pairs drawn of each paradigm
    per_paradigm: int = MISSING
    # pairs of a form at most, attention checks not counted
    pairs: int = MISSING
    # forms that each pair is on
    raters: int = MISSING
    # draws the pairs and deals them out
    seed: int = MISSING
    # attention checks of a form
    checks: int = MISSING
    # seconds that a pair takes, for the duration that a form names
    pair_seconds: float = MISSING
    # languages of the texts; null: the benchmark's
    languages: list[str] | None = None
    # a YAML file with texts of your own, or a folder with one a language
    texts: str | None = None
    # the texts of each language, from conf/questionnaire_text
    by_language: dict[str, TextConfig] = field(default_factory=dict)
    # answers with more failed attention checks are left out
    max_failed_checks: int = MISSING
    # True to leave out the answers of people who are no native speakers
    native_only: bool = MISSING
    # share of a paradigm's pairs that a majority must agree with
    threshold: float = MISSING

    def __post_init__(self) -> None:
        for name in ("per_paradigm", "pairs", "raters"):
            check_between(f"questionnaire.{name}", getattr(self, name), 1, 10**6)
        for name in ("checks", "max_failed_checks"):
            check_between(f"questionnaire.{name}", getattr(self, name), 0, 10**6)
        check_seed("questionnaire.seed", self.seed)
        check_between("questionnaire.pair_seconds", self.pair_seconds, 0.1, 3600)
        if self.languages is not None and (not self.languages or len(set(self.languages)) < len(self.languages)):
            raise ConfigError(f"questionnaire.languages={self.languages}: must name each language once")
        for language in self.languages or ():
            check_name("questionnaire.languages", language)
        if not 0 <= self.threshold <= 1:
            raise ConfigError(f"questionnaire.threshold={self.threshold}: must lie between 0 and 1")


store_schemas("questionnaire", questionnaire_schema=QuestionnaireConfig)
store_schemas("questionnaire_text", questionnaire_text_schema=TextConfig)
