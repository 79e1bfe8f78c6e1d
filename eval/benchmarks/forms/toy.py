"""The form `toy`: pairs from the grammar of the built-in language (eval/benchmarks/toy)."""

from collections.abc import Iterator

from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from eval.benchmarks.files import Row, Table
from eval.benchmarks.forms.form import PlacedPair, form
from eval.benchmarks.forms.pairs import read_pairs
from pairscale.errors import ConfigError

RENAME = {"s-selection": "argument_structure"}  # as conf/benchmark/blimp.yaml


def label_of_toy(config: BenchmarkConfig) -> list[str]:
    """Return the seed and the number of pairs as parts of a folder's name."""
    return [f"seed-{config.seed}", f"per_paradigm-{config.per_paradigm}"]


@form("toy", ("seed", "per_paradigm"), label=label_of_toy)
def toy(config: BenchmarkConfig) -> Iterator[PlacedPair]:
    """Yield `per_paradigm` pairs of each paradigm, drawn from `seed`."""
    from eval.benchmarks.toy import pairs  # here, as a command starts sooner without the grammar

    if config.seed is None or config.per_paradigm is None:
        raise ConfigError("benchmark=toy: benchmark.seed and benchmark.per_paradigm must be numbers")
    rows = (Row("toy", row) for row in pairs(config.seed, config.per_paradigm))
    return read_pairs([Table("toy", "toy", rows)], ColumnsConfig(), rename=RENAME)
