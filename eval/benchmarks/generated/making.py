"""Pairs drawn from the paradigms of a language, of the words of a vocabulary if there is one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.grammar.engine import Grammar
from corpora.grammar.lexicon import NothingFits
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.form import Generated
from eval.benchmarks.generated import FOLDER, LANGUAGES, grammar_of, paradigm_of, paradigms_of
from eval.benchmarks.generated.vocabulary import Vocabulary, read_vocabulary
from eval.benchmarks.paradigm import Exhausted, Paradigm
from pairscale.errors import InputError
from pairscale.files import sha256_file, sha256_json

LEAST_PAIRS = 200  # of a paradigm; one that has fewer is not available


@dataclass(frozen=True)
class Source:
    """What pairs are drawn from: the grammar of a language, restricted to the words of a vocabulary if there is one."""

    config: BenchmarkConfig
    language: str
    vocabulary: Vocabulary | None
    grammar: Grammar

    @classmethod
    def of(cls, config: BenchmarkConfig) -> Source:
        """Read what `config` names. Raises InputError for broken files, ConfigError for a vocabulary without words."""
        language = str(config.language)
        if config.vocabulary is None:
            return cls(config, language, None, grammar_of(language))
        vocabulary = read_vocabulary(Path(config.vocabulary), language, config.min_count)
        return cls(config, language, vocabulary, grammar_of(language, vocabulary.knows))

    @property
    def paradigms(self) -> list[str]:
        """The UIDs of the requested paradigms. Raises ConfigError for one that does not exist."""
        return self.config.chosen_paradigms(paradigms_of(self.language))

    def paradigm(self, name: str) -> Paradigm:
        """Read one paradigm. Raises as `paradigm_of`."""
        return paradigm_of(self.language, name, self.grammar)

    def pairs(self, paradigm: Paradigm, count: int) -> Iterator[dict[str, Any]]:
        """Yield `count` pairs of a paradigm. Raises Exhausted after the last one if there are fewer."""
        return paradigm.pairs(random.Random(f"{self.config.seed}:{paradigm.name}"), count, self._refusal)

    def _refusal(self, good: str, bad: str) -> str | None:
        unknown = self.vocabulary and self.vocabulary.unknown_word(good, bad)
        return f"with '{unknown}', which the vocabulary lacks" if unknown else None

    @property
    def origin(self) -> dict[str, Any]:
        """Settings, and digests of the words and phrases of all paradigms, of each paradigm and of the vocabulary."""
        folder = FOLDER / LANGUAGES[self.language]
        shared = [*sorted((folder / "lexicon").glob("*.tsv")), folder / "grammar.yaml"]
        origin: dict[str, Any] = {
            "language": self.language,
            "seed": self.config.seed,
            "lexicon": sha256_json([sha256_file(file) for file in shared]),
            "paradigms": {name: sha256_file(folder / "paradigms" / f"{name}.yaml") for name in self.paradigms},
        }
        if self.vocabulary is not None:
            origin["vocabulary"] = {"digest": self.vocabulary.digest, "words": len(self.vocabulary.counts)}
            if self.config.min_count is not None and any(self.vocabulary.counts.values()):
                origin["min_count"] = self.config.min_count
        return origin


def generate(config: BenchmarkConfig) -> Generated:
    """Draw the pairs that `config` (of the form "generated", its vocabulary a file or null) requests.

    A paradigm's pairs depend on its name, the seed, the language's files and the vocabulary alone; more of them begin
    with the same ones. Raises InputError for broken files and if no paradigm is available.
    """
    assert config.pairs is not None
    source = Source.of(config)
    pairs, unavailable = {}, {}
    for name in source.paradigms:
        drawn: list[dict[str, Any]] = []
        try:
            drawn += source.pairs(source.paradigm(name), max(config.pairs, LEAST_PAIRS))
        except (NothingFits, Exhausted) as error:
            if len(drawn) < LEAST_PAIRS:
                unavailable[name] = str(error)
                continue
        pairs[name] = drawn[: config.pairs]
    if not pairs:
        name, reason = next(iter(unavailable.items()))
        raise InputError(f"benchmark={config.name}: no paradigm has {LEAST_PAIRS} pairs; {name}: {reason}")
    return Generated(pairs, unavailable, source.origin)
