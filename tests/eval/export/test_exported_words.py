"""The words of an exported tokenizer of jieba's words, equal to those of the study (corpora/words.py)."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.config import TokenizerConfig
from corpora.fast_tokenizers import save_fast_tokenizer
from corpora.tokenizers import fit_tokenizer
from corpora.words import word_spans
from tests.support.random_models import saved_tokenizer

PARTS = ["狗", "喜欢", "北京大学", "can't", "3,5", "a", " ", "  ", "--", "”", "\u00a0", "\n"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    config = TokenizerConfig(
        name="t", kind="jieba", vocab_size=None, fit_on="train", fit_sentences=10, character_coverage=1.0
    )
    folder = tmp_path_factory.mktemp("tokenizer")
    save_fast_tokenizer(folder, fit_tokenizer(config, ["狗 喜欢"], 1), False, None)
    return saved_tokenizer(folder)


@given(text=st.one_of(st.lists(st.sampled_from(PARTS), max_size=10).map("".join), st.text(max_size=15)))
def test_words_are_those_of_the_study(tokenizer, text):
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    assert encoded["offset_mapping"] == word_spans(text, "jieba")


def test_a_missing_package_is_named(tokenizer, monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)  # as if it were not installed
    with pytest.raises(ImportError, match=r"^this tokenizer cuts words by rjieba: pip install rjieba$"):
        tokenizer("狗")
