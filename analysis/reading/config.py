"""Schema of the section `reading`: how `python -m analysis.reading` reads times, and what it fits."""

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
    """The form of the file of times, the regression, and which words it leaves out."""

    form: Literal["table", "natural_stories", "babylm"] = "table"  # of the file
    measure: str | None = None  # column of times; null: the usual one of the form
    words: str | None = None  # a file of the same form with the words for which there are no times
    formula: str | None = None  # of the baseline; null: length, frequency and position, also of the words before
    spillover: Annotated[int, Meta(ge=0, le=5)] = 1  # words before, whose surprisal, length and frequency count too
    frequency: str = SAMPLE  # of words: in each run's own sample, the file's column, or a file
    folds: Annotated[int, Meta(ge=2, le=1000)] = 10  # of whole texts
    lowest: Annotated[float, Meta(ge=0)] | None = 100.0  # ms, of single readings
    highest: AboveZero | None = 3000.0
    edges: Literal["sentence", "text", "none"] = "sentence"  # whose first and last words are left out
    seed: Seed = 1  # of the folds

    def __post_init__(self) -> None:
        if self.highest is not None and self.highest <= (self.lowest or 0):
            raise ConfigError(f"reading.highest={self.highest}: must be above {self.lowest or 0}.")
