"""The type of tables of rated sentences in the group `benchmark` (values: conf/benchmark/ratings.yaml)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from pairscale.errors import ConfigError

NAME = "ratings"
_USED = ("sentence", "rating", "label", "pair_id", "good", "bad", "good_rating", "bad_rating")


@dataclass
class RatingColumnsConfig(ColumnsConfig):
    """The columns of a table of ratings: a sentence a row, or with good and bad the two of a pair; null: none."""

    rating: str | None = None  # number: the higher, the better
    good_rating: str | None = None
    bad_rating: str | None = None

    def __post_init__(self) -> None:
        named = {name: value for name, value in vars(self).items() if value is not None}
        if other := sorted(named.keys() - set(_USED)):
            raise ConfigError(f"benchmark.columns.{other[0]}: of pairs; {NAME} has {', '.join(_USED)}")
        if self.good or self.bad:
            alone = sorted(named.keys() & {"sentence", "rating", "label"})
            if alone or not (self.good and self.bad):
                raise ConfigError(
                    "benchmark.columns: a row holds good and bad (with good_rating and bad_rating), or a sentence "
                    f"(with rating or label); got {', '.join(sorted(named))}"
                )
            if bool(self.good_rating) != bool(self.bad_rating):
                raise ConfigError("benchmark.columns.good_rating and .bad_rating belong together: give both or neither")
        elif not self.sentence or not (self.rating or self.label):
            raise ConfigError("benchmark.columns: name those of a sentence and its rating, or label, or both")
        elif self.pair_id and not self.label:
            raise ConfigError("benchmark.columns.pair_id: needs .label, which says which sentence of a pair is good")
        elif unused := sorted(named.keys() & {"good_rating", "bad_rating"}):
            raise ConfigError(f"benchmark.columns.{unused[0]}: of rows with good and bad; name these two as well")
        if len(set(named.values())) < len(named):
            raise ConfigError(f"benchmark.columns: one column for two things: {named}")


@dataclass
class RatingsConfig(BenchmarkConfig):
    """A table of sentences with people's ratings, labels, or both."""

    has_pairs: ClassVar[bool] = False
    columns: RatingColumnsConfig = field(
        default_factory=lambda: RatingColumnsConfig(sentence="sentence", rating="rating")
    )

    def __post_init__(self) -> None:
        if not is_ratings(self.name):
            raise ConfigError(f"benchmark.name={self.name}: must be {NAME}, or begin with {NAME}_, as {NAME}_lau")
        self.form = NAME
        super().__post_init__()

    def _fields_by_form(self) -> Mapping[str, tuple[str, ...]]:
        used = ("path", "dataset", "revision", "subset", "split", "files", "delimiter", "header", "quotes", "columns")
        return {NAME: (*used, "labels")}

    def _check_pairs(self) -> None:
        for key in ("pairs", "paradigms"):
            if getattr(self, key) is not None:
                raise ConfigError(f"benchmark.{key}: {self.name} has sentences, and is scored whole")

    @property
    def label(self) -> str:
        return self.name


def is_ratings(label: str) -> bool:
    """Return True if a folder of scores named `label` is of rated sentences."""
    name = label.partition("+")[0]
    return name == NAME or name.startswith(f"{NAME}_")
