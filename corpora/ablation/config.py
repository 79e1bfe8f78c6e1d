"""Schema of the section `ablate`: what samples do about the sentences that a filter matches; filters by expression."""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from pairscale.command.schemas import NOT_IN_DIGEST, Seed
from pairscale.errors import ConfigError, check_name

NONE: Final = "none"
REMOVE: Final = "remove"
KEEP_ONLY: Final = "keep_only"
REPLACE: Final = "replace"
CONTROL: Final = "control"
MOST_PARTS = 10**6  # of a dose


@dataclass(kw_only=True)
class RegexFilter:
    """A construction as a regular expression; a sentence has it if the expression matches somewhere in it."""

    name: str = field(metadata=NOT_IN_DIGEST)  # of the construction, in the names of runs and curves
    regex: str  # in the syntax of the package `regex`, a superset of Python's `re`
    description: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # what it finds, in a line
    source: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # the paper that defines it
    # Paradigms of each benchmark that test the construction: evidence for them is direct, for all others indirect.
    paradigms: dict[str, list[str]] = field(default_factory=dict, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        import regex  # slow to import, and most runs have no filter

        check_name("filter.name", self.name)
        try:
            regex.compile(self.regex)
        except regex.error as error:
            raise ConfigError(f"filter.regex={self.regex}: not a regular expression ({error})") from None


@dataclass(kw_only=True)
class AblateConfig:
    """What samples do about the sentences that the filter matches; a dose of 1 leaves all of them, as none does."""

    action: Literal["none", "remove", "keep_only", "replace", "control"] = "none"
    # Share of these sentences that stay as they are.
    dose: Annotated[Any, Meta(description="a share from 0 to 1, such as 1/8 or 0.125")] = "0"
    layer: str | None = None  # the annotation of the text that a filter of trees searches; null: its only one
    seed: Seed | None = None  # of doses, controls and lemmas; null: derived from the run's seed
    # A CSV file for the list of all sentences that are removed or rewritten (python -m corpora).
    listing: str | None = field(default=None, metadata=NOT_IN_DIGEST)

    def __post_init__(self) -> None:
        self.dose = _dose(self.dose)
        if self.layer is not None:
            check_name("ablate.layer", self.layer)
        if self.action == KEEP_ONLY and self.dose != "0":
            raise ConfigError(f"ablate.dose={self.dose} with ablate.action=keep_only: keeps them all; leave it out")
        if self.dose == "1":
            self.action = NONE

    @property
    def acts(self) -> bool:
        """True unless samples are as without a filter."""
        return self.action != NONE

    @property
    def words(self) -> list[str]:
        """The parts of a run's name: the action, and a dose above 0 as a decimal number."""
        return [self.action] + ([f"dose{float(Fraction(self.dose)):.4g}"] if self.dose != "0" else [])


def _dose(value: Any) -> str:
    """Return a dose as a fraction in lowest terms: "0", "1/8", "1". Raises ConfigError."""
    text = str(value)
    if re.fullmatch(r"\d{1,6}/0*[1-9]\d{0,5}|\d{0,2}\.?\d{1,12}|\d\.", text) and not isinstance(value, bool):
        dose = Fraction(text).limit_denominator(MOST_PARTS)
        if 0 <= Fraction(text) <= 1:
            return str(dose)
    raise ConfigError(f"ablate.dose={text[:80]}: must be a share from 0 to 1, such as 1/8 or 0.125")
