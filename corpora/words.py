"""Reference words: what counts as a word of a corpus, whatever the tokenizer of a model makes of the text.

treebank    NLTK's `word_tokenize` for one sentence (Penn Treebank rules: contractions and punctuation are split off,
            the full stop only at the sentence's end), except that words are slices of the text: a double quote stays
            one, where NLTK writes `` or ''.
characters  every character that is not white space.
jieba       Chinese words with jieba's dictionary and hidden Markov model.
whitespace  what stands between white space (pretokenised text).

Jieba's algorithm is taken from `rjieba`, its Rust port, rather than from `jieba`: seven times faster, kept up, no
warnings under Python 3.12, and no pickled dictionary read from a folder that anyone can write to.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from typing import Any

from corpora.config import REFERENCES
from pairscale.errors import check_choice

CACHED = 1 << 19  # chunks whose words are remembered; a natural text repeats nearly all of them

# What may follow the full stop that ends a sentence: NLTK then still splits that full stop off.
_CLOSING = "])}>\"'»”’"
# The rules of NLTK that most chunks need, in one expression that is some fifty times faster: where its matches make up
# the whole chunk they are NLTK's words. What it leaves out (n't, quotes of one stroke, --, ...) is left to NLTK.
_MARKS = r"""—–‒―"“”„‘’«»()\[\]{}<>;?!&%$#@*"""
_TOKEN = re.compile(
    rf"""\.{{2,}}
    | (?: [\w/] | (?<!-)-(?!-) | (?<!\.)\.(?!\.) | [,:](?=\d) )+
    | (?<=[\w./-]) '(?:[sSmMdD]|ll|LL|re|RE|ve|VE) (?= $ | [{_MARKS}] | [,:](?!\d) )
    | [{_MARKS}] | [,:](?![,:])""",
    re.VERBOSE,
)
_CONTRACTION = re.compile(r"\b(?:cannot|gimme|gonna|gotta|lemme|wanna)\b", re.IGNORECASE)
_FINAL_STOP = re.compile(r"""(.*[^.])(\.)([\])}>"»”’]*)""")


@lru_cache(maxsize=1)
def _nltk() -> Any:
    # Imported late: NLTK takes half a second, and most corpora are read from a store.
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()


def _slices(chunk: str, tokens: list[str]) -> tuple[str, ...]:
    """NLTK's tokens of a chunk as they stand in it: only double quotes can differ."""
    words = []
    start = 0
    for token in tokens:
        word = next(form for form in (token, "''", '"') if chunk.startswith(form, start))
        words.append(word)
        start += len(word)
        while chunk.startswith(" ", start):
            start += 1
    assert start == len(chunk), (chunk, tokens)
    return tuple(words)


def _by_expression(chunk: str) -> list[str] | None:
    """Words of a chunk that does not end its sentence; None where only NLTK can tell."""
    words = _TOKEN.findall(chunk)
    return words if sum(map(len, words)) == len(chunk) and not _CONTRACTION.search(chunk) else None


@lru_cache(maxsize=CACHED)
def _inner_words(chunk: str) -> tuple[str, ...]:
    """Words of a chunk without spaces that does not end its sentence."""
    found = _by_expression(chunk)
    return tuple(found) if found else _slices(chunk, _nltk().tokenize(f"a {chunk} a")[1:-1])


@lru_cache(maxsize=CACHED // 4)
def _last_words(chunk: str) -> tuple[str, ...]:
    """Words of what ends a sentence."""
    stop = _FINAL_STOP.fullmatch(chunk)
    found = _by_expression(stop[1] if stop else chunk)
    if found:
        return (*found, *stop[2], *stop[3]) if stop else tuple(found)
    return _slices(chunk, _nltk().tokenize(f"a {chunk}")[1:])


def chunk_words(chunk: str, final: bool) -> tuple[str, ...]:
    """Treebank words of what stands between two spaces; `final`: it ends its sentence. See `treebank_chunks`."""
    return _last_words(chunk) if final else _inner_words(chunk)


def treebank_chunks(text: str) -> tuple[list[str], str]:
    """The chunks of a sentence whose words do not depend on each other, the one that ends it apart ("" for none)."""
    chunks = text.split()
    if not chunks:
        return chunks, ""
    last = chunks.pop()
    while chunks and not last.strip(_CLOSING + " "):
        last = f"{chunks.pop()} {last}"
    return chunks, last


def _treebank(text: str) -> list[str]:
    # NLTK's rules look no further than the white space around them, but for the full stop at the sentence's end. So a
    # sentence can be cut into chunks at white space, and the words of each chunk remembered.
    chunks, last = treebank_chunks(text)
    words = list(chain.from_iterable(map(_inner_words, chunks)))
    words += _last_words(last) if last else ()
    return words


def words(text: str, reference: str) -> list[str]:
    """The reference words of one sentence, in order; each is a slice of `text`, and only white space lies between.

    Raises ConfigError for a reference that is none of REFERENCES.
    """
    match reference:
        case "treebank":
            return _treebank(text)
        case "characters":
            return list("".join(text.split()))
        case "jieba":
            import rjieba

            return [word for word in rjieba.cut(text) if not word.isspace()]
        case "whitespace":
            return text.split()
    check_choice("corpus.reference", reference, REFERENCES)
    raise AssertionError


def spans_of(text: str, pieces: list[str]) -> list[tuple[int, int]]:
    """Character offsets of `pieces`, slices of `text` in order with only white space between them."""
    spans = []
    end = 0
    for piece in pieces:
        start = text.index(piece, end)
        end = start + len(piece)
        spans.append((start, end))
    return spans


def word_spans(text: str, reference: str) -> list[tuple[int, int]]:
    """Character offsets of the reference words of one sentence. Raises ConfigError for an unknown reference."""
    return spans_of(text, words(text, reference))


def count_words(text: str, reference: str) -> int:
    """Number of reference words of one sentence. Raises ConfigError for an unknown reference."""
    if reference == "treebank":  # without a list of the words, for whole corpora
        chunks, last = treebank_chunks(text)
        return sum(map(len, map(_inner_words, chunks))) + len(_last_words(last) if last else ())
    return len(words(text, reference))


def count_characters(text: str) -> int:
    """Number of characters that are not white space."""
    return len("".join(text.split()))
