"""Reference words, compared with NLTK's tokenizer on BLiMP, on running text and on random text."""

import json
import lzma
from itertools import islice, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize import word_tokenize

from corpora.config import REFERENCES
from corpora.words import count_characters, count_words, word_spans, words
from pairscale.errors import ConfigError

# Pieces to which the Treebank rules apply: contractions, marks, quotes, brackets, numbers, stops.
_PIECES = r"""
    dog Dogs can't CANNOT gonna Wanna gimme d'ye more'n 'tis o'clock 's n't 'll I'd dogs' 'quoted' rock'n'roll
    Mr. U.S. e.g. etc... . .. ... , ,, : ; ;; ? ! ?! - -- — – … " '' ' `` ` ( ) [ ] { } < > « » “ ” ‘ ’ „ & % $5.50
    #1 @x * 3,000 10:30 a:b 1/2 can(not) don't. end.) end." end.' end.” x.y http://a.b café 狗 "Stop!" 'em _ a_b 10:
    (dog's dog's, dog's. (cannot well-known can-not Gimme-dog (3,000) "dog dog), dog". ""dog"" '''dog'' dog?" e-
    "plates"—are U.S.'s a's—b's, (2013). régime"". d'Or's $15–20 16,032 x,3 :3 a.b.c (a.) [a]
    be?". On!!". and/or p.5 A1::DQ2 a,,b ::a
"""
PIECES = _PIECES.split()


def same_words(tokens: list[str], nltk: list[str]) -> bool:
    """Return True if the words are NLTK's, which writes double quotes as `` or ''."""
    quotes = ('"', "''", "``")
    pairs = zip(tokens, nltk, strict=False)
    return len(tokens) == len(nltk) and all(a == b or (a in quotes and b in quotes) for a, b in pairs)


def nltk_words(text: str) -> list[str]:
    return word_tokenize(text, preserve_line=True)


def test_treebank_words_of_blimp_are_nltks(real_data):
    for path in sorted((real_data / "blimp").glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            for row in map(json.loads, islice(file, 0, None, 25)):
                for sentence in (row["sentence_good"], row["sentence_bad"]):
                    assert words(sentence, "treebank") == nltk_words(sentence)


def test_treebank_words_of_running_text_are_nltks(real_data):
    with lzma.open(real_data / "text" / "english.txt.xz", "rt", encoding="utf-8") as file:
        for line in filter(None, map(str.strip, islice(file, 4_000))):
            assert same_words(words(line, "treebank"), nltk_words(line)), line


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=8), st.sampled_from([" ", "  ", " \t"]))
@example(['"', "dog", '."'], " ")
@example(["dog.", '"', ")"], " ")
def test_treebank_words_of_odd_text_are_nltks(pieces, space):
    text = space.join(pieces)
    assert same_words(words(text, "treebank"), nltk_words(" ".join(pieces)))


def test_the_other_references_by_hand():
    assert words("我们 喜欢狗。A b", "characters") == ["我", "们", "喜", "欢", "狗", "。", "A", "b"]
    assert words("我们喜欢狗。 北京大学", "jieba") == ["我们", "喜欢", "狗", "。", "北京大学"]
    assert words(" a b.  c ", "whitespace") == ["a", "b.", "c"]


@given(st.text(max_size=40), st.sampled_from(REFERENCES))
@example("\"\u00a0'' ``x``", "treebank")
def test_words_are_slices_of_the_text_and_cover_all_but_white_space(text, reference):
    tokens = words(text, reference)
    spans = word_spans(text, reference)
    assert [text[start:end] for start, end in spans] == tokens
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert "".join(tokens) == "".join(text.split())
    assert count_words(text, reference) == len(tokens)
    assert count_characters(text) == sum(not character.isspace() for character in text)


def test_an_unknown_reference_raises_an_error():
    with pytest.raises(ConfigError, match=r"corpus\.reference=bert: must be one of characters, jieba"):
        words("a", "bert")
