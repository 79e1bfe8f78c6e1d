"""The type of a diagnostic in the group `benchmark` (values: conf/benchmark/)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from eval.benchmarks.config import BenchmarkConfig
from eval.diagnostics.diagnostic import diagnostics
from pairscale.errors import ConfigError

PUBLISHED_SHUFFLES = 100  # Ettinger 2020, table 4


@dataclass(kw_only=True)
class DiagnosticConfig(BenchmarkConfig):
    """A psycholinguistic diagnostic of Ettinger 2020: which words a model expects after a context."""

    has_pairs: ClassVar[bool] = False
    # cprag: orders that the first sentence's words are put in, drawn from `seed`
    shuffles: Annotated[int, Meta(ge=0, le=10**5)] | None = None
    quote_marks: Literal[
        "as_published", "straight"
    ]  # straight: ' and " for the curly ones of the files, for models that never saw those
    top_words: Annotated[int, Meta(ge=1, le=10**6)]  # most probable words of each context to keep in topk.parquet

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shuffles and self.seed is None:
            raise ConfigError(f"benchmark.seed=null: must be a number, to draw benchmark.shuffles={self.shuffles} from")

    def _fields_by_form(self) -> Mapping[str, tuple[str, ...]]:
        return {name: diagnostic.fields for name, diagnostic in diagnostics().items()}

    @property
    def label(self) -> str:
        quotes = [] if self.quote_marks == "as_published" else [f"quote_marks-{self.quote_marks}"]
        shuffles = [] if self.shuffles in (None, PUBLISHED_SHUFFLES) else [f"shuffles-{self.shuffles}"]
        return "+".join([self.name, *quotes, *shuffles])
