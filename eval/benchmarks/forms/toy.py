"""The form `toy`: pairs from the grammar of the built-in language (eval/benchmarks/toy)."""

from collections.abc import Iterator

from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.forms.blimp import blimp_pair
from eval.benchmarks.forms.form import MAX_DRAWN_PAIRS, PlacedPair, form
from pairscale.errors import ConfigError


def label_of_toy(config: BenchmarkConfig) -> list[str]:
    """Return the seed and the number of pairs as parts of a folder's name."""
    return [f"seed-{config.seed}", f"per_paradigm-{config.per_paradigm}"]


@form("toy", ("seed", "per_paradigm"), label=label_of_toy, most_pairs=MAX_DRAWN_PAIRS)
def toy(config: BenchmarkConfig) -> Iterator[PlacedPair]:
    """Yield `per_paradigm` pairs of each paradigm, drawn from `seed`."""
    from eval.benchmarks.toy import pairs  # here, as a command starts sooner without the grammar

    if config.seed is None or config.per_paradigm is None:
        raise ConfigError(
            f"benchmark=toy: seed={config.seed} and per_paradigm={config.per_paradigm}: both must be numbers"
        )
    for number, row in enumerate(pairs(config.seed, config.per_paradigm), start=1):
        where = f"toy: pair {number}"
        yield where, blimp_pair(row, where)
