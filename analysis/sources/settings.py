"""What a user says about others' numbers: `columns` and `results` of the configuration."""

import math
from dataclasses import dataclass
from typing import Any

import regex

from pairscale.command.schemas import Size, Texts
from pairscale.errors import ConfigError, check_above, check_choice, check_name
from pairscale.sizes import parse_size

TEXT_UNITS = ("words", "characters", "sentences")  # of a training text: each size is a training of its own
SEEN_UNITS = ("tokens", "words_seen", "steps")  # of a training so far: sizes are checkpoints of one training
GROUPS = ("model", "size", "seed")  # named groups of results.pattern


@dataclass
class OutcomeColumns:
    """The columns of a table by their contents; null: a usual name (table.py); "": none."""

    model: Texts = None  # a column, or a list of columns whose texts are joined; none: the file's name
    size: str | None = None  # of the training text, or how far training was; none: results.size
    seed: str | None = None  # whole numbers; none: one run per size
    run: str | None = None  # the run's name; none: made of model, size and seed
    paradigm: Texts = None  # a column, or a list of columns whose texts are joined; none: only phenomena are known
    phenomenon: str | None = None  # none: that of BLiMP's paradigm, else the paradigm
    accuracy: str | None = None  # 0 to 1, or per cent with results.percent=true
    n: str | None = None  # the number of pairs of an accuracy
    correct: str | None = None  # instead of accuracy: one row per pair with 1, 0, true or false, or .5 for a tie
    pair_id: str | None = None  # of rows of pairs; none: pairs are counted only
    removed: str | None = None  # the construction that the training text lacks; empty: none, the full text
    tests: str | None = None  # true where the paradigm tests that construction

    def __post_init__(self) -> None:
        for name in ("model", "paradigm"):
            value = getattr(self, name)
            columns = value if isinstance(value, list) else [value] if value else []
            if value == [] or not all(isinstance(one, str) and one for one in columns):
                raise ConfigError(f"columns.{name}={value}: give a column, or a list of columns.")


@dataclass
class ResultsConfig:
    """What others' numbers are about, where their files don't say it."""

    benchmark: str | None = None  # its name; null: minimal_pairs for a table, else blimp
    unit: str = "words"  # what sizes count
    size: Size | None = None  # of all runs, where the source has none
    sizes: Any = None  # sizes by the names that the source has for them: {small:1M,all:100M}
    scale: float = 1.0  # how many units a size of the source counts: 2097152 tokens per step
    pattern: str | None = None  # regular expression with the groups size, model, seed; null: step1000, chck_10M
    n: int | None = None  # the number of pairs of each accuracy, where the source doesn't say it
    percent: bool = False  # accuracies are per cent
    full: str = ""  # text in columns.removed that means the full text
    metric: str = "acc"  # lm_eval
    pairs: str | None = None  # babylm: a folder of the pairs that predictions are about (JSON lines)

    def __post_init__(self) -> None:
        check_choice("results.unit", self.unit, (*TEXT_UNITS, *SEEN_UNITS))
        if self.sizes is not None:
            self.sizes = _checked_sizes(self.sizes)
        check_above("results.scale", self.scale, 0)
        check_above("results.n", self.n, 0)
        if self.benchmark is not None:
            check_name("results.benchmark", self.benchmark)
        if self.pattern is not None:
            _check_pattern(self.pattern)

    @property
    def seen(self) -> bool:
        """True if sizes are checkpoints of one training."""
        return self.unit in SEEN_UNITS


def unit_name(settings: ResultsConfig) -> str:
    """Return what sizes count, as tables say it: "words seen"."""
    return settings.unit.replace("_", " ")


def size_name(name: Any) -> str:
    """Return a name of a size as text: 1, 1.0, "1" and "1.0", as YAML and tables write one name, are "1"."""
    text = str(name).strip()
    try:
        return repr(float(text)).removesuffix(".0")
    except ValueError:
        return text


def size_number(text: str) -> float | None:
    """Return the number of 1000000, 1e6, 125k or 1/8M; None for other text."""
    try:
        return float(text)
    except ValueError:
        try:
            return float(parse_size(text))
        except ConfigError:
            return None


def _checked_sizes(sizes: Any) -> dict[str, str]:
    if not isinstance(sizes, dict):
        raise ConfigError(f"results.sizes={sizes}: give names and their sizes, such as {{small:1M,all:100M}}.")
    for name, size in sizes.items():
        number = size_number(str(size))
        if number is None or not 0 <= number < math.inf:
            raise ConfigError(f"results.sizes: {name} is {str(size)[:60]!r}; give a size such as 125k or 300000.")
    return {size_name(name): str(size) for name, size in sizes.items()}


def _check_pattern(pattern: str) -> None:
    try:
        groups = set(regex.compile(pattern).groupindex)
    except regex.error as error:
        raise ConfigError(f"results.pattern={pattern}: {error}") from None
    if not groups or groups - set(GROUPS):
        known = ", ".join(f"(?P<{name}>...)" for name in GROUPS)
        raise ConfigError(f"results.pattern={pattern}: give named groups, any of {known}.")
