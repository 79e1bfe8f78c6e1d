"""Tokenizers of Hugging Face models: checks, begin symbols, words, and the settings that scores depend on."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from eval.benchmarks.cells import shown
from eval.scorers.next_words.readings import Encoded
from eval.scorers.trees import Ids
from pairscale.errors import ConfigError, InputError
from pairscale.files import sha256_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

# Plain text in two scripts: a tokenizer of any model reads a part of it, and a trained model predicts it above chance.
PLAIN_SENTENCES = (
    "The children were playing in the garden when it started to rain.",
    "She said that she had never seen such a big house before.",
    "He is one of the most important people in the history of the country.",
    "I would like to have a cup of tea and a piece of cake.",
    "The men who live next to my sister do not like the new school.",
    "孩子们在公园里玩，天开始下雨了。",
    "他是这个国家历史上最重要的人之一。",
    "我想喝一杯茶，吃一块蛋糕。",
)
CHINESE = re.compile("[\u3400-\u9fff]")
UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff]")  # Thai, Lao, Tibetan, Burmese, Khmer, kana
# Parts of config.json that change no score: its origin, training, and further output.
_NO_SCORE = ("_name_or_path", "_commit_hash", "architectures", "auto_map", "dtype", "id2label", "label2id",
             "output_attentions", "output_hidden_states", "problem_type", "return_dict", "task_specific_params",
             "torch_dtype", "transformers_version", "use_cache")  # fmt: skip


def encoded(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> list[Encoded]:
    """Return the ids and character offsets of each text, without any symbol that the tokenizer would add."""
    if not texts:
        return []
    with _patterns_of(tokenizer, texts):
        batch = tokenizer(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, return_attention_mask=False
        )
    return list(zip(batch["input_ids"], batch["offset_mapping"], strict=True))


@contextmanager
def _patterns_of(tokenizer: PreTrainedTokenizerFast, sentences: Sequence[str]) -> Iterator[None]:
    """Raise InputError where a pattern in tokenizer.json gives up on a sentence.

    Its patterns are run by Oniguruma, which ends a search of 10 million steps, some tenths of a second, and makes the
    library panic: an exception that is no Exception, and a report of Rust's own on the descriptor of stderr.
    """
    sys.stderr.flush()
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        longest = max(sentences, key=len)
        raise InputError(
            f"{tokenizer.name_or_path}: a pattern of its tokenizer.json gives up on one of {len(sentences):,} texts "
            f"({' '.join(str(error).split())[:150]}; the longest: {shown(longest)}); avoid repetitions of "
            "repetitions, such as (a+)+"
        ) from None
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def check_tokenizer(tokenizer: PreTrainedTokenizerFast, name: str) -> None:
    """Raise ConfigError for a tokenizer without character offsets, InputError for one that reads no letters.

    Where a model comes without its tokenizer, transformers 5 invents one of a few symbols; a normalizer may remove
    letters. All sentences would be equal.
    """
    if not tokenizer.is_fast:
        raise ConfigError(f"{name}: its tokenizer gives no character offsets (it has no tokenizer.json)")
    with _patterns_of(tokenizer, PLAIN_SENTENCES):
        read = tokenizer(list(PLAIN_SENTENCES), add_special_tokens=False)["input_ids"]
    if not any(character.isalpha() for ids in read for character in tokenizer.decode(ids, skip_special_tokens=True)):
        raise InputError(
            f"{name}: its tokenizer ({len(tokenizer):,} tokens) reads no letter of a plain sentence, so it is not the "
            "model's own; put the files of that (tokenizer.json) into the model's folder"
        )


def vocabulary_size(model: PreTrainedModel) -> int:
    """Return the number of tokens that the model can read and predict."""
    size = int(model.config.get_text_config().vocab_size)
    try:
        embeddings = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):  # of code that comes with a model
        return size
    return min(size, int(getattr(embeddings, "num_embeddings", size)))


def tokenizer_digest(tokenizer: PreTrainedTokenizerFast) -> str:
    """Return the SHA-256 of the content of tokenizer.json."""
    return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()


def score_settings(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, begin: int | None = None
) -> dict[str, Any]:
    """Return what changes scores beside the weights and tokenizer.json: begin symbol, special tokens, config.json.

    `begin`: id of the symbol that stands before a sentence. The digest is of config.json's changes to its class.
    """
    names = {name: token for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    special = {name: {"id": tokenizer.convert_tokens_to_ids(token), "text": token} for name, token in names.items()}
    first = None if begin is None else {"id": begin, "text": str(tokenizer.convert_ids_to_tokens(begin))}
    settings = {"begin": first, "special_tokens": special, "config_digest": _config_digest(model.config.to_diff_dict())}
    # A setting of tokenizer_config.json that is not in the tokenizer itself: "<s>" in a text is cut as text.
    return settings | ({"split_special_tokens": True} if tokenizer.split_special_tokens else {})


def _config_digest(values: Any) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): plain(part) for key, part in value.items() if key not in _NO_SCORE}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        return value if isinstance(value, str | int | float | bool | None) else str(value)

    return sha256_json(plain(values))


def begin_symbol(tokenizer: PreTrainedTokenizerFast, begin: str | None, name: str) -> int:
    """Return the symbol before a sentence: `begin`, else BOS, else EOS. Raises ConfigError if there is none."""
    if begin is not None:
        if begin not in (vocabulary := tokenizer.get_vocab()):
            raise ConfigError(f"model.begin={begin}: no token of {name}")
        return int(vocabulary[begin])
    for index in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if index is not None:
            return int(index)
    raise ConfigError(f"{name}: its tokenizer names neither BOS nor EOS; give model.begin=TOKEN to stand for one")


def first_symbol(tokenizer: PreTrainedTokenizerFast) -> int:
    """Return the symbol from which a masked next-token model predicts a first token if its tokenizer adds none.

    CLS, else BOS, as in the evaluation of BabyLM. Raises ConfigError for a tokenizer without either.
    """
    for index in (tokenizer.cls_token_id, tokenizer.bos_token_id):
        if index is not None:
            return int(index)
    raise ConfigError("policy.pll_shift=1: the tokenizer has no CLS or BOS to predict a sentence's first token from")


def words_of_tokens(sentence: str, words: Sequence[int | None], spans: Sequence[tuple[int, int]]) -> Ids:
    """Return the numbers (2, n) of the first and the last word that each token has a part of.

    A word begins where it does for the tokenizer (`words`, the number of each token's word), at white space, which
    belongs to the word after it, and at each Chinese character. Some tokenizers cut a text as a whole: then white space
    alone tells. Raises ConfigError where nothing does, as for two tokens of a script that has no white space, in a text
    without it, none of whose words the tokenizer parts.
    """
    begins = np.zeros(len(sentence) + 1, dtype=bool)  # of each character: a word begins with it
    for space in re.finditer(r"\s+", sentence):
        begins[space.start()] = True
    for character in CHINESE.finditer(sentence):
        begins[[character.start(), character.end()]] = True
    known = _white_space_tells(sentence)
    if not _cut_by_characters(sentence, words, spans):
        for at in range(1, len(spans)):
            start, end = spans[at]
            if end > start and words[at] != words[at - 1]:
                begins[start] = True
                pair = sentence[max(0, start - 1) : start + 1]
                known = known or (_are_letters(pair) and all(map(UNSPACED.match, pair)))
    starts = np.asarray([start for start, _ in spans], dtype=np.int64)
    # A token's last character is not the white space behind it.
    ends = np.asarray([max(start, start + len(sentence[start:end].rstrip()) - 1) for start, end in spans], np.int64)
    number = np.cumsum(begins)
    first, last = number[starts], number[ends]
    for at in np.flatnonzero((first[1:] <= last[:-1]) & (starts[1:] > starts[:-1])).tolist():
        if not known and UNSPACED.search(sentence, spans[at][0], ends[at + 1] + 1):
            raise ConfigError(
                f"policy.pll=within_word_l2r: neither white space nor the tokenizer shows where the words of "
                f"{shown(sentence)} end; give policy.pll=original"
            )
    return np.stack([first, last])


def _white_space_tells(sentence: str) -> bool:
    """Return True if white space shows words also of a script that needs none.

    It does in a text of three parts or more, and between two parts of such scripts. Else it may part another script.
    """
    parts = sentence.split()
    return len(parts) > 2 or (len(parts) == 2 and all(UNSPACED.search(one) or CHINESE.search(one) for one in parts))


def _cut_by_characters(sentence: str, words: Sequence[int | None], spans: Sequence[tuple[int, int]]) -> bool:
    """Return True if each character is a word to the tokenizer, also those of a word of several letters."""
    pairs = [at for at in range(len(spans) - 1) if _are_letters(sentence[spans[at][0] : spans[at + 1][1]])]
    return (
        bool(pairs)
        and all(end - start <= 1 for start, end in spans)
        and all(words[at] != words[at + 1] for at in pairs)
    )


def _are_letters(pair: str) -> bool:
    return len(pair) == 2 and pair.isalpha() and not CHINESE.search(pair)
