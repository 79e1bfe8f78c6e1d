"""Generate minimal pairs from our own paradigms, in English and Mandarin, optionally with the words of a vocabulary.

<language>/lexicon/*.tsv          tables of words
<language>/grammar.yaml           variables and phrases that all paradigms use (corpora/grammar/engine.py)
<language>/paradigms/<UID>.yaml   one paradigm, with phenomenon, field, prefix and skeleton (paradigm.py)

vocabulary.py finds the words of samples and of users' files.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpora.grammar.engine import Grammar, read_grammar
from corpora.grammar.lexicon import NothingFits
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.files import Generated
from eval.benchmarks.generated.vocabulary import Vocabulary, read_vocabulary
from eval.benchmarks.paradigm import Exhausted, Paradigm
from pairscale.errors import InputError
from pairscale.files import sha256_file, sha256_json
from pairscale.schema import read_yaml

FOLDER = Path(__file__).parent
LANGUAGES = {"en": "english", "zh": "mandarin"}  # ISO 639 code: folder
LEAST_PAIRS = 200  # paradigms with fewer pairs are not available


def grammar_of(language: str, knows: Callable[[str], bool] | None = None) -> Grammar:
    """Read the grammar of a language ("en" or "zh"). `knows` restricts its words, as in corpora.grammar.lexicon."""
    return read_grammar(FOLDER / LANGUAGES[language], knows)


def paradigms_of(language: str) -> list[str]:
    """Return the UIDs of a language's paradigms."""
    return sorted(file.stem for file in (FOLDER / LANGUAGES[language] / "paradigms").glob("*.yaml"))


def paradigm_of(language: str, name: str, grammar: Grammar) -> Paradigm:
    """Read one paradigm. Raises InputError if its file is invalid, and NothingFits if no words fit."""
    where = f"{LANGUAGES[language]}/paradigms/{name}.yaml"
    described = read_yaml(FOLDER / where, dict[str, Any], InputError, "see eval/benchmarks/paradigm.py")
    return Paradigm(name, described, grammar, where)


def generate(config: BenchmarkConfig, least: int = LEAST_PAIRS) -> Generated:
    """Generate the pairs that `config` requests. Its form must be "generated", and its vocabulary a file or None.

    A paradigm's pairs depend only on its name, the seed, the language's files and the vocabulary. If you request more
    pairs, the first ones stay the same. A paradigm with fewer than `least` pairs is not available.

    Raises InputError if files are invalid or no paradigm is available. Raises ConfigError if a paradigm is unknown or
    the vocabulary has no words.
    """
    assert config.pairs is not None
    language, vocabulary = str(config.language), None
    if config.vocabulary is not None:
        vocabulary = read_vocabulary(Path(config.vocabulary), language, config.min_count)
    grammar = grammar_of(language, vocabulary.knows if vocabulary else None)

    def refusal(good: str, bad: str) -> str | None:
        unknown = vocabulary.unknown_word(good, bad) if vocabulary else None
        return f"'{unknown}' is not in the vocabulary" if unknown else None

    names = config.chosen_paradigms(paradigms_of(language))
    pairs, unavailable = {}, {}
    for name in names:
        drawn: list[dict[str, Any]] = []
        try:
            rng = random.Random(f"{config.seed}:{name}")
            drawn += paradigm_of(language, name, grammar).pairs(rng, max(config.pairs, least), refusal)
        except (NothingFits, Exhausted) as error:
            if len(drawn) < least:
                unavailable[name] = str(error)
                continue
        pairs[name] = drawn[: config.pairs]
    if not pairs:
        name, reason = next(iter(unavailable.items()))
        raise InputError(
            f"benchmark={config.name}: no paradigm has {least} pairs. Use a larger vocabulary. {name}: {reason}."
        )
    return Generated(pairs, unavailable, origin_of(config, names, vocabulary))


def origin_of(config: BenchmarkConfig, paradigms: list[str], vocabulary: Vocabulary | None) -> dict[str, Any]:
    """Return the settings, and the digests of the lexicon with the grammar, each paradigm, and the vocabulary."""
    folder = FOLDER / LANGUAGES[str(config.language)]
    shared = [*sorted((folder / "lexicon").glob("*.tsv")), folder / "grammar.yaml"]
    origin: dict[str, Any] = {
        "language": config.language,
        "seed": config.seed,
        "lexicon": sha256_json([sha256_file(file) for file in shared]),
        "paradigms": {name: sha256_file(folder / "paradigms" / f"{name}.yaml") for name in paradigms},
    }
    if vocabulary is not None:
        origin["vocabulary"] = {"digest": vocabulary.digest, "words": len(vocabulary.counts)}
        if config.min_count is not None and any(vocabulary.counts.values()):
            origin["min_count"] = config.min_count
    return origin
