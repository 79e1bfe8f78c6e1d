"""The form `generated`: pairs from templates over a lexicon (eval/benchmarks/generated)."""

import re
from pathlib import Path

from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from eval.benchmarks.files import Row, Table
from eval.benchmarks.forms.form import GeneratedPairs, form
from eval.benchmarks.forms.pairs import read_pairs
from pairscale.errors import ConfigError, check_between, check_choice

LANGUAGES = ("en", "zh")
USUAL_PAIRS, USUAL_SEED, USUAL_MIN_COUNT = 1000, 1, 5  # left out of the names of folders; BLiMP has as many pairs


def check_generated(config: BenchmarkConfig) -> None:
    check_choice("benchmark.language", str(config.language), LANGUAGES)
    if config.pairs is None or config.seed is None:
        raise ConfigError(f"benchmark.pairs={config.pairs}, benchmark.seed={config.seed}: both must be numbers")
    if config.vocabulary in ("run", "study") and config.min_count is None:
        raise ConfigError(f"benchmark.min_count=null with vocabulary={config.vocabulary}: must be above 0")
    check_between("benchmark.min_count", config.min_count, 1, 10**12)
    if config.balance and config.vocabulary is None:
        raise ConfigError("benchmark.balance=true: needs a vocabulary, whose frequencies they are")


def label_of_generated(config: BenchmarkConfig) -> list[str]:
    """Return language, vocabulary and seed as parts of a folder's name: "en", "study-k5"."""
    parts = [str(config.language)]
    if config.vocabulary in ("run", "study"):
        parts.append(f"{config.vocabulary}-k{config.min_count}")  # words that its samples hold k times
    elif config.vocabulary is not None:
        stem = re.sub(r"[^\w.-]", "_", Path(config.vocabulary).stem)
        counted = "" if config.min_count in (None, USUAL_MIN_COUNT) else f"-k{config.min_count}"
        parts.append(f"words-{stem}{counted}")
    if config.balance:
        parts.append("balanced")
    if config.seed != USUAL_SEED:
        parts.append(f"seed-{config.seed}")
    return parts


@form(
    "generated",
    ("seed", "vocabulary", "min_count", "balance"),
    check=check_generated,
    label=label_of_generated,
    usual_pairs=USUAL_PAIRS,
)
def generated(config: BenchmarkConfig) -> GeneratedPairs:
    """Return the pairs of a language's paradigms, of the words of a vocabulary if there is one."""
    from eval.benchmarks.generated.making import generate  # here, as a command starts sooner without the grammar

    drawn = generate(config)
    rows = (Row("generated", row) for rows in drawn.pairs.values() for row in rows)
    table = Table("generated", "generated", rows)
    return GeneratedPairs(list(read_pairs([table], ColumnsConfig())), drawn.origin, drawn.unavailable)
