"""What a user says about others' numbers, and the sizes that this gives: `columns` and `results`."""

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pairscale.command.schemas import Size, Texts
from pairscale.errors import ConfigError, InputError, check_above, check_choice, check_name
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
        check_above("results.scale", self.scale, 0)
        check_above("results.n", self.n, 0)
        if self.benchmark is not None:
            check_name("results.benchmark", self.benchmark)
        sizes = {} if self.sizes is None else self.sizes
        if not isinstance(sizes, dict) or not all(0 <= size_number(size) < math.inf for size in sizes.values()):
            raise ConfigError(f"results.sizes={sizes}: give names and their sizes, such as {{small:125k,all:100M}}.")
        self.sizes = {size_name(name): size for name, size in sizes.items()}
        try:
            groups = set(re.compile(self.pattern or "").groupindex)
        except re.error as error:
            raise ConfigError(f"results.pattern={self.pattern}: {error}.") from None
        if self.pattern is not None and (not groups or groups - set(GROUPS)):
            known = ", ".join(f"(?P<{name}>...)" for name in GROUPS)
            raise ConfigError(f"results.pattern={self.pattern}: give named groups, any of {known}.")

    @property
    def seen(self) -> bool:
        """True if sizes are checkpoints of one training."""
        return self.unit in SEEN_UNITS

    @property
    def unit_name(self) -> str:
        """What sizes count, as tables say it: "words seen"."""
        return self.unit.replace("_", " ")

    def size_of(self, cell: Any, where: str) -> int:
        """Return `size`, or else the size in a cell, or that `sizes` gives its text, times `scale`; 0 is allowed.

        Raises InputError, naming `where`, for text that isn't a size, for a part of a word, and for a number without a
        name if `sizes` names numbers.
        """
        text = str(cell if self.size is None else self.size).strip()
        names_numbers = any(not math.isnan(size_number(name)) for name in self.sizes)
        scaled = self.scale * size_number(self.sizes.get(size_name(text), "" if names_numbers else text))
        if scaled == 0 or 1 <= scaled < 1e18:
            return round(scaled)
        times = f" times results.scale={self.scale:g}" if self.scale != 1 else ""
        raise InputError(
            f"{where}: size is {text[:60]!r}{times}, must be 0, or from 1 to 1e18, such as 125k, 1/8M or 300000. "
            "results.sizes={NAME:SIZE,...} gives the sizes of names, and results.scale=1000000 counts millions."
        )


def size_number(text: Any) -> float:
    """Return the number of 1000000, 1e6, 125k or 1/8M; NaN for other text."""
    with suppress(ValueError):
        return float(str(text))
    with suppress(ConfigError):
        return float(parse_size(str(text)))
    return math.nan


def size_name(name: Any) -> str:
    """Return a name of a size as text: 1, 1.0, "1" and "1.0", as YAML and tables write one name, are "1"."""
    text = str(name).strip()
    with suppress(ValueError):
        return repr(float(text)).removesuffix(".0")
    return text
