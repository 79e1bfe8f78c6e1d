"""A small English of our own: text of any size, and minimal pairs that never occur in it.

grammar.yaml writes the text, templates.yaml the pairs; the words of both are the tables in lexicon/. A sentence whose
checksum says so (one in eight) is reserved: only the benchmark may hold it. Bad sentences are not in the grammar.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from corpora.config import ToyCorpusConfig
from corpora.documents import Document
from corpora.toy.grammar import Symbol, reserved, sentence_of, spell, toy_grammar
from corpora.toy.templates import toy_templates

_START = Symbol("Sentence", None, ())


def documents(config: ToyCorpusConfig) -> Iterator[Document]:
    """Documents until they hold `config.words` words (the final mark is one); the last sentence may go beyond it."""
    grammar = toy_grammar()
    rng = random.Random(config.seed)
    left = config.words
    while left > 0:
        size = grammar.document[int(rng.random() * len(grammar.document))]
        sentences: list[str] = []
        while len(sentences) < size and left > 0:
            words = grammar.draw(_START, rng)
            if len(words) in grammar.length and not reserved(sentence := sentence_of(spell(words))):
                sentences.append(sentence)
                left -= len(words)
        yield Document("toy", sentences)


def pairs(seed: int, per_paradigm: int) -> Iterator[dict[str, Any]]:
    """Minimal pairs, `per_paradigm` different ones of each template, with the keys of BLiMP's JSON Lines.

    A template's pairs depend on nothing but its name and the seed. Raises InputError where it has too few.
    """
    for template in toy_templates():
        rng = random.Random(f"{seed}:{template.name}")
        for index, pair in enumerate(template.pairs(rng, per_paradigm)):
            yield {**pair, "pairID": str(index)}
