"""A small English of our own: text of any size from grammar.yaml and the tables of words in lexicon/.

Minimal pairs of the same language (eval/benchmarks/toy) never occur in the text: a sentence whose checksum says so (one
in eight) is reserved for them, and their bad sentences are not in the grammar.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from corpora.config import ToyCorpusConfig
from corpora.documents import Document
from corpora.grammar.engine import Grammar, read_grammar
from corpora.grammar.symbols import Symbol

FOLDER = Path(__file__).parent
RESERVED_SHARE = 8  # one sentence in so many is left to the benchmark

_START = Symbol("Sentence", None, ())


@lru_cache(maxsize=1)
def toy_grammar() -> Grammar:
    """The grammar of grammar.yaml over the tables of lexicon/. Raises InputError where they do not fit together."""
    return read_grammar(FOLDER)


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
