"""The words of an exported tokenizer, equal to those of the study (corpora/words.py)."""

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpora.config import TokenizerConfig
from corpora.fast_tokenizers import save_fast_tokenizer
from corpora.tokenizers import fit_tokenizer
from corpora.words import word_spans
from tests.support.random_models import saved_tokenizer

PARTS = ["can't", "cannot", "'tis", "wanna", "gonna", "dogs'", "'s", "n't", '"', "''", "``", ".", "..", "...", ",", ":",
         "3,5", "a", "Mr.", ")", "”", " ", "  ", "--", "狗", "\u00a0", "\n"]  # fmt: skip


@pytest.fixture(scope="module", params=["word", "jieba"])
def tokenizer(request, tmp_path_factory):
    config = TokenizerConfig("t", request.param, None, "train", fit_sentences=10, character_coverage=1.0)
    folder = tmp_path_factory.mktemp("tokenizer")
    save_fast_tokenizer(folder, fit_tokenizer(config, ["a dog"], 1), False, None)
    return saved_tokenizer(folder)


@given(text=st.one_of(st.lists(st.sampled_from(PARTS), max_size=10).map("".join), st.text(max_size=15)))
@example('He said: "No, Mr. Fox can\'t." ')
def test_words_are_those_of_the_study(tokenizer, text):
    reference = {"treebank": "treebank", "jieba": "jieba"}[tokenizer.init_kwargs["words"]]
    assert tokenizer.spans(text) == word_spans(text, reference)


def test_a_missing_package_is_named(tokenizer, monkeypatch):
    package, module = {"treebank": ("nltk", "nltk.tokenize.destructive"), "jieba": ("rjieba", "rjieba")}[
        tokenizer.init_kwargs["words"]
    ]
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(ImportError, match=rf"^this tokenizer cuts words by {package}: pip install {package}$"):
        tokenizer("A dog barks.")
