"""The tokens of a tokenizer that are whole words: they begin a word and look like one (no marks, no special tokens).

No tokenizer tells that such a token also begins longer words ("wait" of "waiter").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from corpora.tokenizers import EOS, UNK, Tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_WORD = re.compile(r"[^\W_][\w'’.&/-]*")
_NO_WORDS = ("n't", "n’t")  # Treebank tokens that begin no word; the other contractions begin with a mark


def is_word(text: str) -> bool:
    """Return True if `text` looks like a word: it begins with a letter or a digit."""
    return _WORD.fullmatch(text) is not None and text.lower() not in _NO_WORDS


def own_beginnings(tokenizer: Tokenizer) -> list[int] | None:
    """Return the ids of our own tokenizer's tokens that begin a word after another; None: each token is a word."""
    if tokenizer.word_level:
        return None
    begin = " " if tokenizer.config.kind == "char" else "▁"
    return [index for index in range(max(EOS, UNK) + 1, len(tokenizer)) if tokenizer.token(index).startswith(begin)]


def own_words(tokenizer: Tokenizer) -> dict[int, str]:
    """Return ids and words of our own tokenizer: pieces that have the mark of a new word; no characters."""
    if tokenizer.config.kind == "char":
        return {}
    begin = "" if tokenizer.word_level else "▁"
    tokens = {index: tokenizer.token(index) for index in range(max(EOS, UNK) + 1, len(tokenizer))}
    words = {index: token.removeprefix(begin) for index, token in tokens.items() if token.startswith(begin)}
    return {index: word for index, word in words.items() if is_word(word)}


def hub_words(tokenizer: PreTrainedTokenizerFast, vocabulary: int) -> dict[int, str]:
    """Return ids and words of a Hugging Face tokenizer; `vocabulary`: as in `hub_beginnings`."""
    return {index: word for index, word in hub_beginnings(tokenizer, vocabulary).items() if is_word(word)}


def hub_beginnings(tokenizer: PreTrainedTokenizerFast, vocabulary: int) -> dict[int, str]:
    """Return ids and texts of the tokens that a Hugging Face tokenizer sets off by a space after another word.

    This needs no knowledge of its marks ("Ġ", "▁", "##"). `vocabulary` is the number of tokens that the model knows.
    """
    word = tokenizer.encode("a", add_special_tokens=False)[-1]
    (before,) = tokenizer.batch_decode([[word]], clean_up_tokenization_spaces=False)
    special = set(tokenizer.all_special_ids)
    tokens = [index for index in range(min(len(tokenizer), vocabulary)) if index not in special]
    texts = tokenizer.batch_decode([[word, index] for index in tokens], clean_up_tokenization_spaces=False)
    begin = f"{before} "
    return {index: text[len(begin) :] for index, text in zip(tokens, texts, strict=True) if text.startswith(begin)}
