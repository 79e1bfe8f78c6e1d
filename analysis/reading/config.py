"""Define the section `reading` of the configuration of `python -m analysis.reading`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from pairscale.command.schemas import AboveZero, Seed
from pairscale.errors import ConfigError

TABLE, NATURAL_STORIES, BABYLM = ("table", "natural_stories", "babylm")
SAMPLE, COLUMN = "sample", "column"
SENTENCE, TEXT, NONE = ("sentence", "text", "none")


@dataclass(kw_only=True)
class ReadingConfig:
    """The settings for the file of reading times, the regression, and the words to leave out."""

    form: Literal["table", "natural_stories", "babylm"] = "table"  # format of the file
    measure: str | None = None  # column of times; null: the usual column of this format
    words: str | None = None  # file of the same format with the words that have no times
    formula: str | None = None  # baseline; null: length and frequency (also of previous words), and position
    spillover: Annotated[int, Meta(ge=0, le=5)] = 1  # number of previous words that are also predictors
    frequency: str = SAMPLE  # source of word frequencies: sample (each run's own), column (of the file), or a file
    folds: Annotated[int, Meta(ge=2, le=1000)] = 10  # folds of whole texts
    lowest: Annotated[float, Meta(ge=0)] | None = 100.0  # leave out single readings below this (ms)
    highest: AboveZero | None = 3000.0  # leave out single readings above this (ms)
    edges: Literal["sentence", "text", "none"] = "sentence"  # leave out the first and last word of each
    seed: Seed = 1  # seed of the folds

    def __post_init__(self) -> None:
        if self.highest is not None and self.highest <= (self.lowest or 0):
            raise ConfigError(f"reading.highest={self.highest}: this time must be above {self.lowest or 0}. Raise it.")
