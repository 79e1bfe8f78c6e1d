"""A small English of our own: text of any size, and minimal pairs that never occur in it.

grammar.yaml writes the text, templates.yaml the pairs; the words of both are the tables in lexicon/. A sentence whose
checksum says so (one in eight) is reserved: only the benchmark may hold it. Bad sentences are not in the grammar.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from corpora.config import ToyCorpusConfig
from corpora.grammar.engine import Grammar, read_grammar
from corpora.grammar.symbols import Symbol
from corpora.sources.documents import Document
from eval.benchmarks.template import Template

FOLDER = Path(__file__).parent
RESERVED_SHARE = 8  # one sentence in so many is left to the benchmark

_START = Symbol("Sentence", None, ())


@lru_cache(maxsize=1)
def toy_grammar() -> Grammar:
    """The grammar of grammar.yaml over the tables of lexicon/. Raises InputError where they do not fit together."""
    return read_grammar(FOLDER)


@lru_cache(maxsize=1)
def toy_templates() -> list[Template]:
    """The templates of templates.yaml. Raises InputError, naming the template, for one that cannot be drawn from."""
    described = yaml.safe_load((FOLDER / "templates.yaml").read_text("utf-8"))
    return [Template(name, description, toy_grammar()) for name, description in described.items()]


def reserved(sentence: str) -> bool:
    """Whether a sentence is kept for the benchmark, whatever the seeds: no text contains it."""
    return zlib.crc32(sentence.encode()) % RESERVED_SHARE == 0


def documents(config: ToyCorpusConfig) -> Iterator[Document]:
    """Documents until they hold `config.words` words (the final mark is one); the last sentence may go beyond it."""
    grammar = toy_grammar()
    assert grammar.document is not None
    assert grammar.length is not None
    spelling = grammar.spelling
    rng = random.Random(config.seed)
    left = config.words
    while left > 0:
        size = grammar.document[int(rng.random() * len(grammar.document))]
        sentences: list[str] = []
        while len(sentences) < size and left > 0:
            words = grammar.draw(_START, rng)
            if len(words) in grammar.length and not reserved(sentence := spelling.text(spelling.spell(words))):
                sentences.append(sentence)
                left -= len(words)
        yield Document("toy", sentences)


def _in_text(good: str, bad: str) -> str | None:
    return None if reserved(good) else "that the text may hold"


def pairs(seed: int, per_paradigm: int) -> Iterator[dict[str, Any]]:
    """Minimal pairs, `per_paradigm` different ones of each template, with the keys of BLiMP's JSON Lines.

    A template's pairs depend on nothing but its name and the seed. Raises InputError where it has too few.
    """
    for template in toy_templates():
        rng = random.Random(f"{seed}:{template.name}")
        for index, pair in enumerate(template.pairs(rng, per_paradigm, _in_text)):
            yield {**pair, "pairID": str(index)}
