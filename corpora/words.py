"""Reference words: the words of a corpus by its reference tokenizer, whatever tokenizer a model uses.

treebank    NLTK's `word_tokenize` for one sentence (Penn Treebank rules: contractions and punctuation are split off,
            the full stop only at the sentence's end), except that words are slices of the text: a double quote is not
            rewritten as `` or ''.
characters  characters that are not white space.
jieba       Chinese words by jieba's dictionary and hidden Markov model.
whitespace  words between white space, for pretokenised text.

Jieba's algorithm comes from `rjieba`, its Rust port: seven times faster than `jieba`, maintained, without warnings
under Python 3.12, and without a pickled dictionary in a folder that anyone can write to.
"""

import re
from functools import lru_cache
from itertools import chain
from typing import Any

from corpora.config import REFERENCES
from pairscale.errors import check_choice

CACHED = 1 << 19  # chunks whose words are remembered; natural text repeats nearly all chunks

# Marks after the full stop that ends a sentence: NLTK splits off the full stop in front of them.
_CLOSING = "])}>\"'»”’"
# The rules of NLTK that most chunks need, in one expression that is some fifty times faster: if its matches cover a
# chunk, they are NLTK's words. All other chunks (n't, single quotes, --, ...) go to NLTK.
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
    # Deferred: importing NLTK takes half a second, and most corpora are read from a store.
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()


def _slices(chunk: str, tokens: list[str]) -> tuple[str, ...]:
    """Return NLTK's tokens of a chunk as slices of it: only double quotes can differ."""
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
    """Return the words of a chunk that does not end its sentence; None if it needs NLTK."""
    words = _TOKEN.findall(chunk)
    return words if sum(map(len, words)) == len(chunk) and not _CONTRACTION.search(chunk) else None


@lru_cache(maxsize=CACHED)
def _inner_words(chunk: str) -> tuple[str, ...]:
    """Return the words of a chunk without spaces that does not end its sentence."""
    words = _by_expression(chunk)
    return tuple(words) if words else _slices(chunk, _nltk().tokenize(f"a {chunk} a")[1:-1])


@lru_cache(maxsize=CACHED // 4)
def _last_words(chunk: str) -> tuple[str, ...]:
    """Return the words of the chunk that ends a sentence."""
    stop = _FINAL_STOP.fullmatch(chunk)
    words = _by_expression(stop[1] if stop else chunk)
    if words:
        return (*words, *stop[2], *stop[3]) if stop else tuple(words)
    return _slices(chunk, _nltk().tokenize(f"a {chunk}")[1:])


def _treebank(text: str) -> list[str]:
    # NLTK's rules look no further than the nearest white space, except for the full stop at the sentence's end. So a
    # sentence can be cut into chunks at white space, and the words of each chunk remembered.
    chunks = text.split()
    if not chunks:
        return chunks
    last = chunks.pop()
    while chunks and not last.strip(_CLOSING + " "):
        last = f"{chunks.pop()} {last}"
    return [*chain.from_iterable(map(_inner_words, chunks)), *_last_words(last)]


def words(text: str, reference: str) -> list[str]:
    """Return one sentence's words: slices of `text`, only white space between; ConfigError if not of REFERENCES."""
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
    """Return the character offsets of `pieces`: slices of `text` in order, with only white space between them."""
    spans = []
    end = 0
    for piece in pieces:
        start = text.index(piece, end)
        end = start + len(piece)
        spans.append((start, end))
    return spans


def word_spans(text: str, reference: str) -> list[tuple[int, int]]:
    """Return the character offsets of a sentence's reference words. Raises ConfigError as `words` does."""
    return spans_of(text, words(text, reference))


def count_words(text: str, reference: str) -> int:
    """Return the number of a sentence's reference words. Raises ConfigError as `words` does."""
    return len(words(text, reference))


def count_characters(text: str) -> int:
    """Return the number of characters that are not white space."""
    return len("".join(text.split()))
