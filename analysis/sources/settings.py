"""Define the user's settings for external results (`columns` and `results`), and derive sizes and runs from them."""

import math
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from pairscale.command.schemas import AboveZero, Number, Size, Texts
from pairscale.errors import ConfigError, InputError, check_name
from pairscale.sizes import parse_size

SEEN_UNITS = ("tokens", "words_seen", "steps")  # units of sizes of checkpoints of a single training run

# Revisions contain the number of steps (EleutherAI's and many others) or words seen (the BabyLM challenges). The
# pattern matches the whole of 1.5M, 1B or 1,000. Other text is therefore an error, and isn't cut after its first
# number.
_CHECKPOINT = r"(?:^|[^a-z])(?:step[-_]?|chck_)(?P<size>\d++(?:[.,]\d++)*+[^\W_]*+)"


@dataclass(kw_only=True)
class OutcomeColumns:
    """The columns of a table by their contents. null means the usual name (table.py), and "" means no column."""

    model: Texts = None  # a column, or a list of columns to join; without one: the file's name
    size: str | None = None  # amount of training text, or progress of training; without one: results.size
    seed: str | None = None  # whole numbers; without one: one run per size
    run: str | None = None  # name of the run; without one: made from model, size and seed
    paradigm: Texts = None  # a column, or a list of columns to join; without one: only phenomena are known
    phenomenon: str | None = None  # without one: BLiMP's phenomenon (results.benchmark=blimp), or the paradigm
    accuracy: str | None = None  # 0 to 1, or per cent with results.percent=true
    n: str | None = None  # number of pairs of an accuracy
    correct: str | None = None  # instead of accuracy: one row per pair with 1, 0, true or false, or .5 for a tie
    pair_id: str | None = None  # identifies a pair; without one: pairs are only counted
    removed: str | None = None  # construction that the training text lacks; an empty cell is the full text
    tests: str | None = None  # true if the paradigm tests that construction


@dataclass(kw_only=True)
class ResultsConfig:
    """Information about external results that their files don't contain."""

    benchmark: str | None = None  # name of the benchmark; null: minimal_pairs for a table, else blimp
    # The unit of sizes: text of separate training runs (words to sentences), or progress of a single training run.
    unit: Literal["words", "characters", "sentences", "tokens", "words_seen", "steps"] = "words"
    size: Size | None = None  # size of all runs
    # Sizes by their names in the source: {small:1M,all:100M}.
    sizes: dict[str | int | float, str | int | float] = field(default_factory=dict)
    scale: AboveZero = 1.0  # multiplies the source's sizes, such as by 2097152 tokens per step
    pattern: str | None = None  # regular expression with the groups size, model, seed; null: step1000, chck_10M
    n: Number | None = None  # number of pairs of each accuracy, if the source doesn't contain it
    percent: bool = False  # accuracies are per cent
    full: str = ""  # text in columns.removed that means the full text
    metric: str = "acc"  # lm_eval: name of the accuracy
    pairs: str | None = None  # babylm: folder with the pairs of the predictions (JSON lines)

    def __post_init__(self) -> None:
        if self.benchmark is not None:
            check_name("results.benchmark", self.benchmark)
        self.sizes = {str(name).removesuffix(".0"): size for name, size in self.sizes.items()}
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            problem = f"this regular expression is invalid ({error})"
            raise ConfigError(f"results.pattern={self.pattern}: {problem}. Correct it.") from None

    def size_of(self, cell: Any, where: str) -> int:
        """Return the size in a cell, or the size that `sizes` has for its text, times `scale`. The size may be 0.

        Raises InputError, with a message that begins with `where`, if it isn't a size, or if it is above 0 but less
        than 1.
        """
        text = str(cell).strip().removesuffix(".0")  # whole numbers may have this ending in Parquet files
        size, number = str(self.sizes.get(text, text)), math.nan
        with suppress(ConfigError, ValueError):
            number = self.scale * float(parse_size(size) if re.search("[kM/]", size) else size)
        if number == 0 or 1 <= number < 1e18:
            return round(number)
        raise InputError(
            f"{where}: size is {text[:60]!r}, but must be 0 or from 1 to 1e18, such as 125k, 1/8M or 300000. If sizes "
            "have names, set results.sizes={NAME:SIZE,...}. If they are in millions, set results.scale=1000000."
        )

    def run_of(self, text: str, model: str, revision: str) -> dict[str, str | None]:
        """Return the model, size and seed that `pattern` finds in a text about a run. Missing ones are None.

        `model` is used if the pattern has no model, and `revision` is the size if `sizes` contains it.
        """
        pattern = self.pattern or (_CHECKPOINT if self.unit in SEEN_UNITS else "")
        found = re.search(pattern, text)
        groups = found.groupdict() if found else {}
        size = revision if revision in self.sizes else groups.get("size")
        return {"model": groups.get("model") or model, "size": size, "seed": groups.get("seed")}
