"""Generated pairs as a benchmark: drawn from paradigms, of a vocabulary where one is given, and what cannot be made."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.grammar.engine import Grammar
from corpora.grammar.lexicon import NothingFits
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.generated import FOLDER, LANGUAGES, grammar_of, paradigm_of, paradigms_of
from eval.benchmarks.generated.vocabulary import Vocabulary, read_vocabulary
from eval.benchmarks.paradigm import Exhausted, Paradigm
from pairscale.errors import ConfigError, InputError
from pairscale.files import sha256_file, sha256_json

LEAST_PAIRS = 200  # of a paradigm; one that has fewer is not available


@dataclass(frozen=True)
class Made:
    """Pairs by paradigm, as BLiMP's JSON objects, and what they are made of.

    unavailable: paradigm -> why it has fewer than LEAST_PAIRS pairs. told: what a score file keeps of all this.
    """

    pairs: dict[str, list[dict[str, Any]]]
    unavailable: dict[str, str]
    told: dict[str, Any]


@dataclass(frozen=True)
class Source:
    """What the pairs of a configuration are drawn from: a language, its grammar, perhaps restricted to a vocabulary."""

    config: BenchmarkConfig
    language: str
    vocabulary: Vocabulary | None
    grammar: Grammar

    @classmethod
    def of(cls, config: BenchmarkConfig) -> Source:
        """Raises InputError for broken data, ConfigError where frequencies are asked for that a vocabulary lacks."""
        language = str(config.language)
        if config.vocabulary is None:
            return cls(config, language, None, grammar_of(language))
        vocabulary = read_vocabulary(Path(config.vocabulary), language, config.min_count)
        if config.balance and None in vocabulary.counts.values():
            raise ConfigError(f"benchmark.balance=true: {config.vocabulary} does not say how often each word occurs")
        return cls(config, language, vocabulary, grammar_of(language, vocabulary.knows))

    def paradigm(self, name: str) -> Paradigm:
        return paradigm_of(self.language, name, self.grammar)

    def pairs(self, paradigm: Paradigm, count: int) -> Iterator[dict[str, Any]]:
        """`count` pairs of a paradigm. Raises Exhausted after the last one where there are fewer."""
        rng = random.Random(f"{self.config.seed}:{paradigm.name}")
        for number, pair in enumerate(paradigm.pairs(rng, count, self._refused)):
            yield {**pair, "pairID": str(number)}

    def _refused(self, good: str, bad: str) -> str | None:
        if self.vocabulary is None:
            return None
        if unknown := self.vocabulary.lacks(good, bad):
            return f"with '{unknown}', which the vocabulary lacks"
        if self.config.balance and not self.vocabulary.balanced(good, bad):
            return "of critical words that are not equally frequent"
        return None

    @property
    def told(self) -> dict[str, Any]:
        """What a score file keeps of it; digests of the words and phrases of all paradigms, and of each paradigm."""
        folder = FOLDER / LANGUAGES[self.language]
        shared = [*sorted((folder / "lexicon").glob("*.tsv")), folder / "grammar.yaml"]
        told: dict[str, Any] = {
            "language": self.language,
            "seed": self.config.seed,
            "lexicon": sha256_json([sha256_file(file) for file in shared]),
            "paradigms": {
                name: sha256_file(folder / "paradigms" / f"{name}.yaml")
                for name in paradigms_of(self.language, self.config.paradigms)
            },
        }
        if self.vocabulary is not None:
            told["vocabulary"] = {"digest": self.vocabulary.digest, "words": len(self.vocabulary.counts)}
            told["balance"] = self.config.balance
            if self.config.min_count is not None and set(self.vocabulary.counts.values()) != {None}:
                told["min_count"] = self.config.min_count
        return told


def make(config: BenchmarkConfig) -> Made:
    """The pairs that `config` (of the form "generated", its vocabulary a file or null) asks for.

    A paradigm's pairs depend on its name, the seed, the language's data and the vocabulary alone; more of them begin
    with the same ones. Raises InputError for broken data and where no paradigm is available.
    """
    source = Source.of(config)
    assert config.pairs is not None
    pairs, unavailable = {}, {}
    for name in paradigms_of(source.language, config.paradigms):
        found: list[dict[str, Any]] = []
        try:
            found += source.pairs(source.paradigm(name), max(config.pairs, LEAST_PAIRS))
        except (NothingFits, Exhausted) as error:
            if len(found) < LEAST_PAIRS:
                unavailable[name] = str(error)
                continue
        pairs[name] = found[: config.pairs]
    if not pairs:
        name, reason = next(iter(unavailable.items()), (source.language, "no paradigm of this language is there"))
        raise InputError(f"benchmark={config.name}: no paradigm has {LEAST_PAIRS} pairs; {name}: {reason}")
    return Made(pairs, unavailable, source.told)
