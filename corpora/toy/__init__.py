"""Generate text of any size in the toy language, a small fragment of English, from grammar.yaml and lexicon/.

The sentences of the language's minimal pairs (eval/benchmarks/toy) never occur in the text. A checksum reserves one
sentence in four for the good sentences, and the grammar doesn't generate the bad ones.
"""

import random
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from corpora.config import ToyCorpusConfig
from corpora.grammar.engine import Grammar, read_grammar
from corpora.grammar.symbols import Symbol
from corpora.text import Document
from pairscale.errors import ConfigError

FOLDER = Path(__file__).parent
VERSION = 2  # increase it here and in conf/corpus/toy.yaml when a change affects the text
RESERVED = 4  # one sentence in this many is reserved for the benchmark

_START = Symbol("Sentence", None, ())


@lru_cache(maxsize=1)
def toy_grammar() -> Grammar:
    """Read the grammar of the toy language."""
    return read_grammar(FOLDER)


def is_reserved(sentence: str) -> bool:
    """Return True if a sentence is reserved for the benchmark. Texts never contain it, whatever their seed."""
    return zlib.crc32(sentence.encode()) % RESERVED == 0


def documents(config: ToyCorpusConfig) -> Iterator[Document]:
    """Generate documents with `config.words` words in total, including final marks. The last sentence may exceed this.

    Raises ConfigError if `config.version` is not VERSION.
    """
    if config.version != VERSION:
        raise ConfigError(
            f"corpus.version={config.version}: only version {VERSION} of the toy language can be generated. Remove "
            "corpus.version."
        )
    grammar = toy_grammar()
    assert grammar.document is not None
    assert grammar.length is not None
    spelling = grammar.spelling
    rng = random.Random(config.seed)
    remaining = config.words
    while remaining > 0:
        size = grammar.document[int(rng.random() * len(grammar.document))]
        sentences: list[str] = []
        while len(sentences) < size and remaining > 0:
            words = grammar.draw(_START, rng)
            if len(words) in grammar.length and not is_reserved(sentence := spelling.text(spelling.spell(words))):
                sentences.append(sentence)
                remaining -= len(words)
        yield Document("toy", sentences)
