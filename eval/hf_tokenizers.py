"""What scoring needs of the tokenizers of Hugging Face models."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from corpora.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def encoded(
    tokenizer: PreTrainedTokenizerFast, sentences: list[str]
) -> Iterator[tuple[str, tuple[list[int], list[tuple[int, int]]]]]:
    """Ids and character offsets of each sentence, without any symbol that the tokenizer would add."""
    if not sentences:
        return
    found = tokenizer(sentences, add_special_tokens=False, return_offsets_mapping=True, return_attention_mask=False)
    yield from zip(sentences, zip(found["input_ids"], found["offset_mapping"], strict=True), strict=True)


def check_fast(tokenizer: PreTrainedTokenizerFast, name: str) -> None:
    if not tokenizer.is_fast:
        raise ConfigError(f"{name}: its tokenizer gives no character offsets (it has no tokenizer.json)")


def tokenizer_digest(tokenizer: PreTrainedTokenizerFast) -> str:
    return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()


def begin_symbol(tokenizer: PreTrainedTokenizerFast, begin: str | None, name: str) -> int:
    if begin is not None:
        if begin not in (vocabulary := tokenizer.get_vocab()):
            raise ConfigError(f"model.begin={begin}: no token of {name}")
        return int(vocabulary[begin])
    for index in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if index is not None:
            return int(index)
    raise ConfigError(f"{name}: its tokenizer names neither BOS nor EOS; give model.begin=TOKEN to stand for one")
