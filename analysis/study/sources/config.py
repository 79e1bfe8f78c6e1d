"""Schemas of `columns` and `results`: how others' published numbers are read."""

import math
from dataclasses import dataclass
from typing import Any

from pairscale.command.schemas import Size, Texts
from pairscale.errors import ConfigError, check_above, check_choice, check_name
from pairscale.sizes import parse_size

WORDS, CHARACTERS, SENTENCES = "words", "characters", "sentences"
TOKENS, WORDS_SEEN, STEPS = "tokens", "words_seen", "steps"
TEXT_UNITS = (WORDS, CHARACTERS, SENTENCES)  # of a training text: each size is a training of its own
SEEN_UNITS = (TOKENS, WORDS_SEEN, STEPS)  # of a training so far: sizes are checkpoints of one training
OWN, SHARED = "own", "shared"
PARADIGMS, RUNS = "paradigms", "runs"
GROUPS = ("model", "size", "seed")  # named groups of results.pattern


@dataclass
class OutcomeColumns:
    """The columns of a table by what they hold; null: a usual name (analysis/study/sources/table.py); "": none."""

    model: Texts = None  # a column, or a list of columns whose texts are joined; none: the file's name
    size: str | None = None  # of the training text, or how far training was; none: results.size
    seed: str | None = None  # whole numbers; none: one run a size
    paradigm: Texts = None  # a column, or a list of columns whose texts are joined
    phenomenon: str | None = None  # none: that of BLiMP's paradigm, else the paradigm
    accuracy: str | None = None  # 0 to 1, or per cent with results.percent=true
    n: str | None = None  # how many pairs an accuracy is of
    correct: str | None = None  # instead of accuracy: a row a pair, 1, 0, true or false, .5 for a tie
    pair_id: str | None = None  # of rows of pairs; none: pairs are counted only
    removed: str | None = None  # the construction that the training text lacks; empty: none, the full text
    tests: str | None = None  # true where the paradigm tests that construction

    def __post_init__(self) -> None:
        for name in ("model", "paradigm"):
            value = getattr(self, name)
            columns = value if isinstance(value, list) else [value] if value else []
            if (isinstance(value, list) and not value) or not all(isinstance(one, str) and one for one in columns):
                raise ConfigError(f"columns.{name}={value}: must be a column, or a list of columns")


@dataclass
class ResultsConfig:
    """What others' numbers are of, and what they do not say themselves."""

    benchmark: str | None = None  # name of the benchmark; null: none of a table, else blimp
    unit: str = WORDS  # of sizes
    size: Size | None = None  # of all runs, where the source has none
    sizes: Any = None  # sizes by the names that the source has: {small:1M,all:100M}
    scale: float = 1.0  # how many units a size of the source counts: 2097152 tokens a step
    pattern: str | None = None  # regular expression with the groups size, model, seed; null: step1000, chck_10M
    n: int | None = None  # pairs that each accuracy is a mean over, where the source does not say
    percent: bool = False  # accuracies are per cent
    text: str | None = None  # of the runs of a size: own (each a sample) | shared (the same); null: not known
    missing: str = PARADIGMS  # what is left out where some runs lack paradigms
    full: str = ""  # text in columns.removed that means the full text
    metric: str = "acc"  # of lm_eval
    pairs: str | None = None  # babylm: a folder of the pairs that predictions are about (JSON lines)

    def __post_init__(self) -> None:
        check_choice("results.unit", self.unit, (*TEXT_UNITS, *SEEN_UNITS))
        check_choice("results.missing", self.missing, (PARADIGMS, RUNS))
        if self.sizes is not None:
            self.sizes = _checked_sizes(self.sizes)
        check_above("results.scale", self.scale, 0)
        check_above("results.n", self.n, 0)
        if self.text is not None:
            check_choice("results.text", self.text, (OWN, SHARED))
        if self.benchmark is not None:
            check_name("results.benchmark", self.benchmark)
        if self.pattern is not None:
            _check_pattern(self.pattern)

    @property
    def seen(self) -> bool:
        """True if sizes are checkpoints of one training."""
        return self.unit in SEEN_UNITS


def size_name(name: Any) -> str:
    """Return a name of a size as text: 1, 1.0, "1" and "1.0", as YAML and tables write one name, are "1"."""
    text = str(name).strip()
    try:
        return repr(float(text)).removesuffix(".0")
    except ValueError:
        return text


def size_number(text: str) -> float | None:
    """Return the number of 1000000, 1e6, 125k or 1/8M; None of other text."""
    try:
        return float(text)
    except ValueError:
        try:
            return float(parse_size(text))
        except ConfigError:
            return None


def _checked_sizes(sizes: Any) -> dict[str, str]:
    """Return `results.sizes` by `size_name`. Raises ConfigError for other values, and for one that is no size."""
    if not isinstance(sizes, dict):
        raise ConfigError(f"results.sizes={sizes}: must be names and their sizes, such as {{small:1M,all:100M}}")
    for name, size in sizes.items():
        number = size_number(str(size))
        if number is None or not 0 <= number < math.inf:
            raise ConfigError(f"results.sizes: {name} is {str(size)[:60]!r}, must be a size such as 125k or 300000")
    return {size_name(name): str(size) for name, size in sizes.items()}


def _check_pattern(pattern: str) -> None:
    import regex  # slow to import, and most runs have no pattern

    try:
        groups = set(regex.compile(pattern).groupindex)
    except regex.error as error:
        raise ConfigError(f"results.pattern={pattern}: {error}") from None
    if not groups or groups - set(GROUPS):
        known = ", ".join(f"(?P<{name}>...)" for name in GROUPS)
        raise ConfigError(f"results.pattern={pattern}: must have named groups, of {known}")
