"""Which tokens of a tokenizer are whole words: they begin one, and are a word to look at (no marks, no special tokens).

That such a token is also the beginning of longer words ("wait" of "waiter") no tokenizer tells.
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
    """Whether `text` looks like a word: it begins with a letter or a digit."""
    return _WORD.fullmatch(text) is not None and text.lower() not in _NO_WORDS


def own_words(tokenizer: Tokenizer) -> dict[int, str]:
    """Ids and words of one of our tokenizers: of pieces those with the mark that begins a word, of characters none."""
    if tokenizer.config.kind == "char":
        return {}
    begin = "" if tokenizer.word_level else "▁"
    tokens = {index: tokenizer.token(index) for index in range(max(EOS, UNK) + 1, len(tokenizer))}
    words = {index: token.removeprefix(begin) for index, token in tokens.items() if token.startswith(begin)}
    return {index: word for index, word in words.items() if is_word(word)}


def hub_words(tokenizer: PreTrainedTokenizerFast, vocabulary: int) -> dict[int, str]:
    """Ids and words of a Hugging Face tokenizer: what it sets off by a space when it puts a token after a word.

    So nothing need be known of its marks ("Ġ", "▁", "##"). `vocabulary`: how many tokens the model knows.
    """
    word = tokenizer.encode("a", add_special_tokens=False)[-1]
    (before,) = tokenizer.batch_decode([[word]], clean_up_tokenization_spaces=False)
    special = set(tokenizer.all_special_ids)
    tokens = [index for index in range(min(len(tokenizer), vocabulary)) if index not in special]
    texts = tokenizer.batch_decode([[word, index] for index in tokens], clean_up_tokenization_spaces=False)
    begin = f"{before} "
    found = {index: text[len(begin) :] for index, text in zip(tokens, texts, strict=True) if text.startswith(begin)}
    return {index: word for index, word in found.items() if is_word(word)}
