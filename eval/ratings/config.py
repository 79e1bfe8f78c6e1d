"""The type of tables of rated sentences in the group `benchmark` (values: conf/benchmark/ratings.yaml)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from pairscale.errors import ConfigError

NAME = "ratings"


@dataclass(kw_only=True)
class RatingColumnsConfig(ColumnsConfig):
    """The columns of a table of ratings: a sentence a row, or with good and bad the two of a pair; null: none."""

    rating: str | None = None  # number: the higher, the better
    good_rating: str | None = None
    bad_rating: str | None = None

    def __post_init__(self) -> None:
        named = {name: column for name, column in vars(self).items() if column}
        pair_id = {"pair_id"} if self.label or self.good else set()
        pair, ratings = {"good", "bad"}, {"good_rating", "bad_rating"}
        has_sentence = {"sentence"} < named.keys() <= {"sentence", "rating", "label"} | pair_id
        has_pair = named.keys() - pair_id in (pair, pair | ratings)
        if not (has_sentence or has_pair) or len(set(named.values())) < len(named):
            raise ConfigError(
                "benchmark.columns: name different columns of a sentence and its rating, label or both (and, with "
                "label, pair_id), or of good and bad (and their good_rating and bad_rating, and pair_id); got "
                f"{', '.join(sorted(named))}"
            )


@dataclass(kw_only=True)
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

    @property
    def label(self) -> str:
        return self.name


def is_ratings(label: str) -> bool:
    """Return True if a folder of scores named `label` is of rated sentences."""
    name = label.partition("+")[0]
    return name == NAME or name.startswith(f"{NAME}_")
