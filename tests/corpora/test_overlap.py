"""Sentences of a list in a text: beside a search without hashing, and spelled as tokenised text spells them."""

import random
import string

import pytest

from corpora.config import SplitConfig
from corpora.overlap import normalised, occurrences
from corpora.text import Document, TextStore, write_text_store

SPLIT = SplitConfig(seed=0, valid=0.3, test=0.3)
SENTENCES = ["The cats sleep.", "A dog barks , doesn 't it ?", "the CATS  sleep .", "Cats sleep.", "We do n't know."]


def text_of(folder, sentences) -> TextStore:
    documents = [Document("d", [sentence]) for sentence in sentences]
    write_text_store(folder / "text", documents, "treebank", SPLIT, {"source": "list"})
    return TextStore(folder / "text")


def test_case_white_space_and_spaces_before_punctuation_are_disregarded(tmp_path):
    text = text_of(tmp_path, [*SENTENCES * 4, "The cats sleep. The dogs bark."])
    found = occurrences(text, ["the cats sleep .", "We don’t know.", "Dogs bark.", "The cats", "The cats sleep"])
    assert {sentence: [text.sentence(index) for index in indices[:2]] for sentence, indices in found.items()} == {
        "the cats sleep.": ["The cats sleep.", "the CATS  sleep ."],
        "we don't know.": ["We do n't know.", "We do n't know."],
    }
    assert found["the cats sleep."].tolist() == [n for n in range(20) if n % 5 in (0, 2)]


@pytest.mark.parametrize(("one", "other"), [("the a part", "the apart"), ("no cats.", "no cat."), ("10.5", "105")])
def test_words_and_punctuation_count(one, other):
    assert normalised(one) != normalised(other)


WORDS = ["a", "A", "cat", "Cat", ".", ",", "-", "İ", "é", "do", "n't"]


def plain(sentence):
    """Return a sentence with one space between words and none before other characters: no regular expression."""
    words = sentence.lower().replace("n't", "\0n't").split()
    return "".join(word if word[0] in string.punctuation + "\0" else f" {word}" for word in words).replace("\0", "")


@pytest.mark.parametrize("seed", range(20))
def test_all_occurrences_are_found(tmp_path, seed):
    draw = random.Random(seed)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 4))) for _ in range(120)]
    sentences = [" ".join(draw.choices(WORDS, k=draw.randint(1, 3))) for _ in range(30)]
    text = text_of(tmp_path, lines)
    expected = {}
    for sentence in sentences:
        if indices := [n for n, line in enumerate(lines) if plain(line) == plain(sentence)]:
            expected[normalised(sentence)] = indices
    assert {sentence: indices.tolist() for sentence, indices in occurrences(text, sentences).items()} == expected
