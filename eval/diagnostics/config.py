"""The type of a diagnostic in the group `benchmark` (values: conf/benchmark/)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from omegaconf import MISSING

from eval.benchmarks.config import BenchmarkConfig
from eval.diagnostics.diagnostic import diagnostics
from pairscale.errors import ConfigError, check_between, check_choice

PUBLISHED_SHUFFLES = 100  # Ettinger 2020, table 4


@dataclass
class DiagnosticConfig(BenchmarkConfig):
    """A psycholinguistic diagnostic of Ettinger 2020: which words a model expects after a context."""

    has_pairs: ClassVar[bool] = False
    shuffles: int | None = None  # cprag: orders that the first sentence's words are put in, drawn from `seed`
    quote_marks: str = MISSING  # straight: ' and " for the curly ones of the files, for models that never saw those
    top_words: int = MISSING  # most probable words of each context to keep in topk.parquet

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("benchmark.quote_marks", self.quote_marks, ("as_published", "straight"))
        check_between("benchmark.top_words", self.top_words, 1, 10**6)
        check_between("benchmark.shuffles", self.shuffles, 0, 10**5)
        if self.shuffles and self.seed is None:
            raise ConfigError(f"benchmark.seed=null: must be a number, to draw benchmark.shuffles={self.shuffles} from")

    def _fields_by_form(self) -> Mapping[str, tuple[str, ...]]:
        return {name: diagnostic.fields for name, diagnostic in diagnostics().items()}

    @property
    def label(self) -> str:
        quotes = [] if self.quote_marks == "as_published" else [f"quote_marks-{self.quote_marks}"]
        shuffles = [] if self.shuffles in (None, PUBLISHED_SHUFFLES) else [f"shuffles-{self.shuffles}"]
        return "+".join([self.name, *quotes, *shuffles])
