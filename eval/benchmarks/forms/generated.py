"""The form `generated`: pairs from templates over a lexicon (eval/benchmarks/generated)."""

from __future__ import annotations

from eval.benchmarks.forms.blimp import blimp_pair
from eval.benchmarks.forms.form import Found, GeneratedPairs, form
from eval.config import BenchmarkConfig


@form("generated", ("seed", "vocabulary", "min_count", "balance"))
def generated(config: BenchmarkConfig) -> GeneratedPairs:
    """Return the pairs of a language's templates, of a vocabulary if one is given."""
    from eval.benchmarks.generated.making import make  # here, as a command starts sooner without the grammar

    made = make(config)
    pairs: list[Found] = []
    for row in (row for rows in made.pairs.values() for row in rows):
        where = f"generated: {row['UID']} {row['pairID']}"
        pairs.append((where, blimp_pair(row, where)))
    return GeneratedPairs(pairs, made.told, made.unavailable)
