"""What a user says about others' numbers, `columns` and `results`, and the sizes and runs that this gives."""

import math
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from pairscale.command.schemas import AboveZero, Number, Size, Texts
from pairscale.errors import ConfigError, InputError, check_name
from pairscale.sizes import parse_size

SEEN_UNITS = ("tokens", "words_seen", "steps")  # of a training so far: sizes are checkpoints of one training

# Steps of revisions (EleutherAI's, and many others), and words seen of a BabyLM challenge's revisions. A size is all of
# 1.5M, 1B and 1,000: what isn't a size is an error then, and isn't cut short to a number that it begins with.
_CHECKPOINT = r"(?:^|[^a-z])(?:step[-_]?|chck_)(?P<size>\d++(?:[.,]\d++)*+[^\W_]*+)"


@dataclass(kw_only=True)
class OutcomeColumns:
    """The columns of a table by their contents; null: a usual name (table.py); "": none."""

    model: Texts = None  # a column, or a list of columns whose texts are joined; none: the file's name
    size: str | None = None  # of the training text, or how far training was; none: results.size
    seed: str | None = None  # whole numbers; none: one run per size
    run: str | None = None  # the run's name; none: made of model, size and seed
    paradigm: Texts = None  # a column, or a list of columns whose texts are joined; none: only phenomena are known
    phenomenon: str | None = None  # none: the paradigm; with results.benchmark=blimp, that of BLiMP's paradigm
    accuracy: str | None = None  # 0 to 1, or per cent with results.percent=true
    n: str | None = None  # the number of pairs of an accuracy
    correct: str | None = None  # instead of accuracy: one row per pair with 1, 0, true or false, or .5 for a tie
    pair_id: str | None = None  # of rows of pairs; none: pairs are counted only
    removed: str | None = None  # the construction that the training text lacks; empty: none, the full text
    tests: str | None = None  # true where the paradigm tests that construction


@dataclass(kw_only=True)
class ResultsConfig:
    """What others' numbers are about, where their files don't say it."""

    benchmark: str | None = None  # its name; null: minimal_pairs for a table, else blimp
    # What sizes count: a training text, of which each is a training of its own, or one training so far.
    unit: Literal["words", "characters", "sentences", "tokens", "words_seen", "steps"] = "words"
    size: Size | None = None  # of all runs
    # Sizes by the names that the source has for them: {small:1M,all:100M}.
    sizes: dict[str | int | float, str | int | float] = field(default_factory=dict)
    scale: AboveZero = 1.0  # how many units a size of the source counts: 2097152 tokens per step
    pattern: str | None = None  # regular expression with the groups size, model, seed; null: step1000, chck_10M
    n: Number | None = None  # the number of pairs of each accuracy, where the source doesn't say it
    percent: bool = False  # accuracies are per cent
    full: str = ""  # text in columns.removed that means the full text
    metric: str = "acc"  # lm_eval
    pairs: str | None = None  # babylm: a folder of the pairs that predictions are about (JSON lines)

    def __post_init__(self) -> None:
        if self.benchmark is not None:
            check_name("results.benchmark", self.benchmark)
        self.sizes = {str(name).removesuffix(".0"): size for name, size in self.sizes.items()}
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise ConfigError(f"results.pattern={self.pattern}: {error}.") from None

    def size_of(self, cell: Any, where: str) -> int:
        """Return the size in a cell, or that `sizes` gives its text, times `scale`; 0 is allowed.

        Raises InputError, naming `where`, for text that isn't a size and for a part of a word.
        """
        text = str(cell).strip().removesuffix(".0")  # of a whole number in Parquet
        size, number = str(self.sizes.get(text, text)), math.nan
        with suppress(ConfigError, ValueError):
            number = self.scale * float(parse_size(size) if re.search("[kM/]", size) else size)
        if number == 0 or 1 <= number < 1e18:
            return round(number)
        raise InputError(
            f"{where}: size is {text[:60]!r}, must be 0, or from 1 to 1e18, such as 125k, 1/8M or 300000. "
            "results.sizes={NAME:SIZE,...} gives the sizes of names, and results.scale=1000000 counts millions."
        )

    def run_of(self, text: str, model: str, revision: str) -> dict[str, str | None]:
        """Return model, size and seed of a run as `pattern` finds them in a text on it; None for what nothing says.

        `model` is the model that no pattern names, `revision` a size if `sizes` names it.
        """
        pattern = self.pattern or (_CHECKPOINT if self.unit in SEEN_UNITS else "")
        found = re.search(pattern, text)
        groups = found.groupdict() if found else {}
        size = revision if revision in self.sizes else groups.get("size")
        return {"model": groups.get("model") or model, "size": size, "seed": groups.get("seed")}
